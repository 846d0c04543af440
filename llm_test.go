package paceline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A language model's limits: requests and tokens in any minute, and how many at once. All are asked at once, so a request
// passes all of them or uses none.
func llmLimits(requests, tokens, inFlight int64) (all limit.Limiter, rpm, tpm *limit.Rolling, concurrency *limit.Concurrency) {
	rolling := func(n int64, u limit.Unit) *limit.Rolling {
		r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: u})
		if err != nil {
			panic(err)
		}
		return r
	}
	concurrency, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: inFlight})
	if err != nil {
		panic(err)
	}
	rpm, tpm = rolling(requests, limit.Requests), rolling(tokens, limit.Tokens)
	return limit.NewAll(rpm, tpm, concurrency), rpm, tpm, concurrency
}

func sleepUntil(start time.Time, d time.Duration) { time.Sleep(d - time.Since(start)) }

// wider is how much longer than the minute a limiter takes it for: a tick of the server, its drift, and 0.1 ms.
const wider = 1100*time.Microsecond + time.Minute/10_000

func tokens(n int64) limit.Cost { return limit.Cost{limit.Requests: 1, limit.Tokens: n} }

// pass goes through the gate and is answered at once.
func pass(t *testing.T, g *paceline.Gate, cost limit.Cost) {
	t.Helper()
	p, err := g.Wait(context.Background(), cost)
	if err != nil {
		t.Error(err)
		return
	}
	p.Settle(accepted)
}

// The limit of 7 is used up by requests 55 to 2 s ago: the next waits 5 s, until the oldest has left. If the limit falls to 5,
// it waits for the third oldest, 30 s.
func TestLLMWaitUntilTheOldestLeaves(t *testing.T) {
	for _, c := range []struct {
		lowered bool
		want    time.Duration
	}{{false, 5 * time.Second}, {true, 30 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			all, rpm, _, _ := llmLimits(7, 1000, 100)
			g := paceline.NewGate(all)
			start := time.Now()
			for _, ago := range []int{55, 45, 30, 20, 10, 5, 2} {
				sleepUntil(start, time.Duration(60-ago)*time.Second)
				pass(t, g, tokens(1))
			}
			sleepUntil(start, time.Minute)
			if c.lowered {
				g.Update(func(now mono.Time) {
					if err := rpm.SetLimit(now, 5); err != nil {
						t.Error(err)
					}
				})
			}
			pass(t, g, tokens(1))
			if got := time.Since(start) - time.Minute; got != c.want+wider {
				t.Errorf("waited %v, want %v and %v", got, c.want, wider)
			}
		})
	}
}

// 450 of 500 tokens are used, 100 of them 50 s ago: 50 more go at once, 51 when those have left.
func TestLLMWaitForTokens(t *testing.T) {
	for cost, want := range map[int64]time.Duration{50: 0, 51: 10*time.Second + wider, 151: 30*time.Second + wider} {
		synctest.Test(t, func(t *testing.T) {
			all, _, _, _ := llmLimits(100, 500, 100)
			g := paceline.NewGate(all)
			start := time.Now()
			for _, used := range []struct {
				at time.Duration
				n  int64
			}{{10 * time.Second, 100}, {30 * time.Second, 200}, {50 * time.Second, 150}} {
				sleepUntil(start, used.at)
				pass(t, g, tokens(used.n))
			}
			sleepUntil(start, time.Minute)
			pass(t, g, tokens(cost))
			if got := time.Since(start) - time.Minute; got != want {
				t.Errorf("%d tokens waited %v, want %v", cost, got, want)
			}
		})
	}
}

