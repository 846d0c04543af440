package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// windowLevel reads what remains in a fixed window of L per T. Let t_r be the time until it ends,
// and x = t_r/T. It is like a bucket whose level is measured from a line that falls evenly to a
// small rest. N sharers keep what remains at
//
//	line(t_r) − b(x)·ln(N/10)        line = rest + s·t_r,  s = (L − rest)/T,  b = b₀·4x(1 − x)
//
// b is zero at both ends. So there is no jump when the window begins, and nothing is left when it
// ends.
type windowLevel struct {
	limit  float64 // L, as stated by the server now
	known  float64 // L, as configured at first; tokens are reckoned in it
	length float64 // T, in seconds
	stated bool    // the server has stated the configured L

	ends   mono.Time // when the present window ends: the earliest that was stated
	tells  bool      // answers carry resets
	number int
	slope  float64 // s
	debt   bool    // this window has a line of its own: s is less than for a whole window
	phase  phase
}

// The rest and b₀ are parts of L. They are the amount that comes in some seconds where that is
// more, since answers on a slow path are as old as that. They depend on T alone, as all must agree.
const (
	restPart     = 0.004
	restSeconds  = 0.5
	slopePart    = 0.01
	slopeSeconds = 2.0
	slopeUntold  = 3.0 // of slopePart, where answers carry no reset: sharers differ in their estimate of it

	surplusPart = 1.0 / 8 // of L
	// of L: a larger n must not take an estimate for a surprise, since it has few requests per window
	trustPart   = 0.1
	windowPrior = 2.0      // units of this process
	windowMost  = 2000.0   // the largest N by the level
	windowMeets = 200.0    // and the largest for a newcomer
	priceLeast  = 10.0     // the b from which on the level shows N to a newcomer
	lostPart    = 0.1      // of L: a sharer of a larger n learns too rarely to come back step by step
	lostLeast   = 2.2      // in ln: how much smaller N is than such a sharer assumes
	lostSteep   = 1.0 / 3  // of b₀: the b from which on that is believed, or priceLeast if that is less
	lostSlope   = 3.0      // and the smallest such b: below, the remainder's noise is as large
	debtPart    = 0.1      // of the planned remainder: a slightly slower pace cannot make up for a larger lack
	debtStep    = 0.1      // in ln: all that find a debt should find the same line
	probePart   = 1.0 / 20 // of T: the wait after a refusal where the window's end is unknown
)

func newWindowLevel(units float64, length time.Duration) windowLevel {
	w := windowLevel{limit: units, known: units, length: length.Seconds(), ends: mono.Min}
	w.slope = w.whole()
	return w
}

// rest returns a quarter of a window at most. In a short or small window it would otherwise be more
// than there is.
func (w *windowLevel) rest() float64 {
	return min(1+max(restPart, restSeconds/w.length)*w.limit, w.limit/4)
}

// whole returns s of a window that is used from its beginning.
func (w *windowLevel) whole() float64 { return (w.limit - w.rest()) / w.length }

func (w *windowLevel) look(f *Fair, s *sighting) {
	was := w.number
	switch {
	case s.ends != mono.Min:
		w.told(s.ends, 2*f.last.Sub(s.mid))
		w.tells = true
	case !w.tells:
		w.phase.look(f, w, s)
	case s.mid > w.ends && w.begun(&f.base, s):
		w.begin(w.ends.Add(Seconds(w.length)), 1)
	}
	// An error in one window, such as that of a late replica, need not be there in the next one.
	// But different costs look like errors, too, and are there in all windows.
	if w.number != was && f.config.Unit == limit.Requests {
		f.noise = noise{}
	}
	s.ends, s.window = w.ends, w.number
	f.entitled.look(s, w)
	if s.limited || s.ends == mono.Min {
		return
	}
	if tr := w.before(s); tr > 0 && w.stand(f, s).gap < -(debtPart*w.slope*tr+correctMost*f.n) {
		w.owe(s.left, tr)
	}
}

// told reads the end of the window from an answer that took rtt. Ends in whole seconds are rounded
// up, and arrive late. So the earliest stated end of a window is best. The next window ends exactly
// a window after that, if its stated end allows it. Otherwise the few answers in a minute would be
// off by a part of a second. That would last until the window is nearly over, and differ for each
// sharer.
func (w *windowLevel) told(ends mono.Time, rtt time.Duration) {
	switch d := ends.Sub(w.ends).Seconds(); {
	case w.ends == mono.Min:
		w.ends = ends
	case math.Abs(d) > w.length/2:
		later := max(1, math.Round(d/w.length))
		if next := w.ends.Add(Seconds(later * w.length)); ends > next && ends.Sub(next) < time.Second+rtt {
			ends = next
		}
		w.begin(ends, int(later))
	default:
		w.ends = min(w.ends, ends)
	}
}

