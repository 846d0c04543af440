package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A Base that returns an answer and an error: the error counts, and the answer's body is closed.
func TestAnswerAndError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &closed{Reader: strings.NewReader("x")}
		tr := mustNew(t, transport.Config{Attempts: 1, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: body}, errBroken
		})})
		if resp, err := tr.RoundTrip(get(t, "http://a.test/")); resp != nil || err != errBroken || body.n != 1 {
			t.Errorf("%v %v, closed %d times", resp, err, body.n)
		}
	})
}

// A function of the configuration that panics: every leave comes back, the answer is closed, and the panic is the caller's.
func TestPanicsOfTheConfiguration(t *testing.T) {
	speaks := []string{"RateLimit-Policy", `"default";q=3;w=10`, "RateLimit", `"default";r=3;t=10`}
	boom := func() { panic("boom") }
	for name, change := range map[string]func(*transport.Config){
		"Partition": func(c *transport.Config) {
			c.Partition = func(*http.Request) transport.Partition { boom(); return transport.Partition{} }
		},
		"Cost": func(c *transport.Config) {
			c.Cost = func(*http.Request, limit.Cost) limit.Cost { boom(); return limit.One }
		},
		"Scope": func(c *transport.Config) {
			c.Scope = func(transport.Partition, provider.Observation) provider.Scope { boom(); return "" }
		},
		"Ended": func(c *transport.Config) { c.Ended = func(transport.Attempt) { boom() } },
		"Adopt": func(c *transport.Config) {
			c.Adopt = func(mono.Time, transport.Partition, limit.Limiter, []provider.Policy) { boom() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &spies{}
				var answer *closed
				c := transport.Config{Limiter: all.limiter(), Limit: func(transport.Partition) limit.Limiter { return all.limiter() }}
				c.Base = roundTripper(func(*http.Request) (*http.Response, error) {
					r := reply(map[bool]int{true: 429, false: 200}[name == "Scope"], "", speaks...)
					answer = &closed{Reader: strings.NewReader("x")}
					r.Body = answer
					return r, nil
				})
				change(&c)
				tr := mustNew(t, c)
				sent := &closed{Reader: strings.NewReader("x")}
				r := request(t, http.MethodPost, "http://a.test/", "x")
				r.Body = sent
				func() {
					defer func() {
						if p := recover(); p != "boom" {
							t.Errorf("recovered %v", p)
						}
					}()
					tr.RoundTrip(r)
				}()
				if all.open() != 0 {
					t.Errorf("%d leaves did not come back", all.open())
				}
				if answer != nil && answer.n != 1 {
					t.Errorf("the answer was closed %d times", answer.n)
				}
				if answer == nil && sent.n != 1 {
					t.Errorf("the body was closed %d times", sent.n)
				}
				// Nothing under way keeps the partitions from being forgotten.
				if n := transport.Active(tr); n != 0 {
					t.Errorf("%d requests are under way for good", n)
				}
			})
		})
	}
}

// spies counts the leases of several limiters.
type spies struct {
	mu  sync.Mutex
	all []*spy
}

func (s *spies) limiter() limit.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &spy{}
	s.all = append(s.all, one)
	return one
}

func (s *spies) open() (n int) {
	for _, one := range s.all {
		n += one.open
	}
	return n
}

// A request whose context ends as its turn comes is not sent, and costs nothing.
func TestContextEndsAsItsTurnComes(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			one, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var results []limit.Result
			tr := mustNew(t, transport.Config{
				Limiter: one, UntilBody: true, Ended: func(a transport.Attempt) { results = append(results, a.Result) },
				Base: roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Context().Err() != nil {
						t.Error("it was sent though its context has ended")
					}
					return reply(200, "x"), r.Context().Err()
				}),
			})
			resp, err := tr.RoundTrip(get(t, "http://a.test/"))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				_, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx))
				done <- err
			}()
			synctest.Wait()
			cancel()
			resp.Body.Close() // its turn
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if !slices.Equal(results, []limit.Result{limit.Accepted}) {
				t.Errorf("%v", results)
			}
			if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Request.Cancel is heeded in line and between attempts, where the context cannot be cancelled.
