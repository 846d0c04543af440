package rule

import (
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Clock is the difference of a server's clock from true time. The zero Clock shows true time.
type Clock struct {
	// DriftPPM is the gain in microseconds per second, from −999,999 to 1,000,000. At instant 0 the
	// clock has gained nothing.
	DriftPPM int64
	// Offset is how far the clock is ahead.
	Offset time.Duration
	// Steps are the instants at which the clock is set, in any order.
	Steps []Step
}

// Step is a change of the clock at an instant of true time. From then on the clock is ahead by
// another By, or behind if By is negative.
type Step struct {
	At mono.Time
	By time.Duration
}

// Reading returns the time on the clock at an instant of true time.
func (c Clock) Reading(t mono.Time) mono.Time {
	n := within(t)
	const million = 1_000_000
	whole := floor(n, million)
	ahead := time.Duration(whole/million*c.DriftPPM + floor((n-whole)*c.DriftPPM, million)/million)
	ahead += c.Offset
	for _, s := range c.Steps {
		if s.At <= t {
			ahead += s.By
		}
	}
	return mono.Time(n).Add(ahead)
}

// clocked is a rule with a wrong clock. If its clock is set back, a calendar is in an earlier
// interval again, like any counter that is named after the wall clock. The other rules take an
// earlier reading for the latest one, like counters that compare with the last instant. For them
// time stands still until the clock is past it.
type clocked struct {
	rule  Rule
	clock Clock
}

// NewClocked returns the rule r of a server with that clock. Arrive, Fits and Count take true time.
func NewClocked(r Rule, c Clock) (Rule, error) {
	var errs []error
	if c.DriftPPM < -999_999 || c.DriftPPM > 1_000_000 {
		errs = append(errs, fmt.Errorf("rule: DriftPPM %d is not from -999999 to 1000000", c.DriftPPM))
	}
	sum := time.Duration(0)
	add := func(what string, d time.Duration) {
		if d < -longestSpan || d > longestSpan || sum+max(d, -d) > longestSpan {
			errs = append(errs, fmt.Errorf("rule: %s %v may put the clock off by more than %v", what, d, longestSpan))
			return
		}
		sum += max(d, -d)
	}
	add("Offset", c.Offset)
	for i, s := range c.Steps {
		add(fmt.Sprintf("Steps[%d].By", i), s.By)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.Steps = append([]Step(nil), c.Steps...)
	return &clocked{r, c}, nil
}

// Arrive is as in Server.
func (c *clocked) Arrive(now mono.Time, cost int64) bool {
	return c.rule.Arrive(c.clock.Reading(now), cost)
}

// Fits is as in Rule.
func (c *clocked) Fits(now mono.Time, cost int64) bool {
	return c.rule.Fits(c.clock.Reading(now), cost)
}

// Count is as in Rule.
func (c *clocked) Count(now mono.Time, cost int64, passed bool) {
	c.rule.Count(c.clock.Reading(now), cost, passed)
}
