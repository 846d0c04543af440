package limit_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// version is the limit in force from an instant on, for the requests from one number on.
type version struct {
	from   mono.Time
	first  int
	limit  int64
	window time.Duration
}

// judged is a request in the judge's list: numbered in the order of sends.
type judged struct {
	number  int
	arrived mono.Time
	cost    int64
	counts  bool
}

// A judge reads all arrivals of the requests sent before the last version was over, in order. It
// returns an error if a window of the last version holds more than its limit. Only windows with a
// request sent under that version count.
type judge func(arrivals []judged, versions []version) error

// over reports whether the counted arrivals are too much, and one of them was sent under v.
func (v *version) over(arrivals []judged, what string, counts func(judged) float64) error {
	sum, own := 0.0, false
	for _, a := range arrivals {
		if c := counts(a); c > 0 {
			sum += c
			own = own || a.number >= v.first
		}
	}
	if own && sum > float64(v.limit)+1e-6 {
		return fmt.Errorf("%.3f in %s, %d per %v since %v", sum, what, v.limit, v.window, v.from)
	}
	return nil
}

func judgeRolling(arrivals []judged, versions []version) error {
	v := versions[len(versions)-1]
	for i, last := range arrivals {
		if err := v.over(arrivals[:i+1], fmt.Sprintf("the window that ends at %v", last.arrived), func(a judged) float64 {
			if last.arrived.Sub(a.arrived) > v.window {
				return 0
			}
			return float64(a.cost)
		}); err != nil {
			return err
		}
	}
	return nil
}