// Three wait, from 0, 0.1 and 0.2 s on, with 5 s to go: the first that came goes then, and it alone is woken. The others go
// as the requests before them leave the window.
func TestLLMThreeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, _, _ := llmLimits(3, 1000, 100)
		g := paceline.NewGate(all)
		start := time.Now()
		for _, at := range []time.Duration{5, 6, 7} {
			sleepUntil(start, at*time.Second)
			pass(t, g, tokens(1))
		}
		sleepUntil(start, time.Minute)
		went := make([]time.Duration, 3)
		var wg sync.WaitGroup
		for i := range went {
			wg.Go(func() {
				pass(t, g, tokens(1))
				went[i] = time.Since(start)
			})
			time.Sleep(100 * time.Millisecond)
		}
		if got := g.Waiting(); got != 3 {
			t.Errorf("%d wait, want 3", got)
		}
		sleepUntil(start, 65*time.Second+wider)
		synctest.Wait()
		if got := g.Waiting(); got != 2 {
			t.Errorf("when the oldest has left %d wait, want 2", got)
		}
		wg.Wait()
		if want := []time.Duration{65*time.Second + wider, 66*time.Second + wider, 67*time.Second + wider}; !slices.Equal(went, want) {
			t.Errorf("they went at %v, want %v", went, want)
		}
		if ticks, wakes := g.Counts(); ticks != 3 || wakes != 3 {
			t.Errorf("%d ticks and %d wakes for 3", ticks, wakes)
		}
	})
}

// Ten at once with a limit of 6. Six go at once; the others go when those have left the window,
// after 60 s and not 10.
func TestLLMBurstWaitsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, _, _ := llmLimits(6, 1000, 100)
		g := paceline.NewGate(all)
		start := time.Now()
		for i := range 10 {
			pass(t, g, tokens(1))
			want := time.Duration(0)
			if i >= 6 {
				want = time.Minute + wider
			}
			if got := time.Since(start); got != want {
				t.Errorf("request %d goes at %v, want %v", i+1, got, want)
			}
		}
	})
}

// The three setups of the seed, with all of their limits at the start. Answers take 0.1 to 5 s and
// use less than was reserved. The server has the same limits: it refuses nothing, and the limits
// are fully used.
func TestLLMConfigurations(t *testing.T) {
	for _, c := range []struct {
		name             string
		requests, tokens int64
		size             int64 // most tokens of a request
	}{
		{"conservative", 10, 1000, 150},
		{"aggressive", 100, 100_000, 1500},
		{"balanced", 30, 10_000, 500},
	} {
		synctest.Test(t, func(t *testing.T) {
			const inFlight, minutes = 20, 5
			all, _, _, _ := llmLimits(c.requests, c.tokens, inFlight)
			g := paceline.NewGate(all)
			server := struct {
				sync.Mutex
				rpm, tpm         rule.Amendable
				refused, flights int
				most             int
			}{}
			var err error
			if server.rpm, err = rule.NewRolling(rule.RollingConfig{Limit: c.requests, Window: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if server.tpm, err = rule.NewRolling(rule.RollingConfig{Limit: c.tokens, Window: time.Minute}); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			var wg sync.WaitGroup
			rng := rand.New(rand.NewPCG(1, 1))
			for range minutes * c.requests {
				actual := 1 + rng.Int64N(c.size)
				reserved := actual + rng.Int64N(actual)/4
				forward, back := time.Duration(rng.Int64N(int64(50*time.Millisecond))), 100*time.Millisecond+time.Duration(rng.Int64N(int64(5*time.Second)))
				wg.Go(func() {
					permit, err := g.Wait(context.Background(), tokens(reserved))
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(forward)
					server.Lock()
					now := mono.Time(time.Since(start))
					r, k := server.rpm.Fits(now, 1), server.tpm.Fits(now, actual)
					server.rpm.Count(now, 1, r && k)
					server.tpm.Count(now, actual, r && k)
					if !r || !k {
						server.refused++
					}
					server.flights++
					server.most = max(server.most, server.flights)
					server.Unlock()
					time.Sleep(back)
					server.Lock()
					server.flights--
					server.Unlock()
					o := limit.Outcome{Result: limit.Accepted, Metered: true, Actual: tokens(actual)}
					permit.Settle(o)
				})
			}
			wg.Wait()
			s := g.Stats()
			if server.refused != 0 || server.most > inFlight || s.Accepted != minutes*c.requests || s.InFlight != 0 {
				t.Errorf("%s: %d refused, %d at once; %+v", c.name, server.refused, server.most, s)
			}
			// Of what binds: so many minutes less the first, which is free, and the time that answers take.
			least := time.Duration(max(minutes*c.requests/c.requests, s.Used[limit.Tokens]/c.tokens)-1) * time.Minute
			if got := time.Since(start); got < least || got > (least+time.Minute)*12/10 {
				t.Errorf("%s: %d requests and %d tokens in %v, at least %v", c.name, s.Admitted, s.Used[limit.Tokens], got, least)
			}
		})
	}
}

// Larger than the limit can never go, and says so at once; limits and concurrency change while others wait.
func TestLLMLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, tpm, concurrency := llmLimits(100, 1000, 1)
		g := paceline.NewGate(all)
		if _, err := g.Wait(context.Background(), tokens(1001)); err == nil || time.Now().Nanosecond() != 0 {
			t.Errorf("1001 of 1000 tokens: %v", err)
		}
		first, err := g.Wait(context.Background(), tokens(600))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var second time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			pass(t, g, tokens(600))
			second = time.Since(start)
		})
		synctest.Wait()
		change := func(at time.Duration, f func(now mono.Time) error) {
			sleepUntil(start, at)
			g.Update(func(now mono.Time) {
				if err := f(now); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		change(time.Second, func(now mono.Time) error { return concurrency.SetLimit(now, 2) })
		if second != 0 || g.Waiting() != 1 {
			t.Errorf("two may be in flight, but 1200 tokens of 1000 are not there: it went at %v", second)
		}
		change(2*time.Second, func(now mono.Time) error { return tpm.SetLimit(now, 1200) })
		wg.Wait()
		if second != 2*time.Second {
			t.Errorf("it went at %v, want 2s", second)
		}
		first.Settle(accepted)
	})
}

