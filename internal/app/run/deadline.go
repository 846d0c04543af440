package run

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
)

// starts keeps when the durations of a file's lines begin: at the beginning of the first run that
// read them. If an input cannot be read twice, the duration of a line begins when the line is read.
// The journal keeps that time.
type starts struct {
	c      *Config
	tally  *tally.Tally
	store  *output.Store
	course *course

	sum  uint64          // a checksum of the lines so far
	ends []end           // where lines end, from the first one with a duration on
	of   []journal.Start // the starts that belong to this input
}

// end is a line, and a checksum of all lines up to its end.
type end struct {
	line int
	sum  uint64
}

// add takes in a line; timed: the line has a duration.
func (s *starts) add(q *format.Request, timed bool) {
	const prime = 1099511628211 // FNV-1a
	for i := range len(q.ID) {
		s.sum = (s.sum ^ uint64(q.ID[i])) * prime
	}
	s.sum = (s.sum ^ 0xff) * prime // a byte that is in no id ends each of them
	if timed || s.ends != nil {
		s.ends = append(s.ends, end{q.Line, s.sum})
	}
}

// knows says whether a start belongs to the first lines of this input.
func (s *starts) knows(of journal.Start) bool {
	i, found := slices.BinarySearchFunc(s.ends, of.Lines, func(e end, line int) int { return cmp.Compare(e.line, line) })
	return found && s.ends[i].sum == of.Sum
}

// open finds the starts that earlier runs recorded of this input. The durations of all other lines
// begin now. open then returns a start that the caller must record.
func (s *starts) open(before []journal.Start, now time.Time) (news journal.Start, isNews bool) {
	if len(s.ends) == 0 {
		return news, false
	}
	for _, b := range before {
		if s.knows(b) {
			s.of = append(s.of, b)
		}
	}
	last := s.ends[len(s.ends)-1]
	if _, known := s.at(last.line); known {
		return news, false
	}
	news = journal.Start{At: now.UnixNano(), Lines: last.line, Sum: last.sum}
	s.of = append(s.of, news)
	return news, true
}

// at returns when the duration of a line began. It returns false if the line was not in the input
// when that was checked.
func (s *starts) at(line int) (time.Time, bool) {
	first, found := int64(math.MaxInt64), false
	for _, of := range s.of {
		if of.Lines >= line {
			first, found = min(first, of.At), true
		}
	}
	return time.Unix(0, first), found
}

// lasts returns the duration within which a request must be sent; 0: there is none.
func (c *Config) lasts(q *format.Request) time.Duration {
	if !q.At.IsZero() {
		return 0
	}
	return cmp.Or(q.TTL, c.TTL)
}

// due returns how long a request may still wait (0: for ever; negative: it has expired). renewal is
// how long each of its retries may wait (negative: no longer).
func (s *starts) due(q *format.Request) (ttl, renewal time.Duration) {
	d := s.c.lasts(q)
	switch {
	case !q.At.IsZero():
		return expiring(q.At), -1
	case d == 0:
		return 0, 0
	}
	ttl = expiring(s.start(q).Add(d))
	// If another run sends a request again, that is a retry, too.
	if s.c.Renew && (ttl < 0 || s.tally.IsAgain(q.ID)) {
		ttl = d
	}
	return ttl, d
}

// expiring returns the time until an instant: never 0.
func expiring(at time.Time) time.Duration {
	return cmp.Or(time.Until(at), -1)
}

// start is when the duration of a request begins.
func (s *starts) start(q *format.Request) time.Time {
	if !q.Created.IsZero() {
		return q.Created
	}
	if at, ok := s.store.History.Reads[q.ID]; ok {
		return time.Unix(0, at)
	}
	if at, ok := s.at(q.Line); ok {
		return at
	}
	if s.store.Journal != nil {
		if err := s.store.Journal.Read(q.ID, q.ReadAt); err != nil {
			s.course.fail(err)
		}
	}
	return q.ReadAt
}
