package stack

// Beginning makes the load begin slowly where the right load is unknown. One request goes first.
// Each that is served makes room for two, so that the number in flight doubles with each round
// trip. Only requests sent since the beginning count. The driver numbers requests, from 1. The zero
// Beginning has not begun: any number may go.
type Beginning struct {
	room  int    // how many may be in flight; 0: any number
	open  int    // requests in flight that were sent since
	since uint64 // the last request that was sent before it began
}

// enough requests in flight end the beginning: from then on any number may go.
const enough = 1024

// Start begins. sent is the number of the last request.
func (b *Beginning) Start(sent uint64) { *b = Beginning{room: 1, since: sent} }

// On reports whether there is a bound.
func (b *Beginning) On() bool { return b.room != 0 }

// Full reports whether the bound is reached once so many more have gone.
func (b *Beginning) Full(more int) bool { return b.room > 0 && b.open+more >= b.room }

// Admit counts a request.
func (b *Beginning) Admit() {
	b.open++
}

// Settle notes that a request has ended.
func (b *Beginning) Settle(number uint64, served bool) {
	if b.room == 0 || number <= b.since {
		return
	}
	b.open--
	if !served {
		return
	}
	if b.room++; b.room > enough {
		*b = Beginning{}
	}
}
