package transport_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// The copy of the last attempt is part of it: how it ends begins no other.
func TestHedgeOfTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lagging(answer{after: 2 * time.Second, err: errors.New("reset")}, answer{after: 2 * time.Second, status: 503}, serves(0))
		tr := mustNew(t, transport.Config{Base: b, Attempts: 1, Hedge: transport.Hedge{After: time.Second, Share: 1}})
		status, _, err := do(t, tr, get(t, "http://a.test/"))
		if status != 503 || err != nil || len(b.sent) != 2 {
			t.Errorf("%d %v, sent at %v", status, err, b.sent)
		}
	})
}

// refuses is a Base that answers in order, each after its time, 429 with that Retry-After if there is one.
func refuses(sent *atomic.Int64, after []time.Duration, asked []string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		n := min(int(sent.Add(1)), len(after)) - 1
		time.Sleep(after[n])
		if asked[n] == "" {
			return reply(200, "fine"), nil
		}
		return reply(429, "", "Retry-After", asked[n]), nil
	})
}

// A refusal of the losing one of two is a refusal: it is counted, and no request waits in line for
// an hour.
func TestHedgeRefusalOfTheOther(t *testing.T) {
	for name, asked := range map[string][]string{"the copy": {"", "3600"}, "the first": {"3600", ""}} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			tr := mustNew(t, transport.Config{
				Attempts: 2, Hedge: transport.Hedge{After: time.Second, Share: 1},
				Base: refuses(&sent, []time.Duration{4 * time.Second, 5 * time.Second / 2}, asked),
			})
			if name == "the first" {
				tr = mustNew(t, transport.Config{
					Attempts: 2, Hedge: transport.Hedge{After: time.Second, Share: 1},
					Base: refuses(&sent, []time.Duration{2 * time.Second, 4 * time.Second}, []string{"60", ""}),
				})
			}
			if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
				t.Errorf("%s: %d %v", name, status, err)
			}
			synctest.Wait()
			if s := tr.Stats(); s.Refused != 1 || s.Pauses != 1 {
				t.Errorf("%s: %+v", name, s)
			}
			if name == "the first" {
				return
			}
			begin := time.Now()
			if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, transport.ErrPaused) || time.Since(begin) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(begin))
			}
		})
	}
}

// A refusal of the first attempt counts when it comes, not when its copy has been answered.
func TestHedgeRefusalIsHeededAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		begin := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		base := refuses(&sent, []time.Duration{2 * time.Second, time.Minute, 0}, []string{"10", "", ""})
		tr := mustNew(t, transport.Config{Attempts: 2, Hedge: transport.Hedge{After: time.Second, Share: 1}, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			at = append(at, time.Since(begin))
			mu.Unlock()
			return base.RoundTrip(r)
		})})
		var all sync.WaitGroup
		all.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		time.Sleep(3 * time.Second)
		do(t, tr, get(t, "http://a.test/"))
		if want := seconds(0, 1, 12); !slices.Equal(at, want) {
			t.Errorf("sent at %v, want %v", at, want)
		}
		all.Wait()
	})
}

// Whatever panics, a copy that had failed before is settled.
func TestHedgePanicOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		tr := mustNew(t, transport.Config{
			Limiter: rolling(t, 10, time.Minute, limit.Requests), Hedge: transport.Hedge{After: time.Second, Share: 1},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if n.Add(1) == 2 {
					return reply(503, ""), nil
				}
				time.Sleep(3 * time.Second)
				panic("broken")
			}),
		})
		func() {
			defer func() {
				if got := recover(); got != "broken" {
					t.Errorf("recovered %v", got)
				}
			}()
			do(t, tr, get(t, "http://a.test/"))
		}()
		synctest.Wait()
		if open := tr.Partitions()[0].InFlight; open != 0 {
			t.Errorf("%d permits are not settled", open)
		}
	})
}

// A GetBody that panics when a copy is to be sent does not end the program: there is no copy.
func TestHedgeGetBodyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lagging(serves(3 * time.Second))
		tr := mustNew(t, transport.Config{Base: b, Hedge: transport.Hedge{After: time.Second, Share: 1}})
		r := request(t, "PUT", "http://a.test/", "hello")
		r.GetBody = func() (io.ReadCloser, error) { panic("broken") }
		status, _, err := do(t, tr, r)
		if status != 200 || err != nil || tr.Stats().Hedged != 0 || tr.Partitions()[0].InFlight != 0 {
			t.Errorf("%d %v, %+v", status, err, tr.Partitions()[0])
		}
	})
}

// A request is its caller's again when the body of its answer is closed: a copy that lost does not look at it any more.
func TestHedgeLeavesTheRequestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		tr := mustNew(t, transport.Config{Hedge: transport.Hedge{After: time.Second, Share: 1}, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if n.Add(1) == 1 {
				time.Sleep(2 * time.Second)
				return reply(200, "fine"), nil
			}
			<-r.Context().Done()
			time.Sleep(time.Second) // such as a write that is under way
			r.Header.Get("X-Id")
			return nil, r.Context().Err()
		})})
		r := request(t, "POST", "http://a.test/", "hello", "Idempotency-Key", "1")
		do(t, tr, r)
		for range 200 { // for the race detector
			r.Header.Set("X-Id", "2")
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// The answer to the losing one of two is an answer too: the limits learn from it as from any other.
func TestHedgeAnswerOfTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		tr := mustNew(t, transport.Config{
			Hedge: transport.Hedge{After: time.Second, Share: 1}, Base: refuses(&sent, []time.Duration{4 * time.Second, time.Second}, []string{"", ""}),
		})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
			t.Errorf("%d %v", status, err)
		}
		time.Sleep(time.Minute)
		if s := tr.Partitions()[0].Stats; sent.Load() != 2 || s.Accepted != 2 || s.Unknown != 0 || s.InFlight != 0 {
			t.Errorf("%d sent: %+v", sent.Load(), s)
		}
	})
}

// The first panics while its copy is on its way. The copy is settled at its end: its answer is not
// used.
func TestHedgeOutlivesThePanicOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		body := &closed{Reader: strings.NewReader("late")}
		tr := mustNew(t, transport.Config{
			Limiter: rolling(t, 10, time.Minute, limit.Requests), Hedge: transport.Hedge{After: time.Second, Share: 1},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if n.Add(1) == 2 {
					time.Sleep(5 * time.Second)
					resp := reply(200, "")
					resp.Body = body
					return resp, nil
				}
				time.Sleep(3 * time.Second)
				panic("broken")
			}),
		})
		func() {
			defer func() { _ = recover() }()
			do(t, tr, get(t, "http://a.test/"))
		}()
		if open := tr.Partitions()[0].InFlight; open != 1 {
			t.Errorf("%d are under way, want the copy", open)
		}
		time.Sleep(time.Minute)
		if open := tr.Partitions()[0].InFlight; open != 0 || body.n == 0 {
			t.Errorf("%d permits are not settled; the body is closed: %v", open, body.n > 0)
		}
	})
}
