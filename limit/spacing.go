package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Spacing keeps a minimum gap between sends. Let the gap be at least the difference between the
// largest and the smallest one-way latency. Then requests arrive in the order they were sent,
// although several are in flight. For a server that demands rising nonces, use a Sequence with that
// Gap: it notices a gap that is too small. The gap runs from Admit. So it must also cover the
// longest delay from an Admit to its write. Not safe for concurrent use.
type Spacing struct {
	gap  time.Duration
	prev mono.Time // latest send that counts
	seq  uint64    // sequence number of that send
	last mono.Time
	book Book[spaced]
}

type spaced struct {
	seq    uint64
	before mono.Time
}

// NewSpacing returns a Spacing of gap that has sent nothing, so the first request goes at once. A
// gap that is not positive is an error.
func NewSpacing(gap time.Duration) (*Spacing, error) {
	if gap <= 0 {
		return nil, fmt.Errorf("limit: Spacing: gap %v is not positive", gap)
	}
	return &Spacing{gap: gap, prev: mono.Min, last: mono.Min}, nil
}

// Ready implements Limiter.
func (s *Spacing) Ready(now mono.Time, _ Cost) mono.Time {
	now = max(now, s.last)
	if s.prev == mono.Min {
		return now
	}
	return max(now, s.prev.Add(s.gap))
}

// Admit implements Limiter.
func (s *Spacing) Admit(now mono.Time, _ Cost) Lease {
	s.last = max(now, s.last)
	s.seq++
	l := s.book.Open(spaced{s.seq, s.prev})
	s.prev = s.last
	return l
}

// Settle implements Limiter. An unsent request gives its place back if it was the latest.
func (s *Spacing) Settle(now mono.Time, l Lease, o Outcome) {
	a := s.book.Close(l)
	s.last = max(now, s.last)
	if o.Result == Unsent && s.seq == a.seq {
		s.prev = a.before
	}
}

// Rates answers the function Rates.
func (s *Spacing) Rates() ([]Rate, bool) { return nil, true }

// ReadyAfter implements Foreseer.
func (s *Spacing) ReadyAfter(now mono.Time, _, _ Cost) mono.Time {
	return max(now, s.last).Add(s.gap)
}

// NotBefore implements Forecaster.
func (s *Spacing) NotBefore(now mono.Time, n int, _, _ Cost) mono.Time {
	return s.Ready(now, Cost{}).Add(scale(s.gap, time.Duration(max(n, 0)), 1))
}

// Explain implements Explainer.
func (s *Spacing) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return s.Ready(now, cost), Bound{Name: "spacing", Size: 1}
}
