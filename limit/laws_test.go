package limit_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

var costs = []limit.Cost{
	limit.One,
	{limit.Requests: 2},
	{limit.Requests: 5},
	{limit.Requests: 6}, // more than any limit here
	{limit.Requests: 1, limit.Input: 40},
	{limit.Requests: 1, limit.Input: 100},
	{limit.Input: 7},
	{},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// enforced is the promise that a server with a clock in milliseconds refuses nothing.
func enforced[S rule.Server](server func() (S, error)) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		s := must(server())
		for _, a := range arrivals {
			if c := a.Cost[limit.Requests]; c > 0 && !s.Arrive(a.At, c) {
				return fmt.Errorf("cost %d is refused at %v", c, a.At)
			}
		}
		return nil
	}
}

// aloneFrom is a server that serves a cost above a full bucket when the bucket is full.
func aloneFrom(n int64, window time.Duration, burst int64) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		s := must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: window, Capacity: burst}))
		for _, a := range arrivals {
			c := a.Cost[limit.Requests]
			if c > 0 && !s.Fits(a.At, min(c, burst)) {
				return fmt.Errorf("cost %d is refused at %v", c, a.At)
			}
			s.Count(a.At, c, c > 0)
		}
		return nil
	}
}

func both(promises ...func([]limittest.Arrival) error) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		for _, p := range promises {
			if err := p(arrivals); err != nil {
				return err
			}
		}
		return nil
	}
}

// warm returns a Rolling with a lead, after a number of answers of 300 ms each.
func warm(c limit.RollingConfig, answers int) *limit.Rolling {
	c.LearnLead = true
	l := must(limit.NewRolling(c))
	now := at(-time.Hour)
	for range answers {
		now = l.Ready(now, limit.One)
		lease := limittest.Admit(l, now, limit.One)
		now = now.Add(300 * ms)
		l.Settle(now, lease, &limit.Outcome{Result: limit.Accepted, RTT: 300 * ms})
	}
	return l
}

// changeWindow changes the window to one of 0.5 to 4 s, and the limit to one of 2 to 5.
func changeWindow(l limit.Limiter, now mono.Time, b byte) {
	c := l.(changing)
	if err := errors.Join(c.SetWindow(now, time.Second/2<<(b%4)), c.SetLimit(now, 2+int64(b/4%4))); err != nil {
		panic(err)
	}
}

