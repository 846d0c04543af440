package throttle

import (
	"cmp"
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// State implements limit.Taught: it hears how the server counts, and what a bucket of its holds at most. A Pool, a transport and `paceline
// run` call it.
func (f *Fair) State(_ mono.Time, all []limit.Stated) {
	f.hearKind(all)
	f.hearCapacity(all)
}

// hearCapacity: what remains is never more than the limit that it is told of, so a bucket holds no more than that either, whatever its Capacity
// is said to be; a reserve that it cannot hold would be waited for without an end. A limit of another pace is another limit, and one from a
// provider's documentation may be if not all of it is as is known of this quota.
func (f *Fair) hearCapacity(all []limit.Stated) {
	least := int64(0)
	for i := range all {
		q := &all[i]
		switch {
		case q.Unit != f.config.Unit,
			q.Documented && (q.N != f.config.Limit || q.Per != f.config.Window),
			q.Per > 0 && math.Abs(perSecond(&q.Rate)-float64(f.config.Limit)/f.config.Window.Seconds()) > samePace*perSecond(&q.Rate):
			continue
		}
		if n := cmp.Or(q.Burst, q.N); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if least > 0 {
		f.bucket.capacity = float64(min(least, f.config.Capacity)) / f.config.MeanCost
	}
}

const samePace = 0.01 // as a fraction: servers state whole numbers in whole seconds
