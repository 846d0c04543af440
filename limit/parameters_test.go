package limit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func pick[T any](rng *rand.Rand, xs ...T) T { return xs[rng.IntN(len(xs))] }

// anySpec returns a kind of limiter with parameters from rng. Some windows are only a few ticks of
// the server. The clocks of the servers are off and drift.
func anySpec(rng *rand.Rand, kind string) (limittest.Spec, string) {
	n := 1 + rng.Int64N(6)
	w := pick(rng, 1500*time.Microsecond, 2*ms, 3*ms, 7*ms, 10*ms, 100*ms, time.Second)
	var known limit.Arrivals
	known.RejectsFree = rng.IntN(4) == 0
	if rng.IntN(4) == 0 {
		known.OneWayMax = pick(rng, ms/2, 3*ms, 15*ms)
	}
	s := limittest.Spec{Scale: w, OneWayMax: known.OneWayMax, RejectsFree: known.RejectsFree, Programs: 2}
	lower := func(set func(limit.Limiter, mono.Time, byte) error) {
		if rng.IntN(2) == 0 {
			s.Change = func(l limit.Limiter, now mono.Time, b byte) {
				if err := set(l, now, b); err != nil {
					panic(err)
				}
			}
		}
	}
	clock := rule.Clock{DriftPPM: pick(rng, int64(0), -100, 100), Offset: time.Duration(rng.Int64N(int64(3 * ms)))}
	phase := mono.Time(rng.Int64N(int64(w)))
	var servers []func() rule.Rule
	held := func(server func() rule.Rule) { servers = append(servers, server) }
	largest, text := n, ""

	switch kind {
	case "Rolling":
		grain := pick(rng, 0, w/3)
		s.New = func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: n, Window: w, Grain: grain, Arrivals: known}))
		}
		lower(func(l limit.Limiter, now mono.Time, b byte) error {
			return l.(*limit.Rolling).SetLimit(now, 1+int64(b)%n)
		})
		held(func() rule.Rule { return must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: w})) })
		held(func() rule.Rule {
			return must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: w, Closed: true}))
		})
		held(func() rule.Rule {
			return must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: w, Phase: phase}))
		})
		held(func() rule.Rule { return must(rule.NewGCRA(rule.GCRAConfig{Limit: n, Window: w})) })
	case "Calendar":
		s.NoSteps = true
		skew := min(w/4, 5*ms)
		s.New = func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: w, Phase: phase, Skew: skew, Arrivals: known}))
		}
		lower(func(l limit.Limiter, now mono.Time, b byte) error {
			return l.(*limit.Calendar).SetLimit(now, 1+int64(b)%n)
		})
		clock = rule.Clock{Offset: time.Duration(rng.Int64N(int64(2*skew))) - skew}
		held(func() rule.Rule {
			return must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: w, Phase: phase, Tick: -1}))
		})
	case "Anchored":
		s.SeenSteps = true
		s.New = func() limit.Limiter {
			return must(limit.NewAnchored(limit.AnchoredConfig{Limit: n, Window: w, Arrivals: known}))
		}
		lower(func(l limit.Limiter, now mono.Time, b byte) error {
			return l.(*limit.Anchored).SetLimit(now, 1+int64(b)%n)
		})
		closed := rng.IntN(2) == 0
		held(func() rule.Rule {
			return must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: w, Closed: closed}))
		})
	case "Bucket":
		rate, burst := pick(rng, n, 1+rng.Int64N(40)), 1+rng.Int64N(6)
		largest, text = burst, fmt.Sprintf(", refilled by %d", rate)
		s.New = func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: rate, Window: w, Burst: burst, Arrivals: known}))
		}
		lower(func(l limit.Limiter, now mono.Time, b byte) error {
			if b&1 == 0 {
				return l.(*limit.Bucket).SetLimit(now, 1+int64(b)%rate)
			}
			return l.(*limit.Bucket).SetBurst(now, 1+int64(b)%burst)
		})
		held(func() rule.Rule {
			return must(rule.NewBucket(rule.BucketConfig{Limit: rate, Window: w, Capacity: burst}))
		})
		held(func() rule.Rule { return must(rule.NewGCRA(rule.GCRAConfig{Limit: rate, Window: w, Burst: burst})) })
	case "Weighted", "Weighted, rounded down":
		down, grain := kind != "Weighted", pick(rng, time.Duration(0), -1)
		s.New = func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: w, RoundsDown: down, Grain: grain, Arrivals: known}))
		}
		lower(func(l limit.Limiter, now mono.Time, b byte) error {
			return l.(*limit.Weighted).SetLimit(now, 1+int64(b)%n)
		})
		held(func() rule.Rule {
			return must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: w, RoundsDown: down, Phase: phase}))
		})
		held(func() rule.Rule {
			return must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: w, RoundsDown: down, Rotating: true}))
		})
	}
	for c := range largest {
		s.Costs = append(s.Costs, limit.Cost{c + 1})
	}
	var promises []func([]limittest.Arrival) error
	for _, server := range servers {
		promises = append(promises, enforced(func() (rule.Rule, error) { return rule.NewClocked(server(), clock) }))
	}
	s.Promise = both(promises...)
	return s, fmt.Sprintf("%s: %d per %v%s, %+v, server's clock %+v, limits change: %t", kind, largest, w, text, known, clock, s.Change != nil)
}

