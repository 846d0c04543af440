package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/transport"
)

// brokenOff is a body that fails once, and has ended then.
type brokenOff struct {
	err  error
	text string
}

func (b *brokenOff) Read(p []byte) (n int, err error) {
	n, err = copy(p, b.text), b.err
	if b.text, b.err = b.text[n:], io.EOF; n > 0 && err != nil {
		b.err, err = err, nil
	}
	return n, err
}

// The caller reads what CheckRetry read, and then its error, also where nothing came before it.
func TestCheckRetryReadsAnError(t *testing.T) {
	cut := errors.New("cut")
	for _, text := range []string{"", "half"} {
		tr := mustNew(t, transport.Config{Base: newBase(0, func(int, *http.Request) *http.Response {
			r := reply(500, "", "Content-Type", "text/plain")
			r.Body, r.ContentLength = io.NopCloser(&brokenOff{cut, text}), -1
			return r
		}), Attempts: 2, CheckRetry: func(_ context.Context, _ transport.Attempt, resp *http.Response) (bool, error) {
			if b, err := io.ReadAll(resp.Body); string(b) != text || !errors.Is(err, cut) {
				t.Errorf("CheckRetry reads %q, %v", b, err)
			}
			return false, nil
		}})
		resp, err := tr.RoundTrip(get(t, "http://a.test/"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); string(b) != text || !errors.Is(err, cut) {
			t.Errorf("the caller reads %q, %v", b, err)
		}
	}
}

// A whole URL in an error of the Base may have secrets, and no log has them.
func TestURLsInErrorsAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		down := roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return nil, &net.OpError{Op: "dial", Err: errors.New("by https://me:aB3dE5gH@proxy.test/?api_key=aB3dE5gH: no route")}
		})
		tr := mustNew(t, transport.Config{Base: down, Attempts: 2, MaxOutage: time.Second,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		for range 5 {
			if _, _, err := do(t, tr, request(t, "PUT", "http://a.test/", "x")); err == nil {
				t.Fatal("it is up")
			}
			time.Sleep(time.Second)
		}
		if text := log.String(); strings.Contains(text, "aB3dE5gH") || !strings.Contains(text, "no route") {
			t.Errorf("the log has %s", text)
		}
	})
}

// Trailers that are set while the body is read go with a request to which a key was applied.
func TestTrailersBesideKeys(t *testing.T) {
	got := ""
	b := roundTripper(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		got = r.Trailer.Get("Sum")
		return reply(200, "fine"), nil
	})
	tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 10, "a")})
	r := request(t, "POST", "http://a.test/", "x")
	r.Trailer = http.Header{"Sum": nil}
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(io.MultiReader(strings.NewReader("x"), summed{r})), -1, nil
	if status, _, err := do(t, tr, r); status != 200 || got != "7" {
		t.Errorf("%d, %v, the trailer is %q", status, err, got)
	}
}

// summed is the end of a body, which sets a trailer.
type summed struct{ r *http.Request }

func (s summed) Read([]byte) (int, error) {
	s.r.Trailer.Set("Sum", "7")
	return 0, io.EOF
}

