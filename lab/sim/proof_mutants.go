package sim

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Mutant is a limiter with a fault, and the kind of server (of ProofKinds or PromisedKinds) that must find it.
type Mutant struct {
	Name, Kind string
	// Slow says that the mutant is never refused, but falls below the kind's Floor.
	Slow bool
	// Aimed says that no path of ProofPaths finds it, however long the run: it takes an Adversary.
	Aimed bool
	// New makes the faulty limiter. right is the limiter of the kind with that seed.
	New func(seed uint64, right limit.Limiter) limit.Limiter
	// Lost is the share of requests without an answer.
	Lost float64
}

// Mutants returns the faults that a proof worth its name must find.
func Mutants() []Mutant {
	return slices.Concat(windowMutants(), bucketMutants(), aimedMutants(), slowMutants())
}

// maker is as Mutant.New.
type maker = func(seed uint64, right limit.Limiter) limit.Limiter

func inPlace(l func() limit.Limiter) maker {
	return func(uint64, limit.Limiter) limit.Limiter { return l() }
}

func faultyRolling(c limit.RollingConfig) maker {
	return inPlace(func() limit.Limiter { return must(limit.NewRolling(c)) })
}

func faultyBucket(c limit.BucketConfig) maker {
	return inPlace(func() limit.Limiter { return must(limit.NewBucket(c)) })
}

func faultyWeighted(c limit.WeightedConfig) maker {
	return inPlace(func() limit.Limiter { return must(limit.NewWeighted(c)) })
}

func faultyReady(f func(now, ready mono.Time) mono.Time) maker {
	return func(_ uint64, l limit.Limiter) limit.Limiter { return &readyFault{l, f} }
}

func faultySettle(f func(*limit.Outcome)) maker {
	return func(_ uint64, l limit.Limiter) limit.Limiter { return &settleFault{Limiter: l, fault: f} }
}

func atSend(after time.Duration) maker {
	return func(_ uint64, l limit.Limiter) limit.Limiter { return &sendFault{Limiter: l, after: after} }
}

// windowMutants are of windows, which forget all of a request at once.
func windowMutants() []Mutant {
	return []Mutant{
		{Name: "lead of 5 ms", Kind: "rolling",
			New: faultyReady(func(now, t mono.Time) mono.Time { return max(now, t.Add(-5*time.Millisecond)) })},
		{Name: "window from the send, + 50 ms", Kind: "rolling", New: atSend(50 * time.Millisecond)},
		{Name: "lease closed at the send", Kind: "rolling", New: atSend(0)},
		{Name: "one too many", Kind: "rolling",
			New: faultyRolling(limit.RollingConfig{Limit: proofN + 1, Window: proofWindow})},
		{Name: "no margin for the server's tick", Kind: "rolling",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow, Margin: -1})},
		{Name: "no margin for drift", Kind: "rolling, clock drifts and jumps ahead",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow, Margin: time.Millisecond})},
		{Name: "unknown outcomes forgotten", Kind: "rolling", Lost: 0.05, New: faultySettle(func(o *limit.Outcome) {
			if o.Result == limit.Unknown {
				o.Result = limit.Unsent
			}
		})},
		{Name: "unknown outcomes arrived when they were given up", Kind: "rolling", Lost: 0.05,
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow, Arrivals: limit.Arrivals{Late: -1}})},
		{Name: "slots K = W/T, not one more", Kind: "rolling",
			New: inPlace(func() limit.Limiter { return newSlotted(10, 100*time.Millisecond) })},
		{Name: "cost ignored in Settle", Kind: "two at once, with weights", New: faultySettle(func(o *limit.Outcome) {
			o.Metered, o.Actual = true, limit.Cost{limit.Weight: 1, limit.Orders: 1}
		})},
		{Name: "one of two limits ignored", Kind: "two at once, with weights", New: inPlace(func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 300, Window: 10 * time.Second, Unit: limit.Orders}))
		})},
		{Name: "no skew", Kind: "calendar, phase known", New: func(seed uint64, _ limit.Limiter) limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed),
				Skew: -1}))
		}},
		{Name: "counted in the interval of the send alone", Kind: "calendar, phase known", New: atSend(0)},
		{Name: "a calendar's phase guessed", Kind: "calendar, phase unknown", New: inPlace(func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: proofN, Window: proofWindow}))
		})},
		{Name: "interval from the send", Kind: "message-anchored", New: atSend(0)},
		{Name: "a lost request taken to have arrived", Kind: "message-anchored", Lost: 0.3,
			New: faultySettle(func(o *limit.Outcome) {
				if o.Result == limit.Unknown {
					o.Result, o.ArrivedAgo = limit.Accepted, 500*time.Millisecond
				}
			})},
		{Name: "bucket where the window rolls", Kind: "rolling",
			New: faultyBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow})},
		{Name: "a thousandth of a tick missing in the margin", Kind: "rolling",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow, Margin: 999 * time.Microsecond})},
		{Name: "a skew that is 3 ms short", Kind: "calendar, phase known",
			New: func(seed uint64, _ limit.Limiter) limit.Limiter {
				return must(limit.NewCalendar(limit.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed),
					Skew: proofSkew - 3*time.Millisecond}))
			}},
		{Name: "an interval is over when that of its first answer is", Kind: "message-anchored",
			New: inPlace(func() limit.Limiter { return &firstAnswer{} })},
	}
}

