package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// starts returns when each thread of 20 processes of three is first served, in samples of 10 ms.
func starts(t *testing.T, spread, stagger time.Duration) (at [][]int) {
	t.Helper()
	r := ran(t, fleet.Scenario{Duration: time.Minute, Sample: 10 * ms, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
		{Strategy: scripted(false, 0, time.Hour), Processes: 20, Threads: 3, Spread: spread, Stagger: stagger}}})
	for process := range 20 {
		var threads []int
		for thread := range 3 {
			i := slices.IndexFunc(r.Series.ServedBy[3*process+thread], func(n int) bool { return n > 0 })
			if i < 0 {
				t.Fatalf("thread %d of process %d does not start", thread, process)
			}
			threads = append(threads, i)
		}
		at = append(at, threads)
	}
	return at
}

// Threads of a process start together, processes within Spread.
func TestSpread(t *testing.T) {
	var all []int
	for process, threads := range starts(t, 30*time.Second, 0) {
		if threads[0] != threads[1] || threads[0] != threads[2] {
			t.Errorf("the threads of process %d start at samples %v", process, threads)
		}
		all = append(all, threads[0])
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n < 18 || all[0] > 800 || all[19] < 2200 || all[19] > 3000 {
		t.Errorf("20 processes start at %d instants: samples %v", n, all)
	}
}

// With Stagger, each thread on its own.
func TestStagger(t *testing.T) {
	for process, threads := range starts(t, 0, 10*time.Second) {
		if slices.Sort(threads); threads[0] == threads[1] || threads[1] == threads[2] || threads[2] > 1001 {
			t.Errorf("the threads of process %d start at samples %v, one after the other within 10 s", process, threads)
		}
	}
	for process, threads := range starts(t, 30*time.Second, 100*ms) {
		if slices.Max(threads)-slices.Min(threads) > 10 {
			t.Errorf("the threads of process %d start at samples %v, more than 100 ms apart", process, threads)
		}
	}
}
