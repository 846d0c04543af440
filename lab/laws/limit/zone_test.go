package limit_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the test does not depend on the machine's zones

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// datedCounter is a server with a counter for each date and hour that its clock shows. Its clock is off.
type datedCounter struct {
	zone   *time.Location
	epoch  time.Time
	layout string // what the clock shows, to its precision
	limit  int64
	used   map[string]int64
}

func (d *datedCounter) Arrive(now mono.Time, cost int64) bool {
	shown := d.epoch.Add(time.Duration(now)).In(d.zone).Format(d.layout)
	if d.used[shown]+cost > d.limit {
		return false
	}
	d.used[shown] += cost
	return true
}

// No date of a place holds more than the limit over any hostile path, over changes of its clock, and with a server's
// clock that is off by as much as the Skew. Nearly all of each date is used.
func TestHostileByTheClockOfAPlace(t *testing.T) {
	const most = 40
	for _, place := range []struct{ zone, begin string }{
		{"America/Los_Angeles", "2026-10-31T12:00:00Z"}, {"America/Los_Angeles", "2026-03-07T12:00:00Z"},
		{"Atlantic/Azores", "2026-10-24T12:00:00Z"}, {"America/St_Johns", "2010-11-06T12:00:00Z"},
		{"Pacific/Apia", "2011-12-29T12:00:00Z"}, {"Australia/Lord_Howe", "2026-04-04T12:00:00Z"},
	} {
		zone, err := time.LoadLocation(place.zone)
		if err != nil {
			t.Fatal(err)
		}
		epoch, err := time.Parse(time.RFC3339, place.begin)
		if err != nil {
			t.Fatal(err)
		}
		for layout, window := range map[string]time.Duration{time.DateOnly: 24 * time.Hour, "2006-01-02 15": time.Hour} {
			for seed, path := range sim.ProofPaths() {
				off := []time.Duration{-49, 0, 49}[seed%3] * time.Millisecond
				server := &datedCounter{zone, epoch.Add(off), layout, most, map[string]int64{}}
				l, err := limit.NewCalendar(limit.CalendarConfig{Limit: most, Window: window, Zone: zone, Epoch: epoch})
				if err != nil {
					t.Fatal(err)
				}
				tally := sim.Proof{
					Limiter: l, Servers: []sim.ProofServer{{Server: server, Unit: limit.Requests}},
					Path: path.Path, Requests: 400,
					Lost: path.Lost, Idle: path.Idle, Aside: path.Aside, Seed: uint64(seed),
				}.Run()
				full := 0
				for _, used := range server.used {
					if used >= most*9/10 {
						full++
					}
				}
				if tally.Rejected > 0 || path.Aside == 0 && path.Lost == 0 && full < 400/most-2 {
					t.Errorf("%s, %v, %s: %d of %d refused, %d of %d intervals are full; the first: %s", place.zone, window,
						path.Name, tally.Rejected, tally.Requests, full, len(server.used), tally.First)
				}
			}
		}
	}
}

// A calendar of one length is refused where a clock is set, so the proof finds that.
func TestHostileFindsDaysOfOneLength(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	epoch := time.Date(2026, 10, 31, 12, 0, 0, 0, zone)
	l := must(limit.NewCalendar(limit.CalendarConfig{
		Limit: 40, Window: 24 * time.Hour, Phase: mono.Of(epoch, epoch.Add(12*time.Hour)),
	}))
	server := &datedCounter{zone, epoch, time.DateOnly, 40, map[string]int64{}}
	tally := sim.Proof{
		Limiter: l, Servers: []sim.ProofServer{{Server: server, Unit: limit.Requests}}, Path: sim.ProofPaths()[0].Path,
		Requests: 400, Seed: 1,
	}.Run()
	if tally.Rejected == 0 {
		t.Errorf("none of %d refused", tally.Requests)
	}
}

var _ rule.Server = (*datedCounter)(nil)
