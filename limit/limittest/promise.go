package limittest

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Rolling returns the promise of a rolling window: no closed span of window holds more than n of
// unit.
func Rolling(n int64, window time.Duration, unit limit.Unit) func([]Arrival) error {
	return func(arrivals []Arrival) error {
		first, sum := 0, int64(0)
		for _, a := range arrivals {
			sum += a.Cost[unit]
			for a.At.Sub(arrivals[first].At) > window {
				sum -= arrivals[first].Cost[unit]
				first++
			}
			if sum > n {
				return fmt.Errorf("%d %v arrived in the window of %v that ends at %v; the limit is %d", sum, unit, window, a.At, n)
			}
		}
		return nil
	}
}

// Calendar returns the promise of a window aligned to a clock: no interval [phase + k·window,
// phase + (k+1)·window) holds more than n of unit.
func Calendar(n int64, window time.Duration, phase mono.Time, unit limit.Unit) func([]Arrival) error {
	return func(arrivals []Arrival) error {
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

// Anchored returns the promise of intervals that each begin with the first arrival after the end of
// the interval before.
func Anchored(n int64, window time.Duration, unit limit.Unit) func([]Arrival) error {
	return func(arrivals []Arrival) error {
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

// Bucket returns the promise of a token bucket. The arrivals from one instant to another cost at
// most burst more than the refill between them, n per window.
func Bucket(n int64, window time.Duration, burst int64, unit limit.Unit) func([]Arrival) error {
	return func(arrivals []Arrival) error {
		per := float64(window) / float64(n)
		missing, last := 0.0, mono.Min
		for _, a := range arrivals {
			missing = max(0, missing-float64(a.At.Sub(last))/per) + float64(a.Cost[unit])
			last = a.At
			if missing > float64(burst)+1e-6 {
				return fmt.Errorf("%.3f %v are missing from the bucket of %d at %v", missing, unit, burst, a.At)
			}
		}
		return nil
	}
}

// Produced returns the promise of a bucket that pays for output as the server produces it. The
// hardest case is that all of each answer exists at the arrival of its request. Whenever a request
// arrives, the bucket must hold at least one token.
func Produced(n int64, window time.Duration, burst int64, unit limit.Unit) func([]Arrival) error {
	return func(arrivals []Arrival) error {
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

// Weighted returns the promise of a window estimated from the last two intervals, for a number of
// phases. The estimate is never over n. If it is rounded down, it is never n + 1 or more.
func Weighted(n int64, window time.Duration, unit limit.Unit, roundsDown bool) func([]Arrival) error {
	return func(arrivals []Arrival) error {
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
