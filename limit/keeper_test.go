package limit_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// keepers are fresh limiters of every kind that can be kept, each configured in some way.
var keepers = map[string]func() limit.Limiter{
	"Rolling": func() limit.Limiter { return limit.MustRolling(5, time.Second) },
	"Calendar": func() limit.Limiter {
		return must(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: time.Second}))
	},
	"Anchored": func() limit.Limiter {
		return must(limit.NewAnchored(limit.AnchoredConfig{Limit: 5, Window: time.Second}))
	},
	"Bucket": func() limit.Limiter {
		return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second}))
	},
	"Weighted": func() limit.Limiter {
		return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second}))
	},
	"Produced": func() limit.Limiter {
		return must(limit.NewProduced(limit.ProducedConfig{Limit: 50, Window: time.Second, Unit: limit.Input}))
	},
	"Cooldown": func() limit.Limiter { return must(limit.NewCooldown(time.Second)) },
	"All": func() limit.Limiter {
		return limit.NewAll(limit.MustRolling(5, time.Second), limit.Named("minute", limit.NewFitted(limit.MustRolling(50, time.Minute))))
	},
	"Named": func() limit.Limiter { return limit.Named("it", limit.MustRolling(5, time.Second)) },
}

// used returns a limiter with a history: some requests settled in each way.
func used(l limit.Limiter, rng *rand.Rand) (limit.Limiter, mono.Time) {
	now := at(time.Duration(rng.Int64N(int64(time.Hour))))
	for range rng.IntN(60) {
		cost := limit.Cost{limit.Requests: 1, limit.Input: rng.Int64N(40)}
		t := l.Ready(now, cost)
		if t >= limit.AfterSettle {
			break
		}
		lease := limittest.Admit(l, t, cost)
		now = t.Add(time.Duration(rng.Int64N(int64(300 * ms))))
		l.Settle(now, lease, &limit.Outcome{Result: limit.Result(rng.IntN(5))})
	}
	return l, now
}

// A state of another kind, or a damaged one, is refused by an error that says where. A state that
// is taken can be used.
func FuzzRestore(f *testing.F) {
	var names []string
	for name := range keepers {
		names = append(names, name)
	}
	for seed, name := range names {
		l, _ := used(keepers[name](), rand.New(rand.NewPCG(uint64(seed), 1)))
		f.Add(name, limit.AppendState(nil, l))
	}
	f.Fuzz(func(t *testing.T, name string, state []byte) {
		fresh, ok := keepers[name]
		if !ok {
			return
		}
		l := fresh()
		if err := limit.Restore(l, state); err != nil {
			if !strings.HasPrefix(err.Error(), "limit: ") && !strings.HasPrefix(err.Error(), "it: ") {
				t.Errorf("%v", err)
			}
			return
		}
		for now := range mono.Time(3) {
			for _, c := range costs {
				l.Settle(now, limittest.Admit(l, now, c), &limit.Outcome{})
				l.Ready(now, c)
			}
		}
		again := fresh()
		if err := limit.Restore(again, limit.AppendState(nil, l)); err != nil {
			t.Errorf("what was made of a state that was taken is refused: %v", err)
		}
	})
}

// Each state is refused by each other kind. Each configuration has a line of its own.
func TestKeptStatesDoNotFitOthers(t *testing.T) {
	said := map[string]string{}
	for name, fresh := range keepers {
		l, _ := used(fresh(), rand.New(rand.NewPCG(1, 1)))
		for other, made := range keepers {
			fits := name == other || strings.Contains("Rolling Named", name) && strings.Contains("Rolling Named", other)
			if err := limit.Restore(made(), limit.AppendState(nil, l)); (err == nil) != fits {
				t.Errorf("%s takes the state of %s: %v", other, name, err)
			}
		}
		if was, twice := said[limit.Configuration(l)]; twice {
			t.Errorf("%s and %s both say %q", name, was, limit.Configuration(l))
		}
		said[limit.Configuration(l)] = name
	}
}

