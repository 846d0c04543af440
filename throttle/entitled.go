package throttle

import (
	"time"

	"github.com/paceline-go/paceline/mono"
)

// entitled is what a process keeps to of a quota that is meant for so many Sharers, whatever the others do. Of a window it is three
// fifths of a share: it goes early enough to have that before the window ends, or before the others have used it up. In a bucket, where nobody
// can be early, it believes in no more than half again as many sharers, unless it is refused for that: then they are more than was said.
//
// More than three fifths would be a grab where sharers are more than was said, and nothing is lost to those who share fairly.
type entitled struct {
	sharers float64 // over the weight; 0: nobody said
	window  int
	served  float64 // in it, in units
	refused float64 // share of own answers, lately
}

const (
	entitledPart = 0.6
	entitledMost = 1.5 // × Sharers
	// entitledHaste is of the time for which what is left lasts at the rate until now: who hurries makes it shorter.
	entitledHaste = 0.1
	refusedFine   = 0.02 // of answers; more says that Sharers is too small
	refusedMean   = 50.0 // answers
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

// most is the largest n.
func (e *entitled) most() float64 { return entitledMost * e.sharers * max(1, e.refused/refusedFine) }

// by is when the next request goes at last, planned for next, to have what is due of a window of limit units and length seconds. It
// ends in before seconds, and left units are used at a rate per second.
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
