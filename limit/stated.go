package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// Stated is what a server states of one of its limits, in an answer. Only N must be known. If Per
// is 0, the window is not known.
type Stated struct {
	Rate
	Counts Counting
	// Burst is the size of a bucket. If zero, N.
	Burst int64
	// Documented says that the limit is from the provider's documentation. The answer identified
	// only the provider.
	Documented bool
}

// Counting is how a server counts.
type Counting uint8

const (
	CountsSomehow Counting = iota // not known
	CountsBucket
	CountsWindow // a window begins at an instant of the server's clock, or with a request
	CountsRolling
)

// taught is a Limiter that learns from the limits that a server states. Fair and Auto of package
// fairshare are such limiters.
type taught interface {
	Limiter
	// State passes the limits stated in an answer. The call comes before or after the Settle of
	// that answer's request. The limiter keeps no reference to all.
	State(now mono.Time, all []Stated)
}

// State passes a server's stated limits to l, or to its parts that learn from them. Such a Limiter
// has a method
//
//	State(now mono.Time, all []Stated)
//
// The call comes before or after the Settle of that answer's request. all belongs to the caller.
func State(l Limiter, now mono.Time, all []Stated) {
	ask(l, func(t taught) { t.State(now, all) })
}

// Learns reports whether l, or a part of it, learns from stated limits: see State.
func Learns(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool { _, ok := l.(taught); return ok })
}
