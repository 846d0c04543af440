package transport_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Thirty for a slow model delay no other: two hundred of a fast one on the same route, 20 a second,
// are through in ten seconds.
func TestSlowModelHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "") })
		tr := mustNew(t, transport.Config{
			Base: b,
			Partition: func(r *http.Request) transport.Partition {
				return transport.Partition{Host: "a.test", Model: r.Header.Get("Model"), Route: "POST /chat"}
			},
			Limit: func(p transport.Partition) limit.Limiter {
				switch {
				case p.Scope == provider.Model && p.Model == "slow":
					return rolling(t, 1, 10*time.Second, limit.Requests)
				case p.Scope == provider.Route:
					return rolling(t, 20, time.Second, limit.Requests)
				}
				return nil
			},
		})
		begin := time.Now()
		var slow, fast sync.WaitGroup
		for range 30 {
			slow.Go(func() { do(t, tr, get(t, "http://a.test/chat", "Model", "slow")) })
		}
		synctest.Wait()
		for range 200 {
			fast.Go(func() { do(t, tr, get(t, "http://a.test/chat", "Model", "fast")) })
		}
		fast.Wait()
		if d := time.Since(begin); d > 10200*time.Millisecond {
			t.Errorf("the fast ones took %v", d)
		}
		slow.Wait()
	})
}

// A server that closes each kept connection when it has read a request on it gets each request once.
func TestOncePerLeave(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var arrived atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 0; ; n++ {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					arrived.Add(1)
					if n > 0 {
						return // read, and no answer
					}
					fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	tr := mustNew(t, transport.Config{Base: own, Attempts: 1})
	defer tr.CloseIdleConnections()
	for range 100 {
		do(t, tr, get(t, "http://"+l.Addr().String()+"/"))
	}
	if n := arrived.Load(); n != 100 {
		t.Errorf("%d arrived of 100", n)
	}
}

// ear is a limiter that keeps its outcomes.
type ear struct {
	limit.Limiter
	heard []limit.Outcome
}

func (e *ear) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	e.heard = append(e.heard, *o)
	e.Limiter.Settle(now, l, o)
}

// Every limiter learns what is left, that of Config.Limiter too, even without a stated reset.
func TestEveryLimiterHearsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "", "RateLimit-Remaining", "17") })
		shared, own := &ear{Limiter: limit.MustRolling(20, time.Second)}, &ear{Limiter: limit.MustRolling(20, time.Second)}
		tr := mustNew(t, transport.Config{Base: b, Limiter: shared, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return own
			}
			return nil
		}})
		do(t, tr, get(t, "http://api.heroku.com/"))
		for _, e := range []*ear{shared, own} {
			if len(e.heard) != 1 || e.heard[0].Known>>limit.Requests&1 != 1 || e.heard[0].Remaining[limit.Requests] != 17 {
				t.Errorf("heard %+v", e.heard)
			}
		}
	})
}

// askedDialect counts how often it is asked.
type askedDialect struct {
	provider.Dialect
	n *int
}

func (a askedDialect) Read(now time.Time, r provider.Response) provider.Observation {
	*a.n++
	return a.Dialect.Read(now, r)
}

// A configured Provider is asked of every answer, whatever its header says.
func TestProviderIsAlwaysAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "", "X-Left", "3") })
		generic, _ := provider.Lookup("generic")
		n := 0
		tr := mustNew(t, transport.Config{Base: b, Provider: askedDialect{generic, &n}})
		for range 3 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if n != 3 {
			t.Errorf("asked %d times of 3", n)
		}
	})
}

// A pause can be read, and lifted: the requests that wait for it go.
func TestLift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(429, "", "Retry-After", "60")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b})
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		time.Sleep(time.Second)
		all := tr.Partitions()
		if len(all) != 1 || all[0].Waiting != 1 || all[0].Limited != 1 || len(all[0].Pauses) != 1 {
			t.Fatalf("%+v", all)
		}
		p := all[0].Pauses[0]
		if p.Refusal != provider.RateLimited || p.Partition.Scope != provider.Key || p.Until.Sub(begin) != time.Minute || !strings.HasPrefix(all[0].Partition.String(), "a.test") {
			t.Errorf("%+v", p)
		}
		if !tr.Lift(p.Partition) || tr.Lift(p.Partition) || tr.Lift(transport.Partition{Host: "b.test"}) {
			t.Error("it is lifted once")
		}
		wg.Wait()
		if d := time.Since(begin); d != time.Second {
			t.Errorf("it went at %v", d)
		}
	})
}

// A OneWayMax that does not hold is given up at the first refusal, and that is said once.
func TestRetreatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n%3 == 0 {
				return reply(429, "", "Retry-After", "1")
			}
			return reply(200, "")
		})
		own, err := limit.NewRolling(limit.RollingConfig{Limit: 20, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 50 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		tr := mustNew(t, transport.Config{Base: b, Logger: slog.New(slog.NewTextHandler(&log, nil)), Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return limit.Named("orders", own)
			}
			return nil
		}})
		for range 12 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if n := strings.Count(log.String(), "limit=orders option=OneWayMax"); n != 1 {
			t.Errorf("said %d times:\n%s", n, log.String())
		}
	})
}

// Ask returns the instant, the number ahead, and the error of too many waiting; and nothing is sent
// for it.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "") })
		tr := mustNew(t, transport.Config{Base: b, MaxWaiting: 3, Limiter: rolling(t, 1, 2*time.Second, limit.Requests)})
		ask := func(want time.Duration, behind int) {
			t.Helper()
			at, ahead, err := tr.Ask(get(t, "http://a.test/"))
			if d := time.Until(at); at.IsZero() != (want == 0) || want > 0 && d != want || ahead != behind || err != nil {
				t.Errorf("at %v, %d ahead, %v; want %v, %d", d, ahead, err, want, behind)
			}
		}
		ask(0, 0)
		do(t, tr, get(t, "http://a.test/"))
		ask(2*time.Second, 0)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		}
		synctest.Wait()
		ask(8*time.Second, 3)
		if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, paceline.ErrFull) {
			t.Error(err)
		}
		wg.Wait()
		if n := len(b.at()); n != 4 {
			t.Errorf("%d were sent", n)
		}
	})
}
