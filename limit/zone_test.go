package limit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test does not depend on the machine's zones

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// localServer counts by what its clock shows, as a server does that has a counter per date.
type localServer struct {
	zone    *time.Location
	window  time.Duration
	used    map[string]int64
	refused int
}

func (s *localServer) arrive(at time.Time, limit int64) bool {
	shown := localName(at.In(s.zone), s.window)
	if s.used[shown] >= limit {
		s.refused++
		return false
	}
	s.used[shown]++
	return true
}

func localName(at time.Time, window time.Duration) string {
	switch {
	case window == limit.Month:
		return at.Format("2006-01")
	case window == 7*24*time.Hour:
		y, w := at.ISOWeek()
		return fmt.Sprintf("%d week %d", y, w)
	case window == 24*time.Hour:
		return at.Format("2006-01-02")
	}
	clock := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	return fmt.Sprintf("%s part %d", at.Format("2006-01-02"), clock/window)
}

// A daily quota of a place is used up as soon as it is there, over days of 23, 24 and 25 hours and
// of none. Nothing is refused, and nothing is left.
func TestCalendarOfAZone(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		about, zone, from string
		window            time.Duration
		goes              int // how many intervals are used in 100 h, or in 100 days where they are longer
	}{
		{"a day of 25 hours", "America/Los_Angeles", "2026-10-31", day, 5},
		{"a day of 23 hours", "America/Los_Angeles", "2026-03-07", day, 5},
		{"summer time of the south", "Australia/Sydney", "2026-10-03", day, 5},
		{"the end of it", "Australia/Sydney", "2026-04-04", day, 5},
		{"a change of half an hour", "Australia/Lord_Howe", "2026-04-04", day, 5},
		{"a midnight that is left out", "America/Sao_Paulo", "2018-11-03", day, 5},
		{"a midnight left out today", "Atlantic/Azores", "2026-03-28", day, 5},
		{"two midnights", "Atlantic/Azores", "2026-10-24", day, 5},
		{"two midnights elsewhere", "America/Havana", "2026-10-31", day, 5},
		{"a clock set back over midnight", "America/St_Johns", "2010-11-06", day, 5},
		{"a day that was left out", "Pacific/Apia", "2011-12-28", day, 5},
		{"a day of 27 hours", "Antarctica/Casey", "2018-03-10", day, 5},
		{"winter time that is negative", "Europe/Dublin", "2026-10-24", day, 5},
		{"a month of two changes", "Africa/Casablanca", "2026-02-14", day, 5},
		{"no changes", "UTC", "2026-10-31", day, 5},
		{"weeks", "America/Los_Angeles", "2026-10-14", 7 * day, 15},
		{"months", "America/Los_Angeles", "2026-01-31", limit.Month, 5},
		{"hours of a zone of half hours", "Asia/Kolkata", "2026-10-31", time.Hour, 101},
		{"hours of a zone of quarters", "Asia/Kathmandu", "2026-10-31", time.Hour, 101},
		{"hours, one of them twice", "America/Los_Angeles", "2026-10-31", time.Hour, 100},
		{"hours, one of them left out", "America/Los_Angeles", "2026-03-07", time.Hour, 101},
		{"six hours", "Europe/Berlin", "2026-10-24", 6 * time.Hour, 17},
	} {
		z := zone(t, c.zone)
		start, err := time.ParseInLocation("2006-01-02 15:04:05", c.from+" 00:00:10", z)
		if err != nil {
			t.Fatal(err)
		}
		const most = 20
		l, err := limit.NewCalendar(limit.CalendarConfig{Limit: most, Window: c.window, Zone: z, Epoch: start})
		if err != nil {
			t.Fatal(err)
		}
		span := mono.Time(100 * time.Hour)
		if c.window > day {
			span *= 24
		}
		server := localServer{z, c.window, map[string]int64{}, 0}
		now := mono.Time(0)
		for {
			if now = l.Ready(now, limit.One); now > span {
				break
			}
			lease := limittest.Admit(l, now, limit.One)
			now += mono.Time(50 * time.Millisecond)
			outcome := limit.Outcome{Result: limit.Accepted}
			if !server.arrive(start.Add(time.Duration(now)), most) {
				outcome.Result = limit.Limited
			}
			l.Settle(now, lease, &outcome)
		}
		goes := 0
		for _, used := range server.used {
			goes += int(used)
		}
		if server.refused > 0 || goes != c.goes*most {
			t.Errorf("%s: %d refused, %d went in %d intervals, want %d", c.about, server.refused, goes, len(server.used), c.goes*most)
		}
	}
}

