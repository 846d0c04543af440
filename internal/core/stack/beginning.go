package stack

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Beginning makes the load begin slowly where the right load is unknown. One request goes first.
// Each that is served makes room for two, so that the number in flight doubles with each round
// trip. Only requests sent since the beginning count. The driver numbers requests, from 1. The zero
// Beginning has not begun: any number may go.
//
// First is for a limit that may be wrong: a few requests go first, and more only slowly. It ends by
// itself, so the answers of a slow server are not awaited.
type Beginning struct {
	room  int    // how many may be in flight; 0: any number
	open  int    // requests in flight that were sent since
	since uint64 // the last request that was sent before it began

	each   int           // how many that are served make room for one more
	served int           // of these, since there was more room
	long   time.Duration // from its first request to its end; 0: it ends by answers alone
	until  mono.Time     // its end; 0: no request has gone
}

const (
	// enough requests in flight end the beginning: from then on any number may go.
	enough = 1024
	// few requests are in flight at first where a limit may be wrong. Then there are as many more as the sixth part of
	// those served: at a limit of 20 eight, so that ten are not refused together.
	few, fewEach = 5, 6
)

// Start begins. sent is the number of the last request.
func (b *Beginning) Start(sent uint64) { *b = Beginning{room: 1, since: sent, each: 1} }

// First begins with few requests, for that long from the first of them on.
func (b *Beginning) First(long time.Duration) { *b = Beginning{room: few, each: fewEach, long: long} }

// On reports whether there is a bound.
func (b *Beginning) On() bool { return b.room != 0 }

// Full reports whether the bound is reached once so many more have gone.
func (b *Beginning) Full(more int) bool { return b.room > 0 && b.open+more >= b.room }

// End returns when the bound ends without an answer, if that is known.
func (b *Beginning) End() (at mono.Time, ok bool) { return b.until, b.long > 0 && b.until != 0 }

// Admit counts a request.
func (b *Beginning) Admit(now mono.Time) {
	if b.open++; b.long > 0 && b.until == 0 {
		b.until = now.Add(b.long)
	}
}

// Settle notes that a request has ended.
func (b *Beginning) Settle(now mono.Time, number uint64, served bool) {
	if b.room == 0 || number <= b.since {
		return
	}
	if end, ok := b.End(); ok && now >= end {
		*b = Beginning{}
		return
	}
	b.open--
	if !served {
		return
	}
	if b.served++; b.served < b.each {
		return
	}
	b.served = 0
	if b.room++; b.room > enough {
		*b = Beginning{}
	}
}
