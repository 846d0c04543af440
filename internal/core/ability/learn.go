package ability

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// learner is a Limiter that learns. A refusal that may come from its quota must reach it, even if
// another limiter stays away because of it.
type learner interface {
	limit.Limiter
	// State passes the limits stated in an answer. The call comes before or after the Settle of
	// that answer's request. The limiter keeps no reference to all.
	State(now mono.Time, all []limit.Rule)
	// Refills returns the units whose Reset in an outcome is the time of a full bucket: bit u for
	// Unit u. The IETF draft allows such a reset, and more is free long before. Call it after
	// Settle and State of the answer, if there are such calls. It changes nothing.
	Refills(o *limit.Outcome) (units uint8)
	// Resume makes a new Limiter continue after a restart: limit.Replay calls it. A limiter that
	// learns the use of others, too, may do nothing.
	Resume(now mono.Time, all []limit.Past)
}

// Learns reports whether l, or a part of it, learns.
func Learns(l limit.Limiter) (learns bool) {
	limit.Ask(l, func(learner) { learns = true })
	return learns
}

// State passes a server's stated limits to the parts of l that learn. The call comes before or after
// the Settle of that answer's request. all belongs to the caller.
func State(l limit.Limiter, now mono.Time, all []limit.Rule) {
	limit.Ask(l, func(part learner) { part.State(now, all) })
}

// Refills returns the units whose Reset in an outcome is the time of a full bucket, as the parts of
// l know that learn. Code that obeys resets, and waits made of them, calls it first.
func Refills(l limit.Limiter, o *limit.Outcome) (units uint8) {
	limit.Ask(l, func(part learner) { units |= part.Refills(o) })
	return units
}
