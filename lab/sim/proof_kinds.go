package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// ProofKind is a kind of server, the limiter that is made for it, at its default settings, and the
// most that any client can get from it that knows what this one knows.
//
// The ceilings. Let T be how long after its sending a client knows that a request has arrived, W⁺
// the Window and a tick, and N the Limit; means are over the requests of the run.
//
//	rolling, weighted      N / (W⁺ + E[T])        Each request holds what it costs for W⁺ and T, and no more than N are held
//	                                              at any instant (Little's law). Weighted holds it for as long on average:
//	                                              W/2 in its own interval and W/2 in the next, over all phases. Where few
//	                                              fit into a window N − 1 takes the place of N: sent at even distances W/k,
//	                                              the j-th after a beginning meets j + 1 + (1 − j/k)·k = k + 1 ≤ N; but
//	                                              N does if the server rounds that down.
//	calendar, known phase  N / (W · E[1 + ⌊(T + 2·Skew)/W⌋])   A request counts in every interval that it may touch, and
//	                                              may not go within Skew of an interval's ends.
//	anchored               N / (L · E[1 + ⌊T/L⌋]), L = W⁺ + E[min T of N sent together]   The earliest proof that an interval
//	                                              has begun is the first answer of N.
//	bucket, GCRA           min(N/W, Burst / (E[T] + W/N)), and a tick more per request if Burst is 1
type ProofKind struct {
	Name    string
	New     func(seed uint64) Proof
	Ceiling func(p Path) ProofCeiling
	// Floor is the share of the ceiling, in percent, that the limiter reaches over every stationary
	// path, however long the run. A short run has more, since it begins with a whole limit. A limiter
	// that is merely safe falls below the floor.
	Floor float64
	// These tell an Adversary about the server: how long its intervals are and when they begin, by
	// true time, and its limit.
	Window time.Duration
	Phase  func(seed uint64) mono.Time // nil: it has none, or they begin with a request
	Limit  int64
	Burst  int64 // for buckets
	// OneWayMax is what the limiter was promised; 0: nothing.
	OneWayMax time.Duration
}

const (
	// nearlyAll is for kinds that lose little more than a tick per window: they have 99.95 to 99.98 %
	// in long runs, whatever the seed.
	nearlyAll = 99.9
	// most is for kinds that lose more. A weighted window has 99.53 % of 340,000 requests over the
	// path of 0 or 3 s, and more of fewer requests; a bucket of one loses a tick with each of its
	// requests.
	most = 99.5
	// few is for a weighted window that holds some 20 requests: one of them is 5 %. The lowest figure,
	// over two routes, is 94.4 %.
	few = 94
)

// ProofCeiling adds up what the requests of a run use.
type ProofCeiling struct {
	// Uses returns how much a request uses of a limit that yields 1 per second: seconds of a rolling
	// window's slot, for example.
	Uses func(cost limit.Cost, known time.Duration) float64
	// Most, if positive, bounds the requests per second whatever they use.
	Most float64
}

