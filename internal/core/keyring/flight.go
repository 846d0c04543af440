package keyring

import (
	"slices"

	"github.com/paceline-go/paceline/limit"
)

// Flight is a request in flight, and the limits L in which it counts: those that it passed, and
// those to which its key has moved since.
type Flight[L comparable] struct {
	passed []L
	moved  []Moved[L]
}

// Moved is the record of a request in limits to which its key has moved.
type Moved[L comparable] struct {
	To   L
	Sent *limit.Sent
}

// NewFlight returns the Flight of a request that passed these limits, and keeps passed.
func NewFlight[L comparable](passed []L) *Flight[L] { return &Flight[L]{passed: passed} }

// CountsIn reports whether the request counts in limits already.
func (f *Flight[L]) CountsIn(l L) bool {
	return slices.Contains(f.passed, l) || slices.ContainsFunc(f.moved, func(m Moved[L]) bool { return m.To == l })
}

// Join makes the request count in limits in which it does not count yet. admit makes its record
// there.
func (f *Flight[L]) Join(to L, admit func() *limit.Sent) {
	if !f.CountsIn(to) {
		f.moved = append(f.moved, Moved[L]{to, admit()})
	}
}

// Moved returns the records in limits that the request did not pass.
func (f *Flight[L]) Moved() []Moved[L] { return f.moved }

// Of returns the outcome for limits: it was never sent, if its key does not count there any more.
func Of(counts bool, o limit.Outcome) limit.Outcome {
	if counts {
		return o
	}
	return limit.Outcome{Result: limit.Unsent}
}
