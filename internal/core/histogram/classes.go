package histogram

import (
	"math/bits"
	"time"
)

// Classes counts durations in a few classes, each twice as wide as the one before. It takes 192
// bytes. It is for uses that keep many of them for a long time. The zero value is empty. Not safe
// for concurrent use.
type Classes struct {
	counts [bounds + 1]int64
	sum    time.Duration
}

const (
	bounds = 21
	finest = time.Millisecond
)

// Bounds returns the ends of the classes, in order: 1 ms, 2 ms, 4 ms … 17 min. Longer durations are
// in one more class.
func Bounds() []time.Duration {
	all := make([]time.Duration, bounds)
	for i := range all {
		all[i] = finest << i
	}
	return all
}

// Add counts a duration. A negative one counts as 0.
func (c *Classes) Add(d time.Duration) {
	d = max(d, 0)
	c.counts[min(bits.Len64(uint64(max(d-1, 0)/finest)), bounds)]++
	c.sum += d
}

// Merge adds the counts of another Classes.
func (c *Classes) Merge(more *Classes) {
	for i, n := range more.counts {
		c.counts[i] += n
	}
	c.sum += more.sum
}

// N returns the number of durations, and Sum their sum.
func (c *Classes) N() (n int64) {
	for _, k := range c.counts {
		n += k
	}
	return n
}

func (c *Classes) Sum() time.Duration { return c.sum }

// Upto appends, for each bound, the number of durations that are no longer.
func (c *Classes) Upto(to []int64) []int64 {
	n := int64(0)
	for _, k := range c.counts[:bounds] {
		n += k
		to = append(to, n)
	}
	return to
}
