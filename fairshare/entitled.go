package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// entitled keeps a process to its part of a quota for a number of Sharers, whatever the others do.
//
// In a window it claims three fifths of a share. It sends early enough to have them before the
// window ends, or before hasty sharers have used it up. In a bucket nobody can be early. There it
// assumes at most half as many sharers again as configured. If it is refused for that, they are
// more than configured.
//
// More than three fifths would take from others if there are more sharers than configured. Fair
// sharers lose nothing by this claim, whether they make it themselves or not, since nobody hurries
// among them. Permanent haste would be wrong: the claimants would burst at the beginning of each
// window, and have half as much again as the others.
type entitled struct {
	sharers float64 // the number of Sharers divided by the weight; 0: not configured
	window  int
	served  float64 // served in this window, in units
	refused float64 // the fraction of this process' answers that were refused lately
	haste   int     // for how many more windows others are assumed to be greedy from the beginning
}

const (
	entitledPart = 0.6
	entitledMost = 1.5 // of Sharers
	// entitledHaste is a safe part of the time for which the rest lasts at the rate until now.
	// Hasty sharers make that time shorter.
	entitledHaste = 0.1
	// entitledCalm is a safe part of the time until the window ends. If the rest does not last as
	// long at the rate until now, others hurry. That rate counts as if all had kept to their pace
	// for entitledPrior of a window before it began.
	entitledCalm  = 0.8
	entitledPrior = 1.0 / 8
	// entitledEarly is the last part of a window. Fair sharers never use a window up before it. A
	// window of few requests is over before a rate is seen. So the next windows are claimed in
	// haste from their beginning.
	entitledEarly   = 1.0 / 16
	entitledWindows = 3    // including the present one
	refusedFine     = 0.02 // the allowed fraction of refused answers; a larger one means that Sharers is too small
	refusedMean     = 50.0 // the number of answers over which the fraction is averaged
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

// look checks whether others used up the window w long before its end. Then they may use up the
// next ones as well. In the first window the number of sharers is not known yet.
func (e *entitled) look(s *sighting, w *windowLevel) {
	if s.window > 0 && (s.none || s.limited) && s.ends != mono.Min && w.before(s) > entitledEarly*w.length {
		e.haste = entitledWindows
	}
}

// by returns the latest instant of the next request, which is planned for next. It is early enough
// for the process to get its part of the window w, which ends in before seconds.
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
