package run

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

// The pace counts the ends in the latest complete thirty seconds, however long the run goes on. It
// is not known if nothing ended.
func TestPace(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	var p pace
	p.begin(began, nil)
	after := func(d time.Duration, want float64, known bool) {
		t.Helper()
		if got, is := p.perSecond(began.Add(d)); got != want || is != known {
			t.Errorf("after %v: %v %v, want %v %v", d, got, is, want, known)
		}
	}
	at := time.Duration(0)
	goesOn := func(until time.Duration, perSecond int) {
		for ; at < until; at += time.Second {
			for range perSecond {
				p.ended(began.Add(at))
			}
		}
	}
	goesOn(30*time.Second, 2)
	after(30*time.Second-1, 2*29./30, false)
	after(30*time.Second, 2, true)
	goesOn(200*time.Second, 2)
	after(200*time.Second, 2, true)
	goesOn(215*time.Second, 4)
	after(215*time.Second, 3, true)
	goesOn(300*time.Second, 4)
	after(300*time.Second, 4, true)
	after(310*time.Second, 4*20./30, true)
	after(330*time.Second, 0, true)
	after(time.Hour, 0, true)

	for _, c := range []struct {
		rate format.Rate
		span time.Duration // how far back the pace counts
	}{
		{format.Rate{N: 5, Per: time.Second}, 30 * time.Second}, {format.Rate{N: 5, Per: time.Minute}, 2 * time.Minute}, {format.Rate{N: 600, Per: time.Hour, Bucket: true}, 30 * time.Second}, {format.Rate{N: 20, Per: time.Hour, Bucket: true}, 6 * time.Minute},
	} {
		p.begin(began, []format.Rate{{N: 1000, Per: time.Second}, c.rate})
		if got := p.slot * paceSlots; got != c.span {
			t.Errorf("%+v: what is looked at is %v, want %v", c.rate, got, c.span)
		}
	}
}

// Keys share the rest of the work, each from when it may be used.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		from []time.Duration
		d    time.Duration // of one alone
		want time.Duration
	}{
		{[]time.Duration{0}, 60, 60}, {[]time.Duration{10}, 60, 70}, {[]time.Duration{0, 0, 0}, 60, 20}, {[]time.Duration{0, 20}, 60, 40},
		{[]time.Duration{0, 60}, 60, 60}, {[]time.Duration{0, 100}, 60, 60}, {[]time.Duration{0, 20, 100}, 60, 40}, {[]time.Duration{5, 5, 20}, 60, 30},
	} {
		var keys []serving
		for _, from := range c.from {
			keys = append(keys, serving{from: from})
		}
		if got := together(keys, c.d); got != c.want {
			t.Errorf("%v for %v: %v, want %v", c.from, c.d, got, c.want)
		}
	}
}

// The content of a bucket goes at once. Sends have left it.
func TestETAOfABucket(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		keys             int
		room             int64         // at the epoch, of all
		remaining, spent int64         //
		first, after     time.Duration // times of the first request, and of now
		want             time.Duration
		wrong            int64 // what fits, if not all
	}{
		"full":                  {keys: 1, room: 60, remaining: 100, want: 40 * time.Second},
		"half":                  {keys: 1, room: 30, remaining: 100, want: 70 * time.Second},
		"all of it":             {keys: 1, room: 60, remaining: 60, want: 0},
		"some has gone":         {keys: 1, room: 60, remaining: 70, spent: 30, after: 10 * time.Second, want: 30 * time.Second},
		"full before the first": {keys: 1, room: 30, remaining: 100, first: time.Minute, after: time.Minute, want: 40 * time.Second},
		"overdrawn":             {keys: 1, room: 60, remaining: 100, spent: 90, after: 10 * time.Second, want: 100 * time.Second},
		"two keys":              {keys: 2, room: 120, remaining: 200, want: 40 * time.Second},
		"of 60 only 30 fit":     {keys: 1, room: 60, remaining: 100, wrong: 30, want: 80 * time.Second},
	} {
		r := &Run{epoch: epoch, c: Config{Keys: make([]format.Key, c.keys), Limits: []format.Rate{{N: 60, Per: time.Minute, Unit: limit.Requests, Bucket: true}}}}
		r.tally.first = epoch.Add(c.first)
		r.tally.uses = []use{{remaining: limit.Cost{limit.Requests: c.remaining}, spent: limit.Cost{limit.Requests: c.spent}}}
		g := &group{r: r, limits: r.c.Limits, rooms: []int64{c.room}}
		keys := make([]serving, c.keys)
		if c.wrong > 0 {
			keys[0].misfits = []limit.Misfit{{Rate: limit.Rate{N: 60, Per: time.Minute, Unit: limit.Requests}, Fits: c.wrong}}
		}
		if got := g.byLimits(epoch.Add(c.after), keys); got.Round(time.Millisecond) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
