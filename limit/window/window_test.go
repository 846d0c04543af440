package window_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

func TestBadArguments(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // the field and its value, and where
	}{
		{second(window.NewLog(10, 0)), "NewLog: window 0s is not positive"},
		{second(window.NewLog(10, -time.Second)), "NewLog: window -1s is not positive"},
		{second(window.NewLog(0, time.Second)), "NewLog: limit 0 is not"},
		{second(window.NewLog(-3, time.Second)), "NewLog: limit -3 is not"},
		{second(window.NewLog(1<<26+1, time.Second)), "NewLog: limit 67108865 is not"},
		{second(window.NewRuns(0, 10)), "NewRuns: window 0s is not positive"},
		{second(window.NewRuns(time.Second, 0)), "NewRuns: instants 0 is not"},
		{second(window.NewRuns(time.Second, math.MaxInt)), "NewRuns: instants 9223372036854775807 is not"},
		{second(window.NewSlots(-1, 1)), "NewSlots: window -1ns is not positive"},
		{second(window.NewSlots(time.Second, 0)), "NewSlots: precision 0s is not positive"},
		{second(window.NewSlots(time.Second, -time.Second)), "NewSlots: precision -1s is not positive"},
		{second(window.NewSlots(100*ms, time.Second)), "NewSlots: precision 1s is longer than window 100ms"},
		{second(window.NewSlots(time.Hour, 1)), "NewSlots: precision 1ns of window 1h0m0s takes 3600000000001 slots"},
		{second(window.NewSlots(math.MaxInt64, 1)), "takes 9223372036854775808 slots"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want one that says %q", c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The events of the worked examples, in every counter.
func TestWorkedExamplesAlike(t *testing.T) {
	l, r, s, n := must(window.NewLog(100, 100)), must(window.NewRuns(100, 10)), must(window.NewSlots(100, 1)), naive{}
	for _, e := range []struct {
		now      mono.Time
		n, total int64
	}{
		{1000, 1, 1}, {1010, 3, 4}, {1050, 1, 5}, {1100, 4, 9}, {1200, 1, 5}, {1300, 1, 2},
		{1400, 0, 1}, {1401, 0, 0}, // nothing is added, and time goes on all the same
	} {
		n[e.now] = e.n
		for range e.n {
			l.Add(e.now)
		}
		for name, got := range map[string]int64{
			"Log": int64(l.Count(e.now)), "Runs": r.Add(e.now, e.n), "Slots": s.Add(e.now, e.n), "naive": n.count(e.now, 100),
		} {
			if got != e.total {
				t.Errorf("%s: at %d total %d, want %d", name, int64(e.now), got, e.total)
			}
		}
	}
}

// All counters promise that a now before the last one counts as the last one.
func TestTimeThatGoesBack(t *testing.T) {
	l := must(window.NewLog(2, time.Second))
	l.Add(at(5 * time.Second))
	l.Add(at(time.Second)) // counts as of 5 s
	if ready, want := l.Ready(0), at(6*time.Second+1); ready != want || !l.Full(0) || l.Take(0) || l.Count(0) != 2 {
		t.Errorf("Log: ready at %v, want %v; full %v, count %d", ready, want, l.Full(0), l.Count(0))
	}
	if got := l.Count(at(6 * time.Second)); got != 2 {
		t.Errorf("Log: count %d at 6 s, want 2", got)
	}
	if l.Count(at(time.Hour)) != 0 || l.Count(at(6*time.Second)) != 2 {
		t.Error("Log: to ask for a later instant changed what it knows of an earlier one")
	}
	one := must(window.NewLog(2, time.Second))
	one.Add(at(5 * time.Second))
	if ready := one.Ready(0); ready != at(5*time.Second) {
		t.Errorf("Log: ready at %v, before what happened last", ready)
	}

	r, s := must(window.NewRuns(time.Second, 4)), must(window.NewSlots(time.Second, 100*ms))
	for _, e := range []struct {
		now   time.Duration
		n     int64
		total int64
	}{
		{5 * time.Second, 1, 1}, {4 * time.Second, 2, 3}, {-time.Hour, 4, 7}, {6 * time.Second, 0, 7},
		{7 * time.Second, 0, 0}, {5 * time.Second, 8, 8}, {8 * time.Second, 0, 8}, {8100 * ms, 0, 0},
	} {
		if got := r.Add(at(e.now), e.n); got != e.total {
			t.Errorf("Runs: at %v total %d, want %d", e.now, got, e.total)
		}
		if got := s.Add(at(e.now), e.n); got != e.total {
			t.Errorf("Slots: at %v total %d, want %d", e.now, got, e.total)
		}
	}
}

// Counts without sense, and sums that do not fit, cause no crash and leave the total right.
func TestAbsurdCounts(t *testing.T) {
	for name, c := range map[string]interface {
		Add(mono.Time, int64) int64
		Total(mono.Time) int64
	}{"Runs": must(window.NewRuns(100, 8)), "Slots": must(window.NewSlots(100, 10))} {
		for i, e := range []struct {
			now      mono.Time
			n, total int64
		}{
			{0, 5, 5},
			{10, 0, 5},
			{10, -3, 5},
			{10, math.MinInt64, 5},
			{20, math.MaxInt64, math.MaxInt64},
			{20, 1, math.MaxInt64},
			{30, 7, math.MaxInt64},
			{115, 0, math.MaxInt64 - 5}, // the excess is not counted
			{115, 2, math.MaxInt64 - 3},
			{1000, 0, 0},
			{1000, 4, 4},
		} {
			if got := c.Add(e.now, e.n); got != e.total || c.Total(e.now) != got {
				t.Errorf("%s: step %d: total %d, want %d", name, i, got, e.total)
			}
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	l := must(window.NewLog(20, time.Second))
	r := must(window.NewRuns(time.Second, 20)) // 100 instants to a window: shared
	s := must(window.NewSlots(time.Second, 30*ms))
	var now mono.Time
	sum, left := int64(0), int64(0)
	leave := func(_ mono.Time, n int64) { left += n }
	heard := must(window.NewLog(20, time.Second)).OnLeave(leave)
	runs, slots := must(window.NewRuns(time.Second, 20)), must(window.NewSlots(time.Second, 30*ms))
	runs.OnLeave(leave)
	slots.OnLeave(leave)
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(10 * ms)
		heard.Add(now)
		runs.Add(now, 2)
		slots.Add(now, 2)
		heard.Remove(now.Add(-40 * ms))
		runs.Remove(now.Add(-40*ms), 1)
		slots.Remove(now.Add(-40*ms), 1)
		if now%mono.Time(time.Second) == 0 {
			now = now.Add(time.Minute)
		}
		if l.Take(now) {
			sum++
		}
		if !l.Full(now) && l.Ready(now) == now {
			l.Add(now)
		}
		least, _ := s.Bounds(now)
		sum += int64(l.Count(now)) + r.Add(now, 2) + r.Total(now) + s.Add(now, 2) + s.Total(now) + least
	}); n != 0 {
		t.Errorf("%v allocations per step", n)
	}
	if sum == 0 || left == 0 {
		t.Error("nothing was counted, or left")
	}
}

// A moving average of the events, weighted by e^(−age/window), used as a count.
type average struct {
	value float64
	last  mono.Time
}

func (a *average) at(now mono.Time, window time.Duration) float64 {
	a.value *= math.Exp(-float64(now.Sub(a.last)) / float64(window))
	a.last = now
	return a.value
}

// The reasons against a moving average, at a limit of 300 per second. It lingers: after 300 at once
// it frees 299 of them after 5.7 s, and the window is empty after 1 s. It reacts late: of a stream
// of 600 a second it lets 415 through before its first refusal, and the limit is at 300. It fades
// at once: 300 at once and its later admissions make 599 in one second.
func TestMovingAverageLingersAndIsLate(t *testing.T) {
	const limit, w = 300, time.Second

	full := func(c func(now mono.Time) bool, step time.Duration) (now mono.Time) {
		for !c(now) {
			now = now.Add(step)
		}
		return now
	}
	t.Run("lingers", func(t *testing.T) {
		a, l, s := &average{value: limit}, must(window.NewLog(limit, w)), must(window.NewSlots(w, 100*ms))
		for range limit {
			l.Add(0)
		}
		s.Add(0, limit)
		for _, c := range []struct {
			name string
			free func(now mono.Time) bool
			want time.Duration
		}{
			{"Log", func(now mono.Time) bool { return l.Count(now) <= 1 }, 1001 * ms},
			{"Slots", func(now mono.Time) bool { return s.Total(now) <= 1 }, 1100 * ms},
			{"average", func(now mono.Time) bool { return a.at(now, w) <= 1 }, 5704 * ms},
		} {
			if got := full(c.free, ms); got != at(c.want) {
				t.Errorf("%s: room for 299 more after %v, want %v", c.name, got, c.want)
			}
		}
	})
	t.Run("late", func(t *testing.T) {
		a, l := &average{}, must(window.NewLog(limit, w))
		const gap = time.Second / 600
		byAverage, byLog := 0, 0
		full(func(now mono.Time) bool {
			if a.at(now, w) > limit-1 {
				return true
			}
			a.value++
			byAverage++
			return false
		}, gap)
		full(func(now mono.Time) bool {
			if !l.Take(now) {
				return true
			}
			byLog++
			return false
		}, gap)
		if byAverage != 415 || byLog != limit {
			t.Errorf("of 600 a second the average lets %d through before it refuses, the Log %d; want 415 and %d", byAverage, byLog, limit)
		}
	})
	t.Run("admits twice the limit", func(t *testing.T) {
		a, sent := &average{}, naive{}
		for now := mono.Time(0); now <= at(w); now = now.Add(ms) {
			for a.at(now, w) <= limit-1 {
				a.value++
				sent[now]++
			}
		}
		if got := sent.worst(w); got != 599 {
			t.Errorf("%d in one second, want 599", got)
		}
	})
}

// Three limits at once are three Logs. None of them is broken, and the time of the next event is
// exact.
func TestThreeWindows(t *testing.T) {
	limits := []struct {
		n int
		w time.Duration
	}{{3, 100}, {7, 500}, {20, 2000}}
	var logs []*window.Log
	for _, c := range limits {
		logs = append(logs, must(window.NewLog(c.n, c.w)))
	}
	sent := naive{}
	var now mono.Time
	for range 200 {
		for _, l := range logs {
			now = max(now, l.Ready(now))
		}
		for _, l := range logs {
			l.Add(now)
		}
		sent[now]++
	}
	var worst []string
	for _, c := range limits {
		worst = append(worst, fmt.Sprintf("%d/%d", sent.worst(c.w), c.n))
	}
	if got := strings.Join(worst, " "); got != "3/3 7/7 20/20" {
		t.Errorf("most in a window: %s", got)
	}
	if want := mono.Time(9*2001 + 2*501 + 101); now != want {
		t.Errorf("200 events took until %d, want %d", int64(now), int64(want))
	}
}
