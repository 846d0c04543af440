package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// idleKinds are limiters whose memory a state has when they are idle.
func idleKinds() map[string]func() limit.Limiter {
	must := func(l limit.Limiter, err error) limit.Limiter {
		if err != nil {
			panic(err)
		}
		return l
	}
	rolling := func() limit.Limiter { return limit.MustRolling(5, 10*time.Second) }
	concurrency := func() limit.Limiter { return must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 3})) }
	return map[string]func() limit.Limiter{
		"rolling": rolling,
		"grain": func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: 10 * time.Second, Grain: time.Second}))
		},
		"calendar": func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: 10 * time.Second, Phase: at(3 * time.Second)}))
		},
		"anchored": func() limit.Limiter {
			return must(limit.NewAnchored(limit.AnchoredConfig{Limit: 5, Window: 10 * time.Second}))
		},
		"bucket": func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: 10 * time.Second, Burst: 7}))
		},
		"alone": func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: 10 * time.Second, Alone: true}))
		},
		"weighted": func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: 10 * time.Second}))
		},
		"produced": func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 5, Window: 10 * time.Second}))
		},
		"cooldown": func() limit.Limiter { return must(limit.NewCooldown(4 * time.Second)) },
		"all": func() limit.Limiter {
			day := must(limit.NewRolling(limit.RollingConfig{Limit: 40, Window: time.Minute}))
			tokens := must(limit.NewBucket(limit.BucketConfig{Limit: 60, Window: 10 * time.Second, Unit: limit.Tokens}))
			return limit.NewAll(limit.Named("short", rolling()), limit.NewAll(day, tokens))
		},
		"varying, in flight": func() limit.Limiter {
			return limit.NewVarying(limit.Named("a", rolling()), limit.Named("b", concurrency()))
		},
		"in flight": concurrency,
		"spacing":   func() limit.Limiter { return must(limit.NewSpacing(2 * time.Second)) },
	}
}

// busy uses a limiter as a client would, until nothing is in flight.
func busy(rng *rand.Rand, l limit.Limiter) (now mono.Time) {
	type open struct {
		lease limit.Lease
		until mono.Time
	}
	var all []open
	results := []limit.Result{limit.Accepted, limit.Accepted, limit.Limited, limit.Failed, limit.Unsent, limit.Unknown}
	for range 2 + rng.IntN(40) {
		now = now.Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
		c := limit.Cost{limit.Requests: 1 + rng.Int64N(2), limit.Output: 1, limit.Tokens: rng.Int64N(20)}
		if l.Ready(now, c) <= now {
			all = append(all, open{l.Admit(now, c), now.Add(time.Duration(rng.Int64N(int64(4 * time.Second))))})
		}
		for len(all) > 0 && all[0].until <= now {
			l.Settle(now, all[0].lease, limit.Outcome{Result: results[rng.IntN(len(results))]})
			all = all[1:]
		}
	}
	for _, o := range all {
		now = max(now, o.until)
		l.Settle(now, o.lease, limit.Outcome{Result: limit.Accepted})
	}
	return now
}

// same compares the verdicts of two limiters from an instant on.
func same(t *testing.T, what string, from mono.Time, one, other limit.Limiter) {
	t.Helper()
	for d := time.Duration(0); d < 90*time.Second; d += 700 * time.Millisecond {
		now := from.Add(d)
		for n := int64(0); n <= 8; n++ {
			c := limit.Cost{limit.Requests: n, limit.Tokens: 7 * n}
			if a, b := one.Ready(now, c), other.Ready(now, c); a != b {
				t.Fatalf("%s: at %v, %v after its last answer, %v is ready at %v, and at %v", what, now, d, c, a, b)
			}
		}
	}
}

// A state of an idle limiter is all of its memory, and nothing of it counts after CountsUntil.
func TestIdleStateIsTheWholeMemory(t *testing.T) {
	for name, create := range idleKinds() {
		t.Run(name, func(t *testing.T) {
			kept := 0
			for seed := range uint64(60) {
				l := create()
				now := busy(rand.New(rand.NewPCG(seed, 1)), l)
				until, known := limit.CountsUntil(l, now)
				if !known {
					t.Fatalf("seed %d: what counts is not known", seed)
				}
				if again, _ := limit.CountsUntil(l, until); again != until {
					t.Errorf("seed %d: it counts until %v, and then until %v", seed, until, again)
				}
				if until > now {
					kept++
					if again, _ := limit.CountsUntil(l, until-1); again != until {
						t.Errorf("seed %d: just before %v it counts until %v", seed, until, again)
					}
				}
				same(t, "forgotten", until, l, create())
				state, ok := limit.AppendIdle([]byte("before"), l, now)
				if !ok { // a part that is no Keeper still counts
					now = until
					state, ok = limit.AppendIdle([]byte("before"), l, now)
				}
				if !ok {
					t.Fatalf("seed %d: there is no state", seed)
				}
				next := create()
				if err := limit.RestoreIdle(next, state[len("before"):]); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				same(t, "restored", now, l, next)
			}
			if kept == 0 {
				t.Error("nothing ever counted: the test shows nothing")
			}
		})
	}
}

// A limiter with a request in flight has no idle state, nor has one that remembers more.
func TestIdleStateOfOthers(t *testing.T) {
	l := limit.MustRolling(5, time.Second)
	lease := l.Admit(0, limit.One)
	if _, ok := limit.AppendIdle(nil, l, 0); ok {
		t.Error("a limiter with a request in flight has a state")
	}
	l.Settle(0, lease, limit.Outcome{Result: limit.Accepted})
	state, ok := limit.AppendIdle(nil, l, 0)
	if !ok {
		t.Fatal("a Rolling has no state")
	}
	tokens, err := limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Unit: limit.Tokens})
	if err != nil {
		t.Fatal(err)
	}
	for what, next := range map[string]limit.Limiter{
		"tokens": tokens, "two": limit.NewAll(limit.MustRolling(5, time.Second), limit.MustRolling(5, time.Hour)), "none": limit.NewAll(),
	} {
		if limit.RestoreIdle(next, state) == nil {
			t.Errorf("the state of one limit of requests is taken for that of %s", what)
		}
	}
	for _, learns := range []limit.Arrivals{{OneWayMax: time.Second}, {LearnLead: true}} {
		l, err := limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Arrivals: learns})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := limit.AppendIdle(nil, l, 0); ok {
			t.Errorf("what %+v has measured is in no state", learns)
		}
	}
}

// Damaged states are errors, and no panics.
func FuzzRestoreIdle(f *testing.F) {
	kinds := idleKinds()
	for _, create := range kinds {
		l := create()
		now := busy(rand.New(rand.NewPCG(1, 2)), l)
		if state, ok := limit.AppendIdle(nil, l, now); ok {
			f.Add(state)
		}
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, create := range kinds {
			if l := create(); limit.RestoreIdle(l, state) == nil {
				l.Ready(0, limit.One)
			}
		}
	})
}
