package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A histogram's classes are less than 1 % wide, and in order.
func TestHistogram(t *testing.T) {
	last := -1
	for _, d := range []time.Duration{0, 1, 200, 255, 256, 257, 1000, 1_000_003, time.Second, 20 * time.Hour, 1<<62 + 12345, 1<<63 - 1} {
		class := classOf(d)
		if class <= last && d > 257 {
			t.Errorf("%v is in class %d, after %d", d, class, last)
		}
		last = class
		if off := float64(middle(class)-d) / float64(max(d, 1)); off > 0.005 || off < -0.005 {
			t.Errorf("%v became %v", d, middle(class))
		}
	}
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Mean() != 0 {
		t.Error("nothing has a median, and no mean")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * 1e9)
		all = append(all, d)
		h.Add(d)
	}
	slices.Sort(all)
	sum := 0.0
	for _, d := range all {
		sum += float64(d)
	}
	if mean := sum / float64(len(all)); h.N() != 10_000 || math.Abs(float64(h.Mean())-mean) > 1e-6*mean {
		t.Errorf("%d with a mean of %v, expected %v", h.N(), h.Mean(), mean)
	}
	for _, p := range []float64{0.001, 0.5, 0.99, 1} {
		exact := all[int(p*float64(len(all)))-1]
		if got := h.Quantile(p); (got - exact).Abs() > exact/100 {
			t.Errorf("quantile %v is %v, want %v", p, got, exact)
		}
	}
}
