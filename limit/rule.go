package limit

import (
	"cmp"
	"fmt"
	"time"
)

// Rule is one limit: at most N of Unit per Per. It may be configured, stated by a server, or in the
// documentation of a provider. Comparable.
type Rule struct {
	// Name is the name of the limit: as given to Named, or "requests", "tokens" (its Unit),
	// "concurrency", "cool-down", "spacing" or "sequence". It is "limit" for a limiter that gives
	// none.
	Name string `json:"Limit"`
	Unit Unit
	// N is the limit. 0: the limit is no number.
	N int64
	// Per is the window of N. 0: the window is not known, or there is none.
	Per time.Duration
	// Burst is the size of a bucket, which refills N per Per. 0: N.
	Burst int64 `json:",omitempty"`
	// Counts is how the limit counts.
	Counts Counting `json:",omitempty"`
	// Documented says that the limit is from the provider's documentation. The answer identified
	// only the provider.
	Documented bool `json:",omitempty"`
}

// Counting is how a limit counts.
type Counting uint8

const (
	CountsSomehow Counting = iota // not known
	CountsBucket
	CountsWindow // a window begins at an instant of the server's clock, or with a request
	CountsRolling
	CountsInFlight // each request counts once while it is in flight, whatever its cost
	CountsWeighted // the window before counts in proportion
	CountsNothing  // a gap, an order or a pause: N is 0
)

// String is a rule for readers: "20 requests per 1s", "4 requests at once", or its Name if it has no number.
func (r Rule) String() string {
	var c Cost
	c[r.Unit] = r.N
	switch {
	case r.N == 0:
		return r.Name
	case r.Counts == CountsInFlight:
		return c.String() + " at once"
	case r.Per == 0:
		return c.String()
	}
	return fmt.Sprintf("%s per %v", c, r.Per)
}

// Most returns the largest cost in Unit that may go at once. 0: the limit is no number.
func (r *Rule) Most() int64 { return cmp.Or(r.Burst, r.N) }

// rate returns the part of a rule that bounds the long run.
func (r Rule) rate() Rule { return Rule{Name: r.Name, Unit: r.Unit, N: r.N, Per: r.Per} }
