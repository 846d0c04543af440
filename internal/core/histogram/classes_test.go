package histogram_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
)

// Each duration is in all classes that end with it or later, and in no other.
func TestClasses(t *testing.T) {
	all := histogram.Bounds()
	if all[0] != time.Millisecond || all[len(all)-1] != time.Millisecond<<20 {
		t.Fatalf("the bounds are %v", all)
	}
	for _, d := range []time.Duration{-1, 0, 1, time.Millisecond - 1, time.Millisecond, time.Millisecond + 1, 2 * time.Millisecond, 2*time.Millisecond + 1, time.Second, time.Hour, 1<<63 - 1} {
		var c, sum histogram.Classes
		c.Add(d)
		if upto := c.Upto([]int64{7}); len(upto) != 1+len(all) || upto[0] != 7 {
			t.Fatalf("%v: after 7, %v for %d bounds", d, upto, len(all))
		}
		for i, n := range c.Upto(nil) {
			if want := max(d, 0) <= all[i]; (n == 1) != want {
				t.Errorf("%v is counted %d times among those up to %v", d, n, all[i])
			}
		}
		if c.N() != 1 || c.Sum() != max(d, 0) {
			t.Errorf("%v: %d, sum %v", d, c.N(), c.Sum())
		}
		sum.Merge(&c)
		sum.Merge(&c)
		if sum.N() != 2 || !slices.Equal(sum.Upto(nil), doubled(c.Upto(nil))) {
			t.Errorf("twice %v: %v", d, sum.Upto(nil))
		}
	}
}

func doubled(all []int64) []int64 {
	for i := range all {
		all[i] *= 2
	}
	return all
}

// Quantiles are of the last 5 to 10 minutes, classes of all, and of names only so many.
func TestNamed(t *testing.T) {
	var n histogram.Named
	for i := range 100 {
		n.Add(time.Minute, "a", time.Duration(i+1)*time.Millisecond)
	}
	near := func(d, want time.Duration) bool { return d > want*99/100 && d < want*101/100 }
	if a := n.Summaries(time.Minute)[0]; a.Name != "a" || !near(a.P50, 50*time.Millisecond) || !near(a.P99, 99*time.Millisecond) || !near(a.Max, 100*time.Millisecond) || a.N() != 100 {
		t.Errorf("%+v", a)
	}
	for range 300 {
		n.Add(7*time.Minute, "a", time.Second)
	}
	if a := n.Summaries(8 * time.Minute)[0]; !near(a.P50, time.Second) || a.N() != 400 || n.Summaries(8 * time.Minute)[0].P90 != a.P90 {
		t.Errorf("%+v", a)
	}
	if a := n.Summaries(13 * time.Minute)[0]; !near(a.P50, time.Second) || a.N() != 400 {
		t.Errorf("what was 6 minutes ago is forgotten: %+v", a)
	}
	if a := n.Summaries(30 * time.Minute)[0]; a.Max != 0 || a.N() != 400 || a.Sum() != 300*time.Second+5050*time.Millisecond {
		t.Errorf("half an hour later: %+v", a)
	}
	for i := range 100 {
		n.Add(0, string(rune('b'+i)), time.Second)
	}
	all := n.Summaries(0)
	if len(all) != 33 || !slices.ContainsFunc(all, func(o histogram.Summary) bool { return o.Name == histogram.Other && o.N() == 69 }) {
		t.Errorf("%d names", len(all))
	}
}
