package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ends returns a channel with the end of a server.
func (x *proxied) ends(t *testing.T) <-chan error {
	done := make(chan error, 1)
	x.once.Do(func() { go func() { done <- x.server.Wait() }() })
	t.Cleanup(func() { x.server.Stop(); x.server.Stop() })
	return done
}

type outcome struct {
	status int
	body   string
	err    error
}

func (x *proxied) later(path string, fields ...string) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		resp, body, err := x.try(context.Background(), "GET", path, "", fields...)
		if err != nil {
			c <- outcome{err: err}
			return
		}
		c <- outcome{status: resp.StatusCode, body: body}
	}()
	return c
}

// The failure of a listener ends the server, and Wait returns it.
func TestListenerFails(t *testing.T) {
	x := start(t, to(upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "whole") }), "9/s"))
	done := x.ends(t)
	x.server.listeners[0].Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) || !x.server.proxy.stopping.Load() {
		t.Errorf("it ends with %v, and stops: %v", err, x.server.proxy.stopping.Load())
	}
}

// After Stop the server finishes requests in flight, refuses waiting ones, and accepts no new ones.
func TestStop(t *testing.T) {
	inside, on := make(chan bool, 10), make(chan struct{})
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		inside <- true
		if r.URL.Path == "/slow" {
			<-on
		}
		io.WriteString(w, "whole")
	})
	x := start(t, to(u, "1/20s"))
	flying := x.later("/slow")
	<-inside
	waits := x.later("/waits")
	until(t, func() bool { return waiting(x) == 1 })
	kept := dial(t, x)
	ended := x.ends(t)
	x.server.Stop()
	if o := <-waits; o.status != 503 || !strings.Contains(o.body, "stopping") {
		t.Errorf("what waited: %+v", o)
	}
	kept.Close()
	until(t, func() bool {
		c, err := net.Dial("tcp", x.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if resp, err := clientOf(t).Get(x.admin + "/readyz"); err != nil || resp.StatusCode != 503 {
		t.Errorf("readyz: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	select {
	case err := <-ended:
		t.Fatalf("it has ended, and a request is in flight: %v", err)
	default:
	}
	close(on)
	if o := <-flying; o.status != 200 || o.body != "whole" {
		t.Errorf("what was in flight: %+v", o)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A request in flight on a connection of HTTP/2 that was there already is finished, too: net/http
// asks for no proxy then.
func TestStopOverHTTP2(t *testing.T) {
	inside, on := make(chan bool, 1), make(chan struct{})
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			inside <- true
			<-on
		}
		io.WriteString(w, r.Proto)
	}))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	c := to(mustURL(t, secure.URL))
	c.Upstreams[0].TLS = secure.Client().Transport.(*http.Transport).TLSClientConfig
	x := start(t, c)
	if _, text := x.do("GET", "/", ""); text != "HTTP/2.0" {
		t.Fatal(text)
	}
	flying := x.later("/slow")
	<-inside
	ended := x.ends(t)
	x.server.Stop()
	until(t, x.proxy.drained.Load)
	close(on)
	if o := <-flying; o.status != 200 || o.body != "HTTP/2.0" {
		t.Errorf("what was in flight: %+v", o)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Waiting requests go on for the Grace. The rest is refused at its end, with the reason.
func TestStopWithGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := to(mustURL(t, "http://server.test"), "1/3s")
		conf.Grace = 5 * time.Second
		x := virtual(t, http.HandlerFunc(hello), conf)
		x.do("GET", "/", "")
		first := x.later("/")
		synctest.Wait()
		second := x.later("/")
		synctest.Wait()
		ended := x.ends(t)
		began := time.Now()
		x.server.Stop()
		if o := <-first; o.status != 200 || time.Since(began) < 3*time.Second {
			t.Errorf("%+v after %v", o, time.Since(began))
		}
		if o := <-second; o.status != 503 || !strings.Contains(o.body, "stopping") || time.Since(began) != 5*time.Second {
			t.Errorf("%+v after %v", o, time.Since(began))
		}
		if err := <-ended; err != nil || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// The Grace is over with the last request, and at once if there is none.
func TestStopWaitsForNobody(t *testing.T) {
	for _, waiting := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			conf := to(mustURL(t, "http://server.test"), "1/3s")
			conf.Grace = time.Hour
			x := virtual(t, http.HandlerFunc(hello), conf)
			x.do("GET", "/", "")
			for range waiting {
				x.later("/")
			}
			synctest.Wait()
			began, ended := time.Now(), x.ends(t)
			x.server.Stop()
			least := time.Duration(waiting) * 3 * time.Second
			if err := <-ended; err != nil || time.Since(began) < least || time.Since(began) > least+time.Second {
				t.Errorf("%d waiting: ended after %v: %v", waiting, time.Since(began), err)
			}
		})
	}
}

