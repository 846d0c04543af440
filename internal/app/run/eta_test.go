package run

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/limit"
)

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
		use              float64
	}{
		"full":                  {keys: 1, room: 60, remaining: 100, want: 40 * time.Second},
		"half":                  {keys: 1, room: 30, remaining: 100, want: 70 * time.Second},
		"all of it":             {keys: 1, room: 60, remaining: 60, want: 0},
		"some has gone":         {keys: 1, room: 60, remaining: 70, spent: 30, after: 10 * time.Second, want: 30 * time.Second},
		"full before the first": {keys: 1, room: 30, remaining: 100, first: time.Minute, after: time.Minute, want: 40 * time.Second},
		"overdrawn":             {keys: 1, room: 60, remaining: 100, spent: 90, after: 10 * time.Second, want: 100 * time.Second},
		"two keys":              {keys: 2, room: 120, remaining: 200, want: 40 * time.Second},
		"of 60 only 30 fit":     {keys: 1, room: 60, remaining: 100, wrong: 30, want: 80 * time.Second},
		"a part":                {keys: 1, room: 60, remaining: 100, use: 0.5, want: 140 * time.Second},
		"a part, and it is out": {keys: 1, room: 60, remaining: 100, spent: 50, after: 40 * time.Second, use: 0.5, want: 200 * time.Second},
	} {
		s := &gauge{epoch: epoch, tally: &tally.Tally{}, organizations: &organizations{}, c: &Config{Use: c.use, Keys: make([]format.Key, c.keys), Limits: []format.Rate{{N: 60, Per: time.Minute, Unit: limit.Requests, Bucket: true}}}}
		s.tally.First = epoch.Add(c.first)
		s.tally.Uses = []tally.Use{{Remaining: limit.Cost{limit.Requests: c.remaining}, Spent: limit.Cost{limit.Requests: c.spent}}}
		g := &group{rooms: []int64{c.room}}
		g.begin(s.c.Limits)
		keys := make([]serving, c.keys)
		if c.wrong > 0 {
			keys[0].misfits = []limit.Misfit{{Rule: limit.Rule{N: 60, Per: time.Minute, Unit: limit.Requests}, Fits: c.wrong}}
		}
		if got, _ := s.byLimits(g, epoch.Add(c.after), keys, 1); got.Round(time.Millisecond) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A plan counts on the part of a limit that is used: 100 at 10 of 20 a second, and of a bucket that holds half.
func TestPlanOfAPart(t *testing.T) {
	for want, l := range map[time.Duration]format.Rate{
		9 * time.Second: {N: 20, Per: time.Second, Unit: limit.Requests},
		8 * time.Second: {N: 20, Per: time.Second, Unit: limit.Requests, Bucket: true, Burst: 40},
	} {
		p := &planning{c: &Config{Limits: []format.Rate{l}, Use: 0.5}}
		plan := Plan{Requests: 100}
		if got := p.limits(time.Unix(1_800_000_000, 0), &plan, limit.Cost{limit.Requests: 100}, 1, nil); got != want || plan.Seconds != want.Seconds() {
			t.Errorf("%v, %+v; want %v", got, plan, want)
		}
	}
}

// A limit that proved too high holds its keys up as far as they know. The same number of another unit, or of another
// window, is another limit.
func TestWhatFits(t *testing.T) {
	minutely := limit.Rule{N: 60, Per: time.Minute, Unit: limit.Requests}
	wrong := func(r limit.Rule, fits int64, gap time.Duration) serving {
		return serving{misfits: []limit.Misfit{{Rule: r, Fits: fits, Gap: gap}}}
	}
	for name, c := range map[string]struct {
		keys []serving
		want float64
	}{
		"nothing is wrong":         {[]serving{{}, {}}, 1},
		"half":                     {[]serving{wrong(minutely, 30, 0)}, 0.5},
		"half, of one key of two":  {[]serving{wrong(minutely, 30, 0), {}}, 0.75},
		"all, in a longer time":    {[]serving{wrong(minutely, 60, 4*time.Minute)}, 0.25},
		"half, and a shorter time": {[]serving{wrong(minutely, 30, time.Second)}, 0.5},
		"of another unit":          {[]serving{wrong(limit.Rule{N: 60, Per: time.Minute, Unit: limit.Tokens}, 30, 0)}, 1},
		"of another window":        {[]serving{wrong(limit.Rule{N: 60, Per: time.Hour, Unit: limit.Requests}, 30, 0)}, 1},
		"of another number":        {[]serving{wrong(limit.Rule{N: 61, Per: time.Minute, Unit: limit.Requests}, 30, 0)}, 1},
	} {
		if got := fits(format.Rate{N: 60, Per: time.Minute, Unit: limit.Requests}, c.keys); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A limit of resources by a pattern holds for each of them apart. The plan has the cost of all of them, and the time of
// the one that needs longest.
func TestPlanOfAPatternOfResources(t *testing.T) {
	p := &planning{
		c: &Config{Resources: []ResourceLimit{
			{Resource: "search*", Rate: format.Rate{N: 10, Per: time.Minute, Unit: limit.Requests, Text: "10/m"}},
			{Resource: "core", Rate: format.Rate{N: 10, Per: time.Second, Unit: limit.Requests, Text: "10/s"}},
			{Resource: "other", Rate: format.Rate{N: 1, Per: time.Hour, Unit: limit.Requests, Text: "1/h"}},
		}},
		resources: map[string]*limit.Cost{
			"search/code": {limit.Requests: 10}, "search/users": {limit.Requests: 40}, "search/all": {limit.Requests: 21},
			"core": {limit.Requests: 100},
		},
	}
	plan := Plan{Limits: []PlanLimit{{}}}
	took, binds := p.ofResources(time.Unix(1_800_000_000, 0), &plan, 1)
	if took != 3*time.Minute || binds != 1 {
		t.Errorf("%v, by limit %d; want 3m0s by the one of searches", took, binds)
	}
	want := []PlanLimit{{}, {Limit: "search*: 10/m", Unit: "requests", Cost: 71, Seconds: 180},
		{Limit: "core: 10/s", Unit: "requests", Cost: 100, Seconds: 9}}
	if !slices.Equal(plan.Limits, want) {
		t.Errorf("%+v, want %+v", plan.Limits, want)
	}
}

// Each request to a resource takes four attempts, so 60 of them take 240 s at one a second. A request that ended each
// second is no slower than that, and the time by windows stays the ETA.
func TestETAOfAResourceWithAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &gauge{tally: &tally.Tally{Uses: make([]tally.Use, 1)}, c: &Config{Resources: []ResourceLimit{
			{Resource: "search", Rate: format.Rate{N: 60, Per: time.Minute, Unit: limit.Requests}}}}}
		s.groups = pools{new(group)}
		s.groups[0].begin(s.c.Limits)
		s.tally.Pace.Begin(time.Now(), nil)
		for range 31 {
			time.Sleep(time.Second)
			s.tally.Ended([]tally.End{{Request: &format.Request{}}}, false)
		}
		s.tally.Resources = map[string]limit.Cost{"search": {limit.Requests: 60}}
		s.tally.Totals.Input = 60
		keys := [][]serving{make([]serving, 1)}
		if got := s.eta(time.Now(), keys, false, "", 4, 4*time.Minute); got != 4*time.Minute {
			t.Errorf("%v, want 4m0s", got)
		}
	})
}