// bucketMutants are of limiters that forget little by little.
func bucketMutants() []Mutant {
	return []Mutant{
		{Name: "burst of one too many", Kind: "token bucket",
			New: faultyBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow, Burst: proofN + 1})},
		{Name: "refill 1e-3 too fast", Kind: "token bucket",
			New: faultyBucket(limit.BucketConfig{Limit: 1001 * proofN, Window: 1000 * proofWindow, Burst: proofN})},
		{Name: "no margin for ticks where tokens come between them", Kind: "GCRA",
			New: faultyBucket(limit.BucketConfig{Limit: 450, Window: time.Minute, Burst: 30, Margin: -1})},
		{Name: "refill from the send", Kind: "GCRA", New: atSend(0)},
		{Name: "history cut to 400", Kind: "token bucket", New: inPlace(func() limit.Limiter { return &cutBucket{} })},
		{Name: "rolling where the window is weighted", Kind: "weighted, few in a window",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow})},
		{Name: "weights from the send", Kind: "weighted, few in a window", New: atSend(0)},
		{Name: "one too many where weighted", Kind: "weighted, rotating",
			New: faultyWeighted(limit.WeightedConfig{Limit: 1001, Window: time.Minute})},
		{Name: "rounded down where the server does not", Kind: "weighted, few in a window",
			New: faultyWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow, RoundsDown: true})},
		{Name: "half a tick for each request of a bucket of one", Kind: "token bucket of one",
			New: faultyBucket(limit.BucketConfig{Limit: 300, Window: 7 * proofWindow, Burst: 1,
				Margin: 500 * time.Microsecond})},
	}
}

// aimedMutants are those that no path finds.
func aimedMutants() []Mutant {
	return []Mutant{
		{Name: "what is lost arrives within 4 s, not 5", Aimed: true, Kind: "rolling",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow,
				Arrivals: limit.Arrivals{Late: 4 * time.Second}})},
		{Name: "a change of limit forgets what was sent", Aimed: true, Kind: "rolling",
			New: func(_ uint64, l limit.Limiter) limit.Limiter {
				return &forgetful{Limiter: l, anew: func(most int64) limit.Limiter { return limit.MustRolling(most, proofWindow) }}
			}},
		{Name: "no margin for ticks where weighted", Aimed: true, Kind: "weighted, few in a window",
			New: faultyWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow, Margin: -1})},
		{Name: "a change of limit fills the bucket", Aimed: true, Kind: "token bucket",
			New: func(_ uint64, l limit.Limiter) limit.Limiter {
				return &forgetful{Limiter: l, anew: func(most int64) limit.Limiter {
					return must(limit.NewBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow, Burst: most}))
				}}
			}},
		{Name: "a promise of 50 ms taken for one of 49", Aimed: true, Kind: "rolling, 50 ms at most",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow,
				Arrivals: limit.Arrivals{OneWayMax: proofOneWay - proofTick}})},
		{Name: "a promise of 50 ms taken for one of 48, where weighted", Aimed: true, Kind: "weighted, 50 ms at most",
			New: faultyWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow,
				Arrivals: limit.Arrivals{OneWayMax: proofOneWay - 2*proofTick}})},
	}
}

