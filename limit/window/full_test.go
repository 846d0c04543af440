package window_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/window"
)

// Events beyond the largest total do not count, and the counted events leave in full.
func TestRunsAtTheLargestTotal(t *testing.T) {
	r := must(window.NewRuns(time.Second, 8))
	for i, c := range []struct {
		now  time.Duration
		n    int64
		want int64
	}{
		{0, math.MaxInt64 - 5, math.MaxInt64 - 5},
		{10 * ms, 9, math.MaxInt64},
		{20 * ms, 1, math.MaxInt64},
		{20 * ms, math.MaxInt64, math.MaxInt64},
		{time.Second + 1, 0, 5}, // the first has left
		{time.Second + 1, 2, 7},
		{time.Second + 10*ms + 1, 0, 2},
		{2*time.Second + 2, 1, 1},
	} {
		if got := r.Add(at(c.now), c.n); got != c.want {
			t.Errorf("%d: %d are counted, want %d", i, got, c.want)
		}
	}
}

// The same for slots.
func TestSlotsAtTheLargestTotal(t *testing.T) {
	s := must(window.NewSlots(time.Second, 100*ms))
	for i, c := range []struct {
		now  time.Duration
		n    int64
		want int64
	}{
		{0, math.MaxInt64 - 5, math.MaxInt64 - 5},
		{150 * ms, 9, math.MaxInt64},
		{250 * ms, 1, math.MaxInt64},
		{1150 * ms, 0, 5}, // the first has left
		{1150 * ms, 2, 7},
		{1250 * ms, 0, 2},
	} {
		if got := s.Add(at(c.now), c.n); got != c.want {
			t.Errorf("%d: %d are counted, want %d", i, got, c.want)
		}
	}
}