// Told twice, it breaks off everything.
func TestStopTwice(t *testing.T) {
	inside, over := make(chan bool), make(chan struct{})
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) {
		inside <- true
		select {
		case <-r.Context().Done(): // the request is given up
		case <-over:
		}
	})
	defer close(over)
	x := start(t, to(u))
	flying := x.later("/")
	<-inside
	ended := x.ends(t)
	x.server.Stop()
	x.server.Stop()
	if o := <-flying; o.err == nil && o.status != 503 {
		t.Errorf("%+v", o)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A connection that came of an upgrade lasts no longer than the Grace.
func TestStopEndsUpgrades(t *testing.T) {
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, b)
	})
	x := start(t, to(u))
	c := textproto.NewConn(dial(t, x))
	fmt.Fprint(c.W, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	c.W.Flush()
	if line, err := c.ReadLine(); !strings.Contains(line, " 101 ") || err != nil {
		t.Fatal(line, err)
	}
	ended := x.ends(t)
	x.server.Stop()
	io.Copy(io.Discard, c.R)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// systemd hands over sockets, and gets notices about the state.
func TestSystemd(t *testing.T) {
	if main, admin, err := Inherited(func(string) string { return "" }); main != nil || admin != nil || err != nil {
		t.Error(main, admin, err)
	}
	other := map[string]string{"LISTEN_PID": "1", "LISTEN_FDS": "2"}
	if main, admin, err := Inherited(func(n string) string { return other[n] }); main != nil || admin != nil || err != nil {
		t.Error(main, admin, err)
	}
	at := t.TempDir() + "/notify"
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	if err := Notify("READY=1", func(string) string { return at }); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := l.Read(b); string(b[:n]) != "READY=1" || err != nil {
		t.Errorf("%q %v", b[:n], err)
	}
	if err := Notify("READY=1", func(string) string { return "" }); err != nil {
		t.Error(err)
	}
}

// While it is stopped and started under load, no goroutine is left: TestMain looks.
func TestStopUnderLoad(t *testing.T) {
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	for range 3 {
		x := start(t, to(u, "50/100ms"))
		var all sync.WaitGroup
		client := clientOf(t)
		for range 40 {
			all.Go(func() {
				for {
					resp, err := client.Post(x.url, "text/plain", strings.NewReader("hello"))
					if err != nil {
						return
					}
					b, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode == 503 {
						return
					}
					if resp.StatusCode != 200 || string(b) != "hello" || err != nil {
						t.Errorf("%d %q %v", resp.StatusCode, b, err)
						return
					}
				}
			})
		}
		until(t, func() bool { return waiting(x) > 5 })
		x.server.Stop()
		all.Wait()
		x.stop()
	}
}

// Requests from before a restart count after it, and the file has no key.
func TestRestart(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	conf := to(u, "3/h")
	conf.MaxWait, conf.State = -1, t.TempDir()+"/state"
	for i, want := range []int{200, 200, 200, 429} {
		x := start(t, conf)
		resp, body := x.do("GET", "/", "", "Authorization", "Bearer "+ours)
		if resp.StatusCode != want {
			t.Errorf("start %d: %d %s", i, resp.StatusCode, body)
		}
		if resp, body := x.do("GET", "/", "", "Authorization", "Bearer "+second+fmt.Sprint(i)); resp.StatusCode != 200 {
			t.Errorf("start %d, another key: %d %s", i, resp.StatusCode, body)
		}
		x.stop()
	}
	b, err := os.ReadFile(conf.State)
	if err != nil || len(b) == 0 || strings.Contains(string(b), ours) {
		t.Errorf("%v: %q", err, b)
	}
}

// Each request under way is called once, and none that has ended.
func TestEachVisit(t *testing.T) {
	var all visits
	var of [4]visit
	called := func() (n [4]int) {
		all.each(func(v *visit) {
			for i := range of {
				if v == &of[i] {
					n[i]++
				}
			}
		})
		return n
	}
	if called() != [4]int{} || all.count() != 0 {
		t.Error("one is called where there is none")
	}
	for i := range of {
		all.add(&of[i])
	}
	if got := called(); got != [4]int{1, 1, 1, 1} || all.count() != 4 {
		t.Errorf("%v are called", got)
	}
	all.remove(&of[1])
	all.remove(&of[3])
	if got := called(); got != [4]int{1, 0, 1, 0} || all.count() != 2 {
		t.Errorf("%v are called after two have ended", got)
	}
}