func TestRequestCancel(t *testing.T) {
	for _, where := range []string{"in line", "between attempts"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, func(int, *http.Request) *http.Response { return reply(500, "") })
			c := transport.Config{Base: b, Limiter: rolling(t, 1, time.Hour, limit.Requests), Backoff: backoff.Policy{Base: 10 * time.Second, Jitter: -1}, Attempts: 1}
			if where == "between attempts" {
				c.Limiter, c.Attempts = nil, 2
			}
			tr := mustNew(t, c)
			if c.Limiter != nil {
				do(t, tr, get(t, "http://a.test/"))
			}
			cancel := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(cancel) })
			r := get(t, "http://a.test/").WithContext(context.Background())
			//lint:ignore SA1019 that is what is tested
			r.Cancel = cancel
			if _, err := tr.RoundTrip(r); !errors.Is(err, context.Canceled) || time.Since(b.begin) != time.Second || len(b.at()) != 1 {
				t.Errorf("%s: after %v: %v; sent at %v", where, time.Since(b.begin), err, b.at())
			}
		})
	}
}

// A body that is read for its tokens and does not come is given up when the context ends.
func TestBodyThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Tokens: estimator(t), Base: newBase(0, ok)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		from, to := io.Pipe()
		defer to.Close()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, chat, from)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := tr.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := to.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("the body was not closed: %v", err)
		}
	})
}

// A failed request that cannot go again in time fails with its own error, not with that of the
// limit.
func TestErrorIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		tr := mustNew(t, transport.Config{
			Limiter: rolling(t, 1, time.Minute, limit.Requests), Backoff: backoff.Policy{Jitter: -1},
			Base: roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, errBroken }),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := tr.RoundTrip(get(t, "http://a.test/").WithContext(ctx)); err != errBroken || sent != 1 {
			t.Errorf("%v, sent %d times", err, sent)
		}
	})
}

// An answer that is too long to keep, to a request that cannot go again in time: the error says that it was sent.
func TestErrorSaysHowOftenItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(500, strings.Repeat("x", 100<<10)) })
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 1, time.Minute, limit.Requests), Backoff: backoff.Policy{Jitter: -1}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for want := range 2 {
			_, err := tr.RoundTrip(get(t, "http://a.test/").WithContext(ctx))
			var e *transport.Error
			if !errors.As(err, &e) || e.Attempts != 1-want || !errors.Is(err, paceline.ErrDeadline) {
				t.Errorf("%v: %+v", err, e)
			}
		}
	})
}

// The body of a failure that is not going to be returned is not waited for.
func TestFailureThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []*endless
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 3 {
				return reply(200, "fine")
			}
			r := reply(500, "")
			e := &endless{stop: make(chan struct{})}
			bodies = append(bodies, e)
			r.Body = e
			return r
		})
		tr := mustNew(t, transport.Config{Base: b})
		if status, body, err := do(t, tr, get(t, "http://a.test/")); status != 200 || body != "fine" || err != nil || time.Since(b.begin) > 10*time.Second {
			t.Errorf("after %v: %d %q %v", time.Since(b.begin), status, body, err)
		}
		for i, e := range bodies {
			if !e.closed.Load() {
				t.Errorf("answer %d was not closed", i+1)
			}
		}
	})
}

// endless is a body of which nothing comes until it is closed.
type endless struct {
	stop   chan struct{}
	closed atomic.Bool
}

func (e *endless) Read([]byte) (int, error) { <-e.stop; return 0, os.ErrClosed }
func (e *endless) Close() error {
	if !e.closed.Swap(true) {
		close(e.stop)
	}
	return nil
}