// An attempt without an answer in 2 s is ended, and sent again if that does no harm. The wait for its turn does not count, nor does
// its body.
func TestAttemptTimeout(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name, method string
		attempts     int
		answers      []answer
		sent         []float64
		status       int // 0: ErrAttemptTimeout
		at           float64
	}{
		{name: "in time", attempts: 1, answers: []answer{serves(1999 * time.Millisecond)}, sent: []float64{0}, status: 200, at: 1.999},
		{name: "late", attempts: 1, answers: []answer{serves(3 * s)}, sent: []float64{0}, at: 2},
		{name: "late, and sent again after its backoff", attempts: 2, answers: []answer{serves(3 * s), serves(s)}, sent: []float64{0, 2.1}, status: 200, at: 3.1},
		{name: "late twice", attempts: 2, answers: []answer{serves(3 * s)}, sent: []float64{0, 2.1}, at: 4.1},
		{name: "late, and may have been processed", method: "POST", attempts: 2, answers: []answer{serves(3 * s)}, sent: []float64{0}, at: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := lagging(c.answers...)
				tr := mustNew(t, transport.Config{Base: b, Attempts: c.attempts, AttemptTimeout: 2 * s, Backoff: backoff.Policy{Jitter: -1}})
				status, _, err := do(t, tr, request(t, c.method, "http://a.test/", ""))
				if came := time.Since(b.begin).Seconds(); status != c.status || came != c.at || !slices.Equal(b.sent, seconds(c.sent...)) {
					t.Errorf("%d %v at %v, sent at %v", status, err, came, b.sent)
				}
				if c.status == 0 && (!errors.Is(err, transport.ErrAttemptTimeout) || !os.IsTimeout(err) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2s after the attempt began")) {
					t.Errorf("got %v", err)
				}
				if open := tr.Partitions()[0].InFlight; open != 0 {
					t.Errorf("%d permits are not settled", open)
				}
			})
		})
	}
}

// One request in 10 s: the second waits for 11 s, and has its 2 s from then on.
func TestAttemptTimeoutIsWithoutTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lagging(serves(time.Second))
		tr := mustNew(t, transport.Config{Base: b, AttemptTimeout: 2 * time.Second, Limiter: rolling(t, 1, 10*time.Second, limit.Requests)})
		for range 2 {
			if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
				t.Error(err)
			}
		}
		if want := seconds(0, 11); !slices.Equal(b.sent, want) {
			t.Errorf("sent at %v, want %v", b.sent, want)
		}
	})
}

// Over real connections: a header that does not come, and a body that takes longer than the AttemptTimeout.
func TestAttemptTimeoutOverHTTP(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/silent" {
				<-r.Context().Done()
				return
			}
			io.WriteString(w, "begin ")
			w.(http.Flusher).Flush()
			time.Sleep(60 * time.Millisecond)
			io.WriteString(w, "end")
		}))
		server.EnableHTTP2 = h2
		if h2 {
			server.StartTLS()
		} else {
			server.Start()
		}
		tr := mustNew(t, transport.Config{Base: server.Client().Transport, Attempts: 1, AttemptTimeout: 40 * time.Millisecond})
		if _, _, err := do(t, tr, get(t, server.URL+"/silent")); !errors.Is(err, transport.ErrAttemptTimeout) {
			t.Errorf("h2 %v: %v", h2, err)
		}
		tr = mustNew(t, transport.Config{Base: server.Client().Transport, Attempts: 3, AttemptTimeout: 40 * time.Millisecond})
		if _, body, err := do(t, tr, get(t, server.URL+"/drips")); body != "begin end" || err != nil {
			t.Errorf("h2 %v: %q %v", h2, body, err)
		}
		tr.CloseIdleConnections()
		server.Close()
	}
}

// A client's Timeout that comes before the turn says what to use instead; a deadline of the caller's own does not.
func TestClientTimeoutHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Base: lagging(serves(0)), Limiter: rolling(t, 1, time.Hour, limit.Requests)})
		client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
		get := func(ctx context.Context, c *http.Client) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		if err := get(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		err := get(t.Context(), client)
		var n net.Error
		if !errors.Is(err, paceline.ErrDeadline) || !errors.As(err, &n) || !n.Timeout() || !strings.Contains(err.Error(), "Config.AttemptTimeout") {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := get(ctx, &http.Client{Transport: tr}); !errors.Is(err, paceline.ErrDeadline) || strings.Contains(err.Error(), "AttemptTimeout") {
			t.Errorf("got %v", err)
		}
	})
}