// No interval of a zone's clock holds more than the limit, however long requests take, and with a
// server's clock that is off by the Skew. A restart, a change of the limit, and one of the Window
// at any time do not change that.
func FuzzCalendarOfAZone(f *testing.F) {
	names := []string{"America/Los_Angeles", "Australia/Lord_Howe", "Atlantic/Azores", "America/Havana", "America/St_Johns", "Pacific/Apia", "Antarctica/Casey", "Africa/Casablanca"}
	windows := []time.Duration{24 * time.Hour, time.Hour, 6 * time.Hour, 7 * 24 * time.Hour, limit.Month, 20 * time.Minute}
	for i := range names {
		f.Add(uint64(i), uint8(i), uint8(0), int64(1793404800)) // the end of summer time of 2026
	}
	f.Add(uint64(9), uint8(4), uint8(0), int64(1289016000)) // St. John's sets its clock back over midnight
	f.Add(uint64(9), uint8(5), uint8(0), int64(1325116800)) // Apia leaves a day out
	f.Add(uint64(9), uint8(2), uint8(1), int64(1793404800))
	f.Fuzz(func(t *testing.T, seed uint64, place, length uint8, from int64) {
		if from < 0 || from > 4e9 {
			return
		}
		z, window := zone(t, names[int(place)%len(names)]), windows[int(length)%len(windows)]
		rng, start := rand.New(rand.NewPCG(seed, 1)), time.Unix(from, 0)
		most := 1 + rng.Int64N(5)
		make := func() *limit.Calendar {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: most, Window: window, Zone: z, Epoch: start}))
		}
		l := make()
		off := time.Duration(rng.Int64N(int64(100*time.Millisecond))) - 50*time.Millisecond
		server := localServer{z, window, map[string]int64{}, 0}
		now, restarts := mono.Time(0), 0
		for range 200 {
			if rng.IntN(20) == 0 {
				next := make()
				if err := limit.Restore(next, limit.AppendState(nil, l)); err != nil {
					t.Fatal(err)
				}
				l = next
				restarts++
			}
			if rng.IntN(3) > 0 {
				now = now.Add(time.Duration(rng.Int64N(int64(window) / 3)))
			}
			now = l.Ready(now, limit.One)
			if now > mono.Time(400*24*time.Hour) {
				break
			}
			lease := limittest.Admit(l, now, limit.One)
			took := time.Duration(rng.Int64N(int64(time.Minute)))
			at := start.Add(time.Duration(now) + off + time.Duration(rng.Int64N(int64(took)+1)))
			result := limit.Outcome{Result: limit.Accepted}
			if !server.arrive(at, most) {
				t.Fatalf("%v, %v, limit %d, clock off by %v: refused at %v after %d restarts: %v", z, window, most, off, at.In(z), restarts, server.used)
			}
			now = now.Add(took)
			l.Settle(now, lease, &result)
		}
	})
}

// A state that was written before a clock is set goes on after it.
func TestCalendarOfAZoneGoesOn(t *testing.T) {
	z := zone(t, "America/Los_Angeles")
	start := time.Date(2026, 10, 31, 23, 0, 0, 0, z)
	l := must(limit.NewCalendar(limit.CalendarConfig{Limit: 3, Window: 24 * time.Hour, Zone: z, Epoch: start}))
	midnight := at(time.Hour + 50*time.Millisecond)
	l.Settle(at(time.Second), limittest.Admit(l, at(0), limit.Cost{limit.Requests: 3}), &limit.Outcome{Result: limit.Accepted})
	if got := l.Ready(at(time.Minute), limit.One); got != midnight {
		t.Fatalf("the next goes at %v, want %v", got, midnight)
	}
	l.Settle(midnight.Add(time.Second), limittest.Admit(l, midnight, limit.Cost{limit.Requests: 2}), &limit.Outcome{Result: limit.Accepted})
	again := must(limit.NewCalendar(limit.CalendarConfig{Limit: 3, Window: 24 * time.Hour, Zone: z}))
	limit.SetEpoch(limit.NewAll(limit.Named("a day", again)), start) // as a driver does
	if err := limit.Restore(again, limit.AppendState(nil, l)); err != nil {
		t.Fatal(err)
	}
	next := midnight.Add(25 * time.Hour)
	for _, l := range []*limit.Calendar{l, again} {
		if got := l.Ready(midnight.Add(24*time.Hour), limit.Cost{limit.Requests: 2}); got != next {
			t.Errorf("two more go at %v, want %v: this day has 25 hours", got, next)
		}
		// Two days are used up before the last of 8.
		ahead := limit.Cost{limit.Requests: 7}
		if got := l.NotBefore(midnight.Add(24*time.Hour), 7, ahead, limit.One); got != next.Add(48*time.Hour) {
			t.Errorf("the eighth is forecast for %v, want %v", got, next.Add(48*time.Hour))
		}
		if got, want := limit.Span(l), 27*time.Hour+100*time.Millisecond; got != want {
			t.Errorf("a request counts for %v, want %v", got, want)
		}
		if got := limit.Configuration(l); got != "Calendar: 3 requests per 24h0m0s, of the clock of America/Los_Angeles, skew 50ms" {
			t.Error(got)
		}
	}
}

