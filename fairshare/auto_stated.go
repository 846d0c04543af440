package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit"
)

// told is what can be concluded from answers that say how much remains until a reset, and do not say of how much. The window is at
// least as long as the longest reset, and the limit at least as much as ever remained. Limits are round numbers, and windows of usual
// lengths.
type told struct {
	on      bool // the limit that holds was found here
	longest time.Duration
	most    int64
}

// hear is told of each answer. ok says that q is another quota than the one that holds.
func (d *told) hear(u limit.Unit, holds limit.Stated, o *limit.Outcome) (q limit.Stated, ok bool) {
	if o.Known>>u&1 == 0 || o.Reset[u] <= 0 || o.Result != limit.Accepted && o.Result != limit.Failed {
		return q, false
	}
	reset, left := o.Reset[u], min(max(o.Remaining[u], 0), limit.MaxCost-1)
	if reset <= d.longest && left < d.most {
		return q, false
	}
	d.longest, d.most = max(d.longest, reset), max(d.most, left+1)
	per := d.longest.Seconds()
	for _, w := range windows {
		if w >= d.longest.Seconds()*(1-windowNear) {
			per = w
		}
	}
	q = limit.Stated{Rate: limit.Rate{Limit: u.String(), Unit: u, N: roundUp(d.most), Per: Seconds(per)}}
	d.on = true
	return q, q != holds
}

const windowNear = 0.02 // a reset may be told so much later than it is

// roundUp rounds up to two digits.
func roundUp(n int64) int64 {
	digit := int64(1)
	for n/digit >= 100 {
		digit *= 10
	}
	return (n + digit - 1) / digit * digit
}
