package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// account decides when the next request goes. Each request pays for itself before it is sent: a
// step of time per unit of cost. If it paid afterwards, an expensive request would be weighed
// against the time that the request before it had paid for. The estimate of what others take would
// then be noise.
//
// A plan is absolute. The answer to the request sent at t sets when later requests go: a step per
// unit, counted from t. So each answer can replace the plan. The cost in flight is counted by
// itself, and nothing is corrected twice.
//
// Costs are those of requests; one unit is a cost of mean.
type account struct {
	longest time.Duration
	mean    float64
	paid    mono.Time     // the instant up to which all sent requests have paid
	step    time.Duration // per unit
	since   mono.Time     // the latest plan or the latest request sent: paid holds as of then
	idle    time.Duration // the total time in which a request could have gone and none was there
	seq     uint64
	from    uint64  // the request of the latest plan: paid includes all that was sent after it
	sum     float64 // the cost of all that was sent
	sentAt  mono.Time
	// How many requests may be in flight while only their answers would hold back the next.
	room    int
	planned time.Duration
}

func newAccount(longest time.Duration, mean float64) account {
	return account{longest: longest, mean: mean, paid: mono.Min, since: mono.Min, sentAt: mono.Min, room: 1}
}

// sent is the record of a request in flight.
type sent struct {
	seq   uint64 // 0: not counted
	at    mono.Time
	cost  float64
	sum   float64       // all that was sent up to this one
	alone bool          // nothing else was in flight
	idle  time.Duration // the total time until then in which a request could have gone and none was there
}

// times returns the time for a cost at a step per unit, at most a.longest. It is negative if the
// cost is.
func (a *account) times(step time.Duration, cost float64) time.Duration {
	d, most := float64(step)*cost/a.mean, float64(a.longest)
	return time.Duration(min(max(d, -most), most))
}

// due returns when a cost may go while open requests are in flight. If only their number holds it
// back, it waits for an answer, or for the pace.
func (a *account) due(cost float64, open int, pace time.Duration) mono.Time {
	if a.seq == 0 {
		return mono.Min
	}
	t := a.paid.Add(a.times(a.step, cost))
	if open >= a.room && a.step < pace {
		t = max(t, a.sentAt.Add(a.times(pace, min(cost, a.mean))))
	}
	return min(t, max(a.sentAt, a.since).Add(a.longest))
}

// pay notes that a cost goes now. Unused time before it is no credit: others took those tokens. If
// nobody took them, the next answer will show it.
func (a *account) pay(now mono.Time, cost float64) sent {
	if a.seq == 0 {
		a.paid, a.from = now, 1 // the first request has nothing to wait for
	} else {
		a.paid = a.paid.Add(a.times(a.step, cost))
		if late := now.Sub(max(a.paid, a.since)); late > 0 {
			a.idle += late
			a.paid = a.paid.Add(late)
		}
	}
	a.since, a.sentAt = now, now
	a.seq++
	a.sum += cost
	return sent{seq: a.seq, at: now, cost: cost, sum: a.sum, idle: a.idle}
}

// plan lets the next cost go lead after s was sent, and later ones a step per unit. lead includes
// the requests sent since s.
func (a *account) plan(now mono.Time, s *sighting, lead, step time.Duration) {
	a.room = min(a.room+1, 1<<30)
	a.step = step
	a.paid = s.at.Add(lead).Add(min(a.idle-s.idle, a.longest))
	a.since = now
	a.from = s.seq
}

// move lets the next unit go at next.
func (a *account) move(now, next mono.Time) {
	a.paid, a.since = next.Add(-a.step), now
	a.from = a.seq
}

// hold lets the next unit go at next, after a refusal. Later ones go one at a time until there are
// answers.
func (a *account) hold(now, next mono.Time, step time.Duration) {
	a.step, a.room = step, 1
	next = min(next, max(now, a.sentAt).Add(a.longest))
	a.move(now, next)
	a.planned = max(0, next.Sub(a.sentAt))
}

// correct replaces the estimate of a request's cost by the actual cost. Idle time that was computed
// with the estimate stays as it was.
func (f *Fair) correct(s *sent, cost float64) {
	more := cost - s.cost
	if more == 0 {
		return
	}
	s.sum += more
	f.sum += more
	if s.seq > f.from { // otherwise the plan is from a later answer
		f.paid = f.paid.Add(f.times(f.step, more))
	}
	for o := range f.book.All() {
		if o.seq > s.seq {
			o.sum += more
		}
	}
	if f.base.seq >= s.seq {
		f.base.sum += more
	}
}
