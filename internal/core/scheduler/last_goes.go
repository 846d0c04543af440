package scheduler

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// LastGoes guesses when the last ticket of a lane goes; limit.AfterSettle or limit.Never if no instant is known. Where no other lane has
// one of its limits it is an instant before which that cannot go; otherwise others who go before it are counted as Expect does. Somebody
// must wait in the lane.
func (l *Scheduler) LastGoes(now mono.Time, a *Lane) mono.Time {
	now = max(now, l.last)
	_, turn := a.At()
	if turn >= limit.AfterSettle { // only an answer can tell
		return turn
	}
	t := a.ends[0].tail
	if !a.isAlone() {
		at, _ := l.Expect(now, a, &t.Cost, mono.Max)
		return at
	}
	ahead := a.least
	less(&ahead, t.uses())
	return max(l.soonest(now, a, &t.Cost, a.count-1, &ahead), turn)
}
