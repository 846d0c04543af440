package limit

// Fresher is a Limiter whose leases may lapse before their requests are sent, such as a share of a
// limit that many processes have. Call Fresh right before a request is written. If it is false, do
// not write the request, and settle it as Unsent.
type Fresher interface {
	Limiter
	// Fresh reports whether the request of an open lease may still be written.
	Fresh(l Lease) bool
}

// Fresh calls l if it is a Fresher. For others it returns true.
func Fresh(l Limiter, lease Lease) bool {
	if f, ok := l.(Fresher); ok {
		return f.Fresh(lease)
	}
	return true
}

// Lapses reports whether l contains a Fresher whose leases may lapse. If not, Fresh need not be
// called.
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

// Supplied is a Limiter whose room comes from elsewhere, such as a store that other processes use.
// Its AfterSettle holds until it has fetched room. Its driver passes a callback for that moment to
// Supply: Gate, Group, Pool and transport do.
type Supplied interface {
	Limiter
	// Supply is called before the first request. again makes the driver call Ready again for all
	// waiting requests. waiting returns their number. note shows an event to people, with its kind
	// and its text (observe.Event). Do not call these functions within Ready, Admit or Settle.
	Supply(again func(), waiting func() int, note func(kind, text string))
}

// Supply calls Supply of each part of l that is Supplied.
func Supply(l Limiter, again func(), waiting func() int, note func(kind, text string)) {
	for _, part := range Parts(l) {
		if s, ok := part.(Supplied); ok {
			s.Supply(again, waiting, note)
		}
	}
}