// slowMutants are never refused.
func slowMutants() []Mutant {
	return []Mutant{
		{Name: "a margin of 5 ms", Slow: true, Kind: "rolling",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow, Margin: 5 * time.Millisecond})},
		{Name: "an arrival later than its answer", Slow: true, Kind: "rolling",
			New: faultySettle(func(o *limit.Outcome) { o.ArrivedAgo = -5 * time.Millisecond })},
		{Name: "a skew of half the window", Slow: true, Kind: "calendar, phase known",
			New: func(seed uint64, _ limit.Limiter) limit.Limiter {
				return must(limit.NewCalendar(limit.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed),
					Skew: proofWindow / 2}))
			}},
		{Name: "rolling where the interval begins with a message", Slow: true, Kind: "message-anchored",
			New: faultyRolling(limit.RollingConfig{Limit: proofN, Window: proofAnchored})},
		{Name: "burst a fifth of what it is", Slow: true, Kind: "token bucket",
			New: faultyBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow, Burst: proofN / 5})},
		{Name: "refill 5e-3 too slow", Slow: true, Kind: "token bucket",
			New: faultyBucket(limit.BucketConfig{Limit: 995 * proofN, Window: 1000 * proofWindow, Burst: proofN})},
		{Name: "rounding down not used", Slow: true, Kind: "weighted, rounded down",
			New: faultyWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow})},
		{Name: "one too few where weighted", Slow: true, Kind: "weighted previous window",
			New: faultyWeighted(limit.WeightedConfig{Limit: 990, Window: time.Minute})},
	}
}

// Find runs the mutant over every path until it is found: because a server refuses a request, or,
// for a slow one, because it falls below the floor. Many short runs come first, since most faults
// show at the beginning, and then one run of so many requests over each path. It returns the name
// of the path, or "" if the mutant was not found, and how many requests it took. stop may be nil.
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
	kinds := append(ProofKinds(), PromisedKinds()...)
	kind := kinds[slices.IndexFunc(kinds, func(k ProofKind) bool { return k.Name == m.Kind })]
	if m.Aimed {
		return m.attack(kind, requests, seed, stop)
	}
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

// attack does what Find does, for mutants that only an Adversary finds.
func (m Mutant) attack(kind ProofKind, requests int, seed uint64, stop func() bool) (path string, sent int) {
	const short = 2000
	for s := seed; sent < max(requests, 20*short); s++ {
		p := kind.New(s)
		p.Limiter = m.New(s, p.Limiter)
		sent += short
		if kind.attack(p, short, s, stop).Rejected > 0 {
			return "the adversary's", sent
		}
		if stop != nil && stop() {
			break
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
	own   limit.Outcome
}

func (f *settleFault) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	f.own = *o
	f.fault(&f.own)
	f.Limiter.Settle(now, s, &f.own)
}

// sendFault assumes that a request arrives a fixed time after it was sent, whatever happens.
type sendFault struct {
	limit.Limiter
	after time.Duration
}

func (f *sendFault) Admit(s *limit.Sent) {
	f.Limiter.Admit(s)
	f.Limiter.Settle(s.At, s, &limit.Outcome{Result: limit.Accepted, ArrivedAgo: -f.after})
}

func (f *sendFault) Settle(mono.Time, *limit.Sent, *limit.Outcome) {}

// slotted counts in k slots of width t: an event is forgotten with its slot, when the oldest part of the window is.
type slotted struct {
	k    int64
	t    time.Duration
	used []int64
	slot int64 // the number of the latest slot
	open int64
}

func newSlotted(k int64, t time.Duration) *slotted {
	return &slotted{k: k, t: t, used: make([]int64, k)}
}

func (s *slotted) sum(slot int64) (n int64) {
	for i := max(0, slot-s.k+1); i <= s.slot; i++ {
		n += s.used[i%s.k]
	}
	return n + s.open
}

func (s *slotted) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if s.open >= proofN {
		return limit.AfterSettle
	}
	for slot := int64(now) / int64(s.t); ; slot++ {
		if s.sum(slot) < proofN {
			return max(now, mono.Time(slot*int64(s.t)))
		}
	}
}