// A Window may become another while requests are under way.
func TestCalendarOfAZoneGetsAnotherWindow(t *testing.T) {
	z := zone(t, "America/Los_Angeles")
	start := time.Date(2026, 11, 1, 1, 30, 0, 0, z) // the first of two
	l := must(limit.NewCalendar(limit.CalendarConfig{Limit: 3, Window: time.Hour, Zone: z, Epoch: start}))
	l.Settle(at(time.Second), limittest.Admit(l, at(0), limit.Cost{limit.Requests: 3}), &limit.Outcome{Result: limit.Accepted})
	for _, c := range []struct {
		window, ready time.Duration
	}{
		{time.Hour, 90 * time.Minute}, // the hour from one to two is there twice
		{24 * time.Hour, 23*time.Hour + 30*time.Minute},
		{limit.Month, (29*24+23)*time.Hour + 30*time.Minute},
		{7 * 24 * time.Hour, 23*time.Hour + 30*time.Minute}, // a Sunday
	} {
		if err := l.SetWindow(at(time.Minute), c.window); err != nil {
			t.Fatal(err)
		}
		if got, want := l.Ready(at(time.Minute), limit.One), at(c.ready+50*time.Millisecond); got != want {
			t.Errorf("a window of %v: the next goes at %v, want %v", c.window, got, want)
		}
	}
	if err := l.SetWindow(at(time.Minute), 7*time.Hour); err == nil || !strings.Contains(err.Error(), "a length that divides a day") {
		t.Errorf("a window of 7 h: %v", err)
	}
}

func TestZoneIsChecked(t *testing.T) {
	z := zone(t, "Asia/Kolkata")
	for _, c := range []struct {
		config limit.CalendarConfig
		says   string
	}{
		{limit.CalendarConfig{Window: 48 * time.Hour, Zone: z}, "a Window of 48h0m0s has no beginnings in a zone"},
		{limit.CalendarConfig{Window: 7 * time.Minute, Zone: z}, "a Window of 7m0s has no beginnings in a zone"},
		{limit.CalendarConfig{Window: time.Hour, Zone: z, Phase: 3}, "Phase 3ns beside a Zone"},
	} {
		c.config.Limit = 1
		if _, err := limit.NewCalendar(c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.says)
		}
	}
	begin, end := limit.IntervalIn(z, time.Hour, time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	if begin.UTC().Format("15:04") != "11:30" || end.Sub(begin) != time.Hour {
		t.Errorf("an hour of India is from %v to %v", begin, end)
	}
}

// A limiter that comes later has the same epoch.
func TestVaryingPassesItsEpochOn(t *testing.T) {
	z, start := zone(t, "America/Los_Angeles"), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	make := func() *limit.Calendar {
		return must(limit.NewCalendar(limit.CalendarConfig{Limit: 1, Window: 24 * time.Hour, Zone: z}))
	}
	first, later := make(), make()
	v := limit.NewVarying(first)
	limit.SetEpoch(v, start)
	v.Change(0, first, limit.Named("a day", later))
	v.Settle(0, limittest.Admit(v, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
	for _, l := range []*limit.Calendar{first, later} {
		if got, want := l.Ready(0, limit.One), at(7*time.Hour+50*time.Millisecond); got != want {
			t.Errorf("ready at %v, want %v", got, want)
		}
	}
}

// A Calendar names the place of its clock, or none.
func TestCalendarNamesItsZone(t *testing.T) {
	for _, z := range []*time.Location{nil, time.UTC} {
		c := limit.CalendarConfig{Limit: 1, Window: 24 * time.Hour, Zone: z}
		if z != nil {
			c.Epoch = time.Unix(1e9, 0)
		}
		if l, err := limit.NewCalendar(c); err != nil || l.Zone() != z {
			t.Errorf("%v: %v, %v", z, l.Zone(), err)
		}
	}
}
