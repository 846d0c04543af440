package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/core/contention"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// windowLevel reads what remains in a fixed window: of L per T, with t_r until it ends and x = t_r/T. It is like a bucket whose level is
// measured from a line that falls evenly to a small rest. N sharers keep what remains at
//
//	line(t_r) − b(x)·ln(N/10)        line = rest + s·t_r,  s = (L − rest)/T,  b = b₀·4x(1 − x)
//
// b is zero at both ends: so there is no jump when the window begins, and nothing is left when it ends.
type windowLevel struct {
	limit  float64 // L, as the server states it now
	known  float64 // L, as it was said to be at first, in which tokens are reckoned
	length float64 // T, in seconds
	stated bool    // the server stated L as it is known

	ends   mono.Time // when the present window ends: the earliest that was told
	tells  bool      // answers tell resets
	number int
	slope  float64 // s
	debt   bool    // the line is its own: s is less than for a whole window
	phase  phase
}

// These are parts of L, or what comes in some seconds where that is more, since the answers of a slow path are as old as that: the rest
// and b₀. They depend on T alone, as all must agree.
const (
	restPart     = 0.004
	restSeconds  = 0.5
	slopePart    = 0.01
	slopeSeconds = 2.0
	slopeUntold  = 3.0 // of slopePart, where no reset is told: sharers differ in when they believe that it comes

	surplusPart = 1.0 / 8  // of L
	trustPart   = 0.1      // of L: a larger n must not take an estimate for a surprise, since it has few requests per window
	windowPrior = 2.0      // units of one's own
	windowMost  = 2000.0   // the largest N that the level may say
	windowMeets = 200.0    // and what it may say to a newcomer
	priceLeast  = 10.0     // b from which on the level tells a newcomer what N is
	lostPart    = 0.1      // of L: who goes so rarely as one of a larger n hears too little to come back step by step
	lostLeast   = 2.2      // in ln: how much smaller N is than such a one believes
	lostSteep   = 1.0 / 3  // of b₀: b from which on that is believed, or priceLeast if that is less
	lostSlope   = 3.0      // and the smallest such b: below, what remains wavers by as much
	debtPart    = 0.1      // of what should remain: a larger lack is not made up for by going a little slower
	debtStep    = 0.1      // in ln: all who find a debt should find the same line
	probePart   = 1.0 / 20 // of T: the wait after a refusal where nothing is known of the window's end
)

func newWindowLevel(units float64, length time.Duration) windowLevel {
	w := windowLevel{limit: units, known: units, length: length.Seconds(), ends: mono.Min}
	w.slope = w.whole()
	return w
}

// rest is a quarter of a window at most: where it is short or holds little, it would be more than there is.
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
	// An error in one window, such as that of a replica which tells of another, need not be there in the next one. But costs that differ
	// look like errors, too, and are there in all windows.
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

// told is given when the window ends, as an answer says that took rtt. Ends in whole seconds were rounded up, and are heard late: so the
// earliest that is told of a window is best. If the next one could end a window later than that, it does: in a minute, what one's few
// answers say would be off by a part of a second until the window is nearly over, and by another for each who shares.
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

// begun reports whether the next window has begun, where the present one is said to be over and the answer tells no end of another: what
// remains rose, or it should have long ago. A server whose clock is ahead says for a while that there are 0 s to go, and what is left then
// is the rest of a window; taken for all that is left of the next one, it would have everybody sleep through that.
func (w *windowLevel) begun(before, s *sighting) bool {
	return s.left > before.left+max(1, leapPart*w.limit) || s.mid.Sub(w.ends).Seconds() > w.length/2
}

// begin moves on by so many windows.
func (w *windowLevel) begin(ends mono.Time, later int) {
	w.ends, w.number = ends, w.number+later
	w.slope, w.debt = w.whole(), false
}

// restate is told that the server states another L. In a window that is in debt its line holds until the end.
func (w *windowLevel) restate(units float64) {
	if w.limit = units; !w.debt {
		w.slope = w.whole()
	}
}

// owe begins a new line that holds until the window ends. Its slope is one of few, so that all who find the debt begin the same line.
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
		st.lost = st.slope > max(lostSlope, min(priceLeast, lostSteep*steepest)) && f.n > lostPart*w.limit && math.Log(f.shares())-st.price > lostLeast
	}
	return st
}

// taken also measures across the end of a window: what was left then was used at the rate at which the next window began, as far as there
// was any.
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
		return max(contention.Shares, min(math.Exp(st.price), windowMeets))
	}
	return contention.Shares
}

// prior is more than one: when all begin with the window, the one that asked first sees each of the others twice until its second answer.
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

// spent returns when the next request goes that is planned for plan, when nothing is left: not before the window's end. There is no herd
// after that, since whoever planned beyond it keeps the plan.
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
