package throttle

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/blind"
	"github.com/paceline-go/paceline/mono"
)

// silentWindow is the law for windows that only say served or limited: n units apart, towards the end of the window up to four times as
// fast, until a refusal shows that it is used up: at x of the window, for all alike. So all change n by the same factor, such that
// what each did by then takes it until a twentieth of the window before its end, and a little towards a fixed n: thus they
// meet. Then they wait for the end, which all are told or each finds: it is a window after the first request at the latest, and is looked for
// before that now and then.
type silentWindow struct {
	low, high mono.Time // a window ends after low, and at high at the latest
	seen      bool
	first     mono.Time // its first request
	began     bool
	waits     bool      // for the end
	clean     bool      // nothing was refused in this window
	last      mono.Time // refused
	tried     mono.Time // when n was made less last, while nothing was ever refused
	misfits   int       // ends that are no whole windows apart, in a row
}

const (
	sprintFrom  = 0.8
	sprintMost  = 4.0
	silentGoal  = 0.95
	silentPull  = 0.1
	silentClean = 0.7  // × n after a window without a refusal
	silentFirst = 0.85 // × n each probePart of a window before the first one
	silentFew   = 30.0 // requests per window: fewer are no measure, and there is no sprint
	fewGoal     = 1.05
	fewClean    = 0.99
	fewPull     = 0.02
	silentProbe = 0.05 // how often one looks in the middle of what is not known of a window's end, at the price of a refusal
	silentSure  = 200  // parts of a window: what is less is known
	silentNoise = 0.05
)

// done is how far one is at x of a window, in what an even pace does in all of it.
func done(x float64) float64 {
	if x <= sprintFrom {
		return x
	}
	u := x - sprintFrom
	return x + (sprintMost-1)/(1-sprintFrom)*u*u/2
}

func (w *silentWindow) few(f *Fair) bool { return f.window.limit/f.n < silentFew }

func (w *silentWindow) answer(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	length := time.Duration(f.window.length * 1e9)
	if !w.began {
		w.began, w.first = true, s.at
	}
	if s.limited {
		w.refused(f, now, s, retryAfter, length)
		return
	}
	if w.waits {
		w.waits = false
		w.ended(w.last, s.mid, length)
	}
	w.pass(f, now, length)
	pace := f.n
	if x := w.into(f, now); x > sprintFrom && !w.few(f) {
		pace /= 1 + (sprintMost-1)*(x-sprintFrom)/(1-sprintFrom)
	}
	pace *= 1 + silentNoise*(2*f.config.Rng.Float64()-1)
	since := (f.sum - s.sum) / f.config.MeanCost
	f.account.plan(now, s, f.span(pace*since), f.span(pace))
	f.planned = f.step
}

// into is x of the present window; 0 if its end is not known.
func (w *silentWindow) into(f *Fair, t mono.Time) float64 {
	if !w.seen {
		return 0
	}
	return min(max(1-w.high.Sub(t).Seconds()/f.window.length, 0), 1)
}

// pass moves on to the window that t is in, and makes n less for those in which nothing was refused.
func (w *silentWindow) pass(f *Fair, t mono.Time, length time.Duration) {
	if !w.seen {
		step := time.Duration(probePart * float64(length))
		if w.tried == 0 {
			w.tried = t
		}
		for ; t.Sub(w.tried) >= step && f.n > f.clamp(0); w.tried = w.tried.Add(step) {
			f.n = f.clamp(f.n * silentFirst)
		}
		return
	}
	if t < w.high {
		return
	}
	later := (t.Sub(w.high)/length + 1) * length
	w.low, w.high = w.low.Add(later), w.high.Add(later)
	if w.clean {
		by := silentClean
		if w.few(f) {
			by = fewClean
		}
		f.n = f.clamp(f.n * by)
	}
	w.clean = true
}

// ended learns that a window ended after low, and at high at the latest.
func (w *silentWindow) ended(low, high mono.Time, length time.Duration) {
	if w.seen {
		ago := time.Duration(math.Round(float64(high.Sub(w.high))/float64(length))) * length
		if l, h := max(low, w.low.Add(ago)), min(high, w.high.Add(ago)); l < h {
			low, high, w.misfits = l, h, 0
		} else {
			w.misfits++
		}
	}
	w.low, w.high, w.seen = low, high, true
	w.clean = false // n was changed by the refusal before
}

func (w *silentWindow) refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration, length time.Duration) {
	f.stale = f.seq
	switch {
	case retryAfter > 0:
		w.high = now.Add(min(retryAfter, endsMost))
		w.low, w.seen = w.high.Add(-time.Second), true
	case !w.seen: // it ends while this lasts, if the first request was in it too
		w.low, w.high, w.seen = s.mid, max(w.first.Add(length), s.mid.Add(time.Duration(probePart*float64(length)))), true
	case w.waits && s.mid >= w.high: // it should be over, but is not
		w.low, w.high = s.mid, s.mid.Add(time.Duration(probePart*float64(length)))
	}
	if !w.waits {
		for w.high <= s.mid {
			w.low, w.high = w.low.Add(length), w.high.Add(length)
		}
		w.adapt(f, max(w.into(f, s.mid), probePart))
	}
	w.low = max(w.low, min(s.mid, w.high.Add(-1)))
	w.waits, w.last, w.clean = true, s.mid, false
	next := w.high
	if unsure := w.high.Sub(w.low); retryAfter == 0 && unsure > length/silentSure && f.config.Rng.Float64() < silentProbe {
		next = w.high.Add(-unsure / 2)
	}
	if next == w.high {
		next = next.Add(f.span(f.n * f.config.Rng.Float64()))
	}
	f.hold(now, max(next, now.Add(f.span(1))), f.span(f.n))
}

// adapt changes n after a refusal at x.
func (w *silentWindow) adapt(f *Fair, x float64) {
	pull, by := silentPull, done(silentGoal)/done(x)
	if w.few(f) {
		pull, by = fewPull, fewGoal/x
	}
	n := f.n * by
	f.n = f.clamp(n * math.Pow(blind.Shares/f.config.Weight/n, pull))
}