// judgeCalendar has a server whose beginnings are off by skew.
func judgeCalendar(phase mono.Time, skew time.Duration) judge {
	return func(arrivals []judged, versions []version) error {
		v := versions[len(versions)-1]
		interval := func(t mono.Time) int64 {
			since := int64(t.Sub(phase.Add(skew)))
			k := since / int64(v.window)
			if since < k*int64(v.window) {
				k--
			}
			return k
		}
		for i, last := range arrivals {
			if err := v.over(arrivals[:i+1], fmt.Sprintf("the interval of %v", last.arrived), func(a judged) float64 {
				if interval(a.arrived) != interval(last.arrived) {
					return 0
				}
				return float64(a.cost)
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

// judgeAnchored has a server that applies each change a part of the time earlier than the client
// does.
func judgeAnchored(early float64) judge {
	return func(arrivals []judged, versions []version) error {
		inForce := func(t mono.Time) time.Duration {
			k := 0
			for i := 1; i < len(versions); i++ {
				lag := time.Duration(early * float64(versions[i].from.Sub(versions[i-1].from)))
				if versions[i].from.Add(-lag) <= t {
					k = i
				}
			}
			return versions[k].window
		}
		v := versions[len(versions)-1]
		begun, first := mono.Min, 0
		for i, a := range arrivals {
			if begun == mono.Min || a.arrived.Sub(begun) > inForce(a.arrived) {
				begun, first = a.arrived, i
			}
			if a.arrived < v.from {
				continue // judged by an earlier one
			}
			if err := v.over(arrivals[first:i+1], fmt.Sprintf("the interval from %v to %v", begun, a.arrived), func(a judged) float64 {
				return float64(a.cost)
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

// judgeWeighted has servers of any phase.
func judgeWeighted(phases []float64) judge {
	return func(arrivals []judged, versions []version) error {
		v := versions[len(versions)-1]
		for i, last := range arrivals {
			for _, p := range phases {
				begun := last.arrived.Add(-time.Duration(p * float64(v.window)))
				if err := v.over(arrivals[:i+1], fmt.Sprintf("the estimate at %v of a server whose interval began at %v", last.arrived, begun), func(a judged) float64 {
					switch {
					case a.arrived >= begun:
						return float64(a.cost)
					case a.arrived >= begun.Add(-v.window):
						return float64(a.cost) * (1 - p)
					}
					return 0
				}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// judgeBucket has a bucket of burst with the refill of the versions.
func judgeBucket(burst int64) judge {
	return func(arrivals []judged, versions []version) error {
		v := versions[len(versions)-1]
		missing, t, own := 0.0, arrivals[0].arrived, false
		refill := func(to mono.Time) {
			for i, at := range versions {
				from, end := max(t, at.from), to
				if i == 0 {
					from = t
				}
				if i+1 < len(versions) {
					end = min(end, versions[i+1].from)
				}
				if end > from {
					missing -= float64(end.Sub(from)) * float64(at.limit) / float64(at.window)
				}
				if missing <= 0 {
					missing, own = 0, false
				}
			}
			t = to
		}
		for _, a := range arrivals {
			refill(a.arrived)
			missing += float64(a.cost)
			own = own || a.number >= v.first
			if own && missing > float64(burst)+1e-6 {
				return fmt.Errorf("%.3f missing from the bucket of %d at %v, %d per %v since %v", missing, burst, a.arrived, v.limit, v.window, v.from)
			}
		}
		return nil
	}
}

// changes is a run of a limiter whose window changes, with the record of all events.
type changes struct {
	rng      *rand.Rand
	l        changing
	now      mono.Time
	requests []judged
	versions []version
	open     []flight
	late     time.Duration
	settled  func(now, bound mono.Time, cost int64) // if not nil; the cost is 0 for a request that does not count
	asked    func(now mono.Time, cost int64)        // if not nil
}

type flight struct {
	number int
	sent   mono.Time
	lease  *limit.Sent
}

func (c *changes) run(steps int) error {
	c.late = 2 * time.Second
	for range steps {
		switch c.rng.IntN(8) {
		case 0, 1:
			c.now = c.now.Add(time.Duration(c.rng.Int64N(int64(pick(c.rng, ms, 100*ms, time.Second, 9*time.Second)))))
		case 2, 3, 4:
			cost := 1 + c.rng.Int64N(2)
			if c.asked != nil {
				c.asked(c.now, cost)
			}
			t := c.l.Ready(c.now, limit.Cost{cost})
			if t > c.now && t < limit.AfterSettle && c.rng.IntN(2) == 0 {
				c.now = t
			}
			if t <= c.now {
				c.open = append(c.open, flight{len(c.requests), c.now, limittest.Admit(c.l, c.now, limit.Cost{cost})})
				c.requests = append(c.requests, judged{number: len(c.requests), cost: cost})
			}
		case 5, 6:
			if len(c.open) > 0 {
				c.answer(c.rng.IntN(len(c.open)))
			}
		case 7:
			if c.rng.IntN(3) > 0 {
				break
			}
			v := c.versions[len(c.versions)-1]
			v.from, v.first = c.now, len(c.requests)
			if v.window = pick(c.rng, 100*ms, 300*ms, time.Second, 3*time.Second, 20*time.Second); c.rng.IntN(3) == 0 {
				v.limit = 2 + c.rng.Int64N(3)
			}
			if err := c.l.SetWindow(c.now, v.window); err != nil {
				return err
			}
			if err := c.l.SetLimit(c.now, v.limit); err != nil {
				return err
			}
			c.versions = append(c.versions, v)
		}
	}
	for len(c.open) > 0 {
		c.answer(0)
	}
	return nil
}

func (c *changes) answer(i int) {
	f := c.open[i]
	c.open = append(c.open[:i], c.open[i+1:]...)
	r := &c.requests[f.number]
	o := limit.Outcome{Result: pick(c.rng, limit.Accepted, limit.Accepted, limit.Accepted, limit.Failed, limit.Unknown, limit.Unsent)}
	bound := c.now
	if o.Result == limit.Unknown {
		bound = c.now.Add(c.late)
	}
	r.counts = o.Result != limit.Unsent
	r.arrived = f.sent.Add(time.Duration(pick(c.rng, 0, 0.5, 1, c.rng.Float64()) * float64(bound.Sub(f.sent))))
	if c.rng.IntN(4) == 0 && r.counts && r.arrived < c.now { // the server said when
		o.ArrivedAgo, bound = c.now.Sub(r.arrived), r.arrived
	}
	c.l.Settle(c.now, f.lease, &o)
	if c.settled != nil && r.counts {
		c.settled(c.now, bound, r.cost)
	} else if c.settled != nil {
		c.settled(c.now, bound, 0)
	}
}

// judge judges each version, with all requests sent before it was over.
func (c *changes) judge(j judge) error {
	for k := range c.versions {
		end := len(c.requests)
		if k+1 < len(c.versions) {
			end = c.versions[k+1].first
		}
		var arrivals []judged
		for _, r := range c.requests[:end] {
			if r.counts {
				arrivals = append(arrivals, r)
			}
		}
		if len(arrivals) == 0 {
			continue
		}
		sort.SliceStable(arrivals, func(i, j int) bool { return arrivals[i].arrived < arrivals[j].arrived })
		if err := j(arrivals, c.versions[:k+1]); err != nil {
			return err
		}
	}
	return nil
}

// changesOf makes one run of a kind. The judge is a server that remembers everything.
func changesOf(kind string, seed uint64, steps int) error {
	rng := rand.New(rand.NewPCG(seed, 77))
	first := version{from: mono.Min, limit: 3, window: time.Second}
	known := limit.Arrivals{Late: 2 * time.Second}
	if rng.IntN(3) == 0 {
		known.OneWayMax = time.Hour // a pair, and both limiters are right
	}
	var l changing
	var j judge
	switch kind {
	case "Rolling":
		l, j = must(limit.NewRolling(limit.RollingConfig{Limit: first.limit, Window: first.window, Grain: pick(rng, 0, 90*ms), Arrivals: known})), judgeRolling
	case "Calendar":
		phase, skew := mono.Time(rng.Int64N(int64(time.Hour))), pick(rng, 0, -50*ms, 50*ms)
		l, j = must(limit.NewCalendar(limit.CalendarConfig{Limit: first.limit, Window: first.window, Phase: phase, Arrivals: known})), judgeCalendar(phase, skew)
	case "Anchored":
		l, j = must(limit.NewAnchored(limit.AnchoredConfig{Limit: first.limit, Window: first.window, Arrivals: known})), judgeAnchored(pick(rng, 0, 0, 0.01, 0.5, 1))
	case "Weighted":
		phases := []float64{0, rng.Float64(), rng.Float64(), rng.Float64(), 0.999999}
		l, j = must(limit.NewWeighted(limit.WeightedConfig{Limit: first.limit, Window: first.window, Arrivals: known})), judgeWeighted(phases)
	case "Bucket":
		l, j = must(limit.NewBucket(limit.BucketConfig{Limit: first.limit, Window: first.window, Burst: changesBurst, Arrivals: known})), judgeBucket(changesBurst)
	}
	c := changes{rng: rng, l: l, now: mono.Time(rng.Int64N(int64(time.Hour))) - mono.Time(30*time.Minute), versions: []version{first}}
	if err := c.run(steps); err != nil {
		return err
	}
	return c.judge(j)
}

// Windows and limits follow each other at random. No request that goes under one of them is too
// much for it.
func TestNoWindowOfAnyLengthOverflows(t *testing.T) {
	runs := uint64(500)
	if testing.Short() {
		runs = 100
	}
	for _, kind := range changingKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for seed := range runs {
				if err := changesOf(kind, seed, 120); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

func FuzzSetWindow(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(200))
	f.Fuzz(func(t *testing.T, seed uint64, kind, steps uint8) {
		if err := changesOf(changingKinds[int(kind)%len(changingKinds)], seed, int(steps)); err != nil {
			t.Fatal(err)
		}
	})
}

// naive is a Rolling that keeps everything for ever. It also knows which requests a real Rolling
// has forgotten.
type naive struct {
	version
	all       map[mono.Time]int64 // costs by the bound of their arrival
	open      int64
	forgotten mono.Time // no later arrival was forgotten
}

// ready returns when a cost may go, if lost more arrived with the last forgotten request.
func (n *naive) ready(now mono.Time, cost, lost int64) mono.Time {
	all := map[mono.Time]int64{}
	last := mono.Min
	for u, c := range n.all {
		all[u] = c
		if u <= n.forgotten {
			last = max(last, u)
		}
	}
	if last > mono.Min {
		all[last] += lost
	}
	fits := func(t mono.Time) bool {
		sum := n.open + cost
		for u, c := range all {
			if u.Add(n.window) > t {
				sum += c
			}
		}
		return sum <= n.limit
	}
	switch {
	case fits(now):
		return now
	case cost > n.limit:
		return limit.Never
	case n.open+cost > n.limit:
		return limit.AfterSettle
	}
	least := limit.Never
	for u := range all {
		if t := u.Add(n.window); t > now && t < least && fits(t) {
			least = t
		}
	}
	return least
}

// A Rolling with a changed window is as exact as one that keeps everything, if nothing in the
// window was forgotten. Otherwise it is ready no later than if the whole forgotten cost had come
// with its last request.
func TestAChangedWindowIsExact(t *testing.T) {
	exact, assumed := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 78))
		c := changes{rng: rng, versions: []version{{from: mono.Min, limit: 3, window: time.Second}}}
		c.l = must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{Late: 2 * time.Second}}))
		n := naive{all: map[mono.Time]int64{}, forgotten: mono.Min}
		c.settled = func(now, bound mono.Time, cost int64) {
			n.forgotten = max(n.forgotten, now.Add(-c.versions[len(c.versions)-1].window))
			if cost > 0 {
				n.all[bound] += cost
			}
		}
		c.asked = func(now mono.Time, cost int64) {
			n.version, n.open = c.versions[len(c.versions)-1], 0
			for _, f := range c.open {
				n.open += c.requests[f.number].cost
			}
			got, want := c.l.Ready(now, limit.Cost{cost}), n.ready(now, cost, 0)
			counts := false
			for u := range n.all {
				counts = counts || u <= n.forgotten && u.Add(n.window) > now
			}
			if counts {
				assumed++
			} else {
				exact++
			}
			if got < want || got > want && !counts || got > n.ready(now, cost, limit.MaxCost) {
				t.Fatalf("seed %d, at %v: %d ready at %v, want %v; anything forgotten counts: %t", seed, now, cost, got, want, counts)
			}
		}
		if err := c.run(150); err != nil {
			t.Fatal(err)
		}
	}
	if exact < 1000 || assumed < 500 {
		t.Errorf("%d were compared for equality, %d with what must be assumed", exact, assumed)
	}
}
