package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// silentWindow is the law for windows of servers whose answers are only served or limited. Requests
// go n units apart. Towards the end of the window they go up to four times as fast, until a refusal
// shows that the window is used up. That is at the same x of the window for all, so all change n by
// the same factor. The factor makes each process' requests last until a twentieth of the window
// before its end. All also change n towards a fixed n, which makes them equal.
//
// Then they wait for the end. They read it from the answer, or find it: it is at most a window
// after the first request. See silent_ends.go for a process that comes in the middle of a window.
type silentWindow struct {
	low, high mono.Time // a window ends after low, and at high at the latest
	seen      bool
	first     mono.Time // when the first request of the window was sent
	began     bool
	waits     bool      // it waits for the window's end
	clean     bool      // nothing was refused in this window
	last      mono.Time // when a request was refused last
	tried     mono.Time // when n was lowered last, while nothing was ever refused
	misfits   int       // ends in a row that are no whole number of windows apart
	ended     int       // ends that it has seen, up to lostFrom
	served    bool      // something was served in this window
	overdue   bool      // high is no bound: the window was not over then
	lost      bool      // it does not know when windows end, although some did
	usedUp    mono.Time // when the first of the refusals came after which it waits
}

const (
	sprintFrom  = 0.8
	sprintMost  = 4.0
	silentGoal  = 0.95
	silentPull  = 0.2
	silentUp    = 0.1  // where n is smaller than that: a process alone would leave a quarter of every second window unused
	silentClean = 0.7  // × n after a window without a refusal
	silentFirst = 0.85 // × n each probePart of a window, before there was any refusal
	silentFew   = 30.0 // requests per window: fewer measure nothing, and there is no sprint
	fewGoal     = 1.05
	fewClean    = 0.99
	fewPull     = 0.02
	silentNoise = 0.05
)

// done returns how far a process is at x of a window: the part of it that an even pace would need.
func done(x float64) float64 {
	if x <= sprintFrom {
		return x
	}
	u := x - sprintFrom
	return x + (sprintMost-1)/(1-sprintFrom)*u*u/2
}

// short reports whether a window holds few requests for each sharer, even of the number that is
// assumed at first. A process with few of them otherwise has less than its share, as a rule.
func (w *silentWindow) short(f *Fair) bool {
	return w.few(f) && f.window.limit*f.config.Weight/assumedSharers < silentFew
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
		w.back(f, s, length)
	}
	w.pass(f, now, length)
	w.served = true
	pace := f.n
	if x := w.into(f, now); x > sprintFrom && !w.few(f) {
		pace /= 1 + (sprintMost-1)*(x-sprintFrom)/(1-sprintFrom)
	}
	pace *= 1 + silentNoise*(2*f.config.Rng.Float64()-1)
	since := (f.sum - s.sum) / f.config.MeanCost
	f.account.plan(now, s, f.span(pace*since), f.span(pace))
	f.planned = f.step
}

// into returns x of the present window. It is 0 if its end is not known.
func (w *silentWindow) into(f *Fair, t mono.Time) float64 {
	if !w.seen {
		return 0
	}
	return min(max(1-w.high.Sub(t).Seconds()/f.window.length, 0), 1)
}

// pass moves on to the window of t. It lowers n for each past window without a refusal.
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
	w.low, w.high, w.served = w.low.Add(later), w.high.Add(later), false
	if w.clean {
		by := silentClean
		if w.short(f) {
			by = fewClean
		}
		f.n = f.clamp(f.n * by)
	}
	w.clean = true
}

func (w *silentWindow) refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration, length time.Duration) {
	f.stale = f.seq
	soon := false
	switch {
	case retryAfter > 0:
		w.high = now.Add(min(retryAfter, endsMost))
		w.low, w.seen = w.high.Add(-time.Second), true
	// The window ends within its length from now, if the first request was in it too.
	case !w.seen:
		w.low, w.high, w.seen = s.mid, max(w.first.Add(length), s.mid.Add(time.Duration(probePart*float64(length)))), true
	// The window should be over, but is not, or the next one is used up, too.
	case w.waits && s.mid >= w.high:
		w.overdue = true
		w.low, w.high = s.mid, s.mid.Add(time.Duration(probePart*float64(length)))
	}
	if !w.waits {
		if w.high <= s.mid {
			later := (s.mid.Sub(w.high)/length + 1) * length
			w.low, w.high = w.low.Add(later), w.high.Add(later)
		}
		w.low, w.usedUp = max(w.low, s.mid), s.mid
		w.adapt(f, max(w.into(f, s.mid), probePart), length)
		soon = w.lost
	}
	w.low = max(w.low, s.mid)
	w.waits, w.last, w.clean, w.served = true, s.mid, false, false
	next := w.high
	if retryAfter == 0 {
		next = w.asks(f, s, soon, length)
	}
	if next == w.high {
		next = next.Add(f.span(f.n * f.config.Rng.Float64()))
	}
	f.hold(now, max(next, now.Add(f.span(1))), f.span(f.n))
}

// wants returns the factor of n after a refusal at x of the window.
func (w *silentWindow) wants(f *Fair, x float64) float64 {
	if w.few(f) {
		return fewGoal / x
	}
	return done(silentGoal) / done(x)
}

// adapt changes n after a refusal at x of the window.
func (w *silentWindow) adapt(f *Fair, x float64, length time.Duration) {
	pull, n := silentPull, f.n
	switch {
	case w.short(f):
		pull = fewPull
	case f.shares() < assumedSharers:
		pull = silentUp
	}
	if !w.seeks(length) && w.served {
		n *= w.wants(f, x)
	}
	f.n = f.clamp(n * math.Pow(assumedSharers/f.config.Weight/n, pull))
}
