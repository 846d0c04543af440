// Package observe has Snapshots: what a Gate, a Group, a Pool or a Transport is doing at one
// instant, as plain data. Package dashboard shows them on a web page, package prom to Prometheus.
//
//	snapshot.go  a Source, and its Snapshot
//	states.go    the limits, clients, keys and pauses in a Snapshot
//	counts.go    the outcomes of requests, counted
//	times.go     the durations of waits and answers
//	events.go    what has happened
//	stats.go     the counts of one lane or Pool, for programs
//
// Most programs read Snapshots. A program with a Source of its own also fills them: EventLog, Waits
// and Answers collect what a Snapshot shows, and Snapshot.Sort completes it.
//
// Nothing here has a clock or a lock: callers supply both.
package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
)

// Source is what has Snapshots: a Gate, a Group, a Pool, a transport.Transport. Pages and metrics
// are made of Sources. It is safe for concurrent use.
type Source interface {
	// Snapshot is safe for concurrent use, and cheap enough to be called every second.
	Snapshot() Snapshot
}

// NameSource returns s with Snapshots of that name, for where several are shown together.
func NameSource(name string, s Source) Source { return namedSource{s, name} }

type namedSource struct {
	Source
	name string
}

func (n namedSource) Snapshot() Snapshot {
	s := n.Source.Snapshot()
	s.Name = n.name
	return s
}

// Snapshot is the state of a Source at one instant. Of a Transport with very many partitions, each
// part is of one instant. It is a copy: nothing in it changes later, and no credential is in it. In
// JSON, durations are nanoseconds and end in _ns; fields are only ever added. Instants that are not
// known, or that are past, are the zero Time and left out.
type Snapshot struct {
	// Name tells the Snapshots of several Sources apart: see NameSource.
	Name string `json:"name,omitempty"`
	// At is the instant, Since when counting began.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Waiting is how many requests are in line, InFlight how many have gone and are not settled.
	Waiting  int `json:"waiting"`
	InFlight int `json:"in_flight"`
	// LongestWait is how long the request that came first, of those in line, has waited.
	LongestWait time.Duration `json:"longest_wait_ns"`
	Counts
	// Pauses is how many pauses refusals began. Resent is how many attempts were not the first of their
	// request.
	Pauses int64 `json:"pauses"`
	Resent int64 `json:"resent"`

	Limits  []LimitState  `json:"limits"`
	Clients []ClientState `json:"clients"`
	Keys    []KeyState    `json:"keys"`
	Paused  []PauseState  `json:"paused"`
	// Waits are how long waits lasted, by limit and client. Upstream is how long answers took, by host.
	// Bounds are the ends of the classes in both.
	Waits    []WaitTimes     `json:"waits"`
	Upstream []UpstreamTimes `json:"upstream"`
	Bounds   []time.Duration `json:"bounds_ns"`
	// Events are the latest, oldest first. What came before the first of them was forgotten.
	Events []Event `json:"events"`
}

// Sort completes a Snapshot that its Source has filled: it computes each client's share, sets Bounds,
// and sorts, so that the order does not depend on chance.
func (s *Snapshot) Sort() {
	for i := range s.Clients {
		if s.Accepted > 0 {
			s.Clients[i].Share = float64(s.Clients[i].Accepted) / float64(s.Accepted)
		}
	}
	slices.SortFunc(s.Clients, func(a, b ClientState) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Limits, func(a, b LimitState) int { return a.Whose.compare(b.Whose) })
	slices.SortStableFunc(s.Paused, func(a, b PauseState) int { return a.Whose.compare(b.Whose) })
	slices.SortFunc(s.Waits, func(a, b WaitTimes) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Limit, b.Limit))
	})
	s.Bounds = histogram.Bounds()
}