// The result of CheckRetry, the Transport's own decision, and how often the request is sent.
func TestCheckRetry(t *testing.T) {
	stop := errors.New("stop")
	yes := func(context.Context, transport.Attempt, *http.Response) (bool, error) { return true, nil }
	no := func(context.Context, transport.Attempt, *http.Response) (bool, error) { return false, nil }
	as := func(_ context.Context, a transport.Attempt, _ *http.Response) (bool, error) { return a.Again, nil }
	fails := func(context.Context, transport.Attempt, *http.Response) (bool, error) { return true, stop }
	for _, c := range []struct {
		name, method, body string
		once               bool
		status             int // of all but the last answer, which is 200
		fields             []string
		check              func(context.Context, transport.Attempt, *http.Response) (bool, error)
		sent               []float64
		got                int
		why                string // of the last attempt
	}{
		{name: "503, as it would", status: 503, check: as, sent: []float64{0, 0.1, 0.3}, got: 200},
		{name: "503, no", status: 503, check: no, sent: []float64{0}, got: 503, why: "CheckRetry says no"},
		{name: "404, as it would", status: 404, check: as, sent: []float64{0}, got: 404},
		{name: "404, yes", status: 404, check: yes, sent: []float64{0, 0.1, 0.3}, got: 200, why: "that was the last attempt"},
		{name: "200, yes, as often as may be", status: 200, check: yes, sent: []float64{0, 0.1, 0.3}, got: 200, why: "that was the last attempt"},
		{name: "a POST that failed, yes", method: "POST", body: "x", status: 500, check: yes, sent: []float64{0, 0.1, 0.3}, got: 200, why: "that was the last attempt"},
		{name: "a body that is read once, yes", method: "POST", body: "x", once: true, status: 500, check: yes, sent: []float64{0}, got: 500, why: "its body cannot be read again: the request has no GetBody"},
		{name: "429, no: the pause is kept all the same", status: 429, fields: []string{"Retry-After", "7"}, check: no, sent: []float64{0, 7}, got: 200, why: "CheckRetry says no"},
		{name: "429 for an hour, yes: nobody waits for that", status: 429, fields: []string{"Retry-After", "3600"}, check: yes, sent: []float64{0}, got: 429},
		{name: "the server forbids it, yes", status: 500, fields: []string{"X-Should-Retry", "false"}, check: yes, sent: []float64{0, 0.1, 0.3}, got: 200, why: "that was the last attempt"},
		{name: "an error of its own", status: 503, check: fails, sent: []float64{0}, why: "CheckRetry says no"},
		{name: "an error of its own, of what was served", status: 200, check: fails, sent: []float64{0}, why: "CheckRetry says no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := new(ends)
				bodies := 0
				b := newBase(0, func(n int, _ *http.Request) *http.Response {
					status, fields := c.status, c.fields
					if n == 3 || len(c.sent) == 2 && n == 2 {
						status, fields = 200, nil
					}
					r := reply(status, "hello", fields...)
					bodies++
					r.Body = &closing{r.Body, func() { bodies-- }}
					return r
				})
				begun := 0
				tr := mustNew(t, transport.Config{Base: b, CheckRetry: c.check, Begins: func(*http.Request) { begun++ }, Ended: told.add, Backoff: backoff.Policy{Jitter: -1}, Limiter: limit.MustRolling(1000, time.Second)})
				r := request(t, c.method, "http://a.test/", c.body)
				if c.once {
					r.GetBody = nil
				}
				status, body, err := do(t, tr, r)
				if status == 429 && len(c.sent) == 2 { // whoever comes next has to wait
					status, body, err = do(t, tr, r)
				}
				if !slices.Equal(b.at(), seconds(c.sent...)) || status != c.got || (c.got == 0) != (err == stop) || err == nil && body != "hello" {
					t.Errorf("%d %q %v, sent at %v", status, body, err, b.at())
				}
				if begun != len(b.at()) {
					t.Errorf("%d attempts were begun, and %d sent", begun, len(b.at()))
				}
				if status == 200 && c.got == 200 && len(c.sent) == 2 { // that of the first request
					told.all = told.all[:1]
				}
				if last := told.all[len(told.all)-1]; last.Why != c.why {
					t.Errorf("why: %q, want %q", last.Why, c.why)
				}
				if open := tr.Partitions()[0].InFlight; open != 0 || bodies != 0 {
					t.Errorf("%d permits are not settled, %d bodies not closed", open, bodies)
				}
			})
		})
	}
}

