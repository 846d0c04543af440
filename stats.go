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
	// Waiting are in line, InFlight have gone and are not settled.
	Waiting, InFlight int
	// Admitted went. Each is in flight, or one of the five that follow: how it was settled.
	Admitted                                   int64
	Accepted, Limited, Failed, Unknown, Unsent int64
	// These never went: the cost never fits, the deadline comes first, too many wait, the context was cancelled.
	Never, Late, Full, Cancelled int64
	// Used is what the outcomes that are metered said was used.
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
	results := [...]*int64{&s.Unknown, &s.Accepted, &s.Limited, &s.Failed, &s.Unsent}
	ended := int64(0)
	for i, n := range results {
		*n = c.results[i]
		ended += c.results[i]
	}
	s.InFlight = int(s.Admitted - ended)
	s.Never, s.Late, s.Full, s.Cancelled = c.never, c.late, c.full, c.cancelled+c.gaveUp.Load()
	s.Used = c.used
	return s
}

// counts are a lane's, guarded by the Junction's lock but for gaveUp.
type counts struct {
	results                      [limit.Unsent + 1]int64
	never, late, full, cancelled int64
	gaveUp                       atomic.Int64 // before they stood in line
	used                         limit.Cost
}

func (c *counts) settled(o *limit.Outcome) {
	r := o.Result
	if int(r) >= len(c.results) {
		r = limit.Unknown
	}
	c.results[r]++
	if o.Metered {
		for u, n := range o.Actual {
			c.used[u] += min(max(n, 0), limit.MaxCost)
		}
	}
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
