package forward

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dialCaptured opens a connection that the Door takes as one to a host and a port.
func dialCaptured(t *testing.T, d *Door, host, port string) net.Conn {
	t.Helper()
	l := listen(t)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	d.Captured(there, host, port)
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// A named host is served by its name, and by its address if TLS names it. Other hosts get each byte
// that the program sent, also those in which a name was looked for.
func TestCaptured(t *testing.T) {
	authority, err := NewAuthority([]string{"api.test"}, 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other := listen(t)
	go func() {
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s := tls.Server(c, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					return authority.Certificate("api.test", time.Now())
				}})
				fmt.Fprintf(s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother")
			}()
		}
	}()
	d, _ := startDoor(t, other)
	d.c.Authority = authority
	d.c.Named = func(host, port string) bool { return host == "api.test" && port == "443" }
	d.c.Serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "served %s", r.URL) })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	for _, test := range []struct{ host, name, want string }{
		{"api.test", "api.test", "served https://api.test/path"},
		{"API.test.", "api.test", "served https://api.test/path"},
		{"192.0.2.7", "api.test", "served https://api.test/path"},
		{"192.0.2.7", "elsewhere.test", "other"},
		{"elsewhere.test", "elsewhere.test", "other"},
	} {
		c := tls.Client(dialCaptured(t, d, test.host, "443"), &tls.Config{ServerName: test.name, RootCAs: roots,
			InsecureSkipVerify: test.want == "other"})
		fmt.Fprint(c, "GET /path HTTP/1.1\r\nHost: api.test\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s by the name %s: %v", test.host, test.name, err)
			continue
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != test.want {
			t.Errorf("%s by the name %s: %q, want %q", test.host, test.name, b, test.want)
		}
	}
}

// program is a connection from which a program's bytes are read. What is written to it is kept.
type program struct {
	net.Conn
	io.Reader
	got bytes.Buffer
}

func (p *program) Read(b []byte) (int, error)      { return p.Reader.Read(b) }
func (p *program) Write(b []byte) (int, error)     { return p.got.Write(b) }
func (p *program) Close() error                    { return nil }
func (p *program) SetReadDeadline(time.Time) error { return nil }
func (p *program) SetDeadline(time.Time) error     { return nil }

// helloOf is the first message of a client of TLS that asks for a name.
func helloOf(name string) string {
	p := &program{Reader: strings.NewReader("")}
	_ = tls.Client(p, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() // nobody answers
	return p.got.String()
}

// FuzzServerName reads the first bytes of captured connections. The host behind them gets each of these bytes, and the
// program gets none. A name is in the form in which hosts are named.
func FuzzServerName(f *testing.F) {
	for asked, want := range map[string]string{"api.test": "api.test", "API.Test.": "api.test", "": "", "1.2.3.4": ""} {
		sent := helloOf(asked)
		d := &Door{over: f.Context()}
		if name, _ := d.serverName(&program{Reader: strings.NewReader(sent)}); name != want {
			f.Errorf("%q: the name is %q", asked, name)
		}
		f.Add(sent)
		f.Add(sent[:len(sent)/2])
	}
	f.Add("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
	f.Add("\x16\x03\x01\xff\xff")
	f.Add("")
	f.Fuzz(func(t *testing.T, sent string) {
		p := &program{Reader: strings.NewReader(sent)}
		d := &Door{over: t.Context()}
		name, again := d.serverName(p)
		if b, err := io.ReadAll(again); err != nil || string(b) != sent {
			t.Errorf("%q became %q, %v", sent, b, err)
		}
		if p.got.Len() > 0 {
			t.Errorf("%q: the program got %q", sent, p.got.String())
		}
		if name != CanonicalHost(name) {
			t.Errorf("%q: the name is %q", sent, name)
		}
	})
}
