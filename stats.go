package paceline

import (
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Stats is what a Gate, a Lane or a Pool has done so far, all of it as of one instant. Two of them, subtracted, are what happened
// between.
type Stats struct {
	At time.Time
	// Waiting is how many are in line, InFlight how many have gone and are not settled.
	Waiting, InFlight int
	// Admitted is how many went. Each is in flight, or counted in one of the next five fields, by how it was settled.
	Admitted                                   int64
	Accepted, Limited, Failed, Unknown, Unsent int64
	// These never went: the cost never fits, the deadline comes first, too many wait, the context was cancelled.
	Never, Late, Full, Cancelled int64
	// Used is how much was used, as metered outcomes said.
	Used limit.Cost
}

// Sub returns what happened since an earlier snapshot: what counts is the difference, Waiting and InFlight are of now.
func (s Stats) Sub(earlier Stats) Stats {
	for _, f := range [...]struct {
		n    *int64
		less int64
	}{
		{&s.Admitted, earlier.Admitted}, {&s.Accepted, earlier.Accepted}, {&s.Limited, earlier.Limited}, {&s.Failed, earlier.Failed},
		{&s.Unknown, earlier.Unknown}, {&s.Unsent, earlier.Unsent}, {&s.Never, earlier.Never}, {&s.Late, earlier.Late},
		{&s.Full, earlier.Full}, {&s.Cancelled, earlier.Cancelled},
	} {
		*f.n -= f.less
	}
	for u, n := range earlier.Used {
		s.Used[u] -= n
	}
	return s
}

// Stats returns what the Lane has done so far, all of it as of one instant.
func (a *Lane) Stats() Stats {
	a.junction.mu.Lock()
	defer a.junction.mu.Unlock()
	c := &a.counts
	s := Stats{At: time.Now(), Waiting: a.lane.Len(), Admitted: int64(a.lane.Granted())}
	s.tell(&c.tally)
	s.InFlight = int(s.Admitted - c.tally.Sum())
	s.Never, s.Late, s.Full, s.Cancelled = c.never, c.late, c.full, c.cancelled+c.gaveUp.Load()
	return s
}

func (s *Stats) tell(t *limit.Tally) {
	s.Accepted, s.Limited, s.Failed, s.Unknown, s.Unsent, s.Used = t.Accepted, t.Limited, t.Failed, t.Unknown, t.Unsent, t.Used
}

// Stats returns what the attempts of all keys have come to, all of it as of one instant; Keys has the same for each key. Waiting is
// requests, the rest is attempts: a request that is sent again was admitted twice. How requests ended is in Counts.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	s := Stats{At: p.epoch.Add(time.Duration(now)), Waiting: p.queue.Counts().Waiting}
	var all limit.Tally
	for i := range p.config.Keys {
		k := p.dispatcher.KeyInfo(now, i)
		s.InFlight += k.InFlight
		s.Admitted += int64(k.Sent)
		all.Add(&k.Tally)
	}
	s.tell(&all)
	return s
}

// counts are those of a lane. The Junction's lock guards them, except gaveUp.
type counts struct {
	tally                        limit.Tally
	never, late, full, cancelled int64
	gaveUp                       atomic.Int64 // before they stood in line
}

func (c *counts) refused(why error) {
	switch why {
	case ErrNever:
		c.never++
	case ErrDeadline:
		c.late++
	case ErrFull:
		c.full++
	default:
		c.cancelled++
	}
}
