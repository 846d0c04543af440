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

// lead learns ρ, how long a request surely takes from here to the server and another from there to here, from round
// trips T = f + b: ρ = max(0, 2·m₁ − m₅₀), where m_k is the k-th shortest. A shorter round trip than all before makes it
// retreat at once; it grows slowly, so that nothing that was settled with a small ρ is followed by what trusts a large one,
// and a forecast can say how large it will be.
type lead struct {
	rtts
	rho  time.Duration
	goal time.Duration // what is learned, which rho grows to
	last mono.Time     // when it grew
}

const (
	leadRank   = 50 // with fewer answers than this nothing is known
	leadGrowth = 64 // ρ grows by one of so much time
)

// settle learns from an answer.
func (l *lead) settle(now mono.Time, o *Outcome) {
	l.rho, l.last = l.by(now), now
	if o.RTT <= 0 || o.Result != Accepted && o.Result != Limited && o.Result != Failed {
		return
	}
	l.add(o.RTT)
	if len(l.sorted) >= leadRank {
		l.goal = max(0, 2*l.sorted[0]-l.sorted[leadRank-1])
	}
	l.rho = min(l.rho, l.goal)
}

// by returns what ρ has grown to by now.
func (l *lead) by(now mono.Time) time.Duration {
	return min(l.goal, l.rho+max(now.Sub(l.last), 0)/leadGrowth)
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
