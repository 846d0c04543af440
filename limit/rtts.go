package limit

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// rtts is the last 2000 round trips, in order of their length too.
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

// lead learns ρ, how long a request surely takes from here to the server and another from there to here, from round
// trips T = f + b: ρ = max(0, 2·m₁ − m₅₀), where m_k is the k-th shortest. A shorter round trip than all before makes it
// smaller at once; it grows slowly, so that nothing that was settled with a small ρ is followed by what trusts a large one,
// and a forecast can say how large it will be.
//
// A refusal says that a way became quicker than was learned: then ρ is 0 for a while, and everything is learned anew, from
// what is sent when half of that is over. Round trips alone do not tell: one way may become quicker and the other slower.
type lead struct {
	rtts
	caution
	rho  time.Duration
	goal time.Duration // what is learned, which rho grows to
	last mono.Time     // when it grew
	anew mono.Time     // what was sent before is not learned from
}

const (
	leadRank   = 50 // with fewer answers than this nothing is known
	leadGrowth = 64 // ρ grows by one of so much time
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
		u = now // what says that it arrived before takes the way back off, as ρ does
	}
	return max(u, sent.Add(l.rho))
}
