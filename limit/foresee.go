package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// Foreseer is a Limiter that knows what an Admit would do to the next request. Rolling, Calendar,
// Bucket, Produced, Weighted, Concurrency, Adaptive, Cooldown and Spacing are Foreseers. All, Named
// and Fitted are if their parts are: Foresees reports it.
type Foreseer interface {
	Limiter
	// ReadyAfter returns what Ready(now, cost) would return after Admit(now, first). Where it
	// cannot know so much, it returns something later, up to Never. It changes nothing.
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

// MayPass reports whether cost may go now ahead of waits, a cost that waits and may go at ready.
// There must be room for cost, and waits must still be able to go at ready afterwards. Answers
// until then may make both of them earlier. Two things may make waits later, since the limiter
// cannot know them: an answer that used more than was admitted, or a Retry-After. If the Limiter
// does not foresee, nothing may pass.
func MayPass(l Limiter, now mono.Time, cost, waits Cost, ready mono.Time) bool {
	return ready < AfterSettle && l.Ready(now, cost) <= now && ReadyAfter(l, now, cost, waits) <= ready
}

// ReadyAfter calls l if it is a Foreseer. Otherwise it returns Never.
func ReadyAfter(l Limiter, now mono.Time, first, cost Cost) mono.Time {
	if f, ok := l.(Foreseer); ok {
		return f.ReadyAfter(now, first, cost)
	}
	return Never
}