const (
	proofN      = 20
	proofWindow = time.Second
	proofTick   = time.Millisecond
	proofSkew   = 50 * time.Millisecond
	// Not a second: the 3 s of one of the paths would be three intervals less 3 ms, and a margin of 2
	// ms would cost a fourth one.
	proofAnchored = 1300 * time.Millisecond
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// held is the ceiling of n per window if every request holds its cost for the window and until its arrival is known.
func held(n int64, window time.Duration, unit limit.Unit) func(limit.Cost, time.Duration) float64 {
	return func(c limit.Cost, known time.Duration) float64 {
		return float64(c[unit]) * (window + proofTick + known).Seconds() / float64(n)
	}
}

func largest(uses ...func(limit.Cost, time.Duration) float64) func(Path) ProofCeiling {
	return func(Path) ProofCeiling {
		sums := make([]float64, len(uses))
		most := 0.0
		return ProofCeiling{Uses: func(c limit.Cost, known time.Duration) float64 {
			before := most
			for i, f := range uses { // the limit that is used most bounds the run
				sums[i] += f(c, known)
				most = max(most, sums[i])
			}
			return most - before
		}}
	}
}

// proofPhase returns when the intervals of a calendar begin.
func proofPhase(seed uint64) mono.Time {
	return mono.Time(rand.New(rand.NewPCG(seed, 5)).Int64N(int64(proofWindow)))
}

// proofOff returns how far the clock of a calendar's server is off: at most by the skew less a
// tick, as the tick is off, too; every other seed has that maximum.
func proofOff(seed uint64) time.Duration {
	const most = proofSkew - proofTick
	switch seed % 4 {
	case 0:
		return most
	case 1:
		return -most
	}
	return time.Duration(rand.New(rand.NewPCG(seed, 6)).Int64N(int64(2*most))) - most
}

func one(s rule.Server) []ProofServer { return []ProofServer{{Server: s}} }

// ProofKinds returns the kinds of servers.
func ProofKinds() []ProofKind {
	return slices.Concat(rollingKinds(), intervalKinds(), bucketKinds(), weightedKinds(), combinedKinds())
}

// heldForWindow is the ceiling if a request is held for one window from its arrival.
var heldForWindow = largest(held(proofN, proofWindow, limit.Requests))

// rollingKinds forget a request one window after it arrived.
func rollingKinds() []ProofKind {
	return []ProofKind{
		{"rolling", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewRolling(rule.RollingConfig{Limit: proofN, Window: proofWindow}))),
				Limiter: limit.MustRolling(proofN, proofWindow),
			}
		}, heldForWindow, nearlyAll, proofWindow, nil, proofN, 0, 0},
		{"rolling, clock drifts and jumps ahead", func(seed uint64) Proof {
			clock := rule.Clock{DriftPPM: -100}
			for i := range 1000 {
				clock.Steps = append(clock.Steps,
					rule.Step{At: mono.Time(i) * mono.Time(47*time.Second), By: time.Duration(i%7) * 10 * time.Millisecond})
			}
			server := must(rule.NewRolling(rule.RollingConfig{Limit: proofN, Window: proofWindow}))
			return Proof{Servers: one(must(rule.NewClocked(server, clock))), Limiter: limit.MustRolling(proofN, proofWindow)}
		}, heldForWindow, nearlyAll, proofWindow, nil, proofN, 0, 0},
	}
}

// intervalKinds count in intervals that follow each other, or that begin with a request.
func intervalKinds() []ProofKind {
	return []ProofKind{
		{"calendar, phase known", func(seed uint64) Proof {
			server := must(rule.NewCalendar(rule.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed)}))
			return Proof{
				Servers: one(must(rule.NewClocked(server, rule.Clock{Offset: proofOff(seed)}))),
				Limiter: must(limit.NewCalendar(limit.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed)})),
			}
		}, func(Path) ProofCeiling {
			return ProofCeiling{Uses: func(_ limit.Cost, known time.Duration) float64 {
				return float64(1+(known+2*proofSkew)/proofWindow) * proofWindow.Seconds() / proofN
			}}
		}, nearlyAll, proofWindow, func(seed uint64) mono.Time { return proofPhase(seed).Add(-proofOff(seed)) }, proofN, 0,
			0},
		{"calendar, phase unknown", func(seed uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewCalendar(rule.CalendarConfig{Limit: proofN, Window: proofWindow,
					Phase: proofPhase(seed)}))),
				Limiter: limit.MustRolling(proofN, proofWindow),
			}
		}, heldForWindow, nearlyAll, proofWindow, proofPhase, proofN, 0, 0},
		{"message-anchored", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewAnchored(rule.AnchoredConfig{Limit: proofN, Window: proofAnchored, Closed: true}))),
				Limiter: must(limit.NewAnchored(limit.AnchoredConfig{Limit: proofN, Window: proofAnchored})),
			}
		}, func(p Path) ProofCeiling {
			interval := proofAnchored + proofTick + firstOf(p, proofN)
			return ProofCeiling{Uses: func(_ limit.Cost, known time.Duration) float64 {
				return float64(1+known/interval) * interval.Seconds() / proofN
			}}
		}, nearlyAll, proofAnchored, nil, proofN, 0, 0},
	}
}

// refilled is the ceiling of a bucket; rate is per second.
func refilled(rate, burst float64) func(Path) ProofCeiling {
	return func(Path) ProofCeiling {
		return ProofCeiling{Most: rate,
			Uses: func(_ limit.Cost, known time.Duration) float64 { return (known.Seconds() + 1/rate) / burst }}
	}
}

