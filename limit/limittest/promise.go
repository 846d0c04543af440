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
