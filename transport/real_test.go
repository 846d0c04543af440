package transport_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// A real server and a real client, HTTP/1.1 and HTTP/2. Whatever they do, the caller gets the
// result of a bare client, and every lease comes back.
func TestForReal(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 4<<20)
	type client struct {
		*http.Client
		t        *testing.T
		url      string
		attempts []transport.Attempt
		outcome  func() limit.Outcome
	}
	send := func(c *client, method, path string, body io.Reader, fields ...string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, body)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		return c.Do(r)
	}
	// want sends, reads all and compares.
	want := func(c *client, status int, body, method, path string, in io.Reader, fields ...string) *http.Response {
		c.t.Helper()
		resp, err := send(c, method, path, in, fields...)
		if err != nil {
			c.t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != status || string(got) != body || err != nil {
			c.t.Errorf("%d %.80q %v, want %d %.80q", resp.StatusCode, got, err, status, body)
		}
		return resp
	}
	t.Parallel()
	var called sync.Map // hosts that have refused
	first := func(r *http.Request) bool {
		_, before := called.LoadOrStore(r.Host, true)
		return !before
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/echo", http.StatusFound) })
	mux.HandleFunc("/redirect307", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/echo", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) })
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
	})
	mux.HandleFunc("/hangs", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	})
	mux.HandleFunc("/drips", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	})
	mux.HandleFunc("/aborts", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/refuses-early", func(w http.ResponseWriter, r *http.Request) { // without reading the body, the first time
		if first(r) {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(429)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("/refuses", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if first(r) {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(429)
			io.WriteString(w, "slow down")
		}
	})
	mux.HandleFunc("/upgrade", func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		rw.Flush()
	})
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			io.WriteString(w, events("data: [DONE]\n\n"))
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, events("data: [DONE]\n\n"))
		z.Close()
	})

	for _, row := range []struct {
		name     string
		only1    bool // HTTP/1.1
		change   func(*transport.Config)
		timeout  time.Duration
		do       func(c *client)
		attempts int // 0: any number
	}{
		{name: "a body there and back", attempts: 1, do: func(c *client) { want(c, 200, "hello", "POST", "/echo", strings.NewReader("hello")) }},
		{name: "a large one", attempts: 1, do: func(c *client) { want(c, 200, string(large), "POST", "/echo", bytes.NewReader(large)) }},
		{name: "of unknown length, read once", attempts: 1, do: func(c *client) {
			want(c, 200, "hello", "POST", "/echo", io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo")))
		}},
		{name: "redirect", attempts: 2, do: func(c *client) { want(c, 200, "", "GET", "/redirect", nil) }},
		{name: "redirect with the body", attempts: 2, do: func(c *client) { want(c, 200, "hello", "POST", "/redirect307", strings.NewReader("hello")) }},
		{name: "redirects without end", attempts: 10, do: func(c *client) {
			if _, err := send(c, "GET", "/circle", nil); err == nil || !strings.Contains(err.Error(), "10 redirects") {
				c.t.Error(err)
			}
		}},
		{name: "HEAD", attempts: 1, do: func(c *client) { want(c, 200, "", "HEAD", "/echo", nil) }},
		{name: "HEAD, refused", attempts: 2, do: func(c *client) { want(c, 200, "", "HEAD", "/refuses", nil) }},
		{name: "204", attempts: 1, do: func(c *client) { want(c, 204, "", "GET", "/status/204", nil) }},
		{name: "304", attempts: 1, do: func(c *client) { want(c, 304, "", "GET", "/status/304", nil) }},
		{name: "refused, with a body", attempts: 2, do: func(c *client) { want(c, 200, "", "POST", "/refuses", strings.NewReader("hello")) }},
		{name: "refused while the body is being written", do: func(c *client) {
			want(c, 200, fmt.Sprint(len(large)), "POST", "/refuses-early", bytes.NewReader(large), "Idempotency-Key", "1")
		}},
		{name: "Expect: 100-continue", attempts: 1, do: func(c *client) {
			want(c, 200, "hello", "POST", "/echo", strings.NewReader("hello"), "Expect", "100-continue")
		}},
		{name: "Expect: 100-continue, refused", attempts: 2, do: func(c *client) {
			want(c, 200, "5", "POST", "/refuses-early", strings.NewReader("hello"), "Expect", "100-continue")
		}},
		{name: "the body breaks while it is written", attempts: 1, do: func(c *client) {
			if resp, err := send(c, "POST", "/echo", io.MultiReader(bytes.NewReader(large[:1<<20]), broken{})); err == nil {
				_, err = io.ReadAll(resp.Body) // what came before the break may be on its way back
				resp.Body.Close()
				if err == nil {
					c.t.Error("nobody says that the body broke")
				}
			}
		}},
		{name: "the answer breaks", attempts: 1, do: func(c *client) {
			resp, err := send(c, "GET", "/aborts", nil)
			if err != nil {
				c.t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); string(got) != "begin" || err == nil {
				c.t.Errorf("%q %v", got, err)
			}
		}},
		{name: "Timeout before the header", attempts: 1, timeout: time.Second, do: func(c *client) {
			if _, err := send(c, "GET", "/hangs", nil); !os.IsTimeout(err) {
				c.t.Error(err)
			}
		}},
		{name: "Timeout in the body", attempts: 1, timeout: 3 * time.Second, do: func(c *client) {
			resp, err := send(c, "GET", "/drips", nil)
			if err != nil {
				c.t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); string(got) != "begin" || !os.IsTimeout(err) {
				c.t.Errorf("%q %v", got, err)
			}
		}},
		{name: "Timeout before the turn", attempts: 1, timeout: 10 * time.Second, change: func(c *transport.Config) { c.Limiter = limit.MustRolling(1, time.Hour) }, do: func(c *client) {
			want(c, 200, "", "GET", "/echo", nil)
			start := time.Now()
			_, err := send(c, "GET", "/echo", nil)
			var e *transport.Error
			if !errors.As(err, &e) || !errors.Is(err, paceline.ErrDeadline) || !os.IsTimeout(err) || time.Since(start) > 5*time.Second || time.Until(e.Ready) < 59*time.Minute {
				c.t.Errorf("after %v: %v", time.Since(start), err)
			}
		}},
		{name: "closed before it is read", attempts: 1, do: func(c *client) {
			resp, err := send(c, "GET", "/drips", nil)
			if err != nil {
				c.t.Fatal(err)
			}
			resp.Body.Close()
		}},
		{name: "a hundred at once", attempts: 100, do: func(c *client) {
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() { want(c, 200, fmt.Sprint(i), "POST", "/echo", strings.NewReader(fmt.Sprint(i))) })
			}
			wg.Wait()
		}},
		{name: "upgrade", only1: true, attempts: 1, do: func(c *client) {
			resp, err := send(c, "GET", "/upgrade", nil, "Connection", "Upgrade", "Upgrade", "echo")
			if err != nil {
				c.t.Fatal(err)
			}
			defer resp.Body.Close()
			rw, ok := resp.Body.(io.ReadWriter)
			if !ok || resp.StatusCode != 101 {
				c.t.Fatalf("%d, and the body is a %T", resp.StatusCode, resp.Body)
			}
			io.WriteString(rw, "hello\n")
			if got, err := bufio.NewReader(rw).ReadString('\n'); got != "echo hello\n" {
				c.t.Errorf("%q %v", got, err)
			}
		}},
		{name: "compressed, and metered all the same", attempts: 1, do: func(c *client) {
			want(c, 200, events("data: [DONE]\n\n"), "POST", "/v1/chat/completions", strings.NewReader(prompt))
			if o := c.outcome(); !o.Metered || o.Actual[limit.Tokens] != 12 {
				c.t.Errorf("settled as %+v", o)
			}
		}},
		{name: "compressed for the caller", attempts: 1, do: func(c *client) {
			resp, err := send(c, "POST", "/v1/chat/completions", strings.NewReader(prompt), "Accept-Encoding", "gzip")
			if err != nil {
				c.t.Fatal(err)
			}
			defer resp.Body.Close()
			z, err := gzip.NewReader(resp.Body)
			if err != nil {
				c.t.Fatal(err)
			}
			if got, err := io.ReadAll(z); string(got) != events("data: [DONE]\n\n") || err != nil {
				c.t.Errorf("%q %v", got, err)
			}
			if o := c.outcome(); !o.Metered || o.Actual[limit.Tokens] != 12 || o.Result != limit.Accepted {
				c.t.Errorf("settled as %+v", o)
			}
		}},
		{name: "the round trip begins when the body has been written", attempts: 1, do: func(c *client) {
			from, to := io.Pipe()
			const slow = 200 * time.Millisecond
			start := time.Now()
			go func() {
				to.Write([]byte("begin"))
				time.Sleep(slow)
				to.Write([]byte("end"))
				to.Close()
			}()
			want(c, 200, "beginend", "PUT", "/echo", from)
			if rtt, took := c.attempts[0].RTT, time.Since(start); rtt > took-slow {
				c.t.Errorf("%v of %v, of which %v were the body's", rtt, took, slow)
			}
		}},
	} {
		for _, two := range []bool{false, true} {
			if two && row.only1 {
				continue
			}
			t.Run(fmt.Sprintf("%s/HTTP2=%v", row.name, two), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewUnstartedServer(mux)
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				if server.EnableHTTP2 = two; two {
					server.StartTLS()
				} else {
					server.Start()
				}
				defer server.Close()
				base := server.Client().Transport.(*http.Transport)
				base.ExpectContinueTimeout = time.Second
				defer base.CloseIdleConnections()
				all := &ledger{}
				c := &client{t: t, url: server.URL}
				var mu sync.Mutex
				config := transport.Config{
					Base: base, Limiter: limit.MustRolling(1e6, time.Millisecond), UntilBody: true, Tokens: estimator(t), Counting: tokens.Used, Backoff: backoff.Policy{Base: time.Millisecond},
					Ended: func(a transport.Attempt) {
						mu.Lock()
						defer mu.Unlock()
						c.attempts = append(c.attempts, a)
					},
				}
				if row.change != nil {
					row.change(&config)
				}
				config.Limiter = all.new(config.Limiter)
				c.outcome = func() limit.Outcome { all.mu.Lock(); defer all.mu.Unlock(); return all.last }
				c.Client = &http.Client{Transport: mustNew(t, config), Timeout: row.timeout}
				row.do(c)
				if n, err := all.open(); n != 0 || err != nil {
					t.Errorf("%d leases are open, %v", n, err)
				}
				if row.attempts > 0 && len(c.attempts) != row.attempts {
					t.Errorf("%d attempts, want %d", len(c.attempts), row.attempts)
				}
			})
		}
	}
}

// A proxy that cannot be reached, or refuses the tunnel: nothing was sent, so nothing counts.
func TestUnsentBehindAProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer proxy.Close()
	base := &http.Transport{Proxy: func(r *http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }}
	defer base.CloseIdleConnections()
	var results []limit.Result
	tr := mustNew(t, transport.Config{
		Base: base, Attempts: 1, Limiter: limit.MustRolling(1, time.Hour), Ended: func(a transport.Attempt) { results = append(results, a.Result) },
	})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := tr.RoundTrip(request(t, http.MethodPost, "https://a.test/", "x").WithContext(ctx)); err == nil || errors.Is(err, paceline.ErrDeadline) {
			t.Error(err)
		}
		cancel()
	}
	if len(results) != 2 || results[0] != limit.Unsent || results[1] != limit.Unsent {
		t.Error(results)
	}
}
