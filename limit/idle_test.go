package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
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
		lease *limit.Sent
		until mono.Time
	}
	var all []open
	results := []limit.Result{limit.Accepted, limit.Accepted, limit.Limited, limit.Failed, limit.Unsent, limit.Unknown}
	for range 2 + rng.IntN(40) {
		now = now.Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
		c := limit.Cost{limit.Requests: 1 + rng.Int64N(2), limit.Output: 1, limit.Tokens: rng.Int64N(20)}
		if l.Ready(now, c) <= now {
			all = append(all, open{limittest.Admit(l, now, c), now.Add(time.Duration(rng.Int64N(int64(4 * time.Second))))})
		}
		for len(all) > 0 && all[0].until <= now {
			l.Settle(now, all[0].lease, &limit.Outcome{Result: results[rng.IntN(len(results))]})
			all = all[1:]
		}
	}
	for _, o := range all {
		now = max(now, o.until)
		l.Settle(now, o.lease, &limit.Outcome{Result: limit.Accepted})
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
				if fits, err := limit.RestoreIdle(next, state[len("before"):]); err != nil || !fits {
					t.Fatalf("seed %d: it fits: %v, %v", seed, fits, err)
				}
				same(t, "restored", now, l, next)
			}
			if kept == 0 {
				t.Error("nothing ever counted: the test shows nothing")
			}
		})
	}
}

// A Fitted that comes back blames a limit as it would have: what was accepted before is its
// evidence. With a lesson it has no idle state.
func TestIdleFittedKeepsItsEvidence(t *testing.T) {
	for seed := range uint64(40) {
		create := func() *limit.Fitted {
			return limit.NewFitted(limit.NewAll(limit.MustRolling(10, time.Minute), limit.MustRolling(100, time.Hour)))
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		f, now := create(), mono.Time(0)
		one := func(f *limit.Fitted, r limit.Result) {
			f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: r})
		}
		for range 3 + rng.IntN(5) {
			now = now.Add(time.Duration(rng.Int64N(int64(30 * time.Second))))
			one(f, limit.Accepted)
		}
		state, ok := limit.AppendIdle(nil, f, now)
		if !ok {
			t.Fatalf("seed %d: there is no state", seed)
		}
		next := create()
		if fits, err := limit.RestoreIdle(next, state); !fits || err != nil {
			t.Fatalf("seed %d: it fits: %v, %v", seed, fits, err)
		}
		now = now.Add(time.Duration(rng.Int64N(int64(30 * time.Second))))
		for range 3 {
			one(f, limit.Limited)
			one(next, limit.Limited)
			now = now.Add(time.Duration(rng.Int64N(int64(100 * time.Second))))
		}
		same(t, "fitted", now, f, next)
		if was, is := f.Lessons(), next.Lessons(); len(was) == 0 || !slices.Equal(was, is) {
			t.Errorf("seed %d: it learns %+v, and learned %+v", seed, is, was)
		}
		if _, ok := limit.AppendIdle(nil, f, now); ok {
			t.Errorf("seed %d: a state has no lessons, and there are some", seed)
		}
	}
}

// A limiter with a request in flight has no idle state, nor has one that remembers more.
func TestIdleStateOfOthers(t *testing.T) {
	l := limit.MustRolling(5, time.Second)
	lease := limittest.Admit(l, 0, limit.One)
	if _, ok := limit.AppendIdle(nil, l, 0); ok {
		t.Error("a limiter with a request in flight has a state")
	}
	l.Settle(0, lease, &limit.Outcome{Result: limit.Accepted})
	fitted := limit.NewFitted(must(limit.NewCooldown(time.Second))) // a Cooldown does not know what is open
	lease = limittest.Admit(fitted, 0, limit.One)
	if _, ok := limit.AppendIdle(nil, fitted, 0); ok {
		t.Error("a Fitted with a request in flight has a state")
	}
	fitted.Settle(0, lease, &limit.Outcome{Result: limit.Accepted})
	if _, ok := limit.AppendIdle(nil, fitted, 0); !ok {
		t.Error("a Fitted without a request in flight has no state")
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

// Limits that change take the memory of their like, in whatever order they are.
func TestIdleStateOfChangedLimits(t *testing.T) {
	tokens := func() limit.Limiter {
		l, err := limit.NewRolling(limit.RollingConfig{Limit: 50, Window: time.Minute, Unit: limit.Tokens})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	bucket := func() limit.Limiter {
		l, err := limit.NewBucket(limit.BucketConfig{Limit: 3, Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	minute, day := limit.MustRolling(3, time.Minute), limit.MustRolling(100, 24*time.Hour)
	was := limit.NewAll(minute, day, tokens())
	for range 3 {
		was.Settle(at(time.Second), limittest.Admit(was, at(time.Second), limit.Cost{limit.Requests: 1, limit.Tokens: 10}), &limit.Outcome{Result: limit.Accepted})
	}
	state, ok := limit.AppendIdle(nil, was, at(time.Second))
	if !ok {
		t.Fatal("there is no state")
	}
	one, many := limit.Cost{limit.Requests: 1}, limit.Cost{limit.Tokens: 30}
	full := was.Ready(at(time.Second), one)
	for _, c := range []struct {
		name         string
		now          limit.Limiter
		fits         bool
		one, manyToo mono.Time
	}{
		{"another order", limit.NewAll(tokens(), limit.MustRolling(100, 24*time.Hour), limit.MustRolling(3, time.Minute)), true, full, was.Ready(at(time.Second), many)},
		{"one is gone", limit.NewAll(limit.MustRolling(3, time.Minute)), true, full, at(time.Second)},
		{"one more", limit.NewAll(limit.MustRolling(2, time.Second), limit.MustRolling(3, time.Minute), limit.MustRolling(100, 24*time.Hour), tokens()), true, full, was.Ready(at(time.Second), many)},
		{"another number, which a change of the limits sets later", limit.NewAll(limit.MustRolling(7, time.Minute)), true, full, at(time.Second)},
		{"another kind", limit.NewAll(bucket(), tokens()), false, at(time.Second), was.Ready(at(time.Second), many)},
		{"none", limit.NewAll(), true, at(time.Second), at(time.Second)},
	} {
		fits, err := limit.RestoreIdle(c.now, state)
		if err != nil || fits != c.fits {
			t.Errorf("%s: it fits: %v, %v", c.name, fits, err)
		}
		if at := c.now.Ready(at(time.Second), one); at != c.one {
			t.Errorf("%s: one is ready at %v, want %v", c.name, at, c.one)
		}
		if at := c.now.Ready(at(time.Second), many); at != c.manyToo {
			t.Errorf("%s: many tokens are ready at %v, want %v", c.name, at, c.manyToo)
		}
	}
}

// Damaged states are errors, and no panics.
func FuzzRestoreIdle(f *testing.F) {
	kinds := idleKinds()
	kinds["fitted"] = func() limit.Limiter { return limit.NewFitted(limit.MustRolling(5, 10*time.Second)) }
	for _, create := range kinds {
		l := create()
		now := busy(rand.New(rand.NewPCG(1, 2)), l)
		if state, ok := limit.AppendIdle(nil, l, now); ok {
			f.Add(state)
		}
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, create := range kinds {
			l := create()
			if _, err := limit.RestoreIdle(l, state); err == nil {
				l.Ready(0, limit.One)
			}
		}
	})
}
