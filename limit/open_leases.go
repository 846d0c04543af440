package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// Owed is a Limiter that can tell which leases are open. Those of this package that may say AfterSettle are.
type Owed interface {
	Limiter
	// Unsettled returns how many leases are open and when the first of them was admitted. It looks at each open lease.
	Unsettled() (n int, since mono.Time)
}

// Unsettled asks l if it is Owed. If n is 0, nothing is open or l cannot tell.
func Unsettled(l Limiter) (n int, since mono.Time) {
	since = Never
	ask(l, func(o Owed) {
		if k, at := o.Unsettled(); k > 0 { // all admit together
			n, since = k, min(since, at)
		}
	})
	return n, since
}

// first returns how many leases are open in a book that keeps when they were admitted, and the first such instant.
func first[T any](b *Book[T], at func(*T) mono.Time) (n int, since mono.Time) {
	since = Never
	for kept := range b.All() {
		since = min(since, at(kept))
	}
	return b.Len(), since
}
