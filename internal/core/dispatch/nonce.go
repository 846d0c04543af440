package dispatch

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Nonce issues strictly increasing numbers for one key. A number is the wall clock in a unit, or
// the last number plus one if the clock has not moved on. Take one when the request is written,
// never when it is queued. Not safe for concurrent use.
//
// Across restarts they rise as long as the wall clock does; After makes them rise even if it was
// set back. The zero Nonce counts milliseconds of the driver's own scale.
type Nonce struct {
	wall int64 // nanoseconds since 1970 at the driver's epoch
	unit int64 // 0: 1 ms
	last uint64
}

// NonceConfig describes a key's nonces.
type NonceConfig struct {
	// Unit is the unit of the numbers. If zero, 1 ms, as most clients of the same key use: a key
	// that once saw microseconds refuses milliseconds for ever.
	Unit time.Duration
	// After is the last nonce that an earlier process may have used. It must be less than the
	// largest uint64, which has no successor.
	After uint64
}

// NewNonce checks the configuration and returns a source of nonces. epoch is the wall time of the
// driver's epoch.
func NewNonce(epoch time.Time, c NonceConfig) (*Nonce, error) {
	c.Unit = cmp.Or(c.Unit, time.Millisecond)
	if c.Unit < 0 {
		return nil, fmt.Errorf("Nonce: Unit %v is negative", c.Unit)
	}
	if c.After == math.MaxUint64 {
		return nil, fmt.Errorf("Nonce: After %d is the largest there is", c.After)
	}
	wall := int64(0)
	if !epoch.IsZero() {
		wall = epoch.UnixNano()
	}
	return &Nonce{wall: wall, unit: int64(c.Unit), last: c.After}, nil
}

// Next returns a number larger than all before it.
func (n *Nonce) Next(now mono.Time) uint64 {
	unit := n.unit
	if unit == 0 {
		unit = int64(time.Millisecond)
	}
	n.last = max(n.last+1, uint64(max(n.wall+int64(now), 0)/unit))
	return n.last
}

// Last returns the latest number issued, or After.
func (n *Nonce) Last() uint64 { return n.last }
