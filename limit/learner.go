package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// learner is a Limiter that learns from answers how much it may send, as the limiters of shared
// quotas do. A refusal that may come from its quota must reach it, even if another limiter stays
// away because of it. Fair and Auto of package fairshare are learners.
type learner interface {
	Limiter
	// State passes the limits stated in an answer. The call comes before or after the Settle of
	// that answer's request. The limiter keeps no reference to all.
	State(now mono.Time, all []Rule)
	// Refills returns the units whose Reset in an outcome is the time of a full bucket: bit u for
	// Unit u. The IETF draft allows such a reset, and more is free long before. Call it after
	// Settle and State of the answer, if there are such calls. It changes nothing.
	Refills(o *Outcome) (units uint8)
	// Resume makes a new Limiter continue after a restart. all contains the requests that count in
	// it, as in Replay. A limiter that learns the use of others, too, may do nothing.
	Resume(now mono.Time, all []Past)
}

// Learns reports whether l, or a part of it, learns from answers how much it may send. Such a
// Limiter has the methods
//
//	State(now mono.Time, all []Rule)
//	Refills(o *Outcome) (units uint8)
//	Resume(now mono.Time, all []Past)
func Learns(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool { _, ok := l.(learner); return ok })
}

// State passes a server's stated limits to l, or to its parts that learn: see Learns. The call
// comes before or after the Settle of that answer's request. all belongs to the caller.
func State(l Limiter, now mono.Time, all []Rule) {
	ask(l, func(t learner) { t.State(now, all) })
}

// Refills returns the units whose Reset in an outcome is the time of a full bucket, as the parts of
// l know that learn: see Learns. Code that obeys resets, and waits made of them, calls it first.
func Refills(l Limiter, o *Outcome) (units uint8) {
	ask(l, func(r learner) { units |= r.Refills(o) })
	return units
}
