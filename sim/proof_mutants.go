package sim

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Mutant is a limiter with a fault, and the kind of server (of ProofKinds) that has to find it out.
type Mutant struct {
	Name, Kind string
	// Slow: it is never refused, and falls under the kind's Floor.
	Slow bool
	// New makes the faulty limiter; right is the limiter of the kind, with that seed.
	New func(seed uint64, right limit.Limiter) limit.Limiter
	// Lost is the share of answers that do not come.
	Lost float64
}

// Mutants returns the faults that a proof worth its name must find.
func Mutants() []Mutant {
	type maker = func(uint64, limit.Limiter) limit.Limiter
	instead := func(l func() limit.Limiter) maker { return func(uint64, limit.Limiter) limit.Limiter { return l() } }
	rolling := func(c limit.RollingConfig) maker {
		return instead(func() limit.Limiter { return must(limit.NewRolling(c)) })
	}
	ready := func(f func(now, ready mono.Time) mono.Time) maker {
		return func(_ uint64, l limit.Limiter) limit.Limiter { return &readyFault{l, f} }
	}
	settle := func(f func(*limit.Outcome)) maker {
		return func(_ uint64, l limit.Limiter) limit.Limiter { return &settleFault{l, f} }
	}
	atSend := func(after time.Duration) maker {
		return func(_ uint64, l limit.Limiter) limit.Limiter { return &sendFault{Limiter: l, after: after} }
	}
	bucket := func(c limit.BucketConfig) maker {
		return instead(func() limit.Limiter { return must(limit.NewBucket(c)) })
	}
	const n, second = proofN, proofWindow
	return []Mutant{
		{Name: "lead of 5 ms", Kind: "rolling", New: ready(func(now, t mono.Time) mono.Time { return max(now, t.Add(-5*time.Millisecond)) })},
		{Name: "window from the send, + 50 ms", Kind: "rolling", New: atSend(50 * time.Millisecond)},
		{Name: "lease closed at the send", Kind: "rolling", New: atSend(0)},
		{Name: "one too many", Kind: "rolling", New: rolling(limit.RollingConfig{Limit: n + 1, Window: second})},
		{Name: "no margin for the server's tick", Kind: "rolling", New: rolling(limit.RollingConfig{Limit: n, Window: second, Margin: -1})},
		{Name: "no margin for drift", Kind: "rolling, clock drifts and jumps ahead", New: rolling(limit.RollingConfig{Limit: n, Window: second, Margin: time.Millisecond})},
		{Name: "unknown outcomes forgotten", Kind: "rolling", Lost: 0.05, New: settle(func(o *limit.Outcome) {
			if o.Result == limit.Unknown {
				o.Result = limit.Unsent
			}
		})},
		{Name: "unknown outcomes arrived when they were given up", Kind: "rolling", Lost: 0.05,
			New: rolling(limit.RollingConfig{Limit: n, Window: second, Arrivals: limit.Arrivals{Late: -1}})},
		{Name: "slots K = W/T, not one more", Kind: "rolling", New: instead(func() limit.Limiter { return newSlotted(10, 100*time.Millisecond) })},
		{Name: "cost ignored in Settle", Kind: "two at once, with weights", New: settle(func(o *limit.Outcome) {
			o.Metered, o.Actual = true, limit.Cost{limit.Weight: 1, limit.Orders: 1}
		})},
		{Name: "one of two limits ignored", Kind: "two at once, with weights", New: instead(func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 300, Window: 10 * time.Second, Unit: limit.Orders}))
		})},
		{Name: "no skew", Kind: "calendar, phase known", New: func(seed uint64, _ limit.Limiter) limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: second, Phase: proofPhase(seed), Skew: -1}))
		}},
		{Name: "counted in the interval of the send alone", Kind: "calendar, phase known", New: atSend(0)},
		{Name: "a calendar's phase guessed", Kind: "calendar, phase unknown", New: instead(func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: second}))
		})},
		{Name: "interval from the send", Kind: "message-anchored", New: atSend(0)},
		{Name: "a lost request taken to have arrived", Kind: "message-anchored", Lost: 0.3, New: settle(func(o *limit.Outcome) {
			if o.Result == limit.Unknown {
				o.Result, o.ArrivedAgo = limit.Accepted, 500*time.Millisecond
			}
		})},
		{Name: "bucket where the window rolls", Kind: "rolling", New: bucket(limit.BucketConfig{Limit: n, Window: second})},
		{Name: "burst of one too many", Kind: "token bucket", New: bucket(limit.BucketConfig{Limit: n, Window: second, Burst: n + 1})},
		{Name: "refill 1e-3 too fast", Kind: "token bucket", New: bucket(limit.BucketConfig{Limit: 1001 * n, Window: 1000 * second, Burst: n})},
		{Name: "no margin for ticks where tokens come between them", Kind: "GCRA", New: bucket(limit.BucketConfig{Limit: 450, Window: time.Minute, Burst: 30, Margin: -1})},
		{Name: "refill from the send", Kind: "GCRA", New: atSend(0)},
		{Name: "history cut to 400", Kind: "token bucket", New: instead(func() limit.Limiter { return &cutBucket{} })},
		{Name: "rolling where the window is weighted", Kind: "weighted, few in a window", New: rolling(limit.RollingConfig{Limit: n, Window: second})},
		{Name: "weights from the send", Kind: "weighted, few in a window", New: atSend(0)},
		{Name: "one too many where weighted", Kind: "weighted, rotating", New: instead(func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 1001, Window: time.Minute}))
		})},
		{Name: "a margin of 5 ms", Slow: true, Kind: "rolling", New: rolling(limit.RollingConfig{Limit: n, Window: second, Margin: 5 * time.Millisecond})},
		{Name: "an arrival later than its answer", Slow: true, Kind: "rolling", New: settle(func(o *limit.Outcome) { o.ArrivedAgo = -5 * time.Millisecond })},
		{Name: "a skew of half the window", Slow: true, Kind: "calendar, phase known", New: func(seed uint64, _ limit.Limiter) limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: second, Phase: proofPhase(seed), Skew: second / 2}))
		}},
		{Name: "rolling where the interval begins with a message", Slow: true, Kind: "message-anchored", New: rolling(limit.RollingConfig{Limit: n, Window: proofAnchored})},
		{Name: "burst a fifth of what it is", Slow: true, Kind: "token bucket", New: bucket(limit.BucketConfig{Limit: n, Window: second, Burst: n / 5})},
		{Name: "refill 5e-3 too slow", Slow: true, Kind: "token bucket", New: bucket(limit.BucketConfig{Limit: 995 * n, Window: 1000 * second, Burst: n})},
		{Name: "rounding down not used", Slow: true, Kind: "weighted, rounded down", New: instead(func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: second}))
		})},
		{Name: "one too few where weighted", Slow: true, Kind: "weighted previous window", New: instead(func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: 990, Window: time.Minute}))
		})},
	}
}