// The laws and the promise hold for any parameters, not only for those of TestLaws.
func TestLawsForAnyParameters(t *testing.T) {
	specs := uint64(300)
	if testing.Short() {
		specs = 10
	}
	for _, kind := range []string{"Rolling", "Calendar", "Anchored", "Bucket", "Weighted", "Weighted, rounded down"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := ""
			defer func() {
				if t.Failed() {
					t.Log(name)
				}
			}()
			for seed := range specs {
				var spec limittest.Spec
				spec, name = anySpec(rand.New(rand.NewPCG(seed, 1)), kind)
				limittest.Laws(t, spec)
			}
		})
	}
}

// The server's limits follow those of the limiter. The arrivals before a rise of the rate were
// refilled at the old rate, and a larger bucket has to fill.
func TestBucketChanges(t *testing.T) {
	b := newTimeline[*limit.Bucket](t)(limit.NewBucket(limit.BucketConfig{Limit: 1, Window: time.Second, Burst: 10, Margin: -1}))
	bucket := b.Limiter.(*limit.Bucket)
	change := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.send(0, 10, "arrives at 9.9 s")
	change(bucket.SetLimit(at(10*time.Second), 100)) // by then a tenth of a token is back
	b.Settle(at(10*time.Second), b.open["arrives at 9.9 s"], &limit.Outcome{Result: limit.Accepted, ArrivedAgo: 100 * ms})
	if got := b.Ready(at(10*time.Second), limit.Cost{10}); got < at(10*time.Second+99*ms) {
		t.Errorf("10 ready at %v, and of 10 tokens 0.1 are there at 10 s, and 100 a second from then on", got)
	}

	b = newTimeline[*limit.Bucket](t)(limit.NewBucket(limit.BucketConfig{Limit: 1, Window: time.Second, Burst: 5}))
	bucket = b.Limiter.(*limit.Bucket)
	b.send(0, 5, "all of 5")
	b.answered(0, "all of 5", limit.Accepted)
	change(bucket.SetBurst(0, 10))
	if got := b.Ready(0, limit.Cost{5}); got < at(5*time.Second) {
		t.Errorf("5 ready at %v, of a bucket that was empty and then made larger", got)
	}
	b = newTimeline[*limit.Bucket](t)(limit.NewBucket(limit.BucketConfig{Limit: 50, Window: 60 * ms, Burst: 3}))
	bucket = b.Limiter.(*limit.Bucket)
	b.send(0, 3, "all of 3")
	b.answered(0, "all of 3", limit.Accepted)
	const later = 3650 * time.Microsecond
	b.send(later, 1, "just after it was full again, and perhaps just before")
	b.answered(later, "just after it was full again, and perhaps just before", limit.Accepted)
	before := b.Ready(at(later), limit.Cost{2})
	change(bucket.SetLimit(at(later), 1))
	if got := b.Ready(at(later), limit.Cost{2}); got < before {
		t.Errorf("2 ready at %v, and when less was refilled at %v", before, got)
	}

	for _, err := range []error{bucket.SetBurst(0, 0), bucket.SetBurst(0, limit.MaxCost+1), bucket.SetLimit(0, 0)} {
		if err == nil {
			t.Error("a limit that is none is accepted")
		}
	}
}

// A request refused by another limit of the server may not have begun an interval of this one.
func TestAnchoredDoesNotBelieveRefusals(t *testing.T) {
	for _, r := range []limit.Result{limit.Limited, limit.Failed} {
		a := newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second}))
		a.send(0, 1, "a")
		a.send(0, 1, "b")
		a.answered(10*ms, "a", r)
		a.answered(995*ms, "b", limit.Accepted) // it came at 990 ms, and began the interval
		if got := a.Ready(at(995*ms), limit.Cost{2}); got < at(1990*ms) {
			t.Errorf("%v: 2 ready at %v", r, got)
		}
	}
}

// Windows are longer than all time, and begin as far away. A third request of a limit of two is
// never early.
func TestExtremes(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, start := range []mono.Time{mono.Min + mono.Time(year), -1, 0, mono.Max / 2} {
		for _, w := range []time.Duration{1, time.Second, time.Hour, 100 * year, 140 * year, 280 * year} {
			try := func(name string, early mono.Time) func(limit.Limiter, error) {
				return func(l limit.Limiter, err error) {
					if err != nil {
						return // it reports that it cannot keep that
					}
					for range 2 {
						if r := l.Ready(start, limit.One); r > start {
							t.Errorf("%s per %v: at %d ready only at %d", name, w, start, r)
						}
						l.Settle(start, limittest.Admit(l, start, limit.One), &limit.Outcome{Result: limit.Accepted})
					}
					if r := l.Ready(start, limit.One); r < early {
						t.Errorf("%s per %v: a third at %d, after two at %d", name, w, r, start)
					}
				}
			}
			end := start.Add(w)
			try("Rolling", end)(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: w}))
			try("Rolling, coarse", end)(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: w, Grain: w}))
			try("Calendar", start+1)(limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: w}))
			try("Anchored", end)(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: w}))
			try("Weighted", end)(limit.NewWeighted(limit.WeightedConfig{Limit: 2, Window: w}))
			try("Bucket", start.Add(w/2))(limit.NewBucket(limit.BucketConfig{Limit: 2, Window: w}))
			try("Bucket of 2", end)(limit.NewBucket(limit.BucketConfig{Limit: 1, Window: w, Burst: 2}))
		}
	}
}
