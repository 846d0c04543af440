package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// owed is a Limiter that knows how many leases are open. The limiters of this package that may say
// AfterSettle know it.
type owed interface {
	Limiter
	// Unsettled returns how many leases are open, and when the first of them was admitted. It reads
	// each open lease.
	Unsettled() (n int, since mono.Time)
}

// Unsettled returns how many leases are open in l, and when the first of them was admitted. If n is
// 0, nothing is open or l does not know. A Limiter that knows has a method
//
//	Unsettled() (n int, since mono.Time)
func Unsettled(l Limiter) (n int, since mono.Time) {
	since = Never
	ask(l, func(o owed) {
		if k, at := o.Unsettled(); k > 0 { // all parts admit together
			n, since = k, min(since, at)
		}
	})
	return n, since
}

// first returns how many leases are open in a book, and the first instant of admission. at reads
// that instant from a lease's T.
func first[T any](b *Book[T], at func(*T) mono.Time) (n int, since mono.Time) {
	since = Never
	for kept := range b.All() {
		since = min(since, at(kept))
	}
	return b.Len(), since
}
