package node

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// bounds are a node's knowledge of the ledger's time L at an instant p of its own clock: p + lo ≤ L
// ≤ p + hi. Each reading of the store's clock was taken between the beginning of a call and its
// return. As time passes, drift widens both bounds. They belong to one era.
type bounds struct {
	known  bool
	era    uint64
	slack  time.Duration // of the book, when lo was last lowered for it
	at     mono.Time     // the instant of the node's clock to which they refer
	lo, hi time.Duration
}

// drift is the most by which one clock may run faster than another: one in so many.
const drift = 10_000

// sampled returns the bounds of one reading alone. The reading is l, and was taken between began
// and read.
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

// slacken allows for the time by which the ledger was set behind since.
func (b bounds) slacken(slack time.Duration) bounds {
	if slack > b.slack {
		b.lo -= slack - b.slack
		b.slack = slack
	}
	return b
}

// check returns the ledger's time at a reading l that was taken between began and read. If l is
// impossible, somebody set the store's clock. Then the time is the earliest possible, so that it
// does not run ahead. unsure is by how much it may be behind.
func (b bounds) check(began, read, l mono.Time) (at mono.Time, unsure time.Duration) {
	lo, _ := b.by(began)
	_, hi := b.by(read)
	// The bounds were narrower then than now, and the reading lies between the two.
	least, most := began.Add(lo), read.Add(hi)
	if l < least || l > most {
		return least, max(most.Sub(least), 0)
	}
	return l, 0
}
