package node

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// bounds say what a node knows of the ledger's time L at an instant p of its own clock: p + lo ≤ L ≤ p + hi. Each reading of the store's
// clock was taken between the beginning of a call and its return. As time passes both are widened by drift. They belong to one era.
type bounds struct {
	known  bool
	era    uint64
	slack  time.Duration // of the book, when lo was last lowered for it
	at     mono.Time     // as of which instant of the node's clock
	lo, hi time.Duration
}

// drift is by how much one clock may run faster than another: one in so many.
const drift = 10_000

// sampled are bounds from one reading alone: it says l, and was taken between began and read.
func sampled(began, read, l mono.Time, b *Book) bounds {
	return bounds{true, b.Era, b.Slack, read, l.Sub(read), l.Sub(began) + read.Sub(began)/drift + 1}
}

// by returns the bounds at an instant.
func (b bounds) by(p mono.Time) (lo, hi time.Duration) {
	d := p.Sub(b.at)
	if d < 0 {
		d = -d
	}
	wide := (d + drift - 1) / drift
	return b.lo - wide, b.hi + wide
}

// with returns the bounds after another reading.
func (b bounds) with(o bounds) bounds {
	if !b.known || b.era != o.era {
		return o
	}
	lo, hi := b.by(o.at)
	o.lo, o.hi = max(o.lo, lo), min(o.hi, hi)
	return o
}

// slacken allows for what the ledger was set behind since.
func (b bounds) slacken(slack time.Duration) bounds {
	if slack > b.slack {
		b.lo -= slack - b.slack
		b.slack = slack
	}
	return b
}

// check returns the ledger's time at a reading that was taken between began and read and says l. If that cannot be, somebody set the
// store's clock: then the time is the earliest that it can be, so that it does not run ahead, and unsure is by how much it may be behind.
func (b bounds) check(began, read, l mono.Time) (at mono.Time, unsure time.Duration) {
	lo, _ := b.by(began)
	_, hi := b.by(read)
	// What was widened by now was narrower then, and between the two the reading lies.
	least, most := began.Add(lo), read.Add(hi)
	if l < least || l > most {
		return least, max(most.Sub(least), 0)
	}
	return l, 0
}
