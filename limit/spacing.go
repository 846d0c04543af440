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
	gap    time.Duration
	prev   mono.Time // latest send that counts
	before mono.Time // prev before the latest send
	latest uint64    // the Number of the latest send
	last   mono.Time
	driven
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
func (s *Spacing) Admit(r *Sent) {
	s.last = max(r.At, s.last)
	s.latest, s.before, s.prev = r.Number, s.prev, s.last
}

// Settle implements Limiter. An unsent request gives its place back if it was the latest.
func (s *Spacing) Settle(now mono.Time, r *Sent, o *Outcome) {
	s.last = max(now, s.last)
	if o.Result == Unsent && r.Number == s.latest {
		s.prev = s.before
	}
}

// Rules implements Describer.
func (s *Spacing) Rules() []Rule { return []Rule{{Name: "spacing", Counts: CountsNothing}} }

// AppendUsage implements Describer.
func (s *Spacing) AppendUsage(to []Usage, _ mono.Time) []Usage { return to }

// ReadyAfter implements Forecaster.
func (s *Spacing) ReadyAfter(now mono.Time, _, _ Cost) mono.Time {
	return max(now, s.last).Add(s.gap)
}

// NotBefore implements Forecaster.
func (s *Spacing) NotBefore(now mono.Time, n int, _, _ Cost) mono.Time {
	return s.Ready(now, Cost{}).Add(scale(s.gap, time.Duration(max(n, 0)), 1))
}