var specs = map[string]limittest.Spec{
	"Rolling": {
		New:     func() limit.Limiter { return limit.MustRolling(5, time.Second) },
		Costs:   costs,
		Promise: limittest.Rolling(5, time.Second, limit.Requests),
	},
	"Rolling/no margin": {
		// The window is closed: an event of age exactly 1 s counts, so a limiter without margin
		// keeps the open one.
		New: func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Margin: -1}))
		},
		Costs:   costs,
		Promise: limittest.Rolling(5, time.Second-1, limit.Requests),
	},
	"Rolling/input tokens": {
		New: func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 120, Window: time.Minute, Unit: limit.Input}))
		},
		Costs:   costs,
		Scale:   time.Minute,
		Promise: limittest.Rolling(120, time.Minute, limit.Input),
	},
	"Rolling/late": {
		New: func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: time.Second, Arrivals: limit.Arrivals{Late: time.Minute}}))
		},
		Late:    time.Minute,
		Promise: limittest.Rolling(3, time.Second, limit.Requests),
	},
	"Rolling/known largest latency": {
		New: func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 100 * ms, RejectsFree: true}}))
		},
		Costs:       costs,
		OneWayMax:   100 * ms,
		RejectsFree: true,
		Change:      func(l limit.Limiter, now mono.Time, _ byte) { limit.Trust(l, now) },
		Promise:     limittest.Rolling(5, time.Second, limit.Requests),
	},
	"Rolling/changing limit": {
		New:   func() limit.Limiter { return limit.MustRolling(5, time.Second) },
		Costs: costs,
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			if err := l.(*limit.Rolling).SetLimit(now, 2+int64(b%4)); err != nil {
				panic(err)
			}
		},
		Promise: limittest.Rolling(5, time.Second, limit.Requests),
	},
	"Rolling/changing window": {
		New:     func() limit.Limiter { return limit.MustRolling(5, time.Second) },
		Costs:   costs,
		Change:  changeWindow,
		Promise: limittest.Rolling(5, time.Second/2, limit.Requests),
	},
	"Rolling/changing window, known largest latency": {
		New: func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Grain: 30 * ms, Arrivals: limit.Arrivals{OneWayMax: 100 * ms}}))
		},
		Costs:     costs,
		OneWayMax: 100 * ms,
		Change:    changeWindow,
		Promise:   limittest.Rolling(5, time.Second/2, limit.Requests),
	},
	"Rolling/lead, changing window": {
		New:        func() limit.Limiter { return warm(limit.RollingConfig{Limit: 5, Window: time.Second}, 60) },
		Costs:      costs,
		ClosedLoop: true,
		Change:     changeWindow,
		Burst:      1 << 20, // requests that cost nothing go
	},
	"Rolling/coarse": {
		New: func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Grain: 70 * ms}))
		},
		Costs:   costs,
		Promise: limittest.Rolling(5, time.Second, limit.Requests),
	},
	"Rolling/lead": {
		New:        func() limit.Limiter { return warm(limit.RollingConfig{Limit: 5, Window: time.Second}, 60) },
		Costs:      costs,
		ClosedLoop: true,    // a quicker round trip makes it retreat
		Burst:      1 << 20, // requests that cost nothing go
	},
	"Rolling/lead to come": {
		New:        func() limit.Limiter { return warm(limit.RollingConfig{Limit: 5, Window: time.Second}, 49) },
		Costs:      costs,
		ClosedLoop: true,
		Burst:      1 << 20, // requests that cost nothing go
	},
	"Produced": {
		Rough: true,
		New: func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 120, Window: time.Minute, Unit: limit.Input, PerSecond: -1}))
		},
		Programs:    24,
		Costs:       costs,
		Scale:       time.Minute,
		RejectsFree: true,
		Promise:     producedPromise(120, time.Minute, 120, limit.Input),
	},
	"Produced/more than the bucket": {
		Rough: true,
		New: func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 120, Window: time.Minute, Burst: 30, Unit: limit.Input, Within: -1, Late: time.Minute}))
		},
		Programs:    24,
		Costs:       costs,
		Scale:       20 * time.Second,
		Late:        time.Minute,
		RejectsFree: true,
		Promise:     producedPromise(120, time.Minute, 30, limit.Input),
	},
	"Produced/changing": {
		Rough: true,
		New: func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 120, Window: time.Minute, Unit: limit.Input, PerSecond: -1}))
		},
		Programs: 24,
		Costs:    costs,
		Scale:    time.Minute,
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			p := l.(*limit.Produced)
			if err := errors.Join(p.SetLimit(now, 60+20*int64(b%4)), p.SetWindow(now, time.Minute<<(b/4%2)), p.SetBurst(now, 60+30*int64(b/8%3))); err != nil {
				panic(err)
			}
		},
		RejectsFree: true,
		Promise:     producedPromise(120, time.Minute, 120, limit.Input),
	},
	"Produced/at a speed": {
		Rough: true,
		New: func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 120, Window: time.Minute, Unit: limit.Input, PerSecond: 3, Within: 5 * time.Second}))
		},
		Programs:   24,
		Costs:      costs,
		Scale:      time.Minute,
		ClosedLoop: true, // a settle of more than the speed allows is news
		Lapses:     true,
		NoSteps:    true,
		Burst:      1 << 20, // requests that cost nothing go
	},
	"Produced/slower than the refill": {
		Rough: true,
		New: func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 120, Window: time.Minute, Unit: limit.Input, PerSecond: 1, Within: 5 * time.Second}))
		},
		Programs:   24,
		Costs:      costs,
		Scale:      time.Minute,
		ClosedLoop: true,
		Lapses:     true,
		NoSteps:    true,
		Burst:      1 << 20, // requests that cost nothing go
	},
	"Calendar": {
		New: func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: time.Second, Phase: at(300 * ms)}))
		},
		NoSteps: true,
		Costs:   costs,
		Promise: func(as []limittest.Arrival) error {
			for _, skew := range []time.Duration{-50 * ms, 0, 50 * ms} {
				if err := calendarPromise(5, time.Second, at(300*ms+skew), limit.Requests)(as); err != nil {
					return err
				}
			}
			return nil
		},
	},
	"Calendar/changing limit": {
		New: func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: time.Second, Skew: -1}))
		},
		NoSteps: true,
		Costs:   costs,
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			if err := l.(*limit.Calendar).SetLimit(now, 2+int64(b%4)); err != nil {
				panic(err)
			}
		},
		Promise: calendarPromise(5, time.Second, 0, limit.Requests),
	},
	"Calendar/changing window": {
		New: func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: time.Second}))
		},
		NoSteps: true,
		Costs:   costs,
		Change:  changeWindow,
		Promise: calendarPromise(5, time.Second/2, 0, limit.Requests), // a part of each longer interval
	},
	"Anchored": {
		New: func() limit.Limiter {
			return must(limit.NewAnchored(limit.AnchoredConfig{Limit: 5, Window: time.Second}))
		},
		SeenSteps: true,
		Costs:     costs,
		Promise: both(anchoredPromise(5, time.Second, limit.Requests), enforced(func() (rule.Timed, error) {
			return rule.NewAnchored(rule.AnchoredConfig{Limit: 5, Window: time.Second})
		})),
	},
	"Anchored/changing limit": {
		New: func() limit.Limiter {
			return must(limit.NewAnchored(limit.AnchoredConfig{Limit: 5, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 100 * ms}}))
		},
		SeenSteps: true,
		Costs:     costs,
		OneWayMax: 100 * ms,
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			if err := l.(*limit.Anchored).SetLimit(now, 2+int64(b%4)); err != nil {
				panic(err)
			}
		},
		Promise: anchoredPromise(5, time.Second, limit.Requests),
	},
	"Anchored/changing window": { // TestNoWindowOfAnyLengthOverflows has the promise
		New: func() limit.Limiter {
			return must(limit.NewAnchored(limit.AnchoredConfig{Limit: 5, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 100 * ms}}))
		},
		SeenSteps: true,
		Costs:     costs,
		OneWayMax: 100 * ms,
		Change:    changeWindow,
	},
	"Bucket": {
		New:   func() limit.Limiter { return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second})) },
		Costs: costs,
		Promise: both(limittest.Bucket(5, time.Second, 5, limit.Requests), enforced(func() (rule.Amendable, error) {
			return rule.NewBucket(rule.BucketConfig{Limit: 5, Window: time.Second})
		})),
	},
	"Bucket/within milliseconds": {
		New: func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 700, Window: time.Second, Burst: 6}))
		},
		Costs: costs,
		Scale: 10 * ms,
		Promise: enforced(func() (rule.Amendable, error) {
			return rule.NewBucket(rule.BucketConfig{Limit: 700, Window: time.Second, Capacity: 6})
		}),
	},
	"Bucket/burst of 1": {
		New: func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second, Burst: 1, Margin: -1}))
		},
		Costs:   costs,
		Promise: limittest.Bucket(5, time.Second, 1, limit.Requests),
	},
	"Bucket/alone": {
		Bounded: true,
		New: func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second, Burst: 2, Alone: true}))
		},
		Costs:   costs,
		Promise: aloneFrom(5, time.Second, 2),
	},
	"Bucket/changing limits": {
		New:   func() limit.Limiter { return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second})) },
		Costs: costs,
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			if err := errors.Join(l.(*limit.Bucket).SetLimit(now, 2+int64(b%4)), l.(*limit.Bucket).SetBurst(now, 2+int64(b/4%4))); err != nil {
				panic(err)
			}
		},
		Promise: limittest.Bucket(5, time.Second, 5, limit.Requests),
	},
	"Bucket/changing window": {
		New:     func() limit.Limiter { return must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second})) },
		Costs:   costs,
		Change:  changeWindow,
		Promise: limittest.Bucket(5, time.Second/2, 5, limit.Requests),
	},
	"Weighted": {
		New: func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second}))
		},
		Costs: costs,
		Promise: both(weightedPromise(5, time.Second, limit.Requests, false), enforced(func() (rule.Rule, error) {
			return rule.NewWeighted(rule.WeightedConfig{Limit: 5, Window: time.Second, Phase: at(300 * ms)})
		})),
	},
	"Weighted/rounds down": {
		New: func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second, RoundsDown: true}))
		},
		Costs:   costs,
		Promise: weightedPromise(5, time.Second, limit.Requests, true),
	},
	"Weighted/changing limit": {
		New: func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second, Margin: -1, Grain: -1}))
		},
		Costs: costs,
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			if err := l.(*limit.Weighted).SetLimit(now, 2+int64(b%4)); err != nil {
				panic(err)
			}
		},
		Promise: weightedPromise(5, time.Second, limit.Requests, false),
	},
	"Weighted/changing window": {
		New: func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second}))
		},
		Costs:   costs,
		Change:  changeWindow,
		Promise: limittest.Rolling(5, time.Second/2, limit.Requests),
	},
	"Concurrency": {
		New: func() limit.Limiter { return must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 3})) },
	},
	"Concurrency/changing limit": {
		New: func() limit.Limiter { return must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 3})) },
		Change: func(l limit.Limiter, now mono.Time, b byte) {
			if err := l.(*limit.Concurrency).SetLimit(now, 1+int64(b%5)); err != nil {
				panic(err)
			}
		},
	},
	"Sequence": {
		New:        func() limit.Limiter { return must(limit.NewSequence(limit.SequenceConfig{})) },
		ClosedLoop: true,
		Burst:      1 << 20, // as many as are answered at that instant
	},
	"Sequence/gap": {
		New:        func() limit.Limiter { return must(limit.NewSequence(limit.SequenceConfig{Gap: 50 * ms})) },
		ClosedLoop: true,
		Burst:      1 << 20, // an unsent request gives its place back
	},
	"Spacing": {
		New: func() limit.Limiter { return must(limit.NewSpacing(50 * time.Millisecond)) },
	},
	"Adaptive": {
		New:        func() limit.Limiter { return must(limit.NewAdaptive(limit.AdaptiveConfig{Initial: 4, Max: 12})) },
		ClosedLoop: true,
		Burst:      40,
	},
	"Adaptive/of refusals": {
		New:        func() limit.Limiter { return must(limit.NewAdaptive(limit.AdaptiveConfig{Max: 12, Tolerance: -1})) },
		ClosedLoop: true,
		Burst:      40,
	},
	"Cooldown": {
		New:        func() limit.Limiter { return must(limit.NewCooldown(time.Second)) },
		ClosedLoop: true,
		Burst:      1 << 20, // alone it bounds nothing
	},
	"All": {
		New: func() limit.Limiter {
			return limit.NewAll(
				limit.MustRolling(5, time.Second),
				must(limit.NewRolling(limit.RollingConfig{Limit: 120, Window: 3 * time.Second, Unit: limit.Input})),
				must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})),
			)
		},
		Costs: costs,
		Promise: func(as []limittest.Arrival) error {
			if err := limittest.Rolling(5, time.Second, limit.Requests)(as); err != nil {
				return err
			}
			return limittest.Rolling(120, 3*time.Second, limit.Input)(as)
		},
	},
	"All of none": {New: func() limit.Limiter { return limit.NewAll() }},
}

