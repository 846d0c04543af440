package fleet_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// A day of 25 clients, and half an hour of 10,000.
func BenchmarkFleet(b *testing.B) {
	day := fleet.Scenario{Duration: 24 * time.Hour, Groups: []fleet.Group{{Strategy: proportional, Processes: 5, Threads: 5, Link: around30ms}}}
	paced := day
	paced.Groups = []fleet.Group{{Strategy: spaced(20 * time.Second), Processes: 25, Link: around30ms}}
	many := fleet.Scenario{Duration: 30 * time.Minute, Groups: []fleet.Group{{Strategy: spaced(2000 * time.Second), Processes: 10_000, Link: around30ms}}}
	for _, c := range []struct {
		name string
		s    fleet.Scenario
	}{{"day/threads", day}, {"day/limiters", paced}, {"10000 clients", many}} {
		b.Run(c.name, func(b *testing.B) {
			events, clients := uint64(0), 0
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.ReadMemStats(&before)
				f, err := fleet.New(c.s)
				if err != nil {
					b.Fatal(err)
				}
				f.Advance(c.s.Duration)
				runtime.ReadMemStats(&after)
				r := f.Report()
				events += r.Events
				clients = r.Clients
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(clients), "B/client")
		})
	}
}
