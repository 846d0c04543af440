package ceiling

import (
	"math"
	"time"
)

// InFlight bounds how many requests a client has in flight: from Least to Most. The zero value bounds it to none.
type InFlight struct{ Least, Most int }

// Follow returns the new bound in place of now, so that no limit of perSecond requests has to wait for answers.
// answer is how long answers take; 0: none has come. perSecond is infinite without a limit.
//
// By Little's law perSecond × answer requests are in flight on average. The bound is twice as many: answers
// are not evenly late, and the requests of a window may go together. Before the first answer it is
// Least, so a server that answers nothing gets no more. Without a limit it is Least, too, as no rate is to be
// reached.
//
// The bound grows at once. It shrinks when less than the half is needed, as each change costs its user a look at all
// that waits.
func (f InFlight) Follow(now int, perSecond float64, answer time.Duration) int {
	needed := 0.0
	if !math.IsInf(perSecond, 1) {
		needed = math.Ceil(2 * perSecond * answer.Seconds())
	}
	bound := int(max(float64(f.Least), min(needed, float64(f.Most))))
	if bound < now && 2*bound > now {
		return now
	}
	return bound
}
