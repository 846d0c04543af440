package rule

import "github.com/paceline-go/paceline/limit/mono"

// Timed is a Rule that knows when a request would pass. All kinds are Timed, except GCRA and weighted
// windows.
type Timed interface {
	Rule
	// Ready returns the earliest instant at which a request of that cost would pass if nothing else
	// arrived. It is now or a whole tick. ok is false for a cost above the limit, which never
	// passes. Ready for a cost of the whole limit is the instant at which the whole limit is free
	// again.
	Ready(now mono.Time, cost int64) (at mono.Time, ok bool)
}

// Ready is as in Timed.
func (c *calendar) Ready(now mono.Time, cost int64) (at mono.Time, ok bool) {
	switch {
	case cost > c.limit:
		return mono.Max, false
	case c.Fits(now, cost):
		return now, true
	}
	return c.tickAt(c.current.from + c.window), true
}

// Ready is as in Timed.
func (a *anchored) Ready(now mono.Time, cost int64) (at mono.Time, ok bool) {
	switch {
	case cost > a.limit:
		return mono.Max, false
	case a.Fits(now, cost):
		return now, true
	}
	return a.tickAt(a.begun + a.length), true
}

// The compiler checks here that all four are Timed.
var (
	_ Timed = (*rolling)(nil)
	_ Timed = (*bucket)(nil)
	_ Timed = (*calendar)(nil)
	_ Timed = (*anchored)(nil)
)