// bucketKinds are refilled evenly.
func bucketKinds() []ProofKind {
	return []ProofKind{
		{"token bucket", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewBucket(rule.BucketConfig{Limit: proofN, Window: proofWindow}))),
				Limiter: must(limit.NewBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow})),
			}
		}, refilled(proofN, proofN), nearlyAll, proofWindow, nil, proofN, proofN, 0},
		{"token bucket of one", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewBucket(rule.BucketConfig{Limit: 300, Window: 7 * proofWindow, Capacity: 1}))),
				Limiter: must(limit.NewBucket(limit.BucketConfig{Limit: 300, Window: 7 * proofWindow, Burst: 1})),
			}
		}, func(Path) ProofCeiling {
			return ProofCeiling{Uses: func(_ limit.Cost, known time.Duration) float64 {
				return (known + proofTick).Seconds() + 7*proofWindow.Seconds()/300
			}}
		}, most, 7 * proofWindow, nil, 300, 1, 0},
		{"token bucket, clock slow", func(uint64) Proof {
			server := must(rule.NewBucket(rule.BucketConfig{Limit: proofN, Window: proofWindow}))
			return Proof{
				Servers: one(must(rule.NewClocked(server, rule.Clock{DriftPPM: -150}))),
				Limiter: must(limit.NewBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow})),
			}
		}, refilled(proofN*(1-150e-6), proofN), nearlyAll, proofWindow, nil, proofN, proofN, 0},
		{"GCRA", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewGCRA(rule.GCRAConfig{Limit: 450, Window: time.Minute, Burst: 30}))),
				Limiter: must(limit.NewBucket(limit.BucketConfig{Limit: 450, Window: time.Minute, Burst: 30})),
			}
		}, refilled(7.5, 30), nearlyAll, time.Minute, nil, 450, 30, 0},
	}
}

// weightedKinds count the interval before in proportion.
func weightedKinds() []ProofKind {
	return []ProofKind{
		{"weighted previous window", func(seed uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewWeighted(rule.WeightedConfig{Limit: 1000, Window: time.Minute,
					Phase: 60 * proofPhase(seed)}))),
				Limiter: must(limit.NewWeighted(limit.WeightedConfig{Limit: 1000, Window: time.Minute})),
			}
		}, largest(held(1000, time.Minute, limit.Requests)), most, time.Minute,
			func(seed uint64) mono.Time { return 60 * proofPhase(seed) }, 1000, 0, 0},
		{"weighted, rotating", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewWeighted(rule.WeightedConfig{Limit: 1000, Window: time.Minute, Rotating: true,
					RefusedCount: true}))),
				Limiter: must(limit.NewWeighted(limit.WeightedConfig{Limit: 1000, Window: time.Minute})),
			}
		}, largest(held(1000, time.Minute, limit.Requests)), most, time.Minute, nil, 1000, 0, 0},
		{"weighted, rounded down", func(uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewWeighted(rule.WeightedConfig{Limit: proofN, Window: proofWindow, Rotating: true,
					RefusedCount: true, RoundsDown: true}))),
				Limiter: must(limit.NewWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow, RoundsDown: true})),
			}
		}, heldForWindow, few, proofWindow, nil, proofN, 0, 0},
		{"weighted, few in a window", func(seed uint64) Proof {
			return Proof{
				Servers: one(must(rule.NewWeighted(rule.WeightedConfig{Limit: proofN, Window: proofWindow,
					Phase: proofPhase(seed)}))),
				Limiter: must(limit.NewWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow})),
			}
		}, largest(held(proofN-1, proofWindow, limit.Requests)), few, proofWindow, proofPhase, proofN, 0, 0},
	}
}

// combinedKinds have several limits at once.
func combinedKinds() []ProofKind {
	return []ProofKind{
		{"two at once, with weights", func(uint64) Proof {
			orders := must(limit.NewRolling(limit.RollingConfig{Limit: 300, Window: 10 * time.Second, Unit: limit.Orders}))
			weight := must(limit.NewRolling(limit.RollingConfig{Limit: 6000, Window: time.Minute, Unit: limit.Weight}))
			return Proof{
				Servers: []ProofServer{
					{must(rule.NewRolling(rule.RollingConfig{Limit: 300, Window: 10 * time.Second})), limit.Orders},
					{must(rule.NewCalendar(rule.CalendarConfig{Limit: 6000, Window: time.Minute})), limit.Weight},
				},
				Limiter: limit.NewAll(orders, weight),
				Costs:   []limit.Cost{{limit.Weight: 1, limit.Orders: 1}, {limit.Weight: 5, limit.Orders: 1}, {limit.Weight: 10}},
			}
		}, largest(held(300, 10*time.Second, limit.Orders), held(6000, time.Minute, limit.Weight)), nearlyAll,
			10 * time.Second, nil, 0, 0, 0},
	}
}

