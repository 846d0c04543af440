package mono_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

func TestAddAndSubStopAtTheEnds(t *testing.T) {
	for _, c := range []struct {
		t    mono.Time
		d    time.Duration
		want mono.Time
	}{
		{0, time.Second, mono.Time(time.Second)},
		{-5, -5, -10},
		{5, 0, 5}, {5, -2, 3},
		{mono.Max - 1, 1, mono.Max},
		{mono.Max, 1, mono.Max},
		{mono.Max, math.MaxInt64, mono.Max},
		{1, math.MaxInt64, mono.Max},
		{0, math.MaxInt64 - 1, mono.Max},
		{-1, math.MinInt64, mono.Min},
		{mono.Min, -1, mono.Min},
		{mono.Min, math.MaxInt64, -1},
		{mono.Max, math.MinInt64, -3},
	} {
		if got := c.t.Add(c.d); got != c.want {
			t.Errorf("%d.Add(%d) = %d, want %d", c.t, c.d, got, c.want)
		}
	}
	for _, c := range []struct {
		t, u mono.Time
		want time.Duration
	}{
		{5, 3, 2}, {3, 5, -2}, {5, 5, 0}, {0, 0, 0}, {5, 4, 1}, {mono.Max, mono.Min, math.MaxInt64}, {mono.Min, mono.Max, math.MinInt64}, {mono.Max, -1, math.MaxInt64 - 1},
	} {
		if got := c.t.Sub(c.u); got != c.want {
			t.Errorf("%d.Sub(%d) = %d, want %d", c.t, c.u, got, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := mono.Of(base, base.Add(-time.Second)); got != mono.Time(-time.Second) || got.String() != "-1s" {
		t.Errorf("a second before base: %v, want -1s", got)
	}
}
