package latency_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
)

const ms = time.Millisecond

// TestLawsDrawWhatTheyPromise compares 200,000 draws with the quantiles of the definitions. The
// fraction of draws below a quantile is within 5 standard errors.
func TestLawsDrawWhatTheyPromise(t *testing.T) {
	recording, err := latency.Recorded("x", []time.Duration{10 * ms, 10 * ms, 20 * ms, 90 * ms})
	if err != nil {
		t.Fatal(err)
	}
	type below struct {
		x time.Duration // this fraction of draws is at most x
		p float64
	}
	for _, c := range []struct {
		law     latency.Law
		want    []below
		mean    time.Duration // 0: none
		min     time.Duration
		max     time.Duration // 0: none
		meanTol float64
	}{
		{latency.Constant(7 * ms), []below{{7*ms - 1, 0}, {7 * ms, 1}}, 7 * ms, 7 * ms, 7 * ms, 0},
		{latency.Uniform(0, 50*ms), []below{{5 * ms, 0.1}, {25 * ms, 0.5}, {45 * ms, 0.9}, {50 * ms, 1}}, 25 * ms, 0, 50 * ms, 0.01},
		{latency.Uniform(10*ms, 12*ms), []below{{10*ms - 1, 0}, {11 * ms, 0.5}, {12 * ms, 1}}, 11 * ms, 10 * ms, 12 * ms, 0.01},
		{latency.Exponential(20*ms, 0), []below{{20 * ms, 1 - 1/math.E}, {60 * ms, 1 - math.Exp(-3)}}, 20 * ms, 0, 0, 0.02},
		{latency.Exponential(20*ms, 5*ms), []below{{5*ms - 1, 0}, {25 * ms, 1 - 1/math.E}}, 25 * ms, 5 * ms, 0, 0.02},
		{latency.Lognormal(10*ms, 100*ms), []below{{10 * ms, 0.5}, {100 * ms, 0.99}, {1 * ms, 0.01}}, 16320511, 0, 0, 0.03},
		{latency.Bimodal(0, 3*time.Second, 0.1), []below{{0, 0.9}, {3*time.Second - 1, 0.9}, {3 * time.Second, 1}}, 300 * ms, 0, 3 * time.Second, 0.03},
		{latency.Pareto(5*ms, 3), []below{{5*ms - 1, 0}, {10 * ms, 1 - 1.0/8}, {50 * ms, 0.999}}, 7500 * time.Microsecond, 5 * ms, 0, 0.02},
		{latency.Pareto(5*ms, 1), []below{{10 * ms, 0.5}}, 0, 5 * ms, 0, 0},
		{recording, []below{{10*ms - 1, 0}, {10 * ms, 0.5}, {20 * ms, 0.75}, {90 * ms, 1}}, 32500 * time.Microsecond, 10 * ms, 90 * ms, 0.02},
	} {
		t.Run(c.law.String(), func(t *testing.T) {
			const n = 200_000
			rng := rand.New(rand.NewPCG(1, 2))
			draws := make([]time.Duration, n)
			sum := 0.0
			for i := range draws {
				draws[i] = c.law.Draw(rng)
				sum += float64(draws[i])
			}
			slices.Sort(draws)
			for _, b := range c.want {
				i, _ := slices.BinarySearch(draws, b.x+1)
				if got := float64(i) / n; math.Abs(got-b.p) > 5*math.Sqrt(b.p*(1-b.p)/n) {
					t.Errorf("%.4f of the draws are at most %v, want %.4f", got, b.x, b.p)
				}
			}
			mean, ok := c.law.Mean()
			if ok != (c.mean > 0) || mean != c.mean {
				t.Errorf("Mean: %v, %v; want %v", mean, ok, c.mean)
			}
			if ok && math.Abs(sum/n-float64(c.mean)) > c.meanTol*float64(c.mean) {
				t.Errorf("the draws' mean is %v, want %v", time.Duration(sum/n), c.mean)
			}
			if got := c.law.Min(); got != c.min || draws[0] < got {
				t.Errorf("Min: %v, smallest draw %v, want %v", got, draws[0], c.min)
			}
			got, ok := c.law.Max()
			if ok != (c.max > 0) || got != c.max || ok && draws[n-1] > got {
				t.Errorf("Max: %v, %v; largest draw %v, want %v", got, ok, draws[n-1], c.max)
			}
		})
	}
}

func TestLongTailIsCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l := latency.Pareto(time.Hour, 0.01)
	longest := time.Duration(0)
	for range 1000 {
		d := l.Draw(rng)
		if d < time.Hour || d > latency.Longest {
			t.Fatalf("drew %v", d)
		}
		longest = max(longest, d)
	}
	if longest != latency.Longest {
		t.Errorf("the longest of 1000 draws is %v, want one cut at %v", longest, latency.Longest)
	}
}

func TestZeroLawIsNoLatency(t *testing.T) {
	var l latency.Law
	if d := l.Draw(rand.New(rand.NewPCG(1, 2))); d != 0 || l != latency.Constant(0) {
		t.Errorf("the zero Law %v drew %v", l, d)
	}
}

func TestConstructorsPanicOnABug(t *testing.T) {
	for name, f := range map[string]func() latency.Law{
		"negative":  func() latency.Law { return latency.Constant(-1) },
		"reversed":  func() latency.Law { return latency.Uniform(2, 1) },
		"too long":  func() latency.Law { return latency.Uniform(0, latency.Longest+1) },
		"no median": func() latency.Law { return latency.Lognormal(0, 1) },
		"p":         func() latency.Law { return latency.Bimodal(0, 1, math.NaN()) },
		"alpha":     func() latency.Law { return latency.Pareto(1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestDrawDoesNotAllocate(t *testing.T) {
	recording, err := latency.Recorded("x", []time.Duration{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, l := range append(laws(), recording) {
		if n := testing.AllocsPerRun(100, func() { sink += l.Draw(rng) }); n != 0 {
			t.Errorf("%v: %v allocations", l, n)
		}
	}
}

func laws() []latency.Law {
	return []latency.Law{latency.Constant(10 * ms), latency.Uniform(0, 50*ms), latency.Exponential(20*ms, 5*ms),
		latency.Lognormal(10*ms, 100*ms), latency.Bimodal(0, 3*time.Second, 0.1), latency.Pareto(5*ms, 1.1)}
}

var sink time.Duration

func BenchmarkDraw(b *testing.B) {
	for _, l := range laws() {
		b.Run(l.String(), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				sink += l.Draw(rng)
			}
		})
	}
}