func TestLaws(t *testing.T) {
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limittest.Laws(t, spec)
		})
	}
}

func FuzzRolling(f *testing.F)     { limittest.Fuzz(f, specs["Rolling"]) }
func FuzzCalendar(f *testing.F)    { limittest.Fuzz(f, specs["Calendar"]) }
func FuzzAnchored(f *testing.F)    { limittest.Fuzz(f, specs["Anchored"]) }
func FuzzBucket(f *testing.F)      { limittest.Fuzz(f, specs["Bucket"]) }
func FuzzWeighted(f *testing.F)    { limittest.Fuzz(f, specs["Weighted"]) }
func FuzzConcurrency(f *testing.F) { limittest.Fuzz(f, specs["Concurrency"]) }
func FuzzSequence(f *testing.F)    { limittest.Fuzz(f, specs["Sequence"]) }
func FuzzProduced(f *testing.F)    { limittest.Fuzz(f, specs["Produced/at a speed"]) }
func FuzzSpacing(f *testing.F)     { limittest.Fuzz(f, specs["Spacing"]) }
func FuzzAdaptive(f *testing.F)    { limittest.Fuzz(f, specs["Adaptive"]) }
func FuzzCooldown(f *testing.F)    { limittest.Fuzz(f, specs["Cooldown"]) }
func FuzzAll(f *testing.F)         { limittest.Fuzz(f, specs["All"]) }

