package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Answers do not say when windows end. A process that comes in the middle of one takes its end to
// be as much too late. Then its x is smaller than the others' for ever. It would go ever more
// slowly, until it is served next to nothing.
//
// So now and then each process asks a little before the window should be over. If it is refused, it
// knows the end, and asks no more. If it is served, it was wrong, and searches for the end by
// halves.
const (
	silentTests = 0.1  // the probability of a test whether the window ends earlier than assumed, at the price of a refusal
	silentSure  = 200  // parts of a window: an end that is bounded within one of them is known
	silentSoon  = 0.06 // of a window: it is over so long after it was used up, if all keep to this law
	// × the part of a window for which nothing is left: an end not known within that is tested at
	// once.
	silentLost = 1.5
	lostMost   = 0.5
	lostFrom   = 2 // so many windows must have ended: a new crowd uses up the first ones too early
)

// back reads the first request that is served after the window was used up.
func (w *silentWindow) back(f *Fair, s *sighting, length time.Duration) {
	if !w.lost && (w.overdue || w.ended >= lostFrom && s.mid < w.high) {
		w.lost = true
		f.n = f.clamp(min(f.n, f.window.limit/silentFew)) // a process that asks more rarely finds nothing
	}
	w.ends(w.last, s.mid, length)
	if w.lost && !w.seeks(length) {
		w.found(f, length)
	}
}

// ends notes that a window ended after low, and at high at the latest.
func (w *silentWindow) ends(low, high mono.Time, length time.Duration) {
	if w.seen && !w.overdue {
		ago := time.Duration(math.Ceil(float64(low.Sub(w.high))/float64(length))) * length
		l, h := max(low, w.low.Add(ago)), min(high, w.high.Add(ago))
		switch {
		case l >= h:
			w.misfits++
		case w.low.Add(ago+length) < high: // it may be either
			ago = (high.Sub(w.low) / length) * length
			low, high = w.low.Add(ago), w.high.Add(ago)
		default:
			if l > w.low.Add(ago) || h < w.high.Add(ago) { // an end without news confirms nothing
				w.misfits = 0
			}
			low, high = l, h
		}
	}
	w.low, w.high, w.seen, w.overdue = low, high, true, false
	w.ended = min(w.ended+1, lostFrom)
	w.clean = false // n was changed already, by the refusal before
}

// seeks reports whether it searches for the end until that is known.
func (w *silentWindow) seeks(length time.Duration) bool {
	w.lost = w.lost && w.high.Sub(w.low) > length/silentSure
	return w.lost
}

// tests reports whether it asks a little before the estimated end of the window. If it is refused,
// it knows the end; if it is served, it was wrong.
func (w *silentWindow) tests(f *Fair, length time.Duration) bool {
	unsure := w.high.Sub(w.low)
	if w.ended < lostFrom || unsure <= length/silentSure {
		return false
	}
	return unsure.Seconds() > min(lostMost, silentLost*(1-w.rests(f)))*length.Seconds() ||
		f.config.Rng.Float64() < silentTests
}

// found notes that it now knows when windows end, and did not before. The x at which all find the
// window used up shows their number, for an n that rests there. The own n was changed by a wrong x,
// time and again, and is too large.
func (w *silentWindow) found(f *Fair, length time.Duration) {
	into := math.Mod(float64(w.usedUp.Sub(w.high))/float64(length), 1)
	if into < 0 {
		into++
	}
	n := assumedSharers / f.config.Weight
	if all := n * math.Pow(done(silentGoal)/done(max(into, probePart)), 1/silentPull); f.window.limit/all > silentFew {
		n = all
	}
	f.n = f.clamp(min(f.n, n))
}

// asks returns when to ask whether the window is over, after a refusal. soon: it was the first.
func (w *silentWindow) asks(f *Fair, s *sighting, soon bool, length time.Duration) mono.Time {
	switch {
	case soon:
		return min(w.high, s.mid.Add(time.Duration(silentSoon*float64(length))))
	case w.seeks(length):
		return min(s.mid.Add(2*s.mid.Sub(w.usedUp)), w.high.Add(-w.high.Sub(w.low)/2))
	case !w.overdue && w.tests(f, length):
		return w.high.Add(-length / silentSure)
	}
	return w.high
}

// rests returns the x at which n stays as it is. There a refusal changes n by as much as the pull
// to a fixed n does.
func (w *silentWindow) rests(f *Fair) float64 {
	y := done(silentGoal) * min(1, math.Pow(assumedSharers/f.shares(), silentPull))
	if y <= sprintFrom {
		return y
	}
	a := (sprintMost - 1) / (1 - sprintFrom) // done(x) is x + a·u²/2, with x = sprintFrom + u
	return sprintFrom + (math.Sqrt(1+2*a*(y-sprintFrom))-1)/a
}
