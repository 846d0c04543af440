package limit

import (
	"slices"
	"time"
)

// lead learns ρ, how long a request surely takes from here to the server and another from there to here, from round
// trips T = f + b of the last 2000 answers: ρ = max(0, 2·m₁ − m₅₀), where m_k is the k-th shortest. A shorter round trip
// than all before makes it retreat at once.
type lead struct {
	ring   []time.Duration
	oldest int
	sorted []time.Duration
	rho    time.Duration
}

const (
	leadHistory = 2000
	leadRank    = 50 // with fewer answers than this nothing is known
)

func (l *lead) learn(rtt time.Duration) {
	if l.ring == nil {
		l.ring = make([]time.Duration, 0, leadHistory)
		l.sorted = make([]time.Duration, 0, leadHistory)
	}
	if len(l.ring) < leadHistory {
		l.ring = append(l.ring, rtt)
	} else {
		i, _ := slices.BinarySearch(l.sorted, l.ring[l.oldest])
		l.sorted = slices.Delete(l.sorted, i, i+1)
		l.ring[l.oldest] = rtt
		l.oldest = (l.oldest + 1) % leadHistory
	}
	i, _ := slices.BinarySearch(l.sorted, rtt)
	l.sorted = slices.Insert(l.sorted, i, rtt)
	l.rho = 0
	if len(l.sorted) >= leadRank {
		l.rho = max(0, 2*l.sorted[0]-l.sorted[leadRank-1])
	}
}
