package limit

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// rtts keeps the last 2000 round trips, also in the order of their length.
type rtts struct {
	ring   []time.Duration
	oldest int
	sorted []time.Duration
}

const rttHistory = 2000

func (r *rtts) add(rtt time.Duration) {
	if r.ring == nil {
		r.ring = make([]time.Duration, 0, rttHistory)
		r.sorted = make([]time.Duration, 0, rttHistory)
	}
	if len(r.ring) < rttHistory {
		r.ring = append(r.ring, rtt)
	} else {
		i, _ := slices.BinarySearch(r.sorted, r.ring[r.oldest])
		r.sorted = slices.Delete(r.sorted, i, i+1)
		r.ring[r.oldest] = rtt
		r.oldest = (r.oldest + 1) % rttHistory
	}
	i, _ := slices.BinarySearch(r.sorted, rtt)
	r.sorted = slices.Insert(r.sorted, i, rtt)
}

func (r *rtts) clear() { r.ring, r.sorted, r.oldest = r.ring[:0], r.sorted[:0], 0 }

// lead learns ρ, how long the way of one request to the server and the way back of the answer to another surely take together, from round
// trips T = f + b: ρ = max(0, 2·m₁ − m₅₀), where m_k is the k-th shortest. A round trip shorter than all before makes ρ smaller at once. ρ
// grows slowly, so that no request that trusts a large ρ follows soon on one that was settled with a small ρ, and so that a forecast can
// say how large it will be.
//
// A refusal says that one way became quicker than was learned. Then ρ is 0 for a while, and everything is learned anew from what is sent
// after half of that time. Round trips alone do not tell it, since one way may become quicker and the other slower.
type lead struct {
	rtts
	caution
	rho  time.Duration
	goal time.Duration // what was learned; rho grows to it
	last mono.Time     // when rho grew last
	anew mono.Time     // nothing is learned from what was sent before this
}

const (
	leadRank   = 50 // with fewer answers nothing is known
	leadGrowth = 64 // in so much time ρ grows by one unit of time
)

func newLead() *lead { return &lead{caution: newCaution(), last: mono.Min, anew: mono.Min} }

// settle learns from the answer to a request that was admitted at sent.
func (l *lead) settle(now, sent mono.Time, o *Outcome) {
	l.rho, l.last = l.by(now), now
	if o.refuted() && l.goal > 0 && l.strike(now, sent) {
		l.rho, l.goal = 0, 0
		l.rtts.clear()
		l.anew = now.Add(l.until.Sub(now) / 2)
	}
	if o.RTT > 0 && sent >= l.anew && (o.Result == Accepted || o.Result == Failed) {
		l.add(o.RTT)
	}
	if now >= l.until && len(l.sorted) >= leadRank {
		l.goal = max(0, 2*l.sorted[0]-l.sorted[leadRank-1])
	}
	l.rho = min(l.rho, l.goal)
}

// by returns what ρ has grown to by now.
func (l *lead) by(now mono.Time) time.Duration {
	return min(l.goal, l.rho+max(now.Sub(l.last), 0)/leadGrowth)
}

// trust has what was learned before used from now on.
func (l *lead) trust(now mono.Time) {
	l.caution.trust(now)
	l.anew = min(l.anew, now)
}

// bound returns the upper bound of the arrival of a request admitted at sent, if without a lead it is u.
func (l *lead) bound(now, u, sent mono.Time, o *Outcome) mono.Time {
	switch {
	case o.Result == Unknown || u > now:
		u = u.Add(l.goal) // no answer's way back is in it that ρ could be taken off
	default:
		u = now // ArrivedAgo, which says that it arrived before, takes the way back off just as ρ does
	}
	return max(u, sent.Add(l.rho))
}
