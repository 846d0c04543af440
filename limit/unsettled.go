package limit

// owed is a Limiter that knows how many requests are open. The limiters of this package that may
// say AfterSettle know it.
type owed interface {
	Limiter
	// Unsettled returns how many requests are open.
	Unsettled() int
}

// Unsettled returns how many requests are open in l. At 0 nothing is open, or l does not know. A
// Limiter that knows has a method
//
//	Unsettled() int
func Unsettled(l Limiter) (n int) {
	ask(l, func(o owed) { n = max(n, o.Unsettled()) }) // all parts admit together
	return n
}