// faulty is a Rolling with one planted fault.
type faulty struct {
	*limit.Rolling
	fault string
	kept  map[uint64]*limit.Sent
}

func (f faulty) Ready(now mono.Time, c limit.Cost) mono.Time {
	t := f.Rolling.Ready(now, c)
	switch {
	case f.fault == "leads by 5 ms" && t < limit.AfterSettle:
		return max(now, t.Add(-5*time.Millisecond))
	case f.fault == "forgets AfterSettle" && t == limit.AfterSettle:
		return now
	}
	return t
}

func (f faulty) ReadyLeaving(now mono.Time, first *limit.Cost, c limit.Cost, free float64) mono.Time {
	if first != nil {
		return limit.ReadyLeaving(f.Rolling, now, first, c, free)
	}
	room := c[limit.Requests] + limit.Leaves(5, free)
	switch f.fault {
	case "leaves nothing free":
	case "leaves more than there is":
		c[limit.Requests] = room
	default:
		c[limit.Requests] = max(c[limit.Requests], min(room, 5))
	}
	return f.Ready(now, c)
}

func (f faulty) Admit(s *limit.Sent) {
	f.Rolling.Admit(f.sees(s))
}

func (f faulty) sees(s *limit.Sent) *limit.Sent {
	own := *s
	switch f.fault {
	case "ignores cost":
		own.Cost[limit.Requests] = min(own.Cost[limit.Requests], 1)
	case "changes Sent":
		s.At++
	case "keeps Sent":
		if f.kept[s.Number] == nil {
			f.kept[s.Number] = s
		}
		return f.kept[s.Number]
	}
	return &own
}

