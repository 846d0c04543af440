package throttle

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// State implements limit.Taught. What remains is never more than the limit that it is told of, so a TokenBucket holds no more than that
// either, whatever its Capacity is said to be: a reserve that it cannot hold would be waited for without an end. A limit from a provider's
// documentation may be another one than the server counts, and changes nothing.
func (f *Fair) State(_ mono.Time, all []limit.Stated) {
	least := int64(0)
	for i := range all {
		q := &all[i]
		if n := max(q.N, q.Burst); q.Unit == f.config.Unit && !q.Documented && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if least > 0 {
		f.bucket.capacity = float64(min(least, f.config.Capacity)) / f.config.MeanCost
	}
}
