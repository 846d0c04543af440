package limit

// Fresher is a Limiter whose leases may lapse before their requests are sent, such as a share of a limit that many processes have. Ask
// Fresh right before a request is written; if it is false, do not write the request, and settle it as Unsent.
type Fresher interface {
	Limiter
	// Fresh reports whether the request of an open lease may still be written.
	Fresh(l Lease) bool
}

// Fresh asks l if it is a Fresher. Of others everything may be written.
func Fresh(l Limiter, lease Lease) bool {
	if f, ok := l.(Fresher); ok {
		return f.Fresh(lease)
	}
	return true
}

// Lapses reports whether l has a Fresher in it whose leases may lapse. If not, Fresh need not be asked.
func Lapses(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool {
		if s, ok := l.(interface{ Lapses() bool }); ok {
			return s.Lapses()
		}
		_, is := l.(wrapper)
		_, ok := l.(Fresher)
		return ok && !is
	})
}

// Supplied is a Limiter whose room comes from elsewhere, such as a store that other processes use, too: that AfterSettle holds until it has
// fetched some. The driver that it belongs to tells it, by Supply, whom to tell of that. Gate, Group, Pool and transport do.
type Supplied interface {
	Limiter
	// Supply is called before the first request. again has the driver ask for Ready again, of all who wait; waiting is how many those are;
	// note has something that happened shown to people, with its kind, in words (observe.Event). None may be called from within Ready,
	// Admit or Settle.
	Supply(again func(), waiting func() int, note func(kind, text string))
}

// Supply calls it for whatever is Supplied in l.
func Supply(l Limiter, again func(), waiting func() int, note func(kind, text string)) {
	for _, part := range Parts(l) {
		if s, ok := part.(Supplied); ok {
			s.Supply(again, waiting, note)
		}
	}
}
