package throttle

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Kind is how a server counts.
type Kind uint8

const (
	// UnknownKind is found out from the resets that answers tell: that of a window stands still, the instant at which a bucket
	// is full again moves with each request. Where none is told, a TokenBucket is assumed until what remains leaps as
	// that of no bucket does.
	UnknownKind Kind = iota
	// TokenBucket refills steadily, up to a capacity.
	TokenBucket
	// FixedWindow gives all at once when a window begins: each at an instant of the server's clock, or with its first request.
	FixedWindow
	// RollingWindow gives back each request when it is one window old.
	RollingWindow
	kinds
)

func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return [...]string{"unknown kind", "token bucket", "fixed window", "rolling window"}[k]
}

// FairConfig says what a process knows of the quota it shares. Limit, Window and Rng have no default. All who share it should know the
// same. It is said as servers publish it, so many per Window, which is how limit has it and right for windows and buckets alike.
type FairConfig struct {
	// Kind is how the server counts. If zero, it is found out where resets are told.
	Kind Kind
	// Limit is how much of Unit the server allows in a Window, in all: what it publishes.
	Limit  int64
	Window time.Duration
	// Capacity is the most that a TokenBucket holds. If zero, Limit.
	Capacity int64
	// Unit is what is counted: a request costs what its limit.Cost has there, and nothing there passes freely. If zero,
	// limit.Requests.
	Unit limit.Unit
	// MeanCost is the unit of cost in which sharers reckon: the same for all of them, so it is published with the quota and
	// not measured by each. If zero, 1 for limit.Requests and a 1500th of Limit otherwise.
	MeanCost float64
	// Weight is how many shares the process claims: 2 gets twice what 1 gets. A process is one sharer however many threads
	// wait in it. If zero, 1.
	Weight float64
	// Sharers is how many share the quota, if some of them may follow no law of fairness: then this process keeps to what is its
	// own of so many, though others are greedy. If zero, all are trusted to share. Too small a number takes from the others.
	Sharers float64
	// MaxWait is the longest wait from one request to the next, whatever the server says. If zero, two Windows, or as
	// long as 4,500 sharers would need if that is longer, and at least a minute.
	MaxWait time.Duration
	// Start is the time between two requests to begin with, as if it had been learned. If zero, nothing is known.
	Start time.Duration
	// Rng is drawn from in Settle only. It belongs to the driver of the limiter.
	Rng *rand.Rand
}

const (
	unitsPerQuota = 1500 // where nobody says what a unit of cost is
)

// filled is the configuration with its defaults, or what is wrong with it.
func (c FairConfig) filled() (FairConfig, error) {
	fail := func(format string, args ...any) (FairConfig, error) {
		return c, fmt.Errorf("throttle: Fair: "+format, args...)
	}
	if c.Kind >= kinds {
		return fail("Kind %d is none", c.Kind)
	}
	if c.Limit < 1 || c.Limit > limit.MaxCost {
		return fail("Limit %d is not from 1 to %d", c.Limit, int64(limit.MaxCost))
	}
	if c.Window < 0 {
		return fail("Window %v is negative", c.Window)
	}
	if c.Window == 0 {
		return fail("Window is 0")
	}
	if c.Capacity < 0 || c.Capacity > limit.MaxCost {
		return fail("Capacity %d is not from 1 to %d, nor 0", c.Capacity, int64(limit.MaxCost))
	}
	if c.Capacity == 0 {
		c.Capacity = c.Limit
	}
	if int(c.Unit) >= len(limit.Cost{}) {
		return fail("Unit %d is none", c.Unit)
	}
	if !(c.MeanCost >= 0) || c.MeanCost > limit.MaxCost {
		return fail("MeanCost %v is not above 0, nor 0", c.MeanCost)
	}
	if c.MeanCost == 0 {
		c.MeanCost = 1
		if c.Unit != limit.Requests {
			c.MeanCost = max(1, float64(c.Limit)/unitsPerQuota)
		}
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if !(c.Weight > 0) || c.Weight > 1e6 {
		return fail("Weight %v is not above 0 and at most 1e6", c.Weight)
	}
	if !(c.Sharers >= 0) || c.Sharers > 1e9 {
		return fail("Sharers %v is not from 0 to 1e9", c.Sharers)
	}
	if c.MaxWait < 0 {
		return fail("MaxWait %v is negative", c.MaxWait)
	}
	if c.Start < 0 {
		return fail("Start %v is negative", c.Start)
	}
	if c.Rng == nil {
		return fail("Rng is nil")
	}
	if c.MaxWait == 0 {
		c.MaxWait = c.longest()
	}
	return c, nil
}

// longest is the default of MaxWait.
func (c *FairConfig) longest() time.Duration {
	units := Seconds(sharesMost * c.MeanCost / float64(c.Limit) * c.Window.Seconds())
	return max(time.Minute, 2*min(c.Window, 1<<61), units)
}
