package fleet_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// What a client is told of when there is more. Every request arrives 100 ms after it was sent.
func TestResets(t *testing.T) {
	exact := fleet.Headers{Reset: fleet.Exact, RetryAfter: fleet.Exact}
	whole := fleet.Headers{Reset: fleet.WholeSeconds, RetryAfter: fleet.WholeSeconds}
	minute := time.Minute
	for _, c := range []struct {
		name   string
		quota  fleet.Quota
		sleeps []time.Duration
		want   []string
	}{
		{"a minute that began 50 s before", fleet.Quota{Kind: fleet.Calendar, Limit: 2, Window: minute, Into: 50 * time.Second, Level: 1, Headers: exact},
			[]time.Duration{0, 800 * ms, 9 * time.Second, time.Hour}, []string{
				"200ms: sent at 0s, served, 0 left, more in 10s",
				"1.2s: sent at 1s, limited, 0 left, more in 9s, again in 9s",
				"10.4s: sent at 10.2s, served, 1 left, more in 59.8s", // at 10.3 s; the minute began at 10.1 s
			}},
		{"in whole seconds", fleet.Quota{Kind: fleet.Calendar, Limit: 1, Window: minute, Headers: whole},
			[]time.Duration{0, 300 * ms, time.Hour}, []string{
				"200ms: sent at 0s, served, 0 left, more in 1m0s",
				"700ms: sent at 500ms, limited, 0 left, more in 1m0s, again in 1m0s", // 59.5 s
			}},
		{"a bucket is full again", fleet.Quota{Limit: 3600, Capacity: 3, Full: true, Headers: exact},
			[]time.Duration{0, 0, 0, 0, 0, time.Hour}, []string{
				"200ms: sent at 0s, served, 2 left, more in 1s",
				"400ms: sent at 200ms, served, 1 left, more in 1.8s",
				"600ms: sent at 400ms, served, 0 left, more in 2.6s",
				"800ms: sent at 600ms, limited, 0 left, more in 2.4s, again in 400ms",
				"1s: sent at 800ms, limited, 0 left, more in 2.2s, again in 200ms",
			}},
		{"the oldest of the last minute goes", fleet.Quota{Kind: fleet.Rolling, Limit: 2, Window: minute, Headers: exact},
			[]time.Duration{0, 9800 * ms, 0, time.Hour}, []string{
				"200ms: sent at 0s, served, 1 left, more in 1m0.001s", // a window of both its ends
				"10.2s: sent at 10s, served, 0 left, more in 50.001s",
				"10.4s: sent at 10.2s, limited, 0 left, more in 49.801s, again in 49.801s",
			}},
		{"intervals begin with a request", fleet.Quota{Kind: fleet.Anchored, Limit: 1, Window: minute, Headers: exact},
			[]time.Duration{0, 0, 69600 * ms, 0, time.Hour}, []string{
				"200ms: sent at 0s, served, 0 left, more in 1m0s",
				"400ms: sent at 200ms, limited, 0 left, more in 59.8s, again in 59.8s",
				"1m10.2s: sent at 1m10s, served, 0 left, more in 1m0s",
				"1m10.4s: sent at 1m10.2s, limited, 0 left, more in 59.8s, again in 59.8s",
			}},
		{"a 429 and nothing else", fleet.Quota{Kind: fleet.Calendar, Limit: 1, Window: minute, Silent: true, Headers: fleet.Headers{Reset: fleet.Exact}},
			[]time.Duration{0, 0, time.Hour}, []string{"200ms: sent at 0s, served", "400ms: sent at 200ms, limited"}},
		{"a 429 with Retry-After", fleet.Quota{Kind: fleet.Calendar, Limit: 1, Window: minute, Silent: true, Headers: whole},
			[]time.Duration{0, 0, time.Hour}, []string{"200ms: sent at 0s, served", "400ms: sent at 200ms, limited, again in 1m0s"}},
		{"a smaller quota within an interval", fleet.Quota{Kind: fleet.Anchored, Limit: 4, Window: minute, Headers: exact, Changes: []fleet.Change{{At: minute, Factor: 0.5}}},
			[]time.Duration{0, 0, 0, 59800 * ms, 200 * ms, 100 * ms, time.Hour}, []string{
				"200ms: sent at 0s, served, 3 left, more in 1m0s",
				"400ms: sent at 200ms, served, 2 left, more in 59.8s",
				"600ms: sent at 400ms, served, 1 left, more in 59.6s",
				"1m0.6s: sent at 1m0.4s, served, 1 left, more in 1m0s", // at 60.5 s: the next interval, of two
				"1m1s: sent at 1m0.8s, served, 0 left, more in 59.6s",
				"1m1.3s: sent at 1m1.1s, limited, 0 left, more in 59.3s, again in 59.3s",
			}},
		{"what counts still counts", fleet.Quota{Kind: fleet.Anchored, Limit: 4, Window: minute, Headers: exact, Changes: []fleet.Change{{At: 30 * time.Second, Factor: 0.75}}},
			[]time.Duration{0, 0, 49600 * ms, 0, time.Hour}, []string{
				"200ms: sent at 0s, served, 3 left, more in 1m0s",
				"400ms: sent at 200ms, served, 2 left, more in 59.8s",
				"50.2s: sent at 50s, served, 0 left, more in 10s",
				"50.4s: sent at 50.2s, limited, 0 left, more in 9.8s, again in 9.8s",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log []string
			f := begun(t, fleet.Scenario{Duration: 2 * time.Minute, Server: c.quota, Groups: []fleet.Group{
				{Strategy: traced(&log, false, c.sleeps...), Link: latency.Constant(100 * ms)}}})
			f.Advance(time.Hour)
			if !slices.Equal(log, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(log, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// heard is a limiter that lets everything pass and keeps what it is told.
type heard struct {
	limit.Limiter
	costs    *[]limit.Cost
	outcomes *[]limit.Outcome
}

func (h heard) Admit(s *limit.Sent) {
	*h.costs = append(*h.costs, s.Cost)
	h.Limiter.Admit(s)
}

func (h heard) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	*h.outcomes = append(*h.outcomes, *o)
	h.Limiter.Settle(now, l, o)
}

// A limiter is asked about what a request costs, in the unit that counts, and is told of that unit.
func TestCosts(t *testing.T) {
	var costs []limit.Cost
	var outcomes []limit.Outcome
	own := spaced(time.Second)
	inner := own.NewLimiter
	var params strategy.Params
	own.NewLimiter = func(p strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		params = p
		l, err := inner(p, rng)
		return heard{l, &costs, &outcomes}, err
	}
	s := fleet.Scenario{Duration: 3 * time.Hour, Server: fleet.Quota{Limit: 36_000, Full: true, Unit: limit.Tokens, Headers: fleet.Headers{Reset: fleet.Exact}},
		Groups: []fleet.Group{{Strategy: own, Costs: fleet.Costs{Mean: 20, Exponential: true}}}}
	r := ran(t, s)
	if params.Unit != limit.Tokens || params.MeanCost != 20 || params.Window != time.Hour || params.Rate != 10 {
		t.Errorf("it is told %+v", params)
	}
	for i, c := range costs[:len(outcomes)] {
		if c[limit.Requests] != 1 || c[limit.Tokens] < 1 {
			t.Fatalf("cost %v", c)
		}
		if o := outcomes[i]; o.Known != 1<<limit.Tokens || o.Remaining[limit.Requests] != 0 || o.Result == limit.Limited && (o.Remaining[limit.Tokens] >= c[limit.Tokens] || o.Reset[limit.Tokens] < time.Minute) {
			t.Fatalf("a cost of %v had the outcome %+v", c, o)
		}
	}
	if r.Offered < 36_000+3*36_000-100 || r.UnusedPercent > 1 || r.OptimumSleep != 2 {
		t.Errorf("%v offered, %v %% unused, optimum %v s", r.Offered, r.UnusedPercent, r.OptimumSleep)
	}
	s.Server.Limit, costs = 72_001, nil // refuses nothing: tried again, dear requests would be here more often
	ran(t, s)
	sum, below := 0.0, 0.0
	for _, c := range costs {
		sum += float64(c[limit.Tokens])
		if c[limit.Tokens] <= 20 {
			below++
		}
	}
	n := float64(len(costs))
	if want := 1 - math.Pow(19./20, 20); math.Abs(sum/n-20) > 0.6 || math.Abs(below/n-want) > 0.02 {
		t.Errorf("%v costs of %v on average, %v of them up to 20, want %v", n, sum/n, below/n, want)
	}
	s.Groups[0].Costs = fleet.Costs{Mean: 7}
	costs = nil
	ran(t, s)
	if slices.ContainsFunc(costs, func(c limit.Cost) bool { return c[limit.Tokens] != 7 }) || len(costs) == 0 {
		t.Errorf("costs that do not vary: %v", costs)
	}
}

// lefts returns what a client is told and what truly remained, answer by answer, where one sends every second and nothing comes
// back that it could notice.
func lefts(t *testing.T, h fleet.Headers) (told []int64, f fleet.Report) {
	t.Helper()
	var outcomes []limit.Outcome
	var costs []limit.Cost
	own := spaced(time.Second)
	inner := own.NewLimiter
	own.NewLimiter = func(p strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		l, err := inner(p, rng)
		return heard{l, &costs, &outcomes}, err
	}
	r := ran(t, fleet.Scenario{Duration: 500 * time.Second, Server: fleet.Quota{Kind: fleet.Calendar, Limit: 1000, Headers: h},
		Groups: []fleet.Group{{Strategy: own, Link: latency.Constant(ms)}}})
	for _, o := range outcomes {
		told = append(told, o.Remaining[limit.Requests])
	}
	if len(told) != 500 || r.Level.Last != 500 {
		t.Fatalf("%d answers, %d left in the end", len(told), r.Level.Last)
	}
	return told, r
}

// The n-th answer truly leaves 1000 − n; headers say something else.
func TestHeadersThatAreWrong(t *testing.T) {
	errs := func(h fleet.Headers) (mean, sd float64, told []int64) {
		told, _ = lefts(t, h)
		for i, n := range told {
			mean += float64(n-int64(999-i)) / float64(len(told))
		}
		for i, n := range told {
			d := float64(n-int64(999-i)) - mean
			sd += d * d / float64(len(told))
		}
		return mean, math.Sqrt(sd), told
	}
	if mean, sd, _ := errs(fleet.Headers{}); mean != 0 || sd != 0 {
		t.Errorf("true headers are wrong by %v ± %v", mean, sd)
	}
	if mean, sd, _ := errs(fleet.Headers{Noise: 10}); math.Abs(mean) > 1.5 || math.Abs(sd-10) > 1 {
		t.Errorf("noise of 10 is %v ± %v", mean, sd)
	}
	if mean, _, told := errs(fleet.Headers{Rounded: 10}); math.Abs(mean+4.5) > 1e-9 || slices.ContainsFunc(told, func(n int64) bool { return n%10 != 0 }) {
		t.Errorf("tens are told as %v, wrong by %v", told[:20], mean)
	}
	if _, _, told := errs(fleet.Headers{Factor: 20}); told[0] != 999*20 || told[499] != 500*20 {
		t.Errorf("of what costs 20, %d and %d are left", told[0], told[499])
	}
	// It asks every 5 s from the first request on, which leaves 999: at 5 s, 10 s, ... before the request of that instant.
	if _, _, told := errs(fleet.Headers{Stale: 5 * time.Second}); !slices.Equal(told[:12], []int64{999, 999, 999, 999, 999, 995, 995, 995, 995, 995, 990, 990}) {
		t.Errorf("cached for 5 s: %v", told[:12])
	}
	if _, _, told := errs(fleet.Headers{Stale: time.Hour}); slices.Max(told) != 999 || slices.Min(told) != 999 {
		t.Errorf("stuck, and yet it moves: %v", told[:12])
	}
	// Of three that ask every 30 s, one every 10 s: told is at most 30 s old, 15 s on average, and not in order.
	mean, _, told := errs(fleet.Headers{Stale: 30 * time.Second, Replicas: 3})
	rises := 0
	for i := range told[1:] {
		if told[i+1] > told[i] {
			rises++
		}
		if age := told[i] - int64(999-i); age < 0 || age > 30 {
			t.Fatalf("answer %d says %d, which was true %d s ago", i, told[i], age)
		}
	}
	if math.Abs(mean-15) > 2 || rises < 100 {
		t.Errorf("replicas are %v s old on average, and %d of 499 answers say that more is left", mean, rises)
	}
}

// To each process the reset is at another instant, the same for all of its answers.
func TestSkewedClocks(t *testing.T) {
	resets := map[float64]int{}
	own := spaced(time.Second)
	inner := own.NewLimiter
	own.NewLimiter = func(p strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		l, err := inner(p, rng)
		return resetAt{l, resets}, err
	}
	ran(t, fleet.Scenario{Duration: 50 * time.Second, Server: fleet.Quota{Kind: fleet.Calendar, Window: time.Minute, Headers: fleet.Headers{Reset: fleet.Exact, Skew: 5 * time.Second}},
		Groups: []fleet.Group{{Strategy: own, Processes: 20, Work: time.Microsecond}}})
	least, most := 60., 60.
	for at, answers := range resets {
		if answers < 40 || math.Abs(at-60) > 5 {
			t.Errorf("%d answers say that the reset is at %v s", answers, at)
		}
		least, most = min(least, at), max(most, at)
	}
	if len(resets) != 20 || least > 57 || most < 63 {
		t.Errorf("%d instants from %v to %v, of 20 processes", len(resets), least, most)
	}
}

// resetAt counts the instants that resets are told for.
type resetAt struct {
	limit.Limiter
	seen map[float64]int
}

func (r resetAt) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	r.seen[now.Add(o.Reset[limit.Requests]).Sub(0).Seconds()]++
	r.Limiter.Settle(now, l, o)
}
