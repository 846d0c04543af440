package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// emptied finds windows, of unknown kind and reset, by what does not come back. A crowd that has
// used up a window at once sleeps through the leap at its end. It would take the window for a
// bucket for ever.
//
// Nothing flows in under two conditions. There was plenty. Then a process was refused again and
// again, as long as five of its shares take to come, and a tenth of a window. That conclusion may
// be wrong for a few of a crowd of hundreds. It shows within a window: there is no plenty again
// when the next window must have begun. Then it is not drawn again.
//
// A window that is used up at once and comes back little by little is a rolling one.
type emptied struct {
	stage   emptiedStage
	began   mono.Time // when the window of the latest plenty began, if it was used evenly until then
	plenty  mono.Time // when there was plenty last
	refused int       // how many answers in a row were refusals
	since   mono.Time // the first of them
	n       float64   // n when there was plenty
}

type emptiedStage uint8

const (
	neverPlenty emptiedStage = iota
	seenPlenty
	usedUp // it is taken for a window
	cameBack
	noWindow
)

const (
	plentyPart    = 1.0 / 8 // of the quota
	emptiedShares = 5.0
	emptiedLater  = 1.1 // so many windows after the last plenty there is plenty again
)

// look reads every answer that has a remainder, and refusals.
func (e *emptied) look(f *Fair, s *sighting) {
	length := f.window.length
	switch {
	case e.stage > usedUp:
		return
	case s.ends != mono.Min && !s.limited: // answers say when windows end
		*e = emptied{}
		return
	case s.limited:
		if e.refused++; e.refused == 1 {
			e.since = s.mid
		}
	default:
		e.refused = 0
	}
	switch {
	case !s.none && s.left > plentyPart*f.window.limit:
		e.saw(f, s)
	case e.stage == usedUp && s.mid.Sub(e.plenty).Seconds() > emptiedLater*length:
		e.stage = noWindow
		f.be(&f.bucket)
	case e.stage == seenPlenty && f.level == &f.bucket && f.empties(e.refused, s.mid.Sub(e.since), e.n):
		e.stage = usedUp
		f.be(&f.window)
		f.window.phase.start, f.window.phase.before = e.began, *s
	}
}

// saw notes that there was plenty.
func (e *emptied) saw(f *Fair, s *sighting) {
	switch {
	case e.stage == neverPlenty || e.stage == seenPlenty && s.mid.Sub(e.plenty) > f.config.Window/4:
		used := max(0, 1-s.left/f.window.limit)
		e.stage, e.began = seenPlenty, s.mid.Add(-time.Duration(used*float64(f.config.Window)))
	case e.stage == usedUp:
		e.stage = cameBack
	}
	e.plenty, e.n = s.mid, f.n
}

// empties reports whether these refusals in a row, for d, show that nothing flows in, for a sharer
// of n.
func (f *Fair) empties(refused int, d time.Duration, n float64) bool {
	return refused >= silentRow && d.Seconds() > silentPart*f.window.length && f.tokens(d) > emptiedShares*n
}
