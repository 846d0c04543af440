package journal

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Starts keeps when the durations of a file's lines begin: at the beginning of the first run that
// read them. The zero Starts are ready.
type Starts struct {
	sum  uint64  // a checksum of the lines so far
	ends []end   // where lines end, from the first one with a duration on
	of   []Start // the starts that belong to this input
}

// end is a line, and a checksum of all lines up to its end.
type end struct {
	line int
	sum  uint64
}

// Add takes in a line; timed: the line has a duration.
func (s *Starts) Add(id string, line int, timed bool) {
	const prime = 1099511628211 // FNV-1a
	for i := range len(id) {
		s.sum = (s.sum ^ uint64(id[i])) * prime
	}
	s.sum = (s.sum ^ 0xff) * prime // a byte that is in no id ends each of them
	if timed || s.ends != nil {
		s.ends = append(s.ends, end{line, s.sum})
	}
}

// knows says whether a start belongs to the first lines of this input.
func (s *Starts) knows(of Start) bool {
	i, found := slices.BinarySearchFunc(s.ends, of.Lines, func(e end, line int) int { return cmp.Compare(e.line, line) })
	return found && s.ends[i].sum == of.Sum
}

// Open finds the starts that earlier runs recorded of this input. The durations of all other lines
// begin now. Open then returns a start that the caller must record.
func (s *Starts) Open(before []Start, now time.Time) (news Start, isNews bool) {
	if len(s.ends) == 0 {
		return news, false
	}
	for _, b := range before {
		if s.knows(b) {
			s.of = append(s.of, b)
		}
	}
	last := s.ends[len(s.ends)-1]
	if _, known := s.At(last.line); known {
		return news, false
	}
	news = Start{At: now.UnixNano(), Lines: last.line, Sum: last.sum}
	s.of = append(s.of, news)
	return news, true
}

// At returns when the duration of a line began. It returns false if the line was not in the input
// when that was checked.
func (s *Starts) At(line int) (time.Time, bool) {
	first, found := int64(math.MaxInt64), false
	for _, of := range s.of {
		if of.Lines >= line {
			first, found = min(first, of.At), true
		}
	}
	return time.Unix(0, first), found
}
