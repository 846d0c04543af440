package scheduler

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// door is what a way waits at until it opens: see LaneConfig.After. It is a limit of that way alone. At
// a limit of other lanes, too, the way would hold those up meanwhile.
type door struct {
	after time.Duration
	rank  int64 // how many ways of the lane open earlier
	limit *Limit
}

// shutter is a limiter that may be shut for a time that nobody knows, as that of a host that is down.
type shutter interface {
	Shut(now mono.Time) bool
}

// free is the limiter of a door, where only the instant decides.
type free struct{}

// Ready implements limit.Limiter.
func (free) Ready(now mono.Time, _ limit.Cost) mono.Time { return now }

// Admit implements limit.Limiter.
func (free) Admit(*limit.Sent) {}

// Settle implements limit.Limiter.
func (free) Settle(mono.Time, *limit.Sent, *limit.Outcome) {}

// hang gives doors to the ways of a new lane that open later than others.
func (a *Lane) hang() {
	if a.sole != nil {
		return
	}
	after := a.config.After
	if after == nil {
		after = make([]time.Duration, len(a.ways))
	}
	for i, w := range a.ways {
		rank := int64(0)
		for _, d := range after {
			if d < after[i] {
				rank++
			}
		}
		if rank == 0 && !a.config.Homes {
			continue
		}
		w.door = &door{after: after[i], rank: rank, limit: a.line.Limit(free{}, Sharing{})}
		w.used = w.later()
		a.late = append(a.late, w)
	}
	if len(a.late) > 0 {
		a.own = false
		a.line.doors++
	}
}

// ranks is how many ranks of ways are told apart.
const ranks = 7

// later returns what is added to the turns of a way: of several that are ready at one instant, one that
// opens earlier goes first.
func (w *Way) later() int64 {
	if w.door == nil {
		return 0
	}
	return min(w.door.rank, ranks) << 40
}

// opens returns when w opens for t. Until then t goes by the ways that open earlier, unless all of
// those are shut.
func (l *Scheduler) opens(now mono.Time, w *Way, t *Ticket) mono.Time {
	at, after := limit.AfterSettle, w.after(t)
	if after < math.MaxInt64 {
		at = min(t.Came.Add(after), at)
	}
	if at <= now {
		return now
	}
	for _, v := range w.lane.ways {
		if v.after(t) < after && l.open(now, v, t) {
			return at
		}
	}
	return now
}

// after is how long after its arrival t may go by w, as long as others are open.
func (w *Way) after(t *Ticket) (d time.Duration) {
	if w.door != nil {
		d = w.door.after
	}
	if t.Homes != 0 && t.Homes>>w.Index&1 == 0 {
		d = max(d, t.Hold)
	}
	return d
}

// open reports whether t may wait to go by v: the host of v works, and no limit keeps t there until
// after its deadline.
func (l *Scheduler) open(now mono.Time, v *Way, t *Ticket) bool {
	for _, m := range v.limits {
		if *m.silent {
			continue
		}
		if at := m.Limiter.Ready(now, *v.Cost(t)); at == limit.Never || at > t.Deadline && at < limit.AfterSettle {
			return false
		}
		if s, ok := m.Limiter.(shutter); ok && s.Shut(now) {
			return false
		}
	}
	return true
}

// atDoor reports whether w begins or ends to wait for its door, when it moves from one limit to another.
func (w *Way) atDoor(from, to *Limit) bool {
	return w.door != nil && (from == w.door.limit || to == w.door.limit)
}

// knock looks again at the doors of a lane: another way may be shut by now.
func (a *Lane) knock() {
	for _, w := range a.late {
		if w.at == w.door.limit {
			a.line.mark(w.at)
		}
	}
}

// knock looks again at the doors of all lanes that have m, after a refusal or a failure.
func (m *Limit) knock() {
	for _, w := range m.ways {
		w.lane.knock()
	}
}
