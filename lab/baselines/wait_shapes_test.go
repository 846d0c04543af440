package baselines

import (
	"math"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/lab/sim"
)

// waitShape is the distribution of the waits of a policy under one kind of arrivals.
type waitShape struct {
	// NoWait is the percentage of prompts that did not wait.
	NoWait float64
	// KS is the largest distance between the distribution of the waits above 0 and the exponential
	// distribution of the same mean. CV is the standard deviation of these waits divided by their
	// mean, which is 1 for an exponential distribution.
	KS float64
	CV float64
	// R2 is the share of the variance of waits in a burst that a straight line explains, from the
	// first prompt of the burst to the last. It is the mean over all bursts in which waits differed,
	// and 0 if there was none.
	R2 float64
	// Confirmed reports whether waits have the form that is claimed of the arrivals.
	Confirmed bool
}

// A claim is confirmed if the distance from the exponential distribution is at most 0.05, or if the
// line explains 98 % of the variance. It is not confirmed if nine in ten prompts do not wait at
// all.
const (
	ksMost  = 0.05
	r2Least = 0.98
)

func shapeOf(r *bench.LLMRuns) waitShape {
	var c waitShape
	var waits []float64
	none, answered := 0, 0
	var r2 []float64
	for i, t := range r.Tallies {
		var places, burst []float64
		line := func() {
			if len(burst) > 2 && slices.Max(burst) > slices.Min(burst) {
				r2 = append(r2, linearity(places, burst))
			}
			places, burst = nil, nil
		}
		for k, w := range t.Waits {
			if k > 0 && r.Runs[i].Work[k].At != r.Runs[i].Work[k-1].At {
				line()
			}
			if w < 0 {
				continue
			}
			answered++
			if w == 0 {
				none++
			} else {
				waits = append(waits, w.Seconds())
			}
			places, burst = append(places, float64(len(places))), append(burst, w.Seconds())
		}
		line()
	}
	c.NoWait = 100 * float64(none) / float64(max(answered, 1))
	if len(waits) > 0 {
		c.KS, c.CV = exponentiality(waits)
	}
	for _, v := range r2 {
		c.R2 += v / float64(len(r2))
	}
	switch r.Row.Arrivals {
	case sim.Uniform.String():
		c.Confirmed = len(waits) > 0 && c.KS <= ksMost
	case sim.Mixed.String():
		c.Confirmed = len(waits) > 0 && c.KS > ksMost && c.R2 < r2Least
	default: // a burst
		c.Confirmed = c.R2 >= r2Least
	}
	c.Confirmed = c.Confirmed && c.NoWait < 90
	return c
}

// exponentiality returns the largest distance between the distribution of v and the exponential
// distribution of the same mean, and the coefficient of variation of v. It sorts v.
func exponentiality(v []float64) (ks, cv float64) {
	slices.Sort(v)
	n, sum, squares := float64(len(v)), 0.0, 0.0
	for _, x := range v {
		sum += x
	}
	mean := sum / n
	for i, x := range v {
		squares += (x - mean) * (x - mean)
		f := 1 - math.Exp(-x/mean)
		ks = max(ks, f-float64(i)/n, float64(i+1)/n-f)
	}
	return ks, math.Sqrt(squares/n) / mean
}

// linearity returns the square of the correlation of x and y.
func linearity(x, y []float64) float64 {
	n := float64(len(x))
	var mx, my, xx, yy, xy float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
		xy += (x[i] - mx) * (y[i] - my)
	}
	return xy * xy / (xx * yy)
}

func TestShapesOfWaits(t *testing.T) {
	// Quantiles of an exponential; all equal, so that its distribution jumps from 0 to 1 at the mean; and most close to 0.
	exponential, equal, short := make([]float64, 1000), make([]float64, 1000), make([]float64, 1000)
	for i := range exponential {
		exponential[i] = -3 * math.Log(1-(float64(i)+0.5)/1000)
		equal[i] = 5
		short[i] = 1e-9
	}
	short[0] = 1
	for _, c := range []struct {
		name   string
		waits  []float64
		ks, cv float64
	}{
		{"exponential", exponential, 0.001, 1},
		{"equal", equal, 1 - 1/math.E, 0},
		{"short", short, 0.998, 31.6},
	} {
		if ks, cv := exponentiality(c.waits); math.Abs(ks-c.ks) > 0.002 || math.Abs(cv-c.cv) > 0.02 {
			t.Errorf("%s: distance %.4f, deviation %.3f of the mean; want %.4f, %.3f", c.name, ks, cv, c.ks, c.cv)
		}
	}
	for _, c := range []struct {
		y    []float64
		want float64
	}{{[]float64{1, 3, 5, 7}, 1}, {[]float64{7, 5, 3, 1}, 1}, {[]float64{0, 1, 1, 0}, 0}, {[]float64{0, 0, 0, 1}, 0.6}} {
		if got := linearity([]float64{0, 1, 2, 3}, c.y); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.y, got, c.want)
		}
	}
}