const proofOneWay = 50 * time.Millisecond

// PromisedKinds returns the kinds whose limiter was promised that no request takes longer than 50
// ms to arrive. They are for an Adversary, which keeps that promise; paths do not.
func PromisedKinds() []ProofKind {
	promise := limit.Arrivals{OneWayMax: proofOneWay}
	kind := func(name string, phase func(uint64) mono.Time, burst int64, server func(seed uint64) rule.Server,
		limiter func(seed uint64) limit.Limiter) ProofKind {
		return ProofKind{Name: name + ", 50 ms at most", Window: proofWindow, Phase: phase, Limit: proofN, Burst: burst,
			OneWayMax: proofOneWay,
			New:       func(seed uint64) Proof { return Proof{Servers: one(server(seed)), Limiter: limiter(seed)} }}
	}
	return []ProofKind{
		kind("rolling", nil, 0, func(uint64) rule.Server {
			return must(rule.NewRolling(rule.RollingConfig{Limit: proofN, Window: proofWindow}))
		}, func(uint64) limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: proofN, Window: proofWindow, Arrivals: promise}))
		}),
		kind("calendar", proofPhase, 0, func(seed uint64) rule.Server {
			return must(rule.NewCalendar(rule.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed)}))
		}, func(seed uint64) limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed),
				Skew: 2 * proofTick, Arrivals: promise}))
		}),
		kind("message-anchored", nil, 0, func(uint64) rule.Server {
			return must(rule.NewAnchored(rule.AnchoredConfig{Limit: proofN, Window: proofWindow, Closed: true}))
		}, func(uint64) limit.Limiter {
			return must(limit.NewAnchored(limit.AnchoredConfig{Limit: proofN, Window: proofWindow, Arrivals: promise}))
		}),
		kind("token bucket", nil, proofN, func(uint64) rule.Server {
			return must(rule.NewBucket(rule.BucketConfig{Limit: proofN, Window: proofWindow}))
		}, func(uint64) limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: proofN, Window: proofWindow, Arrivals: promise}))
		}),
		kind("weighted", proofPhase, 0, func(seed uint64) rule.Server {
			return must(rule.NewWeighted(rule.WeightedConfig{Limit: proofN, Window: proofWindow, Phase: proofPhase(seed)}))
		}, func(uint64) limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: proofN, Window: proofWindow, Arrivals: promise}))
		}),
	}
}

// firstOf returns the mean of the shortest of n round trips that begin together.
func firstOf(p Path, n int) time.Duration {
	const rounds = 20_000
	rng := rand.New(rand.NewPCG(1, 7))
	sum := time.Duration(0)
	for range rounds {
		now := mono.Time(rng.Int64N(int64(time.Hour)))
		least := time.Duration(1<<63 - 1)
		for range n {
			forward, back := p.Draw(now, rng)
			least = min(least, forward+back)
		}
		sum += least
	}
	return sum / rounds
}

// ProofPath is a path and a load.
type ProofPath struct {
	NamedPath
	Lost, Idle, Aside float64 // as in Proof
	// Costs are for the kinds that have none of their own.
	Costs []limit.Cost
}

// ProofPaths returns the hostile paths under a load that never ends; one with answers that do not
// come; and some with a client that is idle at times, or whose requests differ in cost and do not
// all arrive.
func ProofPaths() (paths []ProofPath) {
	named := HostilePaths()
	for _, p := range named {
		paths = append(paths, ProofPath{NamedPath: p})
	}
	add := func(p ProofPath, load string) {
		p.Name += load
		paths = append(paths, p)
	}
	add(ProofPath{NamedPath: named[1], Lost: 0.01}, ", 1 % of the answers lost")
	for _, i := range []int{1, 4, 8} {
		p := named[i]
		p.Stationary = false // there is no ceiling for a load that ends
		add(ProofPath{NamedPath: p, Idle: 0.02}, ", on and off")
	}
	for _, i := range []int{1, 4, 13} {
		p := named[i]
		p.Stationary = false // nor for one that has to wait until several requests fit
		add(ProofPath{NamedPath: p, Lost: 0.02, Idle: 0.02, Aside: 0.1,
			Costs: []limit.Cost{limit.One, {limit.Requests: 3}, {limit.Requests: 7}, {limit.Other: 1}}}, ", mixed")
	}
	return paths
}

