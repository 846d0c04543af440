package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Rate is what a Limiter lets through in the long run: N of Unit per Per. Limit is the name of the limit, as in Bound.
type Rate struct {
	Limit string
	Unit  Unit
	N     int64
	Per   time.Duration
}

// String is a rate for people: "20 requests per 1s".
func (r Rate) String() string {
	var c Cost
	c[r.Unit] = r.N
	return fmt.Sprintf("%s per %v", c, r.Per)
}

// Rated is a Limiter that knows its rates. All limiters of this package are; an All is if everything in it is.
type Rated interface {
	Limiter
	// Rates returns the rates, always as many and in the same order. Concurrency, Spacing, Sequence and Cooldown have none. ok is false
	// if something in the Limiter cannot tell.
	Rates() (all []Rate, ok bool)
}

// Rates asks l; ok is false if l is not Rated.
func Rates(l Limiter) (all []Rate, ok bool) {
	if r, is := l.(Rated); is {
		return r.Rates()
	}
	return nil, false
}

// Rates implements Rated.
func (a *All) Rates() (all []Rate, ok bool) {
	for _, l := range a.each {
		rates, ok := Rates(l)
		if !ok {
			return nil, false
		}
		all = append(all, rates...)
	}
	return all, true
}

// Rates implements Rated.
func (n *named) Rates() (all []Rate, ok bool) {
	all, ok = Rates(n.Limiter)
	for i := range all {
		all[i].Limit = n.name
	}
	return all, ok
}

// Rates implements Rated.
func (a *account) Rates() ([]Rate, bool) {
	return []Rate{{a.unit.String(), a.unit, a.limit, a.window}}, true
}

// Rates implements Rated: what is refilled.
func (b *Bucket) Rates() ([]Rate, bool) {
	return []Rate{{b.unit.String(), b.unit, b.rate.limit, b.rate.window}}, true
}

// Rates implements Rated.
func (c *Concurrency) Rates() ([]Rate, bool) { return nil, true }

// Rates implements Rated.
func (s *Spacing) Rates() ([]Rate, bool) { return nil, true }

// Rates implements Rated.
func (s *Sequence) Rates() ([]Rate, bool) { return nil, true }

// Rates implements Rated.
func (c *Cooldown) Rates() ([]Rate, bool) { return nil, true }

// counted is what counts at now: all that is open, and what was settled within one window.
func (r *Rolling) counted(now mono.Time) int64 {
	return r.open + r.settled.after(now.Add(-r.span))
}
