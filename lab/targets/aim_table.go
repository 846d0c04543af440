package targets

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Table returns the aims. An aim of one number is for the median of the seeds; of two numbers, the
// second is for the worst seed.
//
// If a scenario does not say otherwise, the quota is a token bucket of 4,500 an hour that is empty
// when the first request arrives, and answers say what remains. Windows are full at first, and
// answers say in whole seconds when they reset, too. A request takes 60 ms there and back. All
// clients start at one instant and always have a request to send. N clients are N processes of one
// thread.
func Table() []Aim {
	var t aimList
	t.few()
	t.weights()
	t.many()
	t.jumps()
	t.windows()
	t.company()
	t.mark()
	return t
}

type aimList []Aim

func (t *aimList) add(name, text string, d time.Duration, q fleet.Quota, groups []fleet.Group, figures ...Figure) {
	*t = append(*t, Aim{text, fleet.Scenario{Name: name, Duration: d, Server: q, Groups: groups}, figures})
}

const half, day = 30 * time.Minute, 24 * time.Hour

var bucket fleet.Quota

// few has the scenarios in which a few clients begin at a bucket.
func (t *aimList) few() {
	t.add("cold-10", "bucket, 10 at once", half, bucket, ours(10), refused(0.47, 0.50), sd(1, 3), longest(12, 40))
	for _, spread := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, time.Minute} {
		t.add(fmt.Sprintf("spread-%.0fs", spread.Seconds()),
			fmt.Sprintf("bucket, 10 that start within %.0f s", spread.Seconds()), half, bucket, spreading(ours(10), spread),
			longest(20, 50))
	}

	t.add("threads-2x5", "bucket, 2 processes of 5 threads", half, bucket, threads(ours(2), 5), longest(18, 25),
		refused(0.11, none))
	t.add("threads-5x5", "bucket, 5 × 5", half, bucket, threads(ours(5), 5), longest(32, 40), refused(0.25, none))
	t.add("threads-10x5", "bucket, 10 × 5", half, bucket, threads(ours(10), 5), longest(55, 60), refused(0.5, none))
}

// weights has the scenarios in which weights or costs differ.
func (t *aimList) weights() {
	for _, q := range []struct {
		name, text string
		quota      fleet.Quota
	}{{"bucket", "bucket", bucket}, {"window", "5,000 an hour", fixed(5000, time.Hour)}} {
		t.add("weights-1-2-5-"+q.name, q.text+", 3 processes of 10 threads of each of the weights 1, 2, 5", half, q.quota,
			weights(3, 10), off(3), steady(0, none))
		t.add("weight-40-"+q.name, q.text+", a process of 40 threads and weight 40, and 10 of weight 1", half, q.quota,
			join(weighing(threads(ours(1), 40), 40), ours(10)), off(3), steady(0, none))
	}
	t.add("40-as-one", "bucket, a process of 40 threads that counts as one, and 10 of one", half, bucket,
		join(threads(ours(1), 40), ours(10)),
		longestOf(0, 40*11/1.25, 1.1))
	for _, q := range []struct {
		name, text string
		quota      fleet.Quota
	}{
		{"bucket", "30,000 tokens a minute", fleet.Quota{Limit: 30_000, Window: time.Minute, Unit: limit.Tokens}},
		{"window", "30,000 tokens each minute", tokens(fixed(30_000, time.Minute))},
	} {
		t.add("costs-"+q.name, q.text+", costs of 20 on average, 10 × 10", half, q.quota,
			costing(threads(ours(10), 10), 20), cvProcesses(3), steady(0, none))
		t.add("costs-1-2-5-"+q.name, q.text+", costs of 20 on average, weights 1, 2, 5, 3 × 10 each", half, q.quota,
			costing(weights(3, 10), 20), off(3), steady(0, none))
	}
}

// many has the scenarios in which many clients share a bucket, or a bucket that holds little.
func (t *aimList) many() {
	t.add("cold-100", "bucket, 100 at once", half, bucket, ours(100), longest(220, 320), cv(10, none))

	for _, n := range []int{25, 100, 200, 300, 1000} {
		figures := []Figure{steady(0, none)}
		switch n {
		case 200:
			figures = append(figures, cvSteady(1, none))
		case 1000:
			figures = []Figure{steady(0.03, none), cvSteady(25, none)}
		}
		t.add(fmt.Sprintf("day-%d", n), fmt.Sprintf("bucket, %d for a day", n), day, bucket, ours(n), figures...)
	}
	t.add("burst-20", "bucket that holds 20, 50 for a day", day, fleet.Quota{Capacity: 20}, ours(50), steady(0, none))
	for _, n := range []int{10, 50} {
		t.add(fmt.Sprintf("burst-5-%d", n), fmt.Sprintf("bucket that holds 5, %d for a day", n), day,
			fleet.Quota{Capacity: 5}, ours(n), steady(1, none))
	}
}