func (k ProofKind) proof(path ProofPath, requests int, seed uint64) Proof {
	p := k.New(seed)
	p.Path, p.Lost, p.Idle, p.Aside, p.Requests, p.Seed = path.Path, path.Lost, path.Idle, path.Aside, requests, seed
	if p.Costs == nil {
		for _, c := range path.Costs {
			if p.Limiter.Ready(0, c) < limit.Never {
				p.Costs = append(p.Costs, c)
			}
		}
	}
	return p
}

// Prove runs the proof and returns the tally, and how many percent of the ceiling were reached. stop may be nil.
func (k ProofKind) Prove(path ProofPath, requests int, seed uint64, stop func() bool) (t ProofTally, percent float64) {
	p := k.proof(path, requests, seed)
	p.Stop = stop
	return k.share(p)
}

func (k ProofKind) share(p Proof) (t ProofTally, percent float64) {
	c := k.Ceiling(p.Path)
	used, n := 0.0, 0
	p.OnSend = func(cost limit.Cost, known time.Duration) {
		used += c.Uses(cost, known)
		n++
	}
	t = p.Run()
	if c.Most > 0 {
		used = max(used, float64(n)/c.Most)
	}
	return t, 100 * used / max(t.End.Sub(0).Seconds(), 1e-9)
}

// Attack sets an Adversary on the kind. Depending on the seed, costs differ and limits change. stop may be nil.
func (k ProofKind) Attack(requests int, seed uint64, stop func() bool) AdversaryTally {
	p := k.New(seed)
	return k.attack(p, requests, seed, stop)
}

func (k ProofKind) attack(p Proof, requests int, seed uint64, stop func() bool) AdversaryTally {
	a := Adversary{Limiter: p.Limiter, Servers: p.Servers, Window: k.Window, Tick: proofTick, OneWayMax: k.OneWayMax,
		Costs: p.Costs, Requests: requests, Seed: seed, Stop: stop}
	if k.Phase != nil {
		a.Phase = k.Phase(seed)
	}
	if a.Costs == nil && seed%2 == 1 && (k.Burst == 0 || k.Burst >= 7) {
		a.Costs = []limit.Cost{limit.One, {limit.Requests: 3}, {limit.Requests: 7}}
	}
	if k.Limit > 0 && seed%3 == 0 {
		least := int64(1) // at least the largest cost: otherwise that would never go
		for _, c := range a.Costs {
			least = max(least, c[limit.Requests])
		}
		a.Change = k.change(p.Limiter, least)
	}
	return a.Run()
}

// change makes a limiter stricter than the server, and then as strict as it again, by another limit, burst or window.
func (k ProofKind) change(l limit.Limiter, least int64) func(mono.Time, *rand.Rand) {
	anyOf := func(rng *rand.Rand, most int64) int64 {
		if rng.IntN(2) == 0 {
			return most
		}
		return least + rng.Int64N(most-least+1)
	}
	limited, _ := l.(interface {
		SetLimit(mono.Time, int64) error
	})
	bursts, _ := l.(interface {
		SetBurst(mono.Time, int64) error
	})
	windowed, _ := l.(interface {
		SetWindow(mono.Time, time.Duration) error
	})
	if _, anchored := l.(*limit.Anchored); anchored {
		windowed = nil // taking intervals for longer than they are is not stricter
	}
	return func(now mono.Time, rng *rand.Rand) {
		var err error
		switch r := rng.IntN(3); {
		case r == 0 && windowed != nil:
			err = windowed.SetWindow(now, time.Duration(1+rng.IntN(2)*rng.IntN(3))*k.Window)
		case r == 1 && bursts != nil:
			err = bursts.SetBurst(now, anyOf(rng, k.Burst))
		case limited != nil:
			err = limited.SetLimit(now, anyOf(rng, k.Limit))
		}
		if err != nil {
			panic(err) // the values are our own
		}
	}
}
