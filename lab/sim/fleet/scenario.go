package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Scenario is a quota and the clients that share it: they know what its server publishes, and
// nothing of each other. A run can be repeated exactly: the same Scenario has the same Report.
//
// Package lab/sim/scenario reads one from a file.
type Scenario struct {
	Name string
	// Duration is how long the run lasts. A sleep is cut off at its end, and requests without an
	// answer by then are not counted.
	Duration time.Duration
	Seed     uint64
	Server   Quota
	Groups   []Group
	// Store is what the groups share the quota by that follow Share.
	Store Store
	// Expect are bounds on figures of the Report. Those that are missed are in its Expected.
	Expect []Expectation
	// Sample is the time between two values of Report.Series. If zero, there is none.
	Sample time.Duration
}

// Group is clients that are alike. A client is a thread: it has one request at a time, which it
// tries until it is served.
type Group struct {
	Name     string
	Strategy strategy.Strategy
	// Params are the parameters of its strategy. If Rate, Burst, Window or Unit are zero, they are
	// what Quota publishes; MeanCost is that of Costs.
	Params strategy.Params
	// Processes is how many processes there are, each with so many Threads, which share what their
	// process knows. If zero, 1.
	Processes, Threads int
	// Link is the latency to the server, and, drawn again, the latency back.
	Link latency.Law
	// Work is how long a thread is busy between an answer and its next try or request. If zero, no
	// time; but 1 ms if Link and Service take less than that on average, since nobody makes infinitely
	// many requests at one instant.
	Work   time.Duration
	Demand Demand
	Costs  Costs
	// Join is when its processes start. Spread is within how long after that each of them starts, at
	// random and with all of its threads. Stagger is within how long after its process each thread
	// starts. If they are zero, all start together at once.
	Join, Spread, Stagger time.Duration
	// Leave is when they are gone, whatever they are doing. If zero, they stay.
	Leave time.Duration
}

// Demand says when a client has a request to make.
type Demand struct {
	Kind DemandKind
	// On and Off are the periods of OnOff, which begins with On.
	On, Off time.Duration
	// PerSecond is how many requests come to each client of Light, at random instants. A request waits
	// for the one before it.
	PerSecond float64
	// Total is how many requests the group has to make in all. If zero, there is no end of them. When
	// every group of a Scenario has made its Total, the run is over.
	Total int
}

// Costs are what requests take of the quota, in its Unit; a refused request takes nothing. A
// request costs the same each time it is tried.
type Costs struct {
	// Mean is what a request takes on average. If zero, 1.
	Mean float64
	// Exponential says that the cost of each request is drawn: a whole number from 1 on, each less
	// likely than the one before by the same factor; a cost that could never pass is lowered to the
	// largest that can. Otherwise all costs are Mean, rounded.
	Exponential bool
}

// DemandKind is a kind of Demand.
type DemandKind uint8

const (
	Always DemandKind = iota // saturating: the next request is at hand when the one before is served
	OnOff                    // saturating for a while, then none for a while
	Light                    // requests come at a rate
)

// filled returns the scenario with its defaults.
func (s Scenario) filled() Scenario {
	q := &s.Server
	q.Changes = slices.Clone(q.Changes)
	q.Limit = cmp.Or(q.Limit, 4500)
	q.Window = cmp.Or(q.Window, time.Hour)
	q.Capacity = cmp.Or(q.Capacity, q.Limit)
	shared := slices.ContainsFunc(s.Groups, func(g Group) bool { return g.shares() }) // its store takes it to be full
	if q.Full || q.Level == 0 && (shared || q.Kind != Bucket && q.Kind != GCRA) {
		q.Level = q.Capacity
	}
	h := &q.Headers
	h.Factor, h.Rounded, h.Replicas = cmp.Or(h.Factor, 1), cmp.Or(h.Rounded, 1), cmp.Or(h.Replicas, 1)
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Processes = cmp.Or(g.Processes, 1)
		g.Threads = cmp.Or(g.Threads, 1)
		g.Params.Rate = cmp.Or(g.Params.Rate, float64(q.Limit)/q.Window.Seconds())
		g.Params.Burst = cmp.Or(g.Params.Burst, float64(q.Capacity))
		g.Params.Window = cmp.Or(g.Params.Window, q.Window)
		g.Params.Unit = cmp.Or(g.Params.Unit, q.Unit)
		g.Costs.Mean = cmp.Or(g.Costs.Mean, 1)
		g.Params.MeanCost = cmp.Or(g.Params.MeanCost, g.Costs.Mean)
		if g.Work == 0 && roughly(g.Link)+roughly(g.Link)+roughly(q.Service) < time.Millisecond {
			g.Work = time.Millisecond
		}
	}
	return s
}

// roughly returns the mean of a law, but at most an hour, and an hour if the law has no mean.
func roughly(l latency.Law) time.Duration {
	mean, ok := l.Mean()
	if !ok {
		return time.Hour
	}
	return min(mean, time.Hour)
}