// Find runs the mutant over every path until it is found out: because a server refuses a request, or, of a slow one, because
// it falls under the floor. There are many short runs first, since most faults need a beginning, and then one of so many
// requests each. It returns the name of the path, or nothing, and how many requests that took. stop may be nil.
func (m Mutant) Find(requests int, seed uint64, stop func() bool) (path string, sent int) {
	type run struct {
		requests int
		seed     uint64
	}
	var runs []run
	if m.Slow {
		runs = append(runs, run{5000, seed})
	} else {
		for s := range uint64(10) {
			runs = append(runs, run{2000, seed + s})
		}
	}
	runs = append(runs, run{requests, seed})
	kinds := ProofKinds()
	kind := kinds[slices.IndexFunc(kinds, func(k ProofKind) bool { return k.Name == m.Kind })]
	for _, r := range runs {
		for _, path := range ProofPaths() {
			if m.Slow && !path.Stationary {
				continue
			}
			p := kind.proof(path, r.requests, r.seed)
			p.Limiter = m.New(r.seed, p.Limiter)
			p.Lost, p.Stop = max(p.Lost, m.Lost), stop
			sent += r.requests
			t, percent := kind.share(p)
			if stop != nil && stop() {
				return "", sent
			}
			if !m.Slow && t.Rejected > 0 || m.Slow && t.Rejected == 0 && percent < kind.Floor {
				return path.Name, sent
			}
		}
	}
	return "", sent
}

