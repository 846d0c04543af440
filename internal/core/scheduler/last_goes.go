package scheduler

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// LastGoes guesses when the last ticket of a lane goes. At limit.AfterSettle or limit.Never no
// instant is known. If no other lane has one of its limits, the ticket cannot go before that
// instant. Otherwise it counts other tickets that go before it, as Expect does. A ticket must wait
// in the lane.
func (l *Scheduler) LastGoes(now mono.Time, a *Lane) mono.Time {
	now = max(now, l.last)
	_, turn := a.At()
	if turn >= limit.AfterSettle { // only an answer can change that
		return turn
	}
	t := a.ends[0].tail
	if !a.isAlone() {
		at, _ := l.expect(now, a, t, mono.Max)
		return at
	}
	ahead := a.least
	less(&ahead, t.uses())
	return max(l.soonest(now, a, t, a.count-1, &ahead), turn)
}
