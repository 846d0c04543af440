package tally

import (
	"github.com/paceline-go/paceline/limit"
)

// Use is what the requests of a group cost. The tally keeps it.
type Use struct {
	Remaining limit.Cost // the cost of requests that have not ended, if the input was checked
	Spent     limit.Cost // the cost of all sends
}

// Each returns how much of a unit a request takes, on average. It counts the sent requests once
// there are enough, and until then those that are left.
func (g *Use) Each(u limit.Unit) float64 {
	const enough = 20
	of := &g.Remaining
	if g.Spent[limit.Requests] >= enough || of[limit.Requests] <= 0 {
		of = &g.Spent
	}
	if u == limit.Requests {
		return 1
	}
	return float64(max(of[u], 0)) / float64(max(of[limit.Requests], 1))
}

// SentEach returns how much of a unit a sent request took, on average.
func (g *Use) SentEach(u limit.Unit) float64 {
	of := &g.Spent
	if u == limit.Requests || of[limit.Requests] <= 0 {
		return 1
	}
	return float64(max(of[u], 0)) / float64(of[limit.Requests])
}

// Attempts returns how often a request is sent until it ends, on average of those that have ended. inFlight were
// sent and have no answer yet. t.mu is held.
func (t *Tally) Attempts(inFlight int) float64 {
	const enough = 20
	n := &t.Totals
	if ended := n.Done + n.Dead; ended >= enough {
		return max(float64(n.Sends-inFlight)/float64(ended), 1)
	}
	return 1
}

// CostOfOne is the average cost of a request: of those sent or, while hardly any was, of those
// left. t.mu is held.
func (t *Tally) CostOfOne() float64 {
	const enough = 20
	cost, n := t.Totals.Cost, t.Totals.Sends
	if n < enough && t.Checked {
		cost, n = 0, t.Totals.NotEnded()
		for i := range t.Uses {
			cost += t.Uses[i].Remaining[limit.Requests]
		}
	}
	if cost <= 0 || n <= 0 {
		return 1
	}
	return float64(cost) / float64(n)
}
