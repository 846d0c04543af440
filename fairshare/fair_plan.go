package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// correctMost limits the correction of an interval towards the right level, as a part of n.
	correctMost = 0.2
	// lateGain is the part of a difference that counts where many requests are in flight. The level
	// is as old as they are. If each answer corrected all of it, it would be corrected once per
	// request in flight.
	lateGain = 0.2
)

// plan sets when the requests after s go: n apart, corrected for the gap between the level and its
// target. If too little is left, they wait longer, by up to a fifth of the interval. If too much is
// left, all sharers use it up at once, in proportion to their shares.
func (f *Fair) plan(now mono.Time, s *sighting) {
	st := f.level.stand(f, s)
	since := (f.sum - s.sum) / f.config.MeanCost
	e := st.gap * (1 + lateGain*since) / (1 + since)
	n := f.n * st.stretch
	most := correctMost * n * (since + 1)
	step, corr := n, min(max(e, -most), most)
	if e > 0 {
		if quick := n / (1 + e/st.spread); quick*(since+1) < n*(since+1)-corr {
			step, corr = quick, 0
		}
	}
	f.account.plan(now, s, f.span(step*since-corr), f.span(step))
	next := f.paid.Add(f.step)
	if at := f.level.adjust(f, s, next); at != next {
		f.move(now, at)
	}
	f.planned = max(0, f.paid.Add(f.step).Sub(f.sentAt))
}

// wait sets when the next request goes after a refusal: so many tokens after the latest send, and
// not before retryAfter is over.
func (f *Fair) wait(now mono.Time, tokens float64, retryAfter time.Duration) {
	next := f.sentAt.Add(f.span(tokens))
	if t := now.Add(min(retryAfter, f.config.MaxWait)); retryAfter > 0 && t > next {
		// All refused sharers may have the same Retry-After.
		next = t.Add(f.span(f.n * f.config.Rng.Float64()))
	}
	f.hold(now, next, f.span(f.n))
}
