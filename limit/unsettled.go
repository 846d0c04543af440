package limit

import "github.com/paceline-go/paceline/mono"

// Owed is a Limiter that can tell which leases are open. Those of this package that may say AfterSettle are.
type Owed interface {
	Limiter
	// Unsettled returns how many leases are open and when the first of them was admitted. It looks at each open lease.
	Unsettled() (n int, since mono.Time)
}

// Unsettled asks l if it is Owed. If n is 0, nothing is open or l cannot tell.
func Unsettled(l Limiter) (n int, since mono.Time) {
	if o, ok := l.(Owed); ok {
		return o.Unsettled()
	}
	return 0, Never
}

// first returns how many leases are open in a book that keeps when they were admitted, and the first such instant.
func first[T any](b *Book[T], at func(*T) mono.Time) (n int, since mono.Time) {
	since = Never
	for kept := range b.All() {
		since = min(since, at(kept))
	}
	return b.Len(), since
}

// Unsettled implements Owed.
func (a *account) Unsettled() (n int, since mono.Time) {
	if a.pair != nil {
		return first(&a.pair.book, func(p *paired) mono.Time { return p.sent })
	}
	return first(&a.book, func(k *admitted) mono.Time { return k.at })
}

// Unsettled implements Owed.
func (c *Concurrency) Unsettled() (n int, since mono.Time) {
	return first(&c.book, func(at *mono.Time) mono.Time { return *at })
}

// Unsettled implements Owed.
func (a *Adaptive) Unsettled() (n int, since mono.Time) {
	return first(&a.book, func(r *onItsWay) mono.Time { return r.at })
}

// Unsettled implements Owed.
func (s *Sequence) Unsettled() (n int, since mono.Time) {
	return first(&s.book, func(at *mono.Time) mono.Time { return *at })
}

// Unsettled implements Owed.
func (f *Fitted) Unsettled() (n int, since mono.Time) {
	return first(&f.book, func(k *fitting) mono.Time { return k.at })
}

// Unsettled implements Owed: of those that can tell the first, since all admit together.
func (a *All) Unsettled() (n int, since mono.Time) {
	since = Never
	for _, l := range a.each {
		if k, at := Unsettled(l); k > 0 {
			n, since = k, min(since, at)
		}
	}
	return n, since
}

func (n *named) Unsettled() (open int, since mono.Time) { return Unsettled(n.Limiter) }