// jumps has the scenarios in which clients come and go, or have nothing to send at times.
func (t *aimList) jumps() {
	for _, jump := range []struct {
		from, to int
		s        float64
	}{{3, 30, 15}, {20, 5, 42}, {40, 10, 40}, {10, 100, 300}} {
		t.add(fmt.Sprintf("jump-%d-%d", jump.from, jump.to),
			fmt.Sprintf("bucket, %d are %d after an hour", jump.from, jump.to), 2*time.Hour, bucket,
			jumping(jump.from, jump.to), settled(jump.s))
	}
	for _, c := range []struct {
		name, text string
		groups     []fleet.Group
	}{{"clear", "2 × 5", threads(ours(2), 5)}, {"clear-10", "10", ours(10)}} {
		t.add(c.name, "4,500 that do not come back, "+c.text+" have them to do; a request takes 167 ms", 8*time.Hour,
			fleet.Quota{Kind: fleet.DecreaseOnly}, toDo(c.groups, 4500), clear(80))
	}
}

// windows has the scenarios with windows, which give back all of their quota at once.
func (t *aimList) windows() {
	for _, w := range []struct {
		n           int
		cv, longest float64
	}{{10, 0.1, 15}, {50, 1, 80}, {200, 2, 500}} {
		t.add(fmt.Sprintf("fixed-%d", w.n), fmt.Sprintf("5,000 an hour, %d", w.n), 4*time.Hour, fixed(5000, time.Hour),
			ours(w.n),
			refused(0, none), cvWindow(w.cv), longest(w.longest, none), unused(0.5))
	}
	t.add("minute-10", "75 a minute, 10", time.Hour, fixed(75, time.Minute), ours(10), refused(0, none), even(90))
	t.add("fixed-untold", "5,000 an hour, 50 who are not told of resets", 4*time.Hour, untold(fixed(5000, time.Hour)),
		told(ours(50), fairshare.FixedWindow), refused(0, none), cvWindow(1))
	for _, n := range []int{10, 50} {
		t.add(fmt.Sprintf("silent-after-%d", n),
			fmt.Sprintf("5,000 an hour, 429s with Retry-After and nothing else, %d", n), 6*time.Hour,
			silent(fixed(5000, time.Hour), fleet.WholeSeconds), told(ours(n), fairshare.FixedWindow),
			refusedEach(time.Hour, 1.1), unused(1), cvWindow(1))
		t.add(fmt.Sprintf("silent-%d", n), fmt.Sprintf("5,000 an hour, 429s and nothing else, %d", n), 6*time.Hour,
			silent(fixed(5000, time.Hour), fleet.Untold), told(ours(n), fairshare.FixedWindow),
			refusedEach(time.Hour, 1.1), unused(1), cvWindow(20))
	}
	t.add("silent-minute", "75 a minute, 429s with Retry-After and nothing else, 10", time.Hour,
		silent(fixed(75, time.Minute), fleet.WholeSeconds), told(ours(10), fairshare.FixedWindow),
		refused(none, none), unused(none), cvWindow(none))

	rolling := fleet.Quota{Kind: fleet.Rolling, Limit: 4500}
	t.add("rolling-1", "rolling 4,500 an hour, one alone", 6*time.Hour, rolling, told(ours(1), fairshare.RollingWindow),
		refused(0, none), unused(3))
	t.add("rolling-10", "rolling 4,500 an hour, 10", 6*time.Hour, rolling, told(ours(10), fairshare.RollingWindow),
		refused(0, none), cvWindow(3), unused(5))
	t.add("rolling-50", "rolling 4,500 an hour, 50", 6*time.Hour, rolling, told(ours(50), fairshare.RollingWindow),
		refused(0, none), cvWindow(14), unused(5))
}

// whole is how long a run in windows of an hour is of which the last two thirds are whole windows:
// what is used of one, by whom, differs from its beginning to its end where some hurry.
const whole = 6 * time.Hour

