package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/throttle"
)

// Scenario is a quota, and the clients that share it: they know what its server publishes, and nothing of each other. It
// replays to the byte: the same Scenario has the same Report.
//
// Package sim/scenario reads one from a file.
type Scenario struct {
	Name string
	// Duration is how long it lasts. Who sleeps at its end is cut off, and what has no answer by then is not counted.
	Duration time.Duration
	Seed     uint64
	Server   Quota
	Groups   []Group
	// Sample is the time between two values of Report.Series. If zero, there is none.
	Sample time.Duration
}

// Group is clients that are alike. A client is a thread: it has one request at a time, which it tries until it is served.
type Group struct {
	Name     string
	Strategy throttle.Strategy
	// Params are those of its strategy. Of Rate, Burst, Window and Unit those that are zero are what Quota publishes, MeanCost is
	// that of Costs.
	Params throttle.Params
	// Processes of so many Threads each: threads share what their process knows. If zero, 1.
	Processes, Threads int
	// Link is the latency to the server and, drawn again, back.
	Link latency.Law
	// Work is how long a thread is busy between an answer and its next try or request. If zero, not at all; 1 ms if
	// Link and Service take less than that on average, since nobody does infinitely many requests at one instant.
	Work   time.Duration
	Demand Demand
	Costs  Costs
	// Join is when its processes start, Spread within how long after that they do, each at random and with all of its threads,
	// and Stagger within how long after its process a thread does. If zero: at once, all together.
	Join, Spread, Stagger time.Duration
	// Leave is when they are gone, whatever they are about. If zero, they stay.
	Leave time.Duration
}

// Demand is when a client has a request to make.
type Demand struct {
	Kind DemandKind
	// On and Off are the periods of OnOff, which begins with On.
	On, Off time.Duration
	// PerSecond is how many requests come to each client of Light, at random instants. They wait for each other.
	PerSecond float64
	// Total is how many requests the group has to do in all. If zero, there is no end of them. When every group of a
	// Scenario is done, the run is over.
	Total int
}

// Costs are what requests take of the quota, in its Unit, refused ones nothing. A request costs the same each time it is tried.
type Costs struct {
	// Mean is what they take on average. If zero, 1.
	Mean float64
	// Exponential: costs are drawn anew for each request, whole numbers from 1 on of which each is less likely than the one
	// before by the same factor; one that never could pass is as large as may. Otherwise all are Mean, rounded.
	Exponential bool
}

// DemandKind is a kind of Demand.
type DemandKind uint8

const (
	Always DemandKind = iota // saturating: the next request is at hand when the one before is served
	OnOff                    // saturating for a while, then none for a while
	Light                    // at a rate
)

// filled is the scenario with its defaults.
func (s Scenario) filled() Scenario {
	q := &s.Server
	q.Changes = slices.Clone(q.Changes)
	q.Limit = cmp.Or(q.Limit, 4500)
	q.Window = cmp.Or(q.Window, time.Hour)
	q.Capacity = cmp.Or(q.Capacity, q.Limit)
	if q.Full || q.Level == 0 && q.Kind != Bucket && q.Kind != GCRA {
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

// roughly is the mean of a law, or more than that if it has none.
func roughly(l latency.Law) time.Duration {
	mean, ok := l.Mean()
	if !ok {
		return time.Hour
	}
	return min(mean, time.Hour)
}