func TestKeepsSaysWhatCannotBeKept(t *testing.T) {
	for want, l := range map[string]limit.Limiter{
		"a limit of requests with a OneWayMax cannot be kept": limit.Named("x", must(limit.NewRolling(limit.RollingConfig{
			Limit: 1, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: time.Second}}))),
		"a limit of requests with LearnLead cannot be kept": limit.NewAll(limit.NewFitted(must(limit.NewBucket(limit.BucketConfig{
			Limit: 1, Window: time.Second, Arrivals: limit.Arrivals{LearnLead: true}})))),
		"the state of a *limit.Concurrency cannot be kept": limit.NewAll(must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1}))),
	} {
		if err := limit.Keeps(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := limit.Restore(l, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Restore: %v, want %s", err, want)
		}
	}
	for name, fresh := range keepers {
		if err := limit.Keeps(fresh()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The changes by SetLimit and its like are in the state.
func TestKeptChanges(t *testing.T) {
	l := limit.MustRolling(5, time.Second)
	l.SetLimit(0, 7)
	l.SetWindow(0, time.Minute)
	next := limit.MustRolling(5, time.Second)
	if err := limit.Restore(next, limit.AppendState(nil, l)); err != nil {
		t.Fatal(err)
	}
	if got, want := limit.Configuration(next), "Rolling: 7 requests per 1m0s, margin 7.1ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if at := next.Ready(0, limit.Cost{8}); at != limit.Never {
		t.Errorf("8 of 7 are ready at %v", at)
	}
}

// A full limit is used up at once. After its Span nothing of that counts. A bucket that a single
// cost may overdraw needs two steps.
func TestSpanIsEnough(t *testing.T) {
	for name, fresh := range keepers {
		l := fresh()
		now := at(90 * ms)
		for l.Ready(now, limit.One) <= now && name != "Cooldown" && name != "Produced" {
			l.Settle(now, limittest.Admit(l, now, limit.One), &limit.Outcome{Result: limit.Accepted})
		}
		l.Settle(now, limittest.Admit(l, now, limit.Cost{}), &limit.Outcome{Result: limit.Limited})
		all := limit.Cost{5}
		if at := l.Ready(now, all); at > now.Add(limit.Span(l)) {
			t.Errorf("%s: all is ready at %v, and its span is %v", name, at, limit.Span(l))
		}
		if at := l.Ready(now, all); at < now.Add(limit.Span(l)/2) && name != "Produced" && name != "Calendar" && name != "All" {
			t.Errorf("%s: all is ready at %v already, and its span is %v", name, at, limit.Span(l))
		}
	}
}

// A state is read however dense it is: many arrivals a nanosecond apart, many lost requests of one
// instant.
func TestKeptTightly(t *testing.T) {
	made := map[string]func() limit.Limiter{
		"Rolling": func() limit.Limiter { return limit.MustRolling(5000, time.Second) },
		"Weighted": func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5000, Window: time.Second, Grain: -1}))
		},
		"Produced": func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 5000, Window: time.Second, Unit: limit.Input}))
		},
	}
	for name, fresh := range made {
		l, o := fresh(), limit.Outcome{Result: limit.Accepted}
		if name == "Produced" {
			o.Result = limit.Unknown
		}
		now := mono.Time(0)
		for range 1000 {
			l.Settle(now, limittest.Admit(l, now, limit.Cost{limit.Requests: 1, limit.Input: 1}), &o)
			if name != "Produced" {
				now++
			}
		}
		next := fresh()
		if err := limit.Restore(next, limit.AppendState(nil, l)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if a, b := limit.AppendState(nil, l), limit.AppendState(nil, next); string(a) != string(b) {
			t.Errorf("%s: another state, of %d bytes, not %d", name, len(b), len(a))
		}
	}
}
