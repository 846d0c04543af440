package observe

import (
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Stats counts what a Gate, a Lane or a Pool has done so far, as of one instant. The difference of
// two Stats is what happened between them.
type Stats struct {
	At time.Time
	// Waiting is how many are in line. InFlight is how many have gone and are not settled.
	Waiting, InFlight int
	// Admitted is how many went. Each is in flight, or is in one of the next five fields, by its
	// settlement.
	Admitted                                   int64
	Accepted, Limited, Failed, Unknown, Unsent int64
	// These never went: the cost never fits, the deadline comes first, too many wait, the context
	// was cancelled.
	Never, Late, Full, Cancelled int64
	// Used is the usage in metered outcomes.
	Used limit.Cost
}

// Sub returns what happened since an earlier Stats. Counts are differences; Waiting and InFlight
// are the present ones.
func (s Stats) Sub(earlier Stats) Stats {
	for _, f := range [...]struct {
		n    *int64
		less int64
	}{
		{&s.Admitted, earlier.Admitted}, {&s.Accepted, earlier.Accepted}, {&s.Limited, earlier.Limited},
		{&s.Failed, earlier.Failed}, {&s.Unknown, earlier.Unknown}, {&s.Unsent, earlier.Unsent},
		{&s.Never, earlier.Never}, {&s.Late, earlier.Late}, {&s.Full, earlier.Full},
		{&s.Cancelled, earlier.Cancelled},
	} {
		*f.n -= f.less
	}
	for u, n := range earlier.Used {
		s.Used[u] -= n
	}
	return s
}

// StatsOf returns the Stats of admitted requests and the tally of their settlements.
func StatsOf(admitted int64, t *limit.Tally) Stats {
	return Stats{
		Admitted: admitted, Accepted: t.Accepted, Limited: t.Limited, Failed: t.Failed, Unknown: t.Unknown,
		Unsent: t.Unsent, Used: t.Used,
	}
}

// Counts returns the counts in the form of a Snapshot.
func (s Stats) Counts() Counts {
	return Counts{
		Sent: s.Admitted, Accepted: s.Accepted, Limited: s.Limited, Failed: s.Failed, Unknown: s.Unknown,
		Unsent: s.Unsent, Never: s.Never, Late: s.Late, Full: s.Full, Cancelled: s.Cancelled,
		Used: amountsOf(s.Used),
	}
}
