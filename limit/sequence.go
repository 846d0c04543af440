package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Sequence keeps requests in the order they were sent, for a server that demands rising nonces. At
// first one request is in flight. When Sequence has learned the variation of the latency, the next
// request may also go a gap after the last. On a path of 200 ± 5 ms that is 47 requests a second
// instead of 5. The gap is 1 ms and 1.25 times the difference between the longest and the shortest
// of the last 2000 round trips. If the configuration gives a gap, it holds from the beginning.
//
// The risk: a latency outside of the known range, or of the given gap, puts two requests into the
// wrong order. The server then refuses one of them, and more of those already under way. An Outcome
// with Misordered sends Sequence back to one in flight: see Retreat. A Concurrency of 1 takes no
// risk.
//
// Not safe for concurrent use. It holds 32 kB if it learns.
type Sequence struct {
	arrivals Arrivals
	last     mono.Time
	prev     mono.Time     // the last send
	given    time.Duration // the gap of the configuration; 0: it is learned
	caution
	trips   rtts
	lingers log // requests of unknown outcome, by the ends of their stay
	open    int
	driven
}

const (
	sequenceAnswers  = 100 // with fewer answers nothing is known
	sequenceSmallest = time.Millisecond
)

// SequenceConfig describes a Sequence. The zero value is ready, and learns its Gap.
type SequenceConfig struct {
	// Late is how long after an unknown outcome a request may still be on its way. If zero, 5 s;
	// negative: not at all.
	Late time.Duration
	// Gap, if positive, is the least time between two sends while a request is in flight. It must
	// cover the difference between the largest and the smallest one-way latency, and the longest
	// delay from an Admit to its write. If zero, it is learned.
	Gap time.Duration
}

// NewSequence checks the configuration and returns a Sequence that has learned nothing.
func NewSequence(c SequenceConfig) (*Sequence, error) {
	if c.Gap < 0 {
		return nil, fmt.Errorf("limit: Sequence: Gap %v is negative", c.Gap)
	}
	return &Sequence{arrivals: Arrivals{Late: c.Late}, last: mono.Min, prev: mono.Min, given: c.Gap, caution: newCaution()}, nil
}

// Gap returns the least time between two sends. ok reports whether several requests may be in
// flight at now.
func (s *Sequence) Gap(now mono.Time) (gap time.Duration, ok bool) {
	if now < s.until {
		return 0, false
	}
	if s.given > 0 {
		return s.given, true
	}
	n := len(s.trips.sorted)
	if n < sequenceAnswers {
		return 0, false
	}
	spread := s.trips.sorted[n-1] - s.trips.sorted[0]
	return spread + spread/4 + sequenceSmallest, true
}

// Ready implements Limiter.
func (s *Sequence) Ready(now mono.Time, _ Cost) mono.Time {
	now = max(now, s.last)
	alone := now // from when on nothing else is in flight
	if s.open > 0 {
		alone = AfterSettle
	} else if s.lingers.total > 0 {
		alone = max(now, s.lingers.freed(s.lingers.total))
	}
	if alone == now {
		return now
	}
	if gap, ok := s.Gap(max(now, s.until)); ok {
		return min(alone, max(now, s.until, s.prev.Add(gap)))
	}
	return alone
}

// Admit implements Limiter.
func (s *Sequence) Admit(r *Sent) {
	s.last = max(r.At, s.last)
	s.prev = s.last
	s.open++
}

// Settle implements Limiter.
func (s *Sequence) Settle(now mono.Time, r *Sent, o *Outcome) {
	now = max(now, s.last)
	s.last = now
	s.open--
	s.lingers.forget(now)
	switch {
	case o.Result == Unknown:
		if u, _ := s.arrivals.bound(now, r.At, o); u > now {
			s.lingers.add(u, 1)
		}
	case o.Result != Unsent && s.given == 0:
		s.trips.add(now.Sub(r.At)) // not RTT: the delay from Admit to the write is part of it
	}
	if o.Misordered {
		s.strike(now, r.At)
	}
}

// Trust is called by the function Trust.
func (s *Sequence) Trust(now mono.Time) {
	s.last = max(now, s.last)
	s.trust(s.last)
}

// Rules implements Describer.
func (s *Sequence) Rules() []Rule { return []Rule{{Name: "sequence", Counts: CountsNothing}} }

// AppendUsage implements Describer. A Sequence counts nothing.
func (s *Sequence) AppendUsage(to []Usage, now mono.Time) []Usage {
	option := "LearnGap"
	if s.given > 0 {
		option = "Gap"
	}
	return append(to, Usage{Limit: "sequence", Requests: s.open, Retreat: s.retreat(now, option)})
}

// ReadyAfter implements Forecaster. It is not known.
func (s *Sequence) ReadyAfter(mono.Time, Cost, Cost) mono.Time { return Never }

// NotBefore implements Forecaster. The requests open and ahead may be answered at once, and a
// learned gap may shrink.
func (s *Sequence) NotBefore(now mono.Time, n int, _, cost Cost) mono.Time {
	now = max(now, s.last)
	if s.open == 0 && n <= 0 {
		return s.Ready(now, cost)
	}
	if s.lingers.total == 0 {
		return now
	}
	gap := s.given
	if gap == 0 {
		gap = sequenceSmallest
	}
	return min(max(now, s.lingers.freed(s.lingers.total)), max(now, s.until, s.prev.Add(gap)))
}
