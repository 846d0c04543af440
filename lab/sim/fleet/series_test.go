package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

// What a chart draws and what the text says is one figure: the longest in the series of a client's sleeps is its longest sleep, whatever
// the strategy, with jitter, between two instants, of clients that leave, and in a run that is broken off.
func TestSeriesHasTheLongestSleep(t *testing.T) {
	for _, law := range strategy.All() {
		switch law.Name {
		case "null", "retry-only", "cubic": // send hundreds of times as much
			continue
		}
		s := fleet.Scenario{Seed: 7, Duration: 20 * time.Minute, Sample: 37 * time.Second, Server: fleet.Quota{Limit: 4500, Window: time.Hour}, Groups: []fleet.Group{
			{Strategy: law, Processes: 2, Threads: 3},
			{Strategy: law, Processes: 1, Threads: 2, Join: 5 * time.Minute, Leave: 11 * time.Minute},
		}}
		f, err := fleet.New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, until := range []time.Duration{8 * time.Minute, 20 * time.Minute} {
			f.Advance(until)
			r, client := f.Report(), 0
			for _, g := range r.Groups {
				for _, want := range g.MaxSleep {
					if got := slices.Max(r.Series.Slept[client]); got != want {
						t.Errorf("%s, client %d until %v: the series goes to %v s, the longest sleep is %v s", law.Name, client, until, got, want)
					}
					client++
				}
			}
		}
	}
}
