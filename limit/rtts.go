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

// lead learns ρ: how long two ways surely take together, of one request to the server and of
// another answer back. It learns from round trips T = f + b:
//
//	ρ = max(0, 2·m₁ − m₅₀),   m_k the k-th shortest round trip
//
// A round trip shorter than all before makes ρ smaller at once. ρ grows slowly, for two reasons. A
// request that trusts a large ρ does not follow soon on one that was settled with a small ρ. And a
// forecast can know how large ρ will be.
//
// A refusal means that one way became quicker than was learned. Then ρ is 0 for a while. All is
// learned anew, from requests sent after half of that time. Round trips alone do not show the
// change, since one way may become quicker and the other slower.
type lead struct {
	rtts
	caution
	rho  time.Duration
	goal time.Duration // the learned lead; rho grows to it
	last mono.Time     // when rho grew last
	anew mono.Time     // requests sent before this teach nothing
}

const (
	leadRank   = 50 // with fewer answers nothing is known
	leadGrowth = 64 // ρ grows by one unit of time in this many units
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

// by returns the ρ of now.
func (l *lead) by(now mono.Time) time.Duration {
	return min(l.goal, l.rho+max(now.Sub(l.last), 0)/leadGrowth)
}

// trust puts the earlier knowledge back into use from now on.
func (l *lead) trust(now mono.Time) {
	l.caution.trust(now)
	l.anew = min(l.anew, now)
}

// bound returns the upper bound of the arrival of a request admitted at sent. u is that bound
// without a lead.
func (l *lead) bound(now, u, sent mono.Time, o *Outcome) mono.Time {
	switch {
	case o.Result == Unknown || u > now:
		u = u.Add(l.goal) // it contains no answer's way back, from which ρ could be taken
	default:
		u = now // ArrivedAgo proves an earlier arrival by the way back, as ρ does: only one of them may
	}
	return max(u, sent.Add(l.rho))
}