// A body that cannot be had again: the error is that of GetBody, and nothing is left open.
func TestGetBodyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(429, "", "Retry-After", "1") })
		all := &spies{}
		tr := mustNew(t, transport.Config{Base: b, Limiter: all.limiter()})
		r := request(t, http.MethodPost, "http://a.test/", "x")
		r.GetBody = func() (io.ReadCloser, error) { return nil, errBroken }
		if resp, err := tr.RoundTrip(r); resp != nil || !errors.Is(err, errBroken) || len(b.at()) != 1 || all.open() != 0 {
			t.Errorf("%v %v, sent %d times, %d open", resp, err, len(b.at()), all.open())
		}
	})
}

// The request is the caller's: it is the same after the call, whatever was done with it.
func TestRequestIsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(429, "") })
		tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t)})
		for _, rewinds := range []bool{true, false} {
			r := request(t, http.MethodPost, chat, prompt, "X-Stainless-Retry-Count", "0")
			if !rewinds {
				r.GetBody = nil
			}
			before, url, header := *r, *r.URL, r.Header.Clone()
			do(t, tr, r)
			if r.Body != before.Body || (r.GetBody == nil) != (before.GetBody == nil) || *r.URL != url || r.ContentLength != before.ContentLength || fmt.Sprint(r.Header) != fmt.Sprint(header) || r.Context() != before.Context() {
				t.Errorf("it was %+v and is %+v", before, *r)
			}
		}
	})
}

// Memory is bounded while those not used for longest are under way.
func TestPartitionsAreForgottenBesideLongRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, slow = 50, 20
		stop := make(chan struct{})
		tr := mustNew(t, transport.Config{MaxPartitions: most, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/slow") {
				<-stop
			}
			return reply(200, ""), nil
		})})
		var wg sync.WaitGroup
		for i := range slow {
			wg.Go(func() { do(t, tr, get(t, fmt.Sprintf("http://host%d.test/slow", i))) })
		}
		synctest.Wait()
		for i := range 1000 {
			do(t, tr, get(t, fmt.Sprintf("http://other%d.test/", i)))
		}
		if n := tr.Stats().Partitions; n > most {
			t.Errorf("%d are remembered, want %d at most", n, most)
		}
		close(stop)
		wg.Wait()
	})
}

// The names of a partition are short and its own: a long URL, path or model is not kept.
func TestPartitionsAreSmall(t *testing.T) {
	race.Without(t) // one request after another
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	tr := mustNew(t, transport.Config{Tokens: estimator(t), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		return reply(200, ""), nil
	})})
	const n, size = 32, 256 << 10
	before := heap()
	long := strings.Repeat("/a", size/2)
	for i := range n {
		do(t, tr, get(t, fmt.Sprintf("http://query%d.test/?%s", i, long)))
		do(t, tr, get(t, fmt.Sprintf("http://path%d.test%s", i, long)))
		do(t, tr, get(t, fmt.Sprintf("http://model%d.test/deployments/%s/x", i, strings.Repeat("m", size))))
		do(t, tr, request(t, http.MethodPost, "http://body.test/v1/chat/completions", fmt.Sprintf(`{"model":"%d%s","messages":[]}`, i, strings.Repeat("m", size))))
	}
	if p := tr.Stats().Partitions; p != 4*n {
		t.Fatalf("%d partitions, want %d", p, 4*n)
	}
	if kept := heap() - before; kept > 4*n*size/8 {
		t.Errorf("%d partitions keep %d bytes", 4*n, kept)
	}
	runtime.KeepAlive(tr)
	// Names that differ only beyond that are not one partition.
	one, two := get(t, "http://a.test"+long+"/x"), get(t, "http://a.test"+long+"/y")
	do(t, tr, one)
	do(t, tr, two)
	if p := tr.Stats().Partitions; p != 4*n+2 {
		t.Errorf("%d partitions, want %d", p, 4*n+2)
	}
}

// Text of a stranger, in a path or a model, does not begin a line of a log.
func TestErrorIsOneLine(t *testing.T) {
	p := transport.Partition{Host: "a.test", Model: "m\n2026 forged\x1b[2J", Route: "GET /x\r\ny"}
	if s := (&transport.Error{Partition: p, Err: errBroken}).Error(); strings.ContainsAny(s, "\r\n\x1b") {
		t.Errorf("%q", s)
	}
}
