package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// Foreseer is a Limiter that can tell what an Admit would do to the next request. Rolling, Calendar, Bucket, Produced, Weighted,
// Concurrency, Cooldown and Spacing are; All, Named and Fitted are if what they contain is: ask Foresees.
type Foreseer interface {
	Limiter
	// ReadyAfter returns what Ready(now, cost) would return after Admit(now, first), or something later, up to Never, where
	// that is more than it can tell. It changes nothing.
	ReadyAfter(now mono.Time, first, cost Cost) mono.Time
}

// Foresees reports whether l, with everything in it, is a Foreseer.
func Foresees(l Limiter) bool {
	return !anyPart(l, func(l Limiter) bool {
		_, is := l.(wrapper)
		_, ok := l.(Foreseer)
		return !ok && !is
	})
}

// MayPass reports whether cost may go now ahead of a cost that waits and may go at ready: there is room for it, and the other may still
// go at ready afterwards. What is settled until then can make both of them earlier. Only what the limiter cannot know, an answer that
// used more than was admitted or a Retry-After, can make the other later. With a Limiter that does not foresee, nothing may pass.
func MayPass(l Limiter, now mono.Time, cost, waits Cost, ready mono.Time) bool {
	return ready < AfterSettle && l.Ready(now, cost) <= now && ReadyAfter(l, now, cost, waits) <= ready
}

// ReadyAfter asks l, if it is a Foreseer. Otherwise nobody knows, and it is Never.
func ReadyAfter(l Limiter, now mono.Time, first, cost Cost) mono.Time {
	if f, ok := l.(Foreseer); ok {
		return f.ReadyAfter(now, first, cost)
	}
	return Never
}