type closing struct {
	io.ReadCloser
	closed func()
}

func (c *closing) Close() error {
	if c.closed != nil {
		c.closed()
	}
	c.closed = nil
	return c.ReadCloser.Close()
}

// A job that is not done yet is answered with 200 and a word in the body. The request goes again
// until it is done, and the caller gets the whole answer, however much of it CheckRetry read.
func TestCheckRetryReadsTheBody(t *testing.T) {
	for _, read := range []int{0, 1, 9, 1000} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, func(n int, _ *http.Request) *http.Response {
				if n < 3 {
					return reply(200, "pending")
				}
				return reply(200, "done: 42")
			})
			tr := mustNew(t, transport.Config{
				Base: b, Attempts: 5,
				CheckRetry: func(_ context.Context, a transport.Attempt, resp *http.Response) (bool, error) {
					if a.Number < 3 {
						all, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						return string(all) == "pending", err
					}
					io.CopyN(io.Discard, resp.Body, int64(read))
					return false, nil
				},
			})
			status, body, err := do(t, tr, get(t, "http://a.test/"))
			if status != 200 || body != "done: 42" || err != nil || len(b.at()) != 3 {
				t.Errorf("having read %d: %d %q %v, sent %d times", read, status, body, err, len(b.at()))
			}
		})
	}
}

// CheckRetry is not called after the caller has gone, and its result cannot outlast a deadline.
func TestCheckRetryAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(500, "") })
		tr := mustNew(t, transport.Config{
			Base: b, Backoff: backoff.Policy{Base: time.Minute, Max: time.Minute, Jitter: -1},
			CheckRetry: func(context.Context, transport.Attempt, *http.Response) (bool, error) { asked++; return true, nil },
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if status, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx)); status != 500 || err != nil || time.Since(b.begin) != 0 || asked != 1 {
			t.Errorf("%d %v after %v, asked %d times", status, err, time.Since(b.begin), asked)
		}
		base := lagging(answer{after: time.Hour})
		tr = mustNew(t, transport.Config{
			Base:       base,
			CheckRetry: func(context.Context, transport.Attempt, *http.Response) (bool, error) { asked++; return true, nil },
		})
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, _, err := do(t, tr, get(t, "http://a.test/").WithContext(gone)); !errors.Is(err, context.Canceled) || asked != 1 || len(base.sent) != 1 {
			t.Errorf("%v, asked %d times, sent at %v", err, asked, base.sent)
		}
	})
}

// An answer that CheckRetry has read a part of is as whole as before: it is returned if there is no leave for another attempt.
func TestCheckRetryThatReadsAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		tr := mustNew(t, transport.Config{
			Limiter: rolling(t, 1, time.Hour, limit.Requests),
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				resp := reply(202, "")
				resp.Body = &tallied{strings.NewReader(`{"state":"pending"}` + strings.Repeat(" ", 4000)), &closed}
				return resp, nil
			}),
			CheckRetry: func(_ context.Context, _ transport.Attempt, resp *http.Response) (bool, error) {
				if resp == nil {
					return false, nil
				}
				var v struct{ State string }
				err := json.NewDecoder(resp.Body).Decode(&v)
				return v.State == "pending", err
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		status, body, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx))
		if status != 202 || len(body) != 4019 || err != nil || closed != 1 {
			t.Errorf("%d, %d bytes, %v, closed %d times", status, len(body), err, closed)
		}
	})
}

// tallied is a body whose Close is closing.
type tallied struct {
	io.Reader
	closed *int
}

func (c *tallied) Close() error { *c.closed++; return nil }

// After an attempt without an answer, too, an error of CheckRetry is RoundTrip's error.
func TestCheckRetryFailsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("mine")
		tr := mustNew(t, transport.Config{
			Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }),
			CheckRetry: func(_ context.Context, a transport.Attempt, resp *http.Response) (bool, error) {
				if resp != nil || a.Err == nil {
					t.Errorf("%v, %v", resp, a.Err)
				}
				return true, mine
			},
		})
		if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, mine) {
			t.Errorf("%v", err)
		}
	})
}
