package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
)

// Source has Snapshots: a Gate, a Group, a Pool, a transport.Transport. Pages and metrics are made
// of Sources. It is safe for concurrent use.
type Source interface {
	// Snapshot is safe for concurrent use, and cheap enough for a call every second.
	Snapshot() Snapshot
}

// NameSource returns s with Snapshots of that name, to show several Sources together.
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

// Snapshot is the state of a Source at one instant. With very many partitions, a Transport's
// Snapshot has parts of different instants. It is a copy: nothing in it changes later. It has no
// credential. In JSON, durations are nanoseconds and end in _ns; fields are only ever added.
// Unknown or past instants are the zero Time and left out.
type Snapshot struct {
	// Name distinguishes the Snapshots of several Sources: see NameSource.
	Name string `json:"name,omitempty"`
	// At is the instant of the Snapshot; Since is when counting began.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Waiting is how many requests are in line, or rest until their next attempt. InFlight is how many
	// have gone and are not settled.
	Waiting  int `json:"waiting"`
	InFlight int `json:"in_flight"`
	// LongestWait is how long the earliest request in line has waited.
	LongestWait time.Duration `json:"longest_wait_ns"`
	Counts
	// Pauses is how many pauses began by refusals. Resent is how many attempts were not the first
	// of their request.
	Pauses int64 `json:"pauses"`
	Resent int64 `json:"resent"`

	Limits  []LimitState  `json:"limits"`
	Clients []ClientState `json:"clients"`
	Keys    []KeyState    `json:"keys"`
	Paused  []PauseState  `json:"paused"`
	// Frozen is what idle partitions of a Transport take. Of another Source it is zero.
	Frozen FrozenState `json:"frozen,omitzero"`
	// Waits are the durations of waits, by limit and client. Upstream are the durations of answers,
	// by host. Bounds are the ends of the classes in both.
	Waits    []WaitTimes     `json:"waits"`
	Upstream []UpstreamTimes `json:"upstream"`
	Bounds   []time.Duration `json:"bounds_ns"`
	// Events are the latest, oldest first. Earlier ones were forgotten.
	Events []Event `json:"events"`
}

// Sort completes a Snapshot that its Source has filled. It computes each client's share, sets
// Bounds, and sorts, so that the order does not depend on chance.
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
