package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/limit/mono"
)

// Turns decide when requests that are asked again and again are asked, and how old their answers are. A
// round begins at each interval, and every request has a turn in it. A turn is skipped if the turn before it
// still waits or has no answer. The earlier turn keeps its place in line. So no request is asked twice before
// all were asked once.
//
// Requests are known by their numbers from 0 on. Not safe for concurrent use.
type Turns struct {
	every   time.Duration
	rounds  int // how many there are; 0: no end
	before  int // rounds of earlier runs
	begun   int // rounds that have begun
	began   mono.Time
	skipped int
	of      []turn
	gaps    histogram.Histogram // times from an answer to the next one of the same request
}

// turn is the state of a request.
type turn struct {
	open     bool // it waits, or has no answer yet
	answered bool
	last     mono.Time // its latest answer
	over     mono.Time // the end of its latest turn
}

// NewTurns returns rounds of n requests that begin at now. rounds bounds them; 0: no end. before is the number of the
// last round of earlier runs.
func NewTurns(now mono.Time, n int, every time.Duration, rounds, before int) *Turns {
	return &Turns{every: every, rounds: rounds, before: before, began: now, of: make([]turn, n)}
}

// Due begins the round of now, if it has not begun, and appends the requests to ask to due: first the one whose latest
// turn is the longest ago. In any other order, limits that are too low would take their turns from the same requests
// in each round. All turns of rounds that now has passed over are skipped.
func (t *Turns) Due(now mono.Time, due []int) (round int, all []int) {
	n := int(now.Sub(t.began)/t.every) + 1
	if t.rounds > 0 {
		n = min(n, t.rounds)
	}
	if n <= t.begun {
		return t.Round(), due
	}
	t.skipped += (n - t.begun - 1) * len(t.of)
	t.begun = n
	for i := range t.of {
		if t.of[i].open {
			t.skipped++
			continue
		}
		t.of[i].open = true
		due = append(due, i)
	}
	slices.SortStableFunc(due, func(a, b int) int { return cmp.Compare(t.of[a].over, t.of[b].over) })
	return t.Round(), due
}

// Next returns when the next round begins, or false if the last one has begun.
func (t *Turns) Next() (mono.Time, bool) {
	return t.began.Add(time.Duration(t.begun) * t.every), t.rounds == 0 || t.begun < t.rounds
}

// Ended notes that the turn of a request is over, and whether it brought an answer.
func (t *Turns) Ended(now mono.Time, i int, answered bool) {
	of := &t.of[i]
	of.open, of.over = false, now
	if !answered {
		return
	}
	if of.answered {
		t.gaps.Add(now.Sub(of.last))
	}
	of.answered, of.last = true, now
}

// Round returns the number of the present round.
func (t *Turns) Round() int { return t.before + t.begun }

// Skipped returns how many turns were skipped.
func (t *Turns) Skipped() int { return t.skipped }

// Waiting returns how many turns are not over.
func (t *Turns) Waiting() (n int) {
	for i := range t.of {
		if t.of[i].open {
			n++
		}
	}
	return n
}

// Ages are how old the latest answers of the requests are. Requests without an answer are counted apart.
type Ages struct {
	P50, P99 time.Duration
	Never    int
}

// Now returns the ages at now.
func (t *Turns) Now(now mono.Time) (a Ages) {
	var ages histogram.Histogram
	for i := range t.of {
		if !t.of[i].answered {
			a.Never++
			continue
		}
		ages.Add(now.Sub(t.of[i].last))
	}
	a.P50, a.P99 = ages.Quantile(0.5), ages.Quantile(0.99)
	return a
}

// Overall returns the ages over all the time from the first answers until now: who looks at any time at any request
// finds an age of P50 or less in half of the cases.
func (t *Turns) Overall(now mono.Time) (a Ages) {
	all := t.gaps.Clone()
	for i := range t.of {
		if !t.of[i].answered {
			a.Never++
			continue
		}
		all.Add(now.Sub(t.of[i].last))
	}
	a.P50, a.P99 = all.AgeQuantile(0.5), all.AgeQuantile(0.99)
	return a
}
