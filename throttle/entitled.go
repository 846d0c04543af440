package throttle

import (
	"time"

	"github.com/paceline-go/paceline/mono"
)

// entitled keeps a process to its part of a quota that is meant for so many Sharers, whatever the others do. In a window it claims three
// fifths of a share: it goes early enough to have those before the window ends or the others have used it up. In a bucket, where nobody
// can be early, it assumes at most half as many sharers again as were said, unless it is refused for that: then they are more than was
// said.
//
// More than three fifths would take from others where there are more sharers than was said. Those who share fairly lose nothing by it.
type entitled struct {
	sharers float64 // the number of Sharers divided by the weight; 0: nobody said
	window  int
	served  float64 // what was served in it, in units
	refused float64 // the share of one's own answers that were refused lately
}

const (
	entitledPart = 0.6
	entitledMost = 1.5 // of Sharers
	// entitledHaste is the part that one may count on of the time for which what is left lasts at the rate until now: others who hurry
	// make it shorter.
	entitledHaste = 0.1
	refusedFine   = 0.02 // the share of answers that may be refused; more says that Sharers is too small
	refusedMean   = 50.0 // over how many answers the share is averaged
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
	}
	e.served += units
}

// most returns the largest n.
func (e *entitled) most() float64 { return entitledMost * e.sharers * max(1, e.refused/refusedFine) }

// by returns when the next request goes at the latest, given that it is planned for next, so that the process has what is due to it of a
// window of limit units and length seconds. The window ends in before seconds, and its left units are used at rate per second.
func (e *entitled) by(s *sighting, next mono.Time, limit, before, left, rate float64) mono.Time {
	due := entitledPart*limit/e.sharers - e.served
	if e.sharers == 0 || due <= 0 || left < 1 {
		return next
	}
	if rate > 0 {
		before = min(before, entitledHaste*left/rate)
	}
	return min(next, s.at.Add(time.Duration(before/due*1e9)))
}
