package throttle

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/blind"
	"github.com/paceline-go/paceline/mono"
)

// silentWindow is the law for windows that only say served or limited. Requests go n units apart, and towards the end of the window up to
// four times as fast, until a refusal shows that the window is used up: at the same x of the window for all. So all change n by the same
// factor, such that what each did until then will last until a twentieth of the window before its end; and a little towards a fixed n,
// which is what makes them equal. Then they wait for the end. They are told it, or find it: it is at most a window after the first
// request, and now and then they look whether it is earlier.
type silentWindow struct {
	low, high mono.Time // a window ends after low, and at high at the latest
	seen      bool
	first     mono.Time // when the first request of the window was sent
	began     bool
	waits     bool      // it waits for the window's end
	clean     bool      // nothing was refused in this window
	last      mono.Time // when a request was refused last
	tried     mono.Time // when n was lowered last, while nothing was ever refused
	misfits   int       // how many ends in a row are no whole number of windows apart
}

const (
	sprintFrom  = 0.8
	sprintMost  = 4.0
	silentGoal  = 0.95
	silentPull  = 0.1
	silentClean = 0.7  // × n after a window without a refusal
	silentFirst = 0.85 // × n each probePart of a window, before there was any refusal
	silentFew   = 30.0 // requests per window: fewer measure nothing, and there is no sprint
	fewGoal     = 1.05
	fewClean    = 0.99
	fewPull     = 0.02
	silentProbe = 0.05 // how often one looks in the middle of what is not known of a window's end, at the price of a refusal
	silentSure  = 200  // parts of a window: an end that is known within one of them is known
	silentNoise = 0.05
)

// done returns how far one is at x of a window, as the part of it that an even pace would need.
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

// into returns x of the present window; 0 if its end is not known.
func (w *silentWindow) into(f *Fair, t mono.Time) float64 {
	if !w.seen {
		return 0
	}
	return min(max(1-w.high.Sub(t).Seconds()/f.window.length, 0), 1)
}

// pass moves on to the window that t is in, and lowers n for each past window in which nothing was refused.
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

// ended is told that a window ended after low, and at high at the latest.
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
	w.clean = false // n was changed already, by the refusal before
}

func (w *silentWindow) refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration, length time.Duration) {
	f.stale = f.seq
	switch {
	case retryAfter > 0:
		w.high = now.Add(min(retryAfter, endsMost))
		w.low, w.seen = w.high.Add(-time.Second), true
	case !w.seen: // the window ends within its length from now, if the first request was in it too
		w.low, w.high, w.seen = s.mid, max(w.first.Add(length), s.mid.Add(time.Duration(probePart*float64(length)))), true
	case w.waits && s.mid >= w.high: // the window should be over, but is not
		w.low, w.high = s.mid, s.mid.Add(time.Duration(probePart*float64(length)))
	}
	if !w.waits {
		if w.high <= s.mid {
			later := (s.mid.Sub(w.high)/length + 1) * length
			w.low, w.high = w.low.Add(later), w.high.Add(later)
		}
		w.adapt(f, max(w.into(f, s.mid), probePart))
	}
	w.low = max(w.low, s.mid)
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

// adapt changes n after a refusal at x of the window.
func (w *silentWindow) adapt(f *Fair, x float64) {
	pull, by := silentPull, done(silentGoal)/done(x)
	if w.few(f) {
		pull, by = fewPull, fewGoal/x
	}
	n := f.n * by
	f.n = f.clamp(n * math.Pow(blind.Shares/f.config.Weight/n, pull))
}
