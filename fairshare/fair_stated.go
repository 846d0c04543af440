package fairshare

import (
	"cmp"
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// State implements limit.Taught: it hears how the server counts, what a bucket of its holds at most, and of windows when there is another
// limit than there was. A Pool, a transport and `paceline run` call it.
func (f *Fair) State(_ mono.Time, all []limit.Stated) {
	f.hearKind(all)
	f.hearCapacity(all)
	f.hearLimit(all)
}

// hearLimit: a quota may become another one, and all who share windows of it have to reckon with the same. What remains shows that it did, but
// not alike to all what it is now; that the server states it does. It is this quota once the server has stated it as it is configured, and
// there is no other in its unit and window.
func (f *Fair) hearLimit(all []limit.Stated) {
	n := int64(0)
	for i := range all {
		q := &all[i]
		switch {
		case q.Unit != f.config.Unit || q.Documented || q.Per > 0 && q.Per != f.config.Window:
			continue
		case q.Burst > 0 || q.Counts == limit.CountsBucket || n > 0 && n != q.N:
			return
		}
		n = q.N
	}
	f.window.stated = f.window.stated || n == f.config.Limit
	if units := float64(n) / f.config.MeanCost; f.window.stated && n > 0 && units != f.window.limit {
		f.window.restate(units)
	}
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
