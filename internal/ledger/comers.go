package ledger

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Where all send as soon as they may, a window's requests go in one burst and are free again in one: whoever comes in between would have
// nothing for as long. So those who are there keep one request free, where that is next to nothing of the limit.
const sparePart = 200 // of the limit

// spares are what is kept free beside a request of this node's, and of another's. Who has sent nothing for as long as anything counts takes what
// is kept free.
func (t *pending) spares() (own, others limit.Cost) {
	mean := t.mean()
	if len(t.others) == 0 {
		return own, others
	}
	for u, whole := range wholeOf(t.limiter, t.now) {
		if whole > 0 && whole/sparePart < mean[u] {
			return own, others
		}
	}
	if t.lastUse > mono.Min && t.last.Sub(t.lastUse) < t.config.TTL+t.config.New().Span() {
		own = mean
	}
	return own, mean
}

// ready is when a cost may go so that what is spared stays free.
func (t *pending) ready(cost, spared limit.Cost) mono.Time {
	plus(&cost, &spared)
	return t.limiter.Ready(t.now, cost)
}
