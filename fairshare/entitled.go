package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// entitled keeps a process to its part of a quota that is meant for so many Sharers, whatever the others do. In a window it claims three
// fifths of a share: it goes early enough to have those before the window ends or, where others hurry, before they have used it up. In a
// bucket, where nobody can be early, it assumes at most half as many sharers again as were said, unless it is refused for that: then they
// are more than was said.
//
// More than three fifths would take from others where there are more sharers than was said. Those who share fairly lose nothing by it,
// whether they claim their parts, too, or are not told: nobody hurries among them. Haste at all times would have those who claim burst as
// each window begins, and have half as much again as those who do not.
type entitled struct {
	sharers float64 // the number of Sharers divided by the weight; 0: nobody said
	window  int
	served  float64 // what was served in it, in units
	refused float64 // the share of one's own answers that were refused lately
	haste   int     // for how many windows more others are taken to be greedy from the beginning
}

const (
	entitledPart = 0.6
	entitledMost = 1.5 // of Sharers
	// entitledHaste is the part that one may count on of the time for which what is left lasts at the rate until now: others who hurry
	// make it shorter.
	entitledHaste = 0.1
	// entitledCalm is the part that one may count on of the time until the window ends: what is left has to last as long, at the rate until
	// now, or others hurry. That rate counts as if all had kept to their pace for entitledPrior of a window before it began.
	entitledCalm  = 0.8
	entitledPrior = 1.0 / 8
	// entitledEarly is the last part of a window: nobody who shares fairly has used it up before. A window of few requests is over before
	// a rate is seen, so the next ones are claimed in haste from their beginning.
	entitledEarly   = 1.0 / 16
	entitledWindows = 3    // one of which is the present one
	refusedFine     = 0.02 // the share of answers that may be refused; more says that Sharers is too small
	refusedMean     = 50.0 // over how many answers the share is averaged
)

// heed counts an answer.
func (e *entitled) heed(s *sighting, units float64) {
	if e.sharers == 0 {
		return
	}
	refused := 0.0
	if s.limited {
		refused, units = 1, 0
	}
	e.refused += (refused - e.refused) / refusedMean
	if s.window != e.window {
		e.window, e.served = s.window, 0
		e.haste = max(e.haste-1, 0)
	}
	e.served += units
}

// most returns the largest n.
func (e *entitled) most() float64 { return entitledMost * e.sharers * max(1, e.refused/refusedFine) }

// look sees whether others used up the window w long before its end: so they may the next ones. In the first one nobody knows yet how many
// there are.
func (e *entitled) look(s *sighting, w *windowLevel) {
	if s.window > 0 && (s.none || s.limited) && s.ends != mono.Min && w.before(s) > entitledEarly*w.length {
		e.haste = entitledWindows
	}
}

// by returns when the next request goes at the latest, given that it is planned for next, so that the process has what is due to it of the
// window w, which ends in before seconds.
func (e *entitled) by(s *sighting, next mono.Time, w *windowLevel, before float64) mono.Time {
	due := entitledPart*w.limit/e.sharers - e.served
	if e.sharers == 0 || due <= 0 || s.left < 1 {
		return next
	}
	used, into := w.limit-s.left, max(w.length-before, 1e-3)
	prior := w.length * entitledPrior
	pace := (used + w.slope*prior) / (into + prior)
	before *= entitledCalm
	if used > 0 && (e.haste > 0 || s.left < pace*before) {
		before = min(before, entitledHaste*s.left/used*into)
	}
	return min(next, s.at.Add(time.Duration(before/due*1e9)))
}