// The memory of limiters with full windows, and requests of one token. With 500 requests and 30,000
// tokens a minute, it is at most 500 requests. With 30,000 tokens alone it is each request, unless
// a Grain bounds that: here (60 s + 5 s)/0.1 s + 2 entries.
func TestLLMMemory(t *testing.T) {
	for _, c := range []struct {
		name       string
		requests   int64 // 0: no such limit
		grain      time.Duration
		from, upTo uint64 // bytes; less is no measurement
	}{
		{"500 requests and 30,000 tokens", 500, 0, 8 << 10, 30 << 10},
		{"30,000 tokens", 0, 0, 480_000, 540 << 10},
		{"30,000 tokens, Grain 0.1 s", 0, 100 * time.Millisecond, 8 << 10, 20 << 10},
	} {
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what the first one finalizes
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		rolling := func(n int64, u limit.Unit) limit.Limiter {
			r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: u, Grain: c.grain})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		all := limit.NewAll(rolling(30_000, limit.Tokens))
		if c.requests > 0 {
			all = limit.NewAll(rolling(c.requests, limit.Requests), rolling(30_000, limit.Tokens))
		}
		sent := 0
		for now := mono.Time(0); now < mono.Time(3*time.Minute); sent++ {
			now = all.Ready(now+mono.Time(time.Minute/30_000), tokens(1))
			all.Settle(now, limittest.Admit(all, now, tokens(1)), &accepted)
		}
		got := heap() - before
		t.Logf("%s: %d bytes after %d requests", c.name, got, sent)
		if got < c.from || got > c.upTo {
			t.Errorf("%s: %d bytes, want %d to %d", c.name, got, c.from, c.upTo)
		}
		runtime.KeepAlive(all)
	}
}

func ExampleGate_tokens() {
	minute := func(n int64, u limit.Unit) limit.Limiter {
		r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: u})
		if err != nil {
			panic(err)
		}
		return r
	}
	gate := paceline.NewGate(limit.NewAll(minute(500, limit.Requests), minute(30_000, limit.Tokens)))

	// 300 tokens of input, and at most 1,000 of output.
	permit, err := gate.Wait(context.Background(), limit.Cost{limit.Requests: 1, limit.Tokens: 300 + 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The answer says what was used: the rest is free again at once.
	permit.Settle(limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: 300 + 150}})

	_, err = gate.Wait(context.Background(), limit.Cost{limit.Requests: 1, limit.Tokens: 30_001})
	fmt.Println(err)
	// Output: paceline: cost 30001 tokens is larger than the limit of 30000 tokens
}
