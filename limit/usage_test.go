package limit_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func usageOf(t *testing.T, l limit.Limiter, now mono.Time) limit.Usage {
	t.Helper()
	all := limit.AppendUsage(nil, l, now)
	if len(all) != 1 {
		t.Fatalf("%d usages: %+v", len(all), all)
	}
	return all[0]
}

// Traffic that uses a limit to the full, answered at once, and a server of that rule that counts
// it. All agree on the total, and on the cost in the last window.
func TestUsageIsWhatAJudgeCounts(t *testing.T) {
	const n, window = 60, 2 * time.Second
	for name, k := range map[string]struct {
		limiter limit.Limiter
		server  rule.Server
	}{
		"rolling":  {limit.MustRolling(n, window), must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: window}))},
		"calendar": {must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: window})), must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: window}))},
		"anchored": {must(limit.NewAnchored(limit.AnchoredConfig{Limit: n, Window: window})), must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: window}))},
		"bucket":   {must(limit.NewBucket(limit.BucketConfig{Limit: n, Window: window, Burst: 10})), must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: window, Capacity: 10}))},
		"weighted": {must(limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: window})), must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: window}))},
	} {
		t.Run(name, func(t *testing.T) {
			now, total := mono.Time(0), int64(0)
			var arrived []mono.Time
			for i := range 40 * n {
				cost := limit.Cost{limit.Requests: 1 + int64(i%3)}
				now = k.limiter.Ready(now, cost)
				if !k.server.Arrive(now, cost[limit.Requests]) {
					t.Fatalf("request %d is refused", i)
				}
				k.limiter.Settle(now, limittest.Admit(k.limiter, now, cost), &limit.Outcome{Result: limit.Accepted})
				total += cost[limit.Requests]
				for range cost[limit.Requests] {
					arrived = append(arrived, now)
				}
				since := func(d time.Duration) (sum int64) {
					for j := len(arrived) - 1; j >= 0 && arrived[j] > now.Add(-d); j-- {
						sum++
					}
					return sum
				}
				u := usageOf(t, k.limiter, now)
				if u.Total != total {
					t.Fatalf("the server has counted %d, the limiter %d", total, u.Total)
				}
				if least, most := since(window-window/7), since(window+window/7); u.Recent < least || u.Recent > most {
					t.Fatalf("request %d at %v: %d in the last window, where %d to %d arrived", i, now, u.Recent, least, most)
				}
				if most := since(3*window) + 1; u.Used > most {
					t.Fatalf("%d used, where only %d went lately", u.Used, most)
				}
			}
			if u := usageOf(t, k.limiter, now.Add(window*9/4)); u.Recent != 0 || u.Used != 0 {
				t.Errorf("after two windows %+v", u)
			}
		})
	}
}

// Requests of a past interval count nothing, and those of the present one count in full. Recent has
// those of the last window.
func TestUsageOfACalendar(t *testing.T) {
	l := must(limit.NewCalendar(limit.CalendarConfig{Limit: 10, Window: time.Minute, Skew: -1}))
	for i := range 10 {
		now := at(time.Duration(i) * 3 * time.Second)
		l.Settle(now, limittest.Admit(l, now, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	for _, c := range []struct {
		at           time.Duration
		used, recent int64
	}{{27 * time.Second, 10, 10}, {59 * time.Second, 10, 10}, {60 * time.Second, 0, 9}, {75 * time.Second, 0, 5}, {95 * time.Second, 0, 0}} {
		u := usageOf(t, l, at(c.at))
		if u.Used != c.used || math.Abs(float64(u.Recent-c.recent)) > 2 {
			t.Errorf("at %v %d are used, and %d were recently, want %d and some %d", c.at, u.Used, u.Recent, c.used, c.recent)
		}
	}
}

// Used includes the requests in flight, and a bucket fills up again.
func TestUsageOfABucket(t *testing.T) {
	l := must(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second, Burst: 5, Margin: -1}))
	says := func(now time.Duration, used, open int64) {
		t.Helper()
		if u := usageOf(t, l, at(now)); u.Used != used || u.Open != open || u.Allowed != 5 || u.PerWindow != 10 || u.Window != time.Second {
			t.Errorf("at %v: %+v, want %d used, %d of them open", now, u, used, open)
		}
	}
	says(0, 0, 0)
	a := limittest.Admit(l, 0, limit.Cost{3})
	says(0, 3, 3)
	l.Settle(at(10*ms), a, &limit.Outcome{Result: limit.Accepted})
	says(10*ms, 3, 0)
	says(111*ms, 2, 0) // 0.02 % for the drift
	says(250*ms, 1, 0)
	says(400*ms, 0, 0)
}

func TestUsageOfWhatIsInFlight(t *testing.T) {
	c := must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4}))
	a, b := limittest.Admit(c, 0, limit.One), limittest.Admit(c, 0, limit.Cost{})
	if u := usageOf(t, c, 0); u != (limit.Usage{Limit: "concurrency", InFlight: true, Used: 2, Open: 2, Allowed: 4, Requests: 2}) {
		t.Errorf("%+v", u)
	}
	c.Settle(0, a, &limit.Outcome{}) // it may still be there for 5 s
	c.Settle(0, b, &limit.Outcome{Result: limit.Accepted})
	if u := usageOf(t, c, at(time.Second)); u.Used != 1 || u.Open != 0 {
		t.Errorf("%+v", u)
	}
	if u := usageOf(t, c, at(5*time.Second)); u.Used != 0 {
		t.Errorf("%+v", u)
	}
}

