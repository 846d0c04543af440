//go:build unix

package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
)

// socketOf is a socket for the next process, in a folder.
func socketOf(t *testing.T) (s *daemon.HandoverSocket, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	s, err := daemon.ListenForHandover(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, path
}

// failures are next processes that end during a takeover, each at a step. The file is that of the socket which
// they opened for the process after them. The connection ends after the step, as when a process is killed.
var failures = []struct {
	name string
	ends func(c *net.UnixConn, file string) error
}{
	{"connects", func(*net.UnixConn, string) error { return nil }},
	{"asks", func(c *net.UnixConn, _ string) error { return write(c, "\x00") }},
	{"has the offer", func(c *net.UnixConn, _ string) error { return offered(c) }},
	{"says something else", func(c *net.UnixConn, _ string) error {
		return errors.Join(offered(c), write(c, "busy\n"))
	}},
	{"is ready, but its socket is gone", func(c *net.UnixConn, file string) error {
		return errors.Join(offered(c), os.Remove(file), write(c, "ready at "+filepath.Base(file)+"\n"), givenUp(c))
	}},
	{"is ready, and hears no answer", func(c *net.UnixConn, file string) error {
		return errors.Join(offered(c), c.CloseRead(), write(c, "ready at "+filepath.Base(file)+"\n"))
	}},
}

func write(c *net.UnixConn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// offered asks for a handover, and reads the offer.
func offered(c *net.UnixConn) error {
	_, err := c.Write([]byte{0})
	if err == nil {
		_, err = c.Read(make([]byte, 4096))
	}
	return err
}

// givenUp waits until the former process has given up.
func givenUp(c *net.UnixConn) error {
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%d bytes, %w, expected the end", n, err)
	}
	return nil
}

// A next process that ends at any step of a takeover changes nothing. The former one sends again, and a
// process after that takes over: its socket is at the path, and it sends what comes to the former one.
func TestTakeoverAfterOneThatFails(t *testing.T) {
	for _, fails := range failures {
		t.Run(fails.name, func(t *testing.T) {
			conf := to(upstreamOf(t, func(http.ResponseWriter, *http.Request) {}), "1000/s")
			conf.State = filepath.Join(t.TempDir(), "state")
			s, path := socketOf(t)
			former := start(t, conf)
			if err := former.server.PassOn(Handover{Socket: s, Path: path}); err != nil {
				t.Fatal(err)
			}
			failed, err := daemon.ListenForHandover(path) // nothing serves there
			if err != nil {
				t.Fatal(err)
			}
			c, err := daemon.DialHandover(t.Context(), path)
			if err == nil {
				err = fails.ends(c, fmt.Sprintf("%s.%d", path, os.Getpid()))
				c.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if resp, _, err := former.try(ctx, "GET", "/", ""); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("the former process: %v, %v", resp, err)
			}
			if conf.Taken, err = daemon.TakeOver(ctx, path); err != nil {
				t.Fatal(err)
			}
			failed.Close()
			own, err := daemon.ListenForHandover(path)
			if err != nil {
				t.Fatal(err)
			}
			next := start(t, conf)
			if err := next.server.PassOn(Handover{Socket: own, Path: path}); err != nil {
				t.Fatal(err)
			}
			for former.proxy.heir.Load() == nil && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if resp, _, err := next.try(ctx, "GET", "/", ""); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("the next process: %v, %v", resp, err)
			}
			third, err := daemon.TakeOver(ctx, path)
			if err != nil {
				t.Fatalf("nothing can take over from the next process: %v", err)
			}
			third.Close()
		})
	}
}

// What the next process answers comes with a wish to connect anew, and leads to it then. A connection that changes its protocol stays.
func TestAnswersOfTheNextProcess(t *testing.T) {
	x := start(t, to(upstreamOf(t, func(http.ResponseWriter, *http.Request) { t.Error("the former process sends") })))
	s, path := socketOf(t)
	if err := s.Serve(nil); err != nil {
		t.Fatal(err)
	}
	next := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			return
		}
		fmt.Fprint(w, "of the next")
	})}
	go next.Serve(s.Requests())
	defer next.Close()
	x.proxy.heir.Store(newHeir(path, x.proxy.config.Log))
	if resp, text := x.do("GET", "/", ""); text != "of the next" || !resp.Close {
		t.Errorf("%q, and the connection ends: %v", text, resp.Close)
	}
	c, err := net.Dial("tcp", x.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("a change of the protocol: %v, %v", resp, err)
	}
}

// trip is an http.RoundTripper.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request that the next process answers is not in line here. So the end of this process leaves it alone.
func TestHandedOnIsNotInLine(t *testing.T) {
	var ended error
	p := &Proxy{common: new(common)}
	v := &visit{proxy: p, cancel: func(err error) { ended = cmp.Or(ended, err) }, w: &writer{}}
	v.w.ResponseWriter = httptest.NewRecorder()
	v.in = httptest.NewRequest("GET", "http://proxy.test/", nil)
	v.within.Context = t.Context()
	served := false
	next := trip(func(r *http.Request) (*http.Response, error) {
		v.release()
		served = r.Context().Err() == nil
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	p.heir.Store(&heir{proxy: &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: next}})
	v.handOn()
	if !served || ended != nil || !v.handed {
		t.Errorf("served %v, ended by %v", served, ended)
	}
}
