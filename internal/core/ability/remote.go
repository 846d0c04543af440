package ability

import (
	"time"

	"github.com/paceline-go/paceline/limit"
)

// remote is a Limiter whose room comes from elsewhere. Its AfterSettle holds until it has fetched
// room.
type remote interface {
	limit.Limiter
	// Supply is called before the first request, by Gate, Group, Pool and transport. again makes
	// the driver call Ready again for all waiting requests. waiting returns their number, and
	// the part of the limit that all of them leave free. note
	// shows an event to people, with its kind and its text (observe.Event). Do not call these
	// functions within Ready, Admit or Settle.
	Supply(again func(), waiting func() (n int, free float64), note func(kind, text string))
	// Fresh reports whether an open request may still be written.
	Fresh(s *limit.Sent) bool
}

// foreseeing is a remote that knows for how long an open request may be written.
type foreseeing interface {
	// FreshFor is Fresh, also for a write that comes up to d later.
	FreshFor(s *limit.Sent, d time.Duration) bool
}

// Supply gives each part of l whose room comes from elsewhere the functions of its driver.
func Supply(l limit.Limiter, again func(), waiting func() (n int, free float64), note func(kind, text string)) {
	limit.Ask(l, func(part remote) { part.Supply(again, waiting, note) })
}

// Fresh reports whether an open request may still be written: leave of a part whose room comes from
// elsewhere may lapse. Call Fresh right before the request is written. If it is false, do not write
// the request, and settle it as Unsent.
func Fresh(l limit.Limiter, s *limit.Sent) bool {
	fresh := true
	limit.Ask(l, func(part remote) { fresh = fresh && part.Fresh(s) })
	return fresh
}

// FreshFor is Fresh, also for a write that comes up to d later. A part that does not foresee is fresh for
// no time but none.
func FreshFor(l limit.Limiter, s *limit.Sent, d time.Duration) bool {
	fresh := true
	limit.Ask(l, func(part remote) {
		if f, ok := part.(foreseeing); ok {
			fresh = fresh && f.FreshFor(s, d)
		} else {
			fresh = fresh && d <= 0 && part.Fresh(s)
		}
	})
	return fresh
}

// Lapses reports whether the leave of a limiter in l may lapse. If not, Fresh need not be called.
func Lapses(l limit.Limiter) (lapses bool) {
	limit.Ask(l, func(remote) { lapses = true })
	return lapses
}
