package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit"
)

// told concludes the limit from answers that say how much remains until a reset, without the limit.
// The window is at least as long as the longest reset. The limit is at least the largest remainder.
// Limits are round numbers, and windows have usual lengths.
type told struct {
	on      bool // the present limit was found here
	longest time.Duration
	most    int64
}

// hear reads each answer. ok means that q is another quota than the present one.
func (d *told) hear(u limit.Unit, holds limit.Rule, o *limit.Outcome) (q limit.Rule, ok bool) {
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
	q = limit.Rule{Name: u.String(), Unit: u, N: roundUp(d.most), Per: Seconds(per)}
	d.on = true
	return q, q != holds
}

const windowNear = 0.02 // a reset may be stated later than it is, by this fraction

// roundUp rounds up to two digits.
func roundUp(n int64) int64 {
	digit := int64(1)
	for n/digit >= 100 {
		digit *= 10
	}
	return (n + digit - 1) / digit * digit
}
