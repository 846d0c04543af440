package paceline

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// fillLocked admits and wakes those of the next in line that may go ahead of the head, which may go at the instant at. It
// returns when the head may go now, and whether anybody went.
func (g *Gate) fillLocked(now, at mono.Time) (then mono.Time, filled bool) {
	head := g.head
	w := head.next
	// Who is overtaken is so together with all before it, so the head was overtaken most. Who may not pass now may not when
	// another has passed, so one walk is enough.
	for n := g.fill; n > 0 && w != nil && head.passed < g.fill && at < limit.AfterSettle; n-- {
		next := w.next
		if limit.MayPass(g.limiter, now, w.cost, head.cost, at) {
			for v := w.prev; v != nil; v = v.prev {
				v.passed++
			}
			w.lease = g.admitLocked(now, &w.cost)
			g.wakeLocked(now, w, nil)
			at, filled = g.limiter.Ready(now, head.cost), true
		}
		w = next
	}
	return at, filled
}
