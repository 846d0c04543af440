package limit

// remote is a Limiter whose room comes from elsewhere, such as a share of a limit that many processes
// have. Its AfterSettle holds until it has fetched room.
type remote interface {
	Limiter
	// Supply is called before the first request, by Gate, Group, Pool and transport. again makes
	// the driver call Ready again for all waiting requests. waiting returns their number. note
	// shows an event to people, with its kind and its text (observe.Event). Do not call these
	// functions within Ready, Admit or Settle.
	Supply(again func(), waiting func() int, note func(kind, text string))
	// Fresh reports whether an open request may still be written.
	Fresh(s *Sent) bool
}

// Supply gives each part of l whose room comes from elsewhere the functions of its driver. again
// makes the driver call Ready again for all waiting requests. waiting returns their number. note
// shows an event to people. Such a Limiter has the methods
//
//	Supply(again func(), waiting func() int, note func(kind, text string))
//	Fresh(s *Sent) bool
func Supply(l Limiter, again func(), waiting func() int, note func(kind, text string)) {
	ask(l, func(r remote) { r.Supply(again, waiting, note) })
}

// Fresh reports whether an open request may still be written. Leave of a part whose room comes from
// elsewhere may lapse: see Supply. Call Fresh right before the request is written. If it is false,
// do not write the request, and settle it as Unsent.
func Fresh(l Limiter, s *Sent) bool {
	fresh := true
	ask(l, func(r remote) { fresh = fresh && r.Fresh(s) })
	return fresh
}

// Lapses reports whether the leave of a limiter in l may lapse. If not, Fresh need not be called.
func Lapses(l Limiter) bool {
	return anyPart(l, func(l Limiter) bool { _, ok := l.(remote); return ok })
}