// company has the scenarios with greedy clients beside ours, and those with headers that are approximate.
func (t *aimList) company() {
	for _, greedy := range []struct{ short, strategy string }{
		{"gem", "exponential-increase-proportional-remaining-decrease"}, {"aimd", "aimd"}, {"backoff", "exponential-backoff"},
	} {
		text := "9 who know that they are 10, and one greedy: " + greedy.short
		t.add("beside-"+greedy.short+"-window", "5,000 an hour, "+text, whole, fixed(5000, time.Hour),
			beside(greedy.strategy, 9), append(share(0.6, 1.1), refusedOurs(1))...)
		if greedy.short != "backoff" { // beside it only a client that hammers the server, too, gets its share
			t.add("beside-"+greedy.short+"-bucket", "bucket, "+text, 4*time.Hour, bucket, beside(greedy.strategy, 9),
				share(0.54, none)...)
		}
	}

	for _, q := range []struct {
		name, text string
		quota      fleet.Quota
	}{{"bucket", "bucket", bucket}, {"window", "5,000 an hour", fixed(5000, time.Hour)}} {
		for _, c := range []struct{ n, said int }{{10, 10}, {50, 50}, {10, 20}, {10, 5}, {50, 10}} {
			costs := []Figure{steady(none, none), cvSteady(none, none), longest(none, none)}
			if c.said >= c.n {
				costs = []Figure{steady(0, none), cvSteady(1, none), longest(none, none)}
			}
			t.add(fmt.Sprintf("sharers-%d-of-%d-%s", c.said, c.n, q.name),
				fmt.Sprintf("%s, %d who all say that they are %d", q.text, c.n, c.said), whole, q.quota, saying(c.said, c.n),
				costs...)
		}
		t.add("sharers-half-"+q.name, q.text+", 5 who say that they are 10, and 5 who say nothing", whole, q.quota,
			join(saying(10, 5), ours(5)), off(1), steady(0, none))
		t.add("sharers-half-5-"+q.name, q.text+", 5 who say that they are 5, and 5 who say nothing", whole, q.quota,
			join(saying(5, 5), ours(5)), off(none), steady(none, none))
	}

	for _, h := range []struct {
		name, text string
		headers    fleet.Headers
	}{{"tens", "rounded down to tens", fleet.Headers{Rounded: 10}},
		{"noise", "with a noise of sd 10", fleet.Headers{Noise: 10}}} {
		t.add(h.name, "bucket, 10 who are told what remains "+h.text, 6*time.Hour, fleet.Quota{Headers: h.headers},
			ours(10), cvSteady(4, none), steady(0, none))
	}
}

// ours is a group of processes with one thread each that follow the strategy which is measured.
func ours(processes int) []fleet.Group {
	return []fleet.Group{{Name: "ours", Processes: processes,
		Link: latency.Uniform(20*time.Millisecond, 40*time.Millisecond)}}
}

func join(a, b []fleet.Group) []fleet.Group { return append(a, b...) }

func each(groups []fleet.Group, change func(*fleet.Group)) []fleet.Group {
	for i := range groups {
		change(&groups[i])
	}
	return groups
}

func threads(groups []fleet.Group, n int) []fleet.Group {
	return each(groups, func(g *fleet.Group) { g.Threads = n })
}

// told tells the clients the kind of the quota, for servers whose answers have no reset.
func told(groups []fleet.Group, kind fairshare.Kind) []fleet.Group {
	return each(groups, func(g *fleet.Group) { g.Params.Kind = kind })
}

func spreading(groups []fleet.Group, d time.Duration) []fleet.Group {
	return each(groups, func(g *fleet.Group) { g.Spread = d })
}

func weighing(groups []fleet.Group, w float64) []fleet.Group {
	return each(groups, func(g *fleet.Group) { g.Params.Weight = w })
}

func costing(groups []fleet.Group, mean float64) []fleet.Group {
	return each(groups, func(g *fleet.Group) { g.Costs = fleet.Costs{Mean: mean, Exponential: true} })
}

// weights makes so many processes of each of the weights 1, 2 and 5.
func weights(processes, n int) (groups []fleet.Group) {
	for _, w := range []float64{1, 2, 5} {
		groups = join(groups, weighing(threads(ours(processes), n), w))
	}
	return groups
}

// jumping is a group that comes or goes after an hour.
func jumping(from, to int) []fleet.Group {
	stay, other := ours(min(from, to)), ours(max(from, to)-min(from, to))
	if to > from {
		other[0].Join = time.Hour
	} else {
		other[0].Leave = time.Hour
	}
	return join(stay, other)
}

func toDo(groups []fleet.Group, requests int) []fleet.Group {
	return each(groups, func(g *fleet.Group) {
		g.Demand.Total = requests
		g.Link = latency.Constant(83500 * time.Microsecond)
	})
}

// beside is so many clients of ours and one that follows another strategy. Each is entitled to an
// equal part of the quota.
func beside(greedy string, n int) []fleet.Group {
	law, err := strategy.Named(greedy)
	if err != nil {
		panic(err) // the name is one of those in this file
	}
	other := ours(1)
	other[0].Name, other[0].Strategy = greedy, law
	return join(saying(n+1, n), other)
}

// saying is n processes that say that so many share.
func saying(sharers, n int) []fleet.Group {
	return each(ours(n), func(g *fleet.Group) { g.Params.Sharers = float64(sharers) })
}

// fixed is a quota of fixed windows, whose answers tell resets in whole seconds.
func fixed(n int64, window time.Duration) fleet.Quota {
	return fleet.Quota{Kind: fleet.Calendar, Limit: n, Window: window, Headers: fleet.Headers{Reset: fleet.WholeSeconds}}
}

func untold(q fleet.Quota) fleet.Quota {
	q.Headers.Reset = fleet.Untold
	return q
}

func silent(q fleet.Quota, retryAfter fleet.Precision) fleet.Quota {
	q = untold(q)
	q.Silent, q.Headers.RetryAfter = true, retryAfter
	return q
}

func tokens(q fleet.Quota) fleet.Quota {
	q.Unit = limit.Tokens
	return q
}
