package ledger

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Where all send as soon as they may, a window's requests go in one burst and are free again in one: whoever comes in between would have
// nothing for as long. So those who are there keep one request free, where that is next to nothing of the limit.
const sparePart = 200 // of the limit

// spare is what those who are there keep free.
func (t *pending) spare() limit.Cost {
	mean := t.mean()
	if len(t.others) == 0 {
		return limit.Cost{}
	}
	for u, whole := range wholeOf(t.limiter, t.now) {
		if whole > 0 && whole/sparePart < mean[u] {
			return limit.Cost{}
		}
	}
	return mean
}

// readyFor is when a cost may go: of this node's, or of another's. Who has sent nothing for as long as anything counts takes what is kept free.
func (t *pending) readyFor(own bool, cost, spare limit.Cost) mono.Time {
	if !own || t.lastUse > mono.Min && t.last.Sub(t.lastUse) < t.config.TTL+t.config.New().Span() {
		plus(&cost, &spare)
	}
	return t.limiter.Ready(t.now, cost)
}
