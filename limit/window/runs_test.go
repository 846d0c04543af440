package window_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// A Runs for 4 instants in 1 s, so pairs are shared for up to 250 ms. Instants in milliseconds.
func TestRunsBeyondItsInstants(t *testing.T) {
	r, exact := must(window.NewRuns(time.Second, 4)), naive{}
	for i, s := range []struct {
		now         time.Duration
		n           int64
		total, want int64 // the total of the Runs, and the exact one
	}{
		{0, 1, 1, 1}, {10, 1, 2, 2}, {20, 1, 3, 3}, {30, 1, 4, 4}, // as many as it has exact room for
		{30, 5, 9, 9},                        // the same instant takes no room
		{100, 10, 19, 19}, {279, 20, 39, 39}, // join the pair of 30, which now counts as of 279
		{280, 40, 79, 79}, // 250 after 30: a pair of its own
		{1000, 0, 79, 79},
		{1001, 0, 78, 78}, {1021, 0, 76, 76},
		{1031, 0, 76, 70}, {1101, 0, 76, 60}, // the events of 30 and 100 count until 1279
		{1279, 0, 76, 60},
		{1280, 0, 40, 40}, // exact again
		{1281, 0, 0, 0},
	} {
		now := at(s.now * ms)
		exact[now] += s.n
		if got := exact.count(now, time.Second); got != s.want {
			t.Errorf("step %d, at %d: the naive count is %d, want %d", i, s.now, got, s.want)
		}
		if got := r.Add(now, s.n); got != s.total || r.Total(now) != got {
			t.Errorf("step %d, at %d: total %d, want %d", i, s.now, got, s.total)
		}
	}
}

// The pairs of a Runs suffice for all events: one each nanosecond, in bursts, with pauses.
func TestRunsHasRoom(t *testing.T) {
	for length := time.Duration(1); length <= 40; length++ {
		for instants := 1; instants <= 13; instants++ {
			grain := (length-1)/time.Duration(instants) + 1
			for _, pause := range []mono.Time{0, 1, 2, 5, mono.Time(grain) - 1, mono.Time(length)} {
				r, exact := must(window.NewRuns(length, instants)), naive{}
				for now := mono.Time(0); now < 150; now++ {
					if pause > 0 && now/(pause+3)%2 == 1 {
						now += pause
					}
					exact[now]++
					got, least := r.Add(now, 1), exact.count(now, length)
					if most := exact.since(now.Add(-length).Add(1-grain), now); got < least || got > most {
						t.Fatalf("window %d, %d instants, pause %d: at %d total %d, want %d to %d",
							length, instants, pause, int64(now), got, least, most)
					}
				}
			}
		}
	}
}

// An Add of nothing, at any time, changes nothing. It does not change how long earlier events count
// either.
func TestRunsAddNothing(t *testing.T) {
	with, without := must(window.NewRuns(time.Second, 4)), must(window.NewRuns(time.Second, 4))
	for _, s := range []struct {
		now time.Duration
		n   int64
	}{{0, 1}, {10, 1}, {20, 1}, {30, 1}, {100, 0}, {200, -3}, {250, 0}, {400, 1}, {500, 0}, {1020, 0}, {1031, 0}, {1300, 0}, {1401, 0}} {
		now := at(s.now * ms)
		got := with.Add(now, s.n)
		if s.n > 0 {
			without.Add(now, s.n)
		}
		if want := without.Total(now); got != want || with.Total(now) != want {
			t.Errorf("at %v: %d, then %d; without nothing %d", s.now*ms, got, with.Total(now), want)
		}
	}
}
