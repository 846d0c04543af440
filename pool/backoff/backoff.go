// Package backoff computes how long one request waits after a failed attempt, before its next
// attempt. By default this is 100 ms, 200 ms and so on up to 30 s, each less a random part of up to
// half. The package has no state and no clock. It delays one request. To pause all requests of a
// key, use a limiter such as limit.Cooldown. A Policy of this package may also configure such a
// pause.
package backoff

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// DefaultBase and DefaultMax are the Base and the Max of the zero Policy.
const (
	DefaultBase = 100 * time.Millisecond
	DefaultMax  = 30 * time.Second
)

// Policy is exponential backoff with jitter. After a failed attempt n, the next one waits
//
//	d = min(Max, Base × Factor^(n−1))
//	delay = d − U        U uniform in whole nanoseconds from 0 to Jitter × d
//
// so the delay is never above Max, and d × (1 − Jitter/2) on average. In "Exponential Backoff And
// Jitter" (AWS Architecture Blog, 2015), Jitter 1 is full jitter, and 0.5 is equal jitter. The
// latter spreads out requests that failed together, and still keeps half of the delay for certain.
//
// The zero Policy is ready: 100 ms, 200 ms, 400 ms … 30 s, each less up to half. A Policy is safe
// for concurrent use; the generator for Delay may not be.
type Policy struct {
	// Base is d after the first attempt. If zero, 100 ms; if negative, there is no delay at all.
	Base time.Duration
	// Max bounds every delay. If zero, 30 s.
	Max time.Duration
	// Factor is the growth of d from one attempt to the next. If zero, 2; with 1, d does not grow.
	Factor float64
	// Jitter is the random part of d, from 0 to 1. If zero, 0.5; if negative, none.
	Jitter float64
}

func (p Policy) defaults() Policy {
	p.Base = cmp.Or(p.Base, DefaultBase)
	p.Max = cmp.Or(p.Max, DefaultMax)
	p.Factor = cmp.Or(p.Factor, 2)
	p.Jitter = cmp.Or(p.Jitter, 0.5)
	return p
}

// AtMost returns p with no delay above most, which must be positive.
func (p Policy) AtMost(most time.Duration) Policy {
	p = p.defaults()
	p.Max = min(p.Max, most)
	p.Base = min(p.Base, p.Max)
	return p
}

// Check returns an error with the name of the field that makes no sense, or nil.
func (p Policy) Check() error {
	p = p.defaults()
	switch {
	case p.Max < 0:
		return fmt.Errorf("backoff: Max %v is negative", p.Max)
	case p.Base > p.Max:
		return fmt.Errorf("backoff: Base %v is above Max %v", p.Base, p.Max)
	case !(p.Factor >= 1) || math.IsInf(p.Factor, 1):
		return fmt.Errorf("backoff: Factor %v is not a number of at least 1", p.Factor)
	case !(p.Jitter <= 1):
		return fmt.Errorf("backoff: Jitter %v is not between 0 and 1", p.Jitter)
	}
	return nil
}

// Delay returns the wait after a failed attempt; the first is 1, and less counts as 1. It draws at
// most one number from rng; if rng is nil there is no jitter.
//
// The result is between 0 and Max for every attempt and generator, even for a Policy that Check
// refuses.
func (p Policy) Delay(attempt int, rng *rand.Rand) time.Duration {
	p = p.defaults()
	limit := max(p.Max, 0)
	d := min(max(p.Base, 0), limit)
	if attempt > 1 && d > 0 {
		// The comparison fails above the limit, and for NaN. It is strict because float64(limit)
		// may be rounded up.
		if grown := math.Ceil(float64(d) * power(p.Factor, attempt-1)); grown < float64(limit) {
			d = max(time.Duration(grown), 0)
		} else {
			d = limit
		}
	}
	if rng == nil || !(p.Jitter > 0) || d == 0 {
		return d
	}
	spread := d
	if p.Jitter < 1 {
		spread = min(time.Duration(float64(d)*p.Jitter), d)
	}
	return d - time.Duration(rng.Uint64N(uint64(spread)+1))
}

// power returns x^n by squaring. math.Pow may differ in the last bit between processors, and a
// simulation should not. For whole x this is exact up to 2^53, which in nanoseconds is 104 days.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			y *= x
		}
		x *= x
	}
	return y
}
