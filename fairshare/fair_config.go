package fairshare

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Kind is how a server counts.
type Kind uint8

const (
	// UnknownKind means that Fair finds the kind out from the resets in answers. The reset of a
	// window stands still. The instant at which a bucket is full again moves with each request.
	// Without resets Fair assumes a TokenBucket. It changes that if what remains rises faster than
	// any bucket refills, or if nothing comes for long after all was used up.
	UnknownKind Kind = iota
	// TokenBucket refills steadily, up to a capacity.
	TokenBucket
	// FixedWindow gives all at once when a window begins. A window begins at an instant of the
	// server's clock, or with the first request in it.
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

// FairConfig describes the quota that a process shares. Limit, Window and Rng have no default. All
// sharers should have the same figures. They are given as servers publish them, so many per Window,
// for windows and buckets alike.
type FairConfig struct {
	// Kind is how the server counts. If zero, it is the kind that the provider documents (State).
	// Where answers carry resets, Fair finds it out.
	Kind Kind
	// Limit is the published limit: how much of Unit the server allows in a Window, to all clients
	// together.
	Limit  int64
	Window time.Duration
	// Capacity is the most that a TokenBucket holds. If zero, Limit.
	Capacity int64
	// Unit is the unit that counts: a request costs its limit.Cost in this unit. A request of cost
	// 0 passes freely. If zero, limit.Requests.
	Unit limit.Unit
	// MeanCost is the unit of cost in which all sharers reckon. It must be the same for all, so
	// publish it with the quota; do not measure it. If zero, 1 for limit.Requests and a 1500th of
	// Limit otherwise.
	MeanCost float64
	// Weight is the number of shares that the process claims. With 2 it gets twice the share of a
	// process with 1. A process is one sharer with any number of threads. If zero, 1.
	Weight float64
	// Sharers is the number of processes that share the quota. Set it if some of them may follow no
	// law of fairness. Then this process claims its own part even beside greedy ones. If zero, all
	// are trusted to share. A number that is right, or too large, costs nobody anything where all
	// share fairly. A number that is too small takes from the others.
	Sharers float64
	// MaxWait is the longest wait from one request to the next, whatever the server's answers say.
	// If zero, two Windows; or the time that 4,500 sharers would need, if that is longer; and at
	// least a minute.
	MaxWait time.Duration
	// Start is the time between two requests at the beginning, as if learned before. If zero,
	// unknown.
	Start time.Duration
	// Rng is the source of random numbers. Only Settle draws from it. It belongs to the driver of
	// the limiter.
	Rng *rand.Rand
}

const (
	unitsPerQuota = 1500 // units in a quota, where the unit of cost is not configured
)

// filled returns the configuration with its defaults. The error names the field at fault.
func (c FairConfig) filled() (FairConfig, error) {
	fail := func(format string, args ...any) (FairConfig, error) {
		return c, fmt.Errorf("fairshare: Fair: "+format, args...)
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
	c.Capacity = cmp.Or(c.Capacity, c.Limit)
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
	c.Weight = cmp.Or(c.Weight, 1)
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

// longest returns the default of MaxWait.
func (c *FairConfig) longest() time.Duration {
	units := Seconds(sharesMost * c.MeanCost / float64(c.Limit) * c.Window.Seconds())
	return max(time.Minute, 2*min(c.Window, 1<<61), units)
}
