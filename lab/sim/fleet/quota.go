package fleet

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Quota is a server with one quota for all, applied by the servers of package rule. With every
// answer it says how many more requests would pass at that instant, unless Silent or Headers say
// otherwise.
type Quota struct {
	Kind QuotaKind
	// Limit is how many requests per Window the server publishes, and enforces unless there are
	// Changes. If zero, 4500 per hour. If Unit is not limit.Requests, or a Group has Costs, it is so
	// many of Unit, and so are Capacity, Level and what remains.
	Limit  int64
	Window time.Duration
	// Capacity is the most that a Bucket or GCRA holds. If zero, Limit.
	Capacity int64
	// Level is how many requests would pass at once when the first one arrives, which is when the
	// server's clock starts. If zero, none with a Bucket or GCRA, as in the published simulations, and
	// all with the other kinds, or where a group follows Share, which wants that.
	Level int64
	// Full says that a Bucket or GCRA starts at Capacity, not at Level.
	Full bool
	// Into is how much of the first window of a Calendar or Weighted quota is over when the first
	// request arrives, as where windows follow the wall clock or a day has begun. If zero, the window
	// begins with that request.
	Into time.Duration
	// Unit is the component of a limit.Cost that is counted. If zero, requests.
	Unit limit.Unit
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
	// Service is how long the server works on a request once it has decided whether it passes. If zero, no time: then only
	// requests that arrive at one instant are concurrent.
	Service latency.Law
	// Silent says that answers do not say what remains or when there is more, whatever Headers says.
	// They may have a Retry-After.
	Silent bool
	// Headers says what else answers tell.
	Headers Headers
	// Changes are changes of the quota, in the order of time. No client is told of them.
	Changes []Change
}

// Change is an instant from which on the quota is another one.
type Change struct {
	At time.Duration
	// Factor is by what the original Limit and Capacity are multiplied, not those of the Change before.
	Factor float64
}

// QuotaKind is a kind of Quota.
type QuotaKind uint8

const (
	Bucket       QuotaKind = iota // rule.NewBucket
	GCRA                          // rule.NewGCRA
	DecreaseOnly                  // Limit requests in all: nothing comes back
	Rolling                       // rule.NewRolling
	Calendar                      // rule.NewCalendar, whose first interval begins with the first request
	Weighted                      // rule.NewWeighted, by the same calendar
	// rule.Anchored: each interval begins with the first request after the one before is over
	Anchored
)
