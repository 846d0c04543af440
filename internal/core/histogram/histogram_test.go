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

// The age of the latest event rises to the time until the next one. So it is at most a for as long as all times
// between events last together, each cut at a.
func TestAgeQuantile(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		between []time.Duration
		p       float64
		want    time.Duration
	}{
		{nil, 0.5, 0},
		{[]time.Duration{10 * s}, 0.5, 5 * s},
		{[]time.Duration{10 * s}, 1, 10 * s},
		{[]time.Duration{10 * s, 10 * s, 10 * s}, 0.9, 9 * s},
		{[]time.Duration{2 * s, 8 * s}, 0.4, 2 * s}, // 2 + 2 of 10
		{[]time.Duration{2 * s, 8 * s}, 0.5, 3 * s}, // 2 + 3 of 10
		{[]time.Duration{8 * s, 2 * s}, 0.2, 1 * s}, // 1 + 1 of 10
		{[]time.Duration{2 * s, 8 * s}, 1, 8 * s},
		{[]time.Duration{1 * s, 3 * s, 3 * s, 13 * s}, 0.75, 8 * s}, // 1 + 3 + 3 + 8 of 20
	} {
		var h Histogram
		for _, d := range c.between {
			h.Add(d)
		}
		if got := h.AgeQuantile(c.p); (got - c.want).Abs() > c.want/100 {
			t.Errorf("after %v, the age is at most %v for %v of the time, want %v", c.between, got, c.p, c.want)
		}
	}
}
