package outgoing

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// variables sets the variables of the environment, and no others.
func variables(t *testing.T, all map[string]string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"} {
		t.Setenv(name, all[name])
		t.Setenv(strings.ToLower(name), all[strings.ToLower(name)])
	}
}

// TestWhichProxy: the proxy of a URL is that of the first variable that is for it.
func TestWhichProxy(t *testing.T) {
	type env map[string]string
	for _, c := range []struct {
		env              env
		plain, encrypted string // the proxies of http://api.test/ and of https://api.test/
	}{
		{env{}, "", ""},
		{env{"HTTP_PROXY": "http://a:1"}, "http://a:1", ""},
		{env{"https_proxy": "a:1"}, "", "http://a:1"},
		{env{"ALL_PROXY": "http://a:1"}, "http://a:1", "http://a:1"},
		{env{"all_proxy": "socks5h://a"}, "socks5h://a", "socks5h://a"},
		{env{"ALL_PROXY": "socks://a:1/"}, "socks5://a:1/", "socks5://a:1/"},
		{env{"ALL_PROXY": "http://a:1", "https_proxy": "http://b:1"}, "http://a:1", "http://b:1"},
		{env{"HTTP_PROXY": "http://a:1", "http_proxy": "http://b:1"}, "http://a:1", ""},
		{env{"ALL_PROXY": "http://a:1", "NO_PROXY": ".test"}, "", ""},
		{env{"HTTP_PROXY": "http://bob:p%40ss%3Aw%2F@a:1"}, "http://bob:p%40ss%3Aw%2F@a:1", ""},
		{env{"HTTP_PROXY": "http://a:1", "HTTPS_PROXY": "http://b:1", "REQUEST_METHOD": "GET"}, "", "http://b:1"},
	} {
		variables(t, c.env)
		p, err := FromEnvironment()
		if err != nil {
			t.Errorf("%v: %v", c.env, err)
			continue
		}
		for to, want := range map[string]string{"http://api.test/": c.plain, "https://api.test/": c.encrypted, "http://localhost/": ""} {
			u, _ := url.Parse(to)
			got := ""
			if via := p.For(u); via != nil {
				got = via.String()
			}
			if got != want {
				t.Errorf("%v: %s goes through %q, want %q", c.env, to, got, want)
			}
		}
	}
}