// Answers overdraw a bucket of output. Then it is used up.
func TestUsageOfWhatIsProduced(t *testing.T) {
	l := must(limit.NewProduced(limit.ProducedConfig{Limit: 600, Window: time.Minute, Burst: 100, PerSecond: 20, Margin: -1}))
	big := limit.Cost{limit.Output: 1000}
	a := limittest.Admit(l, 0, big)
	if u := usageOf(t, l, at(2*time.Second)); u.Open != 41 || u.Used != 41 {
		t.Errorf("after 2 s at 20 a second: %+v", u)
	}
	l.Settle(at(10*time.Second), a, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Output: 200}})
	if u := usageOf(t, l, at(10*time.Second)); u.Used != 100 || u.Allowed != 100 || u.Total != 200 || u.Recent != 200 {
		t.Errorf("overdrawn: %+v", u)
	}
	if u := usageOf(t, l, at(15*time.Second)); u.Used < 45 || u.Used > 60 {
		t.Errorf("5 s later, with 10 a second flowing in: %+v", u)
	}
}

// Usage includes names, conjunctions and fits.
func TestUsageOfSeveral(t *testing.T) {
	own := limit.NewAll(limit.Named("model", limit.MustRolling(100, time.Minute)), must(limit.NewSpacing(ms)), must(limit.NewRolling(limit.RollingConfig{Limit: 50, Window: time.Second, Unit: limit.Input})))
	f := limit.NewFitted(own)
	now := mono.Time(0)
	for i := range 40 {
		now = f.Ready(now.Add(200*ms), limit.One)
		o := limit.Outcome{Result: limit.Accepted}
		if i == 39 {
			o.Result = limit.Limited
		}
		f.Settle(now, limittest.Admit(f, now, limit.Cost{limit.Requests: 1, limit.Input: 3}), &o)
	}
	all := limit.AppendUsage(nil, f, now)
	if len(all) != 2 || all[0].Limit != "model" || all[0].Used != 40 || all[0].Allowed != 100 || all[1].Limit != "input tokens" || all[1].Used != 18 { // by the margin it is one more than a second has
		t.Fatalf("%+v", all)
	}
	if all[0].Fits != 39 || all[1].Fits != 0 {
		t.Errorf("after 39 that were served, one was refused; what fits is %d and %d", all[0].Fits, all[1].Fits)
	}
}

func TestUsageDoesNotAllocate(t *testing.T) {
	l := limit.NewAll(limit.MustRolling(10, time.Second), must(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second})))
	l.Settle(0, limittest.Admit(l, 0, limit.One), &limit.Outcome{})
	to := make([]limit.Usage, 0, 2)
	if n := testing.AllocsPerRun(100, func() { to = limit.AppendUsage(to[:0], l, at(ms)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A limiter that counts nothing is left out, wherever it stands, and what was there before stays.
func TestUsageOfWhatCountsNothing(t *testing.T) {
	order := func() limit.Limiter { return must(limit.NewSequence(limit.SequenceConfig{Gap: ms})) }
	l := limit.NewAll(order(), limit.MustRolling(10, time.Second), order(), limit.Named("b", limit.MustRolling(20, time.Second)))
	all := limit.AppendUsage([]limit.Usage{{Limit: "before"}}, l, 0)
	if len(all) != 3 || all[0].Limit != "before" || all[1].Allowed != 10 || all[2].Allowed != 20 || all[2].Limit != "b" {
		t.Errorf("%+v", all)
	}
}
