package limit

import (
	"slices"
	"time"
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
// retreat at once.
type lead struct {
	rtts
	rho time.Duration
}

const leadRank = 50 // with fewer answers than this nothing is known

func (l *lead) learn(rtt time.Duration) {
	l.add(rtt)
	l.rho = 0
	if len(l.sorted) >= leadRank {
		l.rho = max(0, 2*l.sorted[0]-l.sorted[leadRank-1])
	}
}
