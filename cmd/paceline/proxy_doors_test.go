package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// With a certificate, clients speak HTTP/1.1 and HTTP/2 over TLS. Clients with plain HTTP get an
// error that says so.
func TestProxyTLS(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer other.Close()
	key, err := x509.MarshalPKCS8PrivateKey(other.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	certFile, keyFile := write(t, "cert.pem", string(chain)), write(t, "key.pem", string(private))
	p := newPassing(t, []string{string(private)}, "--to", newLawful(t, 100, time.Second).URL, "--limit", "100/s", "--tls-cert", certFile, "--tls-key", keyFile)
	p.begin()
	trusted := x509.NewCertPool()
	trusted.AddCert(other.Certificate())
	for id, major := range []int{1, 2} {
		pool := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, Protocols: new(http.Protocols)}
		pool.Protocols.SetHTTP1(major == 1)
		pool.Protocols.SetHTTP2(major == 2)
		resp, err := (&http.Client{Transport: pool}).Get(fmt.Sprintf("https://%s/?id=%d", p.at, id))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		pool.CloseIdleConnections()
		if resp.StatusCode != http.StatusOK || resp.ProtoMajor != major {
			t.Errorf("%s: %s", resp.Proto, resp.Status)
		}
	}
	if resp, err := http.Get("http://" + p.at + "/"); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %v %v", resp, err)
	}
	if _, err := http.Get("https://" + p.at + "/"); err == nil {
		t.Error("a certificate of no authority is taken")
	}
	p.stop()
	for args, want := range map[string]string{
		"--tls-cert " + certFile + " --tls-key " + certFile:                "--tls-cert " + certFile,
		"--tls-cert " + certFile + "x --tls-key " + keyFile:                "no such file",
		"--tls-cert " + write(t, "no.pem", "no") + " --tls-key " + keyFile: "no.pem",
	} {
		var out, errs bytes.Buffer
		code := execute(context.Background(), append([]string{"proxy", "--to", "http://127.0.0.1:1", "--limit", "1/s"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
		if code != cli.ExitConfig || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "PRIVATE") {
			t.Errorf("%s: exit %d, %q, expected %q", args, code, errs.String(), want)
		}
	}
}

// The proxy uses the sockets of systemd by their names, and reports to systemd when it is ready and
// when it stops.
func TestProxyOfSystemd(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "notify") // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	defer told.Close()
	hears := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		_ = told.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := told.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("systemd is told %q, expected %q: %v", b[:n], want, err)
		}
	}
	var files []*os.File
	var at []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		at, files = append(at, l.Addr().String()), append(files, f)
		l.Close()
	}
	server := newLawful(t, 100, time.Second)
	c := program(t, "proxy", "--to", server.URL, "--limit", "100/s", "--listen", "127.0.0.1:1", "--admin", "127.0.0.1:2")
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	c.Path, c.Args = shell, append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, c.Args...)
	c.Env = append(c.Env, "LISTEN_FDS=2", "LISTEN_FDNAMES=admin:http", "NOTIFY_SOCKET="+told.LocalAddr().String())
	c.ExtraFiles = files
	var said earshot
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		f.Close()
	}
	defer func() { _ = c.Process.Kill() }()
	hears("READY=1")
	for address, want := range map[string]int{at[1] + "/?id=1": http.StatusOK, at[0] + "/readyz": http.StatusOK, at[0] + "/?id=2": http.StatusOK} {
		resp, err := http.Get("http://" + address)
		if err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", address, resp.Status)
		}
	}
	if server.times(1) != 1 || server.times(2) != 0 {
		t.Errorf("what was asked for at the proxy was served %d times, at its page %d", server.times(1), server.times(2))
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	hears("STOPPING=1")
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
}
