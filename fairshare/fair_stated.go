package fairshare

import (
	"cmp"
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// State reads the limits that an answer states: how the server counts, how much a bucket holds at
// most, and for windows a new limit. Call it before or after the Settle of that answer. A Pool, a
// transport and `paceline run` call it.
func (f *Fair) State(_ mono.Time, all []limit.Rule) {
	f.hearKind(all)
	f.hearCapacity(all)
	f.hearLimit(all)
}

// hearLimit reads a changed limit. A quota may change, and all sharers of its windows have to
// reckon with the same limit. The remainder shows a change, but each sharer would read another
// limit from it. So the limit is the one that the server states. A stated limit belongs to this
// quota under two conditions: the server has stated the configured limit before, and states only
// one in its unit and window.
func (f *Fair) hearLimit(all []limit.Rule) {
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

// hearCapacity reads how much a bucket holds at most. A remainder is never more than the stated
// limit, whatever the configured Capacity is. Sharers would wait without an end for a reserve that
// the bucket cannot hold. A stated limit of another pace is another limit. A limit from a
// provider's documentation counts only if it agrees with this quota.
func (f *Fair) hearCapacity(all []limit.Rule) {
	least := int64(0)
	for i := range all {
		q := &all[i]
		switch {
		case q.Unit != f.config.Unit,
			q.Documented && (q.N != f.config.Limit || q.Per != f.config.Window),
			q.Per > 0 && math.Abs(perSecond(q)-float64(f.config.Limit)/f.config.Window.Seconds()) > samePace*perSecond(q):
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

const samePace = 0.01 // a fraction: servers state whole numbers in whole seconds