func (s *slotted) Admit(*limit.Sent) { s.open++ }

func (s *slotted) Settle(now mono.Time, _ *limit.Sent, _ *limit.Outcome) {
	s.open--
	slot := int64(now) / int64(s.t)
	for s.slot < slot {
		s.slot++
		s.used[s.slot%s.k] = 0
	}
	s.used[slot%s.k]++
}

// cutBucket is a bucket of proofN per proofWindow that computes only from its last 400 requests, each time anew.
type cutBucket struct {
	last []mono.Time
	open int
}

const cutPer = mono.Time(proofWindow / proofN)

func (b *cutBucket) Ready(now mono.Time, _ limit.Cost) mono.Time {
	open := mono.Time(b.open) + 1
	if open > proofN {
		return limit.AfterSettle
	}
	full := mono.Time(-1 << 62)
	for _, u := range b.last {
		full = max(full, u) + cutPer
	}
	return max(now, full+(open-proofN)*cutPer+5*mono.Time(time.Millisecond))
}

func (b *cutBucket) Admit(*limit.Sent) { b.open++ }

func (b *cutBucket) Settle(now mono.Time, _ *limit.Sent, _ *limit.Outcome) {
	b.open--
	if len(b.last) == 400 {
		b.last = b.last[1:]
	}
	b.last = append(b.last, now)
}

// forgetful begins anew when its limit changes; requests that are open count until their end with the limiter before.
type forgetful struct {
	limit.Limiter
	anew func(n int64) limit.Limiter
	open limit.Book[limit.Limiter] // that of each request
}

func (f *forgetful) SetLimit(_ mono.Time, n int64) error {
	f.Limiter = f.anew(n)
	return nil
}

func (f *forgetful) Admit(s *limit.Sent) {
	f.open.Open(s.Number, f.Limiter)
	f.Limiter.Admit(s)
}

func (f *forgetful) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	f.open.Close(s.Number).Settle(now, s, o)
}

// firstAnswer believes that an interval is over one window after its first answer, and forgets
// everything that was sent in it.
type firstAnswer struct {
	used  int64
	first mono.Time
	heard bool
	epoch int64
	open  limit.Book[int64]
}

const firstAnswerOver = proofAnchored + 2*proofTick

func (f *firstAnswer) Ready(now mono.Time, c limit.Cost) mono.Time {
	switch {
	case f.used+c[limit.Requests] <= proofN:
		return now
	case !f.heard:
		return limit.AfterSettle
	}
	return max(now, f.first.Add(firstAnswerOver))
}

func (f *firstAnswer) Admit(s *limit.Sent) {
	if f.heard && s.At >= f.first.Add(firstAnswerOver) {
		f.used, f.heard = 0, false
		f.epoch++
	}
	f.used += s.Cost[limit.Requests]
	f.open.Open(s.Number, f.epoch)
}

func (f *firstAnswer) Settle(now mono.Time, s *limit.Sent, _ *limit.Outcome) {
	if f.open.Close(s.Number) == f.epoch && !f.heard {
		f.first, f.heard = now, true
	}
}