type readyFault struct {
	limit.Limiter
	fault func(now, ready mono.Time) mono.Time
}

func (f *readyFault) Ready(now mono.Time, c limit.Cost) mono.Time {
	t := f.Limiter.Ready(now, c)
	if t >= limit.AfterSettle {
		return t
	}
	return f.fault(now, t)
}

type settleFault struct {
	limit.Limiter
	fault func(*limit.Outcome)
}

func (f *settleFault) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	f.fault(&o)
	f.Limiter.Settle(now, l, o)
}

// sendFault has a request arrive a fixed time after it was sent, whatever comes.
type sendFault struct {
	limit.Limiter
	after time.Duration
	none  limit.Book[struct{}]
}

func (f *sendFault) Admit(now mono.Time, c limit.Cost) limit.Lease {
	f.Limiter.Settle(now, f.Limiter.Admit(now, c), limit.Outcome{Result: limit.Accepted, ArrivedAgo: -f.after})
	return f.none.Open(struct{}{})
}

func (f *sendFault) Settle(_ mono.Time, l limit.Lease, _ limit.Outcome) { f.none.Close(l) }

// slotted counts in k slots of width t: an event is gone with its slot, when the oldest part of the window is.
type slotted struct {
	k    int64
	t    time.Duration
	used []int64
	slot int64 // the latest
	open limit.Book[struct{}]
}

func newSlotted(k int64, t time.Duration) *slotted {
	return &slotted{k: k, t: t, used: make([]int64, k)}
}

func (s *slotted) sum(slot int64) (n int64) {
	for i := max(0, slot-s.k+1); i <= s.slot; i++ {
		n += s.used[i%s.k]
	}
	return n + int64(s.open.Len())
}

func (s *slotted) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if s.open.Len() >= proofN {
		return limit.AfterSettle
	}
	for slot := int64(now) / int64(s.t); ; slot++ {
		if s.sum(slot) < proofN {
			return max(now, mono.Time(slot*int64(s.t)))
		}
	}
}

func (s *slotted) Admit(mono.Time, limit.Cost) limit.Lease { return s.open.Open(struct{}{}) }

func (s *slotted) Settle(now mono.Time, l limit.Lease, _ limit.Outcome) {
	s.open.Close(l)
	slot := int64(now) / int64(s.t)
	for s.slot < slot {
		s.slot++
		s.used[s.slot%s.k] = 0
	}
	s.used[slot%s.k]++
}

// cutBucket is a bucket of proofN per proofWindow that folds over its last 400 requests alone, each time anew.
type cutBucket struct {
	last []mono.Time
	open limit.Book[struct{}]
}

const cutPer = mono.Time(proofWindow / proofN)

func (b *cutBucket) Ready(now mono.Time, _ limit.Cost) mono.Time {
	open := mono.Time(b.open.Len()) + 1
	if open > proofN {
		return limit.AfterSettle
	}
	full := mono.Time(-1 << 62)
	for _, u := range b.last {
		full = max(full, u) + cutPer
	}
	return max(now, full+(open-proofN)*cutPer+5*mono.Time(time.Millisecond))
}

func (b *cutBucket) Admit(mono.Time, limit.Cost) limit.Lease { return b.open.Open(struct{}{}) }

func (b *cutBucket) Settle(now mono.Time, l limit.Lease, _ limit.Outcome) {
	b.open.Close(l)
	if len(b.last) == 400 {
		b.last = b.last[1:]
	}
	b.last = append(b.last, now)
}
