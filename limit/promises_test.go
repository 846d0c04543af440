package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// calendarPromise returns the promise of a window aligned to a clock: no interval [phase + k·window,
// phase + (k+1)·window) holds more than n of unit.
func calendarPromise(n int64, window time.Duration, phase mono.Time, unit limit.Unit) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		end, sum := mono.Min, int64(0)
		for _, a := range arrivals {
			if a.At >= end {
				in := (a.At.Sub(phase)%window + window) % window
				end, sum = a.At.Add(window-in), 0
			}
			if sum += a.Cost[unit]; sum > n {
				return fmt.Errorf("%d %v arrived by %v in the interval that ends at %v; the limit is %d", sum, unit, a.At, end, n)
			}
		}
		return nil
	}
}

// anchoredPromise returns the promise of intervals that each begin with the first arrival after the end of
// the interval before.
func anchoredPromise(n int64, window time.Duration, unit limit.Unit) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		begun, sum := mono.Min, int64(0)
		for _, a := range arrivals {
			if a.Cost[unit] == 0 {
				continue
			}
			if begun == mono.Min || a.At.Sub(begun) > window {
				begun, sum = a.At, 0
			}
			if sum += a.Cost[unit]; sum > n {
				return fmt.Errorf("%d %v arrived by %v in the interval from %v; the limit is %d", sum, unit, a.At, begun, n)
			}
		}
		return nil
	}
}

// producedPromise returns the promise of a bucket that pays for output as the server produces it. The
// hardest case is that all of each answer exists at the arrival of its request. Whenever a request
// arrives, the bucket must hold at least one token.
func producedPromise(n int64, window time.Duration, burst int64, unit limit.Unit) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		per := float64(window) / float64(n)
		missing, last := 0.0, mono.Min
		for _, a := range arrivals {
			if a.Cost[unit] == 0 {
				continue
			}
			missing = max(0, missing-float64(a.At.Sub(last))/per)
			if missing > float64(burst-1)+1e-6 {
				return fmt.Errorf("%.3f %v are missing from the bucket of %d when a request arrives at %v", missing, unit, burst, a.At)
			}
			missing += float64(a.Cost[unit])
			last = a.At
		}
		return nil
	}
}

// weightedPromise returns the promise of a window estimated from the last two intervals, for a number of
// phases. The estimate is never over n. If it is rounded down, it is never n + 1 or more.
func weightedPromise(n int64, window time.Duration, unit limit.Unit, roundsDown bool) func([]limittest.Arrival) error {
	return func(arrivals []limittest.Arrival) error {
		const phases = 37
		first := mono.Time(0)
		if len(arrivals) > 0 {
			first = min(first, arrivals[0].At)
		}
		for k := range phases {
			begun, old, current := first.Add(-window*time.Duration(k)/phases), int64(0), int64(0)
			for _, a := range arrivals {
				for a.At.Sub(begun) >= window {
					if a.At.Sub(begun) >= 3*window {
						skip := a.At.Sub(begun) / window
						begun, old, current = begun.Add(skip*window), 0, 0
						continue
					}
					begun, old, current = begun.Add(window), current, 0
				}
				current += a.Cost[unit]
				estimate := float64(current) + float64(old)*(1-float64(a.At.Sub(begun))/float64(window))
				if estimate > float64(n)+1e-6 && (!roundsDown || estimate > float64(n)+1-1e-9) {
					return fmt.Errorf("at %v a server whose interval began at %v estimates %.3f %v; the limit is %d", a.At, begun, estimate, unit, n)
				}
			}
		}
		return nil
	}
}

// Three requests arrive at one instant. Each of the servers takes two a second, and refuses one.
func TestPromises(t *testing.T) {
	three := make([]limittest.Arrival, 3)
	for i := range three {
		three[i] = limittest.Arrival{At: mono.Time(900 * time.Millisecond), Cost: limit.Cost{limit.Requests: 1, limit.Output: 1}}
	}
	for name, keeps := range map[string]func([]limittest.Arrival) error{
		"calendar": calendarPromise(2, time.Second, 0, limit.Requests),
		"anchored": anchoredPromise(2, time.Second, limit.Requests),
		"weighted": weightedPromise(2, time.Second, limit.Requests, false),
		"produced": producedPromise(2, time.Second, 2, limit.Output),
	} {
		if err := keeps(three[:2]); err != nil {
			t.Errorf("%s: two requests: %v", name, err)
		}
		if keeps(three) == nil {
			t.Errorf("%s takes three requests", name)
		}
	}
}
