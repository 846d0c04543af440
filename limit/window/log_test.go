package window_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

func TestLogTimeline(t *testing.T) {
	l := must(window.NewLog(3, time.Second))
	const add, take = "add", "take"
	for i, s := range []struct {
		now   time.Duration
		do    string
		taken bool
		count int
		ready time.Duration
	}{
		{0, "", false, 0, 0},
		{0, take, true, 1, 0},
		{100 * ms, take, true, 2, 100 * ms},
		{100 * ms, take, true, 3, 1000*ms + 1},
		{900 * ms, take, false, 3, 1000*ms + 1},
		{1000 * ms, take, false, 3, 1000*ms + 1}, // exactly a window old: still counts
		{1000*ms + 1, take, true, 3, 1100*ms + 1},
		{1050 * ms, add, false, 3, 1100*ms + 1}, // a fact beyond the limit: 4 are in the window, the newest 3 are kept
		{1100*ms + 1, "", false, 2, 1100*ms + 1},
		{1100*ms + 1, take, true, 3, 2000*ms + 2},
		{time.Hour, "", false, 0, time.Hour},
		{time.Hour, take, true, 1, time.Hour},
	} {
		now := at(s.now)
		switch s.do {
		case add:
			l.Add(now)
		case take:
			if got := l.Take(now); got != s.taken {
				t.Errorf("step %d, at %v: taken %v", i, s.now, got)
			}
		}
		if got := l.Count(now); got != s.count {
			t.Errorf("step %d, at %v: count %d, want %d", i, s.now, got, s.count)
		}
		if got := l.Ready(now); got != at(s.ready) {
			t.Errorf("step %d, at %v: ready at %v, want %v", i, s.now, got, s.ready)
		}
		if got := l.Full(now); got != (s.count == 3) {
			t.Errorf("step %d, at %v: full %v", i, s.now, got)
		}
	}
}

// At the ends of the scale: nothing wraps round.
func TestLogAtTheEnds(t *testing.T) {
	l := must(window.NewLog(1, time.Second))
	if ready := l.Ready(mono.Min); ready != mono.Min || !l.Take(mono.Min) {
		t.Errorf("empty at the first instant: ready at %d", int64(ready))
	}
	if ready, want := l.Ready(mono.Min), mono.Min.Add(time.Second)+1; ready != want {
		t.Errorf("ready at %d, want %d", int64(ready), int64(want))
	}
	if !l.Take(mono.Max - 10) {
		t.Error("refused at the end of time, when nothing had happened for 584 years")
	}
	if ready := l.Ready(mono.Max); ready <= mono.Max || !l.Full(mono.Max) {
		t.Errorf("ready at %d: 10 ns after an event", int64(ready))
	}

	forever := must(window.NewLog(1, math.MaxInt64))
	forever.Add(-5)
	if ready, want := forever.Ready(0), mono.Time(math.MaxInt64-4); ready != want {
		t.Errorf("ready at %d, want %d", int64(ready), int64(want))
	}
	forever.Add(5)
	if ready := forever.Ready(0); ready <= mono.Max {
		t.Errorf("ready at %d, want never", int64(ready))
	}
}
