package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// opaque is a Limiter without any optional method.
type opaque struct{ limit.Limiter }

func tokens(n int64) limit.Cost { return limit.Cost{limit.Requests: 1, limit.Tokens: n} }

// llm has requests, tokens and concurrency.
func llm(requests, tokens, inFlight int64) (rpm, tpm *limit.Rolling, c *limit.Concurrency) {
	rpm = must(limit.NewRolling(limit.RollingConfig{Limit: requests, Window: time.Minute, Margin: -1}))
	tpm = must(limit.NewRolling(limit.RollingConfig{Limit: tokens, Window: time.Minute, Margin: -1, Unit: limit.Tokens}))
	return rpm, tpm, must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: inFlight}))
}

// FuzzReadyAfter: ReadyAfter returns what Ready returns after the Admit, and changes nothing. Only
// if the two never fit together, Never stands for "not before a Settle".
func FuzzReadyAfter(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 11))
		arrivals := limit.Arrivals{Late: time.Duration(rng.IntN(3)-1) * time.Second, LearnLead: rng.IntN(4) == 0}
		const n = 10
		kinds := map[string]func() limit.Limiter{
			"Rolling": func() limit.Limiter {
				return must(limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Second, Arrivals: arrivals}))
			},
			"Weighted": func() limit.Limiter {
				return must(limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: time.Second, Arrivals: arrivals}))
			},
			"Bucket": func() limit.Limiter {
				return must(limit.NewBucket(limit.BucketConfig{Limit: n, Window: time.Second, Arrivals: arrivals}))
			},
			"large Bucket": func() limit.Limiter {
				return must(limit.NewBucket(limit.BucketConfig{Limit: 60, Window: 10 * time.Second, Burst: 60, Margin: time.Second, Arrivals: arrivals}))
			},
			"Calendar": func() limit.Limiter {
				return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: time.Second}))
			},
			"Concurrency": func() limit.Limiter { return must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})) },
			"Cooldown":    func() limit.Limiter { return must(limit.NewCooldown(300 * time.Millisecond)) },
			"Spacing":     func() limit.Limiter { return must(limit.NewSpacing(50 * time.Millisecond)) },
		}
		var each []limit.Limiter
		for _, name := range []string{"Rolling", "Concurrency", "Spacing"} {
			each = append(each, kinds[name]())
		}
		kinds["All"] = func() limit.Limiter { return limit.Named("it", limit.NewAll(each...)) }
		for name, kind := range kinds {
			l := kind()
			if !limit.Foresees(l) {
				t.Fatalf("%s does not foresee", name)
			}
			now := mono.Time(0)
			var open []*limit.Sent
			for step := range 120 {
				now = now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
				if settles := step/12%2 == 1; len(open) > 0 && (rng.IntN(8) == 0) != settles {
					i := rng.IntN(len(open))
					o := limit.Outcome{Result: limit.Result(rng.IntN(5)), RTT: time.Duration(1+rng.IntN(100)) * time.Millisecond}
					l.Settle(now, open[i], &o)
					open = append(open[:i], open[i+1:]...)
					continue
				}
				first := limit.Cost{limit.Requests: rng.Int64N(5)}
				costs := []limit.Cost{{}, limit.One, {limit.Requests: 6}, {limit.Requests: 10}, {limit.Requests: 50}}
				var want []mono.Time
				for _, c := range costs {
					before := l.Ready(now, c)
					want = append(want, limit.ReadyAfter(l, now, first, c))
					if after := l.Ready(now, c); after != before {
						t.Fatalf("%s: asked at %v, Ready is %v where it was %v", name, now, after, before)
					}
				}
				if l.Ready(now, first) > now {
					continue
				}
				open = append(open, limittest.Admit(l, now, first))
				for i, c := range costs {
					got := l.Ready(now, c)
					if want[i] != got && !(want[i] == limit.Never && got == limit.AfterSettle) {
						t.Fatalf("%s at %v: %v before %v: foreseen %v, it is %v", name, now, first, c, want[i], got)
					}
				}
			}
		}
	})
}

// 60 of 100 tokens are used until 60 s, and a cost of 70 waits for them. 30 may pass. 31 would make
// it later.
func TestMayPass(t *testing.T) {
	for _, c := range []struct {
		name               string
		requests, inFlight int64
		cost               int64
		ready              time.Duration // of the 70
		want               bool
	}{
		{"both fit then", 9, 9, 30, time.Minute, true},
		{"they do not", 9, 9, 31, time.Minute, false},
		{"it has no room itself", 9, 9, 41, time.Minute, false},
		{"only one request is left", 2, 9, 30, time.Minute, true}, // by then the request of the 60 is back
		{"one in flight at a time", 9, 1, 30, time.Minute, false}, // for an unknown time
		{"the other waits for nobody knows what", 9, 9, 30, time.Duration(limit.AfterSettle), false},
	} {
		rpm, tpm, flights := llm(c.requests, 100, c.inFlight)
		l := limit.NewAll(rpm, tpm, flights)
		l.Settle(0, limittest.Admit(l, 0, tokens(60)), &limit.Outcome{Result: limit.Accepted})
		if got := limit.MayPass(l, 0, tokens(c.cost), tokens(70), mono.Time(c.ready)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if blind := limit.NewAll(l, opaque{limit.MustRolling(5, time.Second)}); limit.MayPass(blind, 0, tokens(c.cost), tokens(70), mono.Time(c.ready)) || limit.Foresees(blind) {
			t.Errorf("%s: past a limiter that foresees nothing", c.name)
		}
	}
}
