package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// Stated is what a server states of one of its limits, in an answer. Nothing but N must be known: where Per is 0, the window is not.
type Stated struct {
	Rate
	Counts Counting
	// Burst is the most that a bucket holds. If zero, N.
	Burst int64
	// Documented says that the limit is from the provider's documentation: the answer showed only whose answer it is.
	Documented bool
}

// Counting is how a server counts.
type Counting uint8

const (
	CountsSomehow Counting = iota // it is not known
	CountsBucket
	CountsWindow // a window begins at an instant of the server's clock, or with a request
	CountsRolling
)

// Taught is a Limiter that wants to hear what the server states of its limits. Fair and Auto of package fairshare are Taught.
type Taught interface {
	Limiter
	// State tells it what an answer states, before or after the Settle of the request that was so answered. It keeps no reference to
	// all.
	State(now mono.Time, all []Stated)
}

// State tells l what the server states, if l is Taught, or what it is made of is.
func State(l Limiter, now mono.Time, all []Stated) {
	ask(l, func(t Taught) { t.State(now, all) })
}

// Hears tells whether l, or what it is made of, is Taught.
func Hears(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool { _, ok := l.(Taught); return ok })
}
