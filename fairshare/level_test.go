package fairshare

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// N sharers of a bucket keep 18·ln(8000/N) in it: 162 for one, 120 for ten, 37 for a thousand. In a
// small bucket they keep the same part of ¾ of it, of which a third does not depend on N. This is a
// protocol: a sharer that keeps another reserve gets nothing, or everything.
func TestReserveOfABucket(t *testing.T) {
	for _, c := range []struct{ capacity, shares, reserve, slope float64 }{
		{4500, 1, 161.77, 18},
		{4500, 10, 120.33, 18},
		{4500, 1000, 37.43, 18},
		{216, 1, 161.77, 18}, // ¾ of it is enough
		{200, 1, 150, 18 * 150 * 0.65 / 161.77},
		{100, 1, 75, 18 * 75 * 0.65 / 161.77},
		{100, 10, 75 * (0.35 + 0.65*120.33/161.77), 18 * 75 * 0.65 / 161.77},
		{4, 10, 3 * (0.35 + 0.65*120.33/161.77), 18 * 3 * 0.65 / 161.77},
	} {
		b := bucketLevel{capacity: c.capacity}
		if r, slope := b.reserve(c.shares); math.Abs(r-c.reserve) > 0.01 || math.Abs(slope-c.slope) > 0.01 {
			t.Errorf("%v of a bucket of %v keep %.2f, and %.2f less where they are e times as many; want %.2f and %.2f",
				c.shares, c.capacity, r, slope, c.reserve, c.slope)
		}
	}
}

// In a fixed window sharers keep to a line that falls evenly to a rest of a 250th. The more they
// are the lower they keep: by nothing at both ends, and by a hundredth for e times as many in the
// middle.
func TestLineOfAWindow(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	for _, want := range []struct{ left, shares, line float64 }{
		{3600, 10, 3600}, {1800, 10, 1800 + 7.7}, {0, 10, 15.4}, // 15.4: one, and a 250th
		{3600, 100, 3600}, {0, 100, 15.4},
		{1800, 10 * math.E, 1807.7 - 36}, {900, 10 * math.E, 911.55 - 27},
	} {
		f := fairOf(t, c)
		f.n = want.shares
		st := f.window.stand(f, &sighting{ends: second(3600), mid: second(3600 - want.left), left: want.line})
		if math.Abs(st.gap) > 0.01 {
			t.Errorf("with %v s left, %v keep %v, and not %v", want.left, want.shares, want.line-st.gap, want.line)
		}
		if want.left == 1800 && math.Abs(math.Exp(st.price)-want.shares) > 0.01 {
			t.Errorf("%v left with %v s left is read as of %v sharers, not %v", want.line, want.left, math.Exp(st.price), want.shares)
		}
	}
}

// Of a rolling window six tenths of a percent more is kept where they are e times fewer, and three
// by a thousand.
func TestReserveOfARollingWindow(t *testing.T) {
	w := newRollingLevel(4500, time.Hour)
	for shares, want := range map[float64]float64{1000: 3, 1000 / math.E: 21, 1: 3 + 18*math.Log(1000)} {
		if r, slope := w.reserve(shares); math.Abs(r-want) > 1e-6 || slope != 18 {
			t.Errorf("%v keep %v", shares, r)
		}
	}
}

// Answers state the end of a window in whole seconds that were rounded up. The earliest is the
// best. An end that is off by more than half a window is another window's, also where a clock was
// set back. That window ends whole windows later. It may be stated to end earlier, or later than
// rounding and the answer's time explain.
func TestToldEnds(t *testing.T) {
	w := newWindowLevel(3600, time.Hour)
	for i, c := range []struct {
		told   float64
		rtt    time.Duration
		ends   float64
		number int
	}{
		{3600, 0, 3600, 0}, {3601, 0, 3600, 0}, {3599.5, 0, 3599.5, 0}, {3600, 0, 3599.5, 0}, {7200, 0, 7199.5, 1}, {7199, 0, 7199, 1},
		{14400, 0, 14400, 3}, {16000, 0, 14400, 3}, {16300, 0, 16300, 4}, {1000, 0, 1000, 5}, {4600, 0, 4600, 6}, {10000, 0, 10000, 8},
		{13600.9, 0, 13600, 9}, {20801.5, time.Second, 20800, 11}, {24402, time.Second, 24402, 12}, {28001.5, 0, 28001.5, 13},
	} {
		w.debt = true
		before := w.number
		if w.told(second(c.told), c.rtt); w.ends != second(c.ends) || w.number != c.number {
			t.Errorf("told %v: window %d ends at %v, want %d at %v", c.told, w.number, w.ends, c.number, second(c.ends))
		}
		if i > 0 && w.debt != (w.number == before) {
			t.Errorf("told %v: the debt of the window before is kept: %v", c.told, w.debt)
		}
	}
}

// The consumption of all between two answers. Within a window it is the difference, give or take
// one. Beyond its end, the rest counts as used at the rate of the next window's beginning.
func TestTakenOfAWindow(t *testing.T) {
	w := newWindowLevel(3600, time.Hour)
	see := func(window int, at, left float64) *sighting {
		return &sighting{window: window, mid: second(at), ends: second(3600 * float64(window+1)), left: left}
	}
	for name, c := range map[string]struct {
		from, to *sighting
		units    float64
		ok       bool
	}{
		"in one window":    {see(0, 100, 3000), see(0, 200, 2900), 100, true},
		"it wavers by one": {see(0, 100, 3000), see(0, 200, 3001), -1, true},
		"it rises":         {see(0, 100, 3000), see(0, 200, 3001.5), -1.5, false},
		// In 450 s of the next, and an eighth of a window at the usual pace: at a per second in
		// all.
		"over an end":            {see(0, 3500, 1000), see(1, 4050, 3150), 450 + 100*(450+450*w.slope)/900, true},
		"all that was left":      {see(0, 3500, 20), see(1, 4050, 3150), 450 + 20, true},
		"a window between":       {see(0, 3500, 1000), see(2, 8000, 3000), 0, false},
		"an end that is unknown": {&sighting{window: 0, ends: mono.Min}, see(1, 4050, 3150), 0, false},
	} {
		if units, ok := w.taken(nil, c.from, c.to); math.Abs(units-c.units) > 1e-6 || ok != c.ok {
			t.Errorf("%s: %v were taken, %v; want %v", name, units, ok, c.units)
		}
	}
}
