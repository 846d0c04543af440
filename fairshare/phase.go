package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// phase finds out when windows begin, where answers carry no reset, from leaps of the remainder.
// Each leap shows that a window has begun since the sighting before. All of them together, whole
// windows apart, bound the beginning better and better. Within those bounds it follows from the
// amount used since the beginning, if use was even. The window at the first sighting had begun by
// then. For a fleet that starts with a window, that bound is all but exact.
type phase struct {
	alone     bool      // answers carry no reset
	low, high mono.Time // a window began after low, and at high at the latest
	seen      bool      // low and high hold
	start     mono.Time // the estimate
	guesses   float64   // the number of guesses in start
	before    sighting
	found     float64 // the amount that all had used at high, as long as no leap was seen
}

const (
	leapPart    = 0.02 // of L: a smaller rise is no leap
	guessesMost = 8.0
	foundShares = 2.0 // × N: the amount used at the first sighting, if the window began then
)

func (p *phase) look(f *Fair, w *windowLevel, s *sighting) {
	p.alone = true
	length := time.Duration(w.length * 1e9)
	used := max(0, w.limit-s.left)
	guess := s.mid.Add(-w.evenly(used))
	switch {
	case p.before.seq == 0:
		p.start = guess
		if !p.seen {
			p.low, p.high, p.seen, p.found = s.mid.Add(-length), s.mid, true, used
		}
	case !s.limited && s.left > p.before.left+max(1, leapPart*w.limit):
		p.leap(p.before.mid, s.mid, guess, length)
		w.begin(p.start.Add(length), 1)
	}
	if p.seen && p.guesses == 0 && f.known && f.revisions <= newsSoon {
		p.start = p.high
		// Otherwise it may be the first requests of all sharers.
		if p.found > foundShares*f.shares() {
			p.start = p.high.Add(-w.evenly(p.found))
		}
	}
	p.before = *s
	// The window may go on beyond its estimated end: then the estimate was too early.
	w.ends = max(p.start.Add(length), s.mid)
}

// evenly returns how long these units last if they are used evenly.
func (w *windowLevel) evenly(units float64) time.Duration {
	return time.Duration(units / w.limit * w.length * 1e9)
}

// leap learns of a window that began after low, and at high at the latest.
func (p *phase) leap(low, high, guess mono.Time, length time.Duration) {
	if p.seen {
		// The known window is a number of whole windows earlier.
		ago := time.Duration(math.Round(float64(high.Sub(p.high))/float64(length))) * length
		p.start = p.start.Add(ago)
		if l, h := max(low, p.low.Add(ago)), min(high, p.high.Add(ago)); l < h {
			low, high = l, h
		} else {
			p.guesses = 0
		}
	} else {
		p.guesses = 0
	}
	p.low, p.high, p.seen = low, high, true
	p.guesses = min(p.guesses+1, guessesMost)
	guess = min(max(guess, low), high)
	p.start = p.start.Add(time.Duration(float64(guess.Sub(p.start)) / p.guesses))
	p.start = min(max(p.start, low), high)
}
