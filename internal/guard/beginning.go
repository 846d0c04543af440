package guard

// Beginning is how load begins that nobody knows the right measure of: one request goes first, and each that is served
// makes room for one more than before it, so that there are twice as many after each round trip. Only what was sent since
// counts, and is a measure. The driver numbers requests, from 1. The zero Beginning has not begun: any number may go.
type Beginning struct {
	room  int    // how many may be in flight; 0: any number
	open  int    // of those sent since
	since uint64 // the last request sent before it
}

// enough in flight is any number.
const enough = 1024

// Start begins: sent is the number of the last request.
func (b *Beginning) Start(sent uint64) { *b = Beginning{room: 1, since: sent} }

// On tells whether there is a bound.
func (b *Beginning) On() bool { return b.room > 0 }

// Full tells whether no more may go when so many more have gone.
func (b *Beginning) Full(more int) bool { return b.room > 0 && b.open+more >= b.room }

// Admit counts a request.
func (b *Beginning) Admit() {
	if b.room > 0 {
		b.open++
	}
}

// Settle takes in that a request has ended.
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
