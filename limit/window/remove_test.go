package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/window"
)

func TestSlotsRemoveTimeline(t *testing.T) {
	s := must(window.NewSlots(time.Second, 100*ms))
	for _, c := range []struct {
		now, remove time.Duration // the instant to take from; negative: nothing
		n           int64         // added, or removed
		want        int64
	}{
		{50 * ms, -1, 3, 3},
		{250 * ms, -1, 4, 7},
		{250 * ms, 250 * ms, 1, 6},
		{260 * ms, 50 * ms, 2, 4},
		{260 * ms, 50 * ms, 5, 3},   // only one is left
		{260 * ms, 150 * ms, 1, 3},  // nothing happened then
		{260 * ms, 250 * ms, -1, 3}, // nor does a negative number take anything
		{1240 * ms, 250 * ms, 1, 2}, // the slot is 200 ms to 300 ms and still counts
		{1300 * ms, 250 * ms, 1, 0}, // gone by itself, so not once more
		{1300 * ms, -1, 9, 9},
		{1301 * ms, 250 * ms, 1, 9},
		{1301 * ms, 100 * time.Millisecond, 1, 9},
	} {
		if c.remove < 0 {
			s.Add(at(c.now), c.n)
		} else {
			s.Total(at(c.now))
			s.Remove(at(c.remove), c.n)
		}
		if got := s.Total(at(c.now)); got != c.want {
			t.Errorf("at %v: %d, want %d", c.now, got, c.want)
		}
	}
}

// With random additions and removals, the count is that of counters without the removed events.
func TestSlotsRemoveIsAsIfItHadNotBeen(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		precision := time.Duration(1 + rng.Int64N(30))
		length := precision + time.Duration(rng.Int64N(100))
		s, without := must(window.NewSlots(length, precision)), must(window.NewSlots(length, precision))
		type added struct {
			at time.Duration
			n  int64
		}
		var doubtful []added
		now := time.Duration(rng.Int64N(200) - 100)
		for range 200 {
			now += time.Duration(rng.Int64N(int64(precision) * 3 / 2))
			n := rng.Int64N(4)
			s.Add(at(now), n)
			if rng.IntN(2) == 0 {
				without.Add(at(now), n)
			} else {
				doubtful = append(doubtful, added{now, n})
			}
			if rng.IntN(5) == 0 {
				for _, d := range doubtful {
					s.Remove(at(d.at), d.n)
				}
				doubtful = nil
				if got, want := s.Total(at(now)), without.Total(at(now)); got != want {
					t.Fatalf("seed %d, window %v in slots of %v, at %v: %d, want %d", seed, length, precision, now, got, want)
				}
			}
		}
	}
}

// An empty Log has nothing to remove, however small its limit.
func TestRemoveOfNothing(t *testing.T) {
	for n := range 3 {
		l := must(window.NewLog(n+1, time.Second))
		l.Remove(at(0))
		for k := range n + 1 {
			if !l.Take(at(0)) {
				t.Errorf("of %d the %d. does not go", n+1, k+1)
			}
		}
		if l.Take(at(0)) {
			t.Errorf("%d go, and one more", n+1)
		}
	}
}
