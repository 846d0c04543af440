package throttle

import (
	"cmp"

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
// is said to be; a reserve that it cannot hold would be waited for without an end. Of limits from a provider's documentation that is known of
// this quota alone.
func (f *Fair) hearCapacity(all []limit.Stated) {
	least := int64(0)
	for i := range all {
		q := &all[i]
		if q.Unit != f.config.Unit || q.Documented && (q.N != f.config.Limit || q.Per != f.config.Window) {
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