// TestWrongAddress: a wrong address is an error that names the variable, and nothing of the value,
// which may be a password.
func TestWrongAddress(t *testing.T) {
	for name, v := range map[string]string{
		"HTTP_PROXY":  "http://bob:hush@hush:hush/hush@127.0.0.1:18320",
		"http_proxy":  "http://bob:12/hush@127.0.0.1:8080", // bob:12 would be the host
		"HTTPS_PROXY": "http://bob:hush?hush@127.0.0.1:8080",
		"https_proxy": "http://bob:hush#hush@127.0.0.1:8080",
		"ALL_PROXY":   "http://bob:hu%sh@127.0.0.1:8080",
		"all_proxy":   "ftp://bob:hush@127.0.0.1",
	} {
		variables(t, map[string]string{name: v})
		_, err := FromEnvironment()
		if err == nil || !strings.HasPrefix(err.Error(), name+" ") || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "bob") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// speak lets a server answer each connection after its first bytes, and returns its address.
func speak(t *testing.T, answers ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for _, a := range answers {
					if _, err := r.ReadByte(); err != nil {
						return
					}
					_, _ = r.Discard(r.Buffered())
					_, _ = io.WriteString(c, a)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestBlame: what a proxy does wrong is blamed on it, by the name of its variable, without a
// password; and nothing of the request was written.
func TestBlame(t *testing.T) {
	closed := func() string {
		s := httptest.NewServer(nil)
		s.Close()
		return s.Listener.Addr().String()
	}()
	const socksNo, socksPassword, socksWrong, socksFar = "\x05\xff", "\x05\x02", "\x01\x01", "\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00"
	for _, c := range []struct {
		name, variable, proxy, to string
		says                      string // after the proxy's name
		refuses, forbids          bool
		link                      limit.Link
	}{
		{"nobody there", "HTTP_PROXY", "http://bob:hush@" + closed, "http://api.test/", "cannot be reached: connection refused", false, false, limit.Unreachable},
		{"nobody there", "HTTPS_PROXY", "http://bob:hush@" + closed, "https://api.test/", "cannot be reached: connection refused", false, false, limit.Unreachable},
		{"nobody there", "ALL_PROXY", "socks5://bob:hush@" + closed, "https://api.test/", "cannot be reached: connection refused", false, false, limit.Unreachable},
		{"no such name", "HTTP_PROXY", "http://bob:hush@nowhere.invalid:8080", "http://api.test/", "cannot be reached: its name cannot be resolved: ", false, false, limit.NoName},
		{"a password", "HTTPS_PROXY", "http://" + speak(t, "HTTP/1.1 407 No\r\n\r\n"), "https://api.test/", "wants a user and a password (407)", true, false, limit.Unreachable},
		{"another password", "HTTPS_PROXY", "http://bob:hush@" + speak(t, "HTTP/1.1 407 No\r\n\r\n"), "https://api.test/", "refuses the user and the password of that variable (407)", true, false, limit.Unreachable},
		{"not this host", "HTTPS_PROXY", "http://" + speak(t, "HTTP/1.1 403 Forbidden\r\n\r\n"), "https://api.test/", `answers "403 Forbidden" where it was asked for the way to api.test:443`, false, true, limit.Unreachable},
		{"no way", "HTTPS_PROXY", "http://" + speak(t, "HTTP/1.1 503 Busy\r\n\r\n"), "https://api.test/", `answers "503 Busy" where it was asked for the way to api.test:443`, false, false, limit.Unreachable},
		{"socks, a password", "ALL_PROXY", "socks5://" + speak(t, socksNo), "https://api.test/", "wants a user and a password (407)", true, false, limit.Unreachable},
		{"socks, another password", "ALL_PROXY", "socks5://bob:hush@" + speak(t, socksPassword, socksWrong), "http://api.test/", "refuses the user and the password of that variable (407)", true, false, limit.Unreachable},
		{"socks, no way", "ALL_PROXY", "socks5://" + speak(t, "\x05\x00", socksFar), "http://api.test/", "does not reach api.test: host unreachable", false, false, limit.Unreachable},
	} {
		variables(t, map[string]string{c.variable: c.proxy})
		p, err := FromEnvironment()
		if err != nil {
			t.Fatal(err)
		}
		transport := new(http.Transport)
		p.Set(transport)
		q, _ := http.NewRequest(http.MethodPost, c.to, strings.NewReader("x"))
		_, err = transport.RoundTrip(q)
		e := p.Blame(q.URL, err)
		if e == nil {
			t.Errorf("%s: %v is nobody's fault", c.name, err)
			continue
		}
		via, _ := url.Parse(c.proxy)
		want := Prefix + via.Host + " (" + c.variable + ") " + c.says
		if !strings.HasPrefix(e.Error(), want) || e.Refuses != c.refuses || e.Forbids != c.forbids || strings.Contains(e.Error()+err.Error(), "hush") {
			t.Errorf("%s: %v, %+v; want %s", c.name, err, e, want)
		}
		if link := classify.LinkOf(t.Context(), err); link != c.link || !classify.NeverSent(err) {
			t.Errorf("%s: %v: link %v, never sent %v", c.name, err, link, classify.NeverSent(err))
		}
	}
}

// TestNotToBlame: what the server does is not blamed on the proxy.
func TestNotToBlame(t *testing.T) {
	variables(t, map[string]string{"ALL_PROXY": "http://" + speak(t, "HTTP/1.1 200 OK\r\n\r\n", "what is this?")})
	p, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	transport := new(http.Transport)
	p.Set(transport)
	q, _ := http.NewRequest(http.MethodGet, "https://api.test/", nil)
	if _, err = transport.RoundTrip(q); err == nil || p.Blame(q.URL, err) != nil {
		t.Errorf("%v is blamed on the proxy", err)
	}
	plain, _ := url.Parse("http://api.test/")
	local, _ := url.Parse("http://localhost/")
	if p.Answered(plain, 407) == nil || p.Answered(plain, 401) != nil || p.Answered(q.URL, 407) != nil || p.Answered(local, 407) != nil {
		t.Error("407 is the proxy's over http, if there is one")
	}
	var none *Proxies
	if none.For(plain) != nil || none.Blame(plain, io.EOF) != nil || none.Answered(plain, 407) != nil {
		t.Error("no proxies are to blame")
	}
}