func (f faulty) Settle(now mono.Time, s *limit.Sent, outcome *limit.Outcome) {
	own := *outcome
	o := &own
	switch f.fault {
	case "unknown counts as unsent":
		if o.Result == limit.Unknown {
			o.Result = limit.Unsent
		}
	case "arrived an hour ago":
		o.ArrivedAgo = time.Hour
	case "keeps the estimate":
		o.Metered = false
	case "changes Outcome":
		outcome.Metered = true
	}
	f.Rolling.Settle(now, f.sees(s), o)
}

// The laws are useful only if they find a broken limiter.
func TestLawsKillFaults(t *testing.T) {
	for _, fault := range []string{"leads by 5 ms", "forgets AfterSettle", "ignores cost", "unknown counts as unsent",
		"arrived an hour ago", "keeps the estimate", "changes Sent", "keeps Sent", "changes Outcome",
		"leaves nothing free", "leaves more than there is"} {
		spec := specs["Rolling"]
		spec.New = func() limit.Limiter {
			return faulty{limit.MustRolling(5, time.Second), fault, map[uint64]*limit.Sent{}}
		}
		if !killed(spec) {
			t.Errorf("a limiter that %s passes the laws", fault)
		}
	}
	spec := specs["Rolling"]
	spec.New = func() limit.Limiter { return limit.MustRolling(6, time.Second) }
	if !killed(spec) {
		t.Error("a limiter that allows one too many passes the laws")
	}
}

func killed(s limittest.Spec) bool {
	program := make([]byte, 3*400)
	for seed := range 300 {
		x := uint32(seed)*2654435761 + 1
		for i := range program {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			program[i] = byte(x >> 11)
		}
		if limittest.Run(s, program) != nil {
			return true
		}
	}
	return false
}
