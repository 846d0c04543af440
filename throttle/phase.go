package throttle

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// phase finds out when windows begin where no reset is told: from the leaps of what remains. Each leap says that a window has begun since
// the sighting before; all of them together, whole windows apart, say it better and better. Within those bounds, what was used since the
// beginning tells when that was, assuming even use.
type phase struct {
	alone     bool      // nobody tells resets
	low, high mono.Time // a window began after low, and at high at the latest
	seen      bool      // low and high hold
	start     mono.Time // the estimate
	guesses   float64   // how many guesses are in start
	before    sighting
}

const (
	leapPart    = 0.02 // of L: a smaller rise is no leap
	guessesMost = 8.0
)

func (p *phase) look(w *windowLevel, s *sighting) {
	p.alone = true
	length := time.Duration(w.length * 1e9)
	guess := s.mid.Add(-time.Duration(max(0, 1-s.left/w.limit) * float64(length)))
	switch {
	case p.before.seq == 0:
		p.start = guess
	case !s.limited && s.left > p.before.left+max(1, leapPart*w.limit):
		p.leap(p.before.mid, s.mid, guess, length)
		w.begin(p.start.Add(length), 1)
	}
	p.before = *s
	// The window may go on although it should be over: then the estimate was too early.
	w.ends = max(p.start.Add(length), s.mid)
}

// leap learns of a window that began after low, and at high at the latest.
func (p *phase) leap(low, high, guess mono.Time, length time.Duration) {
	if p.seen {
		// The window that is known is a number of whole windows earlier.
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