// begun reports whether the next window has begun, where the present one is over by its stated end
// and the answer has no other end. It has if the remainder rose, or should have risen long ago. A
// server whose clock is ahead has 0 s to go for a while, and its remainder is the rest of a window.
// Sharers that took it for all of the next window would sleep through that.
func (w *windowLevel) begun(before, s *sighting) bool {
	return s.left > before.left+max(1, leapPart*w.limit) || s.mid.Sub(w.ends).Seconds() > w.length/2
}

// begin moves on by later windows.
func (w *windowLevel) begin(ends mono.Time, later int) {
	w.ends, w.number = ends, w.number+later
	w.slope, w.debt = w.whole(), false
}

// restate sets another L that the server states. In a window that is in debt its line holds until
// the end.
func (w *windowLevel) restate(units float64) {
	if w.limit = units; !w.debt {
		w.slope = w.whole()
	}
}

// owe begins a new line that holds until the window ends. Its slope is one of few values, so that
// all that find the debt begin the same line.
func (w *windowLevel) owe(left, tr float64) {
	steps := math.Ceil(math.Log(w.whole()*tr/max(left-w.rest(), 1e-3*w.limit)) / debtStep)
	w.slope = min(w.slope, w.whole()*math.Exp(-debtStep*steps))
	w.debt = true
}

// before returns t_r, in seconds.
func (w *windowLevel) before(s *sighting) float64 {
	return min(max(s.ends.Sub(s.mid).Seconds(), 0), w.length)
}

func (w *windowLevel) stand(f *Fair, s *sighting) stand {
	st := stand{meet: meetMost, stretch: w.known / w.length / w.slope, spread: max(w.limit*surplusPart, f.n)}
	if s.ends == mono.Min {
		return st
	}
	tr := w.before(s)
	x := tr / w.length
	part := slopePart
	if w.phase.alone {
		part *= slopeUntold
	}
	steepest := max(part, slopeSeconds/w.length) * w.limit
	st.slope = steepest * 4 * x * (1 - x)
	over := s.left - w.rest() - w.slope*tr
	st.gap = over + st.slope*math.Log(f.shares()/10)
	if st.slope > 0 {
		st.price = min(max(math.Log(10)-over/st.slope, 0), math.Log(windowMost))
		st.lost = st.slope > max(lostSlope, min(priceLeast, lostSteep*steepest)) && f.n > lostPart*w.limit &&
			math.Log(f.shares())-st.price > lostLeast
	}
	return st
}

// taken also measures across the end of a window. The rest before the end is assumed to be used at
// the rate at which the next window began, as far as there was any.
func (w *windowLevel) taken(_ *Fair, from, to *sighting) (float64, bool) {
	switch later := to.window - from.window; {
	case later == 0:
		return from.left - to.left, to.left <= from.left+1
	case later > 1 || from.ends == mono.Min || to.ends == mono.Min:
		return 0, false
	}
	into := w.length - w.before(to)
	used := max(0, w.limit-to.left)
	prior := w.length / 8
	rate := (used + w.slope*prior) / (into + prior)
	then := min(max(to.mid.Sub(from.mid).Seconds()-into, 0), w.length)
	return min(from.left, rate*then) + used, true
}

func (w *windowLevel) newcomer(f *Fair, s *sighting) float64 {
	if st := w.stand(f, s); st.slope > priceLeast {
		return max(assumedSharers, min(math.Exp(st.price), windowMeets))
	}
	return assumedSharers
}

// prior is more than one. When all begin with the window, the first to ask sees each of the others
// twice until its second answer.
func (w *windowLevel) prior() float64 { return windowPrior }

func (w *windowLevel) trust(n float64) float64 { return min(1, trustPart*w.limit/n) }

func (w *windowLevel) news() float64 { return newsUnits }

func (w *windowLevel) adjust(f *Fair, s *sighting, next mono.Time) mono.Time {
	if s.ends != mono.Min {
		before := w.before(s)
		next = f.entitled.by(s, next, w, before)
	}
	switch {
	case s.ends == mono.Min:
	case s.none:
		return w.spent(f, s, min(next, s.at.Add(f.span(f.n))))
	case w.debt && next > s.ends:
		return min(next, max(s.ends, f.sentAt).Add(f.span(f.n*f.config.Rng.Float64())))
	}
	return next
}

// spent returns when the next request goes, which is planned for plan, when nothing is left: not
// before the window's end. There is no herd after that, since a sharer with a plan beyond it keeps
// the plan.
func (w *windowLevel) spent(f *Fair, s *sighting, plan mono.Time) mono.Time {
	if plan >= s.ends {
		return plan
	}
	spread := min(s.ends.Sub(plan), f.span(f.n))
	return s.ends.Add(time.Duration(f.config.Rng.Float64() * float64(spread)))
}

func (w *windowLevel) refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	if s.ends <= now {
		f.wait(now, max(f.n, w.limit*probePart)*(1+correctMost*f.config.Rng.Float64()), retryAfter)
		return
	}
	f.hold(now, w.spent(f, s, f.sentAt.Add(f.span(f.n))), f.span(f.n))
}
