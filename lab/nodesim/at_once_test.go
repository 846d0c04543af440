package nodesim

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// A server that bounds requests at once counts each from its write until its node has the answer. That
// is longer than any server counts it. The requests of a process that was killed have ended with it.

// opens notes a request that is written, and returns the function for its end.
func (n *member) opens() (ends func()) {
	if n.Places == 0 {
		return func() {}
	}
	began := n.now()
	n.open++
	if all := n.world.open(); all > n.Places {
		n.report.Refused++
		n.report.Refusals = append(n.report.Refusals, time.Duration(began))
	}
	return func() {
		n.open--
		if began = max(began, mono.Time(n.Warm)); n.now() > began && !n.dead {
			n.report.InFlight[n.place] += n.now().Sub(began)
		}
	}
}

// open is how many requests are in flight.
func (w *world) open() (all int64) {
	for _, n := range w.nodes {
		if n != nil && !n.dead {
			all += n.open
		}
	}
	return all
}

// works is how long the server works on a request.
func (w *world) works() time.Duration {
	if w.Holds == nil {
		return 0
	}
	return w.Holds(w.rng)
}
