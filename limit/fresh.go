package limit

// fresher is a Limiter whose leave may lapse before a request is sent, such as a share of a limit that many processes have. Call Fresh right before a request is written. If it is false, do
// not write the request, and settle it as Unsent.
type fresher interface {
	Limiter
	// Fresh reports whether an open request may still be written.
	Fresh(s *Sent) bool
}

// Fresh reports whether an open request may still be written. Call it right before the request is
// written. If it is false, do not write the request, and settle it as Unsent. A Limiter whose leave
// may lapse has a method
//
//	Fresh(s *Sent) bool
func Fresh(l Limiter, s *Sent) bool {
	fresh := true
	ask(l, func(f fresher) { fresh = fresh && f.Fresh(s) })
	return fresh
}

// Lapses reports whether the leave of a limiter in l may lapse. If not, Fresh need not be called.
func Lapses(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool {
		if s, ok := l.(interface{ Lapses() bool }); ok {
			return s.Lapses()
		}
		_, is := l.(wrapper)
		_, ok := l.(fresher)
		return ok && !is
	})
}

// supplied is a Limiter whose room comes from elsewhere, such as a store that other processes use.
// Its AfterSettle holds until it has fetched room. Its driver passes a callback for that moment to
// Supply: Gate, Group, Pool and transport do.
type supplied interface {
	Limiter
	// Supply is called before the first request. again makes the driver call Ready again for all
	// waiting requests. waiting returns their number. note shows an event to people, with its kind
	// and its text (observe.Event). Do not call these functions within Ready, Admit or Settle.
	Supply(again func(), waiting func() int, note func(kind, text string))
}

// Supply gives each part of l whose room comes from elsewhere the functions of its driver. Such a
// Limiter has the method Supply with the same three arguments. again makes the driver call Ready
// again for all waiting requests. waiting returns their number. note shows an event to people.
func Supply(l Limiter, again func(), waiting func() int, note func(kind, text string)) {
	for _, part := range Parts(l) {
		if s, ok := part.(supplied); ok {
			s.Supply(again, waiting, note)
		}
	}
}
