package rule

import (
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Server decides about requests in the order of their arrival.
//
// NewRolling, NewCalendar, NewAnchored, NewBucket, NewGCRA and NewWeighted make servers. All makes one
// of several, and NewClocked gives one a wrong clock. All are exact: they compute in
// integers and round nothing. They share these rules:
//
//   - A cost is the part of the limit that one request takes. A cost of 0 always passes and leaves
//     no trace. A cost above the limit never passes. A negative cost panics.
//   - now is by the server's own clock. A server reads it in whole ticks, rounded down, before it
//     subtracts.
//   - A now before an earlier one counts as that one, except for a calendar.
//   - Instants more than 73 years from the epoch count as 73 years from it.
//   - A server is not safe for concurrent use. After a warm-up it allocates nothing.
type Server interface {
	// Arrive reports whether a request of that cost passes at now.
	Arrive(now mono.Time, cost int64) bool
}

// Rule is a Server that decides in two steps, so several Rules can decide together. Arrive calls
// Fits, then Count with the answer of Fits.
type Rule interface {
	Server
	// Fits reports whether a request of that cost would pass at now. It records the time and
	// nothing else.
	Fits(now mono.Time, cost int64) bool
	// Count records the request of the last Fits, with the same arguments. passed says whether the
	// request went through in the end. It must be false if the request did not fit.
	Count(now mono.Time, cost int64, passed bool)
}

// together applies several rules at once.
type together struct{ rules []Rule }

// All returns the conjunction of rules. A request passes if every rule lets it pass, and only then
// it uses room in them. A refused request counts in each rule whose RefusedCount is set, whichever
// rule refused it. Without any rules everything passes.
func All(rules ...Rule) Rule { return &together{append([]Rule(nil), rules...)} }

// Arrive is as in Server.
func (t *together) Arrive(now mono.Time, cost int64) bool {
	ok := t.Fits(now, cost)
	t.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule. It asks every rule, so that each gets the time.
func (t *together) Fits(now mono.Time, cost int64) bool {
	ok := true
	for _, r := range t.rules {
		ok = r.Fits(now, cost) && ok
	}
	return ok
}

// Count is as in Rule.
func (t *together) Count(now mono.Time, cost int64, passed bool) {
	for _, r := range t.rules {
		r.Count(now, cost, passed)
	}
}

// The largest figures of a configuration. A sum of a few of them does not overflow.
const (
	mostCost    = 1 << 48
	longestSpan = time.Duration(1 << 59) // 18 years
	farthest    = 1 << 61                // instant from the epoch, 73 years
	never       = -1 << 62               // before every instant by more than two spans
)

// free reports whether a cost is 0, which always passes. It panics if the cost is negative.
func free(cost int64) bool {
	if cost < 0 {
		panic(fmt.Sprintf("rule: negative cost %d", cost))
	}
	return true
}

func checkCost(field string, n int64) error {
	if n < 1 || n > mostCost {
		return fmt.Errorf("rule: %s %d is not from 1 to %d", field, n, int64(mostCost))
	}
	return nil
}

func checkWindow(d time.Duration) error {
	if d < 1 || d > longestSpan {
		return fmt.Errorf("rule: Window %v is not from 1ns to %v", d, longestSpan)
	}
	return nil
}

func checkCommon(limit int64, window, tick time.Duration) error {
	err := errors.Join(checkCost("Limit", limit), checkWindow(window))
	if tick > longestSpan {
		err = errors.Join(err, fmt.Errorf("rule: Tick %v is longer than %v", tick, longestSpan))
	}
	return err
}

// tickOf returns the unit of a clock in nanoseconds: 1 ms if d is zero, 1 ns if it is negative.
func tickOf(d time.Duration) int64 {
	switch {
	case d == 0:
		return int64(time.Millisecond)
	case d < 0:
		return 1
	}
	return int64(d)
}

// dial is a clock that is read in whole ticks, in nanoseconds.
type dial struct {
	tick      int64
	seen, cut int64 // the latest reading, and the same rounded down to whole ticks
}

func newDial(tick time.Duration) dial { return dial{tickOf(tick), never, never} }

// read returns the reading, or the latest one if the reading is earlier.
func (d *dial) read(now mono.Time) int64 {
	if t := within(now); t > d.seen {
		d.set(t)
	}
	return d.cut
}

// follow returns the reading, even if it is before an earlier one.
func (d *dial) follow(now mono.Time) int64 {
	if t := within(now); t != d.seen {
		d.set(t)
	}
	return d.cut
}

func within(t mono.Time) int64 { return min(max(int64(t), -farthest), farthest) }

func (d *dial) set(t int64) {
	d.seen = t
	if in := t - d.cut; in < 0 || in >= d.tick {
		d.cut = floor(t, d.tick)
	}
}

// floor returns the largest multiple of unit that is not above t.
func floor(t, unit int64) int64 {
	n := t / unit
	if t < n*unit { // division rounds towards zero
		n--
	}
	return n * unit
}
