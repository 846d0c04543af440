package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// crowd is lanes of several classes before limits of every sort, and all results of the Scheduler.
type crowd struct {
	rng    *rand.Rand
	line   *scheduler.Scheduler
	zero   mono.Time // instants are said as from here on
	now    mono.Time
	limits []*scheduler.Limit
	shares []*scheduler.Class
	lanes  []*scheduler.Lane
	keys   [][]*scheduler.Limit // of each lane those that no other has
	waits  []*scheduler.Ticket
	ended  []*scheduler.Ticket // which may be used again
	open   []scheduler.Pass
	ends   [scheduler.Full + 1]int
	said   strings.Builder // since the line before
	kind   crowdKind
	came   int
}

type crowdKind struct {
	fair, several bool // some limits are; some lanes have several ways
	fill          int
	heads         bool // shares have head starts
	size          int
	again         bool // tickets are used again
	keys          bool // lanes have limits that no other lane has, one a way, alike as those of keys are
	apart         bool // one limit keeps a gap, another counts produced units
	back          bool // the clock is set back at times
	quiet         bool // at times no ticket comes for long
	busy          bool // more come than go, and each lane has one of the limits
}

// more reports whether it has features that not every crowd has.
func (k *crowdKind) more() bool { return k.keys || k.apart || k.back || k.quiet || k.busy }

func newCrowd(seed uint64, kind crowdKind) *crowd { return newCrowdAt(0, seed, kind) }

func newCrowdAt(zero mono.Time, seed uint64, kind crowdKind) *crowd {
	c := &crowd{rng: rand.New(rand.NewPCG(seed, 11)), kind: kind, zero: zero, now: zero + second}
	c.line = scheduler.New(scheduler.Config{Fill: kind.fill, Size: kind.size, Watch: func(now mono.Time, a *scheduler.Lane) {
		c.say("watched %d %v", a.Of, now)
	}})
	for i, m := range []limit.Limiter{
		limit.MustRolling(30, 100*time.Millisecond),
		must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 3, Late: -1})),
		must(limit.NewRolling(limit.RollingConfig{Limit: 300, Window: 50 * time.Millisecond, Unit: limit.Tokens})),
		must(limit.NewCooldown(0)),
		must(limit.NewBucket(limit.BucketConfig{Limit: 250, Window: time.Second, Burst: 5})),
	} {
		sharing := scheduler.Sharing{Fair: kind.fair && i != 3, Unit: limit.Tokens}
		if i == 4 {
			sharing.Use = func(c limit.Cost) float64 { return float64(2*c[limit.Requests]) + float64(c[limit.Tokens])/10 }
		}
		n := c.line.Limit(m, sharing)
		n.Of = i
		c.limits = append(c.limits, n)
	}
	if kind.apart {
		c.limits[2].Limiter = must(limit.NewSpacing(4 * time.Millisecond))
		c.limits[4].Limiter = must(limit.NewProduced(limit.ProducedConfig{Limit: 9000, Window: time.Minute, Burst: 60, PerSecond: 1000, Within: 5 * time.Millisecond}))
	}
	for i := range 3 {
		c.shares = append(c.shares, c.line.Share(c.share(i)))
	}
	for i := range 6 {
		c.lanes = append(c.lanes, c.lane(i))
	}
	return c
}

func (c *crowd) say(format string, args ...any) {
	for i, a := range args {
		if at, ok := a.(mono.Time); ok && at > mono.Min && at < limit.AfterSettle {
			args[i] = at - c.zero
		}
	}
	fmt.Fprintf(&c.said, format+"\n", args...)
}

func (c *crowd) share(i int) scheduler.ShareConfig {
	s := scheduler.ShareConfig{Weight: []float64{0, 2, 5}[i]}
	if c.kind.heads {
		s.HeadStart = []time.Duration{0, 40 * time.Millisecond, 200 * time.Millisecond}[c.rng.IntN(3)]
	}
	if c.kind.size > 0 && i == 2 {
		s.Size = 5
	}
	return s
}

func (c *crowd) lane(i int) *scheduler.Lane {
	config := scheduler.LaneConfig{Weight: float64(c.rng.IntN(3))}
	if c.rng.IntN(3) > 0 {
		config.Share = c.shares[c.rng.IntN(len(c.shares))]
	}
	if c.kind.size > 0 {
		config.Size = c.rng.IntN(6)
	}
	if c.kind.fill > 0 {
		config.Fill = c.rng.IntN(5)
	}
	var ways [][]*scheduler.Limit
	for k := 0; k == 0 || c.kind.several && k < 1+i%3; k++ {
		var way []*scheduler.Limit
		if c.kind.busy {
			way = append(way, c.limits[1-k%2])
		}
		for _, n := range c.rng.Perm(len(c.limits))[:1+c.rng.IntN(3)] {
			if !slices.Contains(way, c.limits[n]) {
				way = append(way, c.limits[n])
			}
		}
		if c.kind.keys {
			way = append(way[:c.rng.IntN(1+i%2)], c.key(i, k))
		}
		ways = append(ways, way)
	}
	a := c.line.Lane(config, ways...)
	a.Of, a.Watched = i, i%2 == 0
	return a
}

// key returns the limit that way k of lane i has alone.
func (c *crowd) key(i, k int) *scheduler.Limit {
	for len(c.keys) <= i {
		c.keys = append(c.keys, nil)
	}
	for len(c.keys[i]) <= k {
		var m limit.Limiter = limit.MustRolling(4, 50*time.Millisecond)
		if c.kind.apart && i%4 > 1 {
			m = must(limit.NewSpacing(9 * time.Millisecond))
		}
		c.keys[i] = append(c.keys[i], c.line.Limit(m, scheduler.Sharing{Fair: c.kind.fair}))
	}
	return c.keys[i][k]
}

func (c *crowd) cost() limit.Cost {
	if c.kind.keys && c.rng.IntN(3) > 0 {
		return limit.Cost{limit.Requests: 1, limit.Tokens: 10}
	}
	cost := limit.Cost{limit.Requests: int64(1 + c.rng.IntN(3)), limit.Tokens: int64(c.rng.IntN(90))}
	if c.rng.IntN(60) == 0 {
		cost[limit.Requests] = 6 // more than some limits ever have
	}
	if c.rng.IntN(3) == 0 {
		cost[limit.Output] = int64(c.rng.IntN(40))
	}
	return cost
}

func (c *crowd) verdict(t *scheduler.Ticket) {
	c.ends[t.State]++
	if c.kind.again {
		c.ended = append(c.ended, t)
	}
	c.say("%v ends as %d", t.Of, t.State)
	switch t.State {
	case scheduler.Granted:
		c.say("by %d, fresh %t", t.Pass.Way.Index, c.line.Fresh(t.Pass))
		c.open = append(c.open, t.Pass)
	case scheduler.Late:
		c.say("not before %v", t.At)
	}
}

func (c *crowd) enter() {
	c.came++
	t := &scheduler.Ticket{}
	if n := len(c.ended); n > 0 {
		t, c.ended = c.ended[n-1], c.ended[:n-1]
	}
	t.Place, t.Deadline, t.Of = c.now, limit.Never, c.came
	cost := c.cost()
	t.Ask(&cost)
	if c.rng.IntN(5) == 0 {
		t.Place -= mono.Time(c.rng.IntN(80)) * ms
	}
	if c.rng.IntN(5) == 0 {
		t.Deadline = c.now + mono.Time(c.rng.IntN(300))*ms
	}
	a := c.lanes[c.rng.IntN(len(c.lanes))]
	asked, ahead := c.line.Ask(c.now, a, &cost, nil)
	expected, others := c.line.Expect(c.now, a, &cost, t.Place)
	c.say("%d comes to %v: asked %v %d, expected %v %d", c.came, a.Of, asked, ahead, expected, others)
	if c.line.Enter(c.now, a, t) == scheduler.Waiting {
		c.say("waits behind %d", t.Ahead)
		c.waits = append(c.waits, t)
	} else {
		c.verdict(t)
	}
}

func (c *crowd) try() {
	cost := c.cost()
	a := c.lanes[c.rng.IntN(len(c.lanes))]
	p, at := c.line.Try(c.now, a, &cost, nil)
	c.say("tried %v: %v", a.Of, at)
	if at <= c.now {
		c.open = append(c.open, p)
		c.ends[scheduler.Granted]++
	}
}

func (c *crowd) settle() {
	if len(c.open) == 0 {
		return
	}
	i := c.rng.IntN(len(c.open))
	p := c.open[i]
	c.open = append(c.open[:i], c.open[i+1:]...)
	o := limit.Outcome{Result: []limit.Result{limit.Accepted, limit.Accepted, limit.Limited, limit.Unsent}[c.rng.IntN(4)]}
	if o.Result == limit.Accepted && c.rng.IntN(2) == 0 {
		o.Metered, o.Actual = true, limit.Cost{limit.Requests: 1, limit.Tokens: int64(c.rng.IntN(20))}
	}
	c.line.Settle(c.now, p, &o)
}

// change makes another change: a limit, a class or a lane is another, or a ticket leaves.
func (c *crowd) change() {
	if c.kind.more() && c.rng.IntN(4) == 0 {
		c.changeMore()
		return
	}
	switch c.rng.IntN(6) {
	case 0:
		m := c.limits[1]
		m.Limiter.(*limit.Concurrency).SetLimit(c.now, int64(1+c.rng.IntN(6)))
		c.line.Review(c.now, m)
	case 1:
		m := c.limits[3]
		m.Limiter.(*limit.Cooldown).Extend(c.now + mono.Time(c.rng.IntN(60))*ms)
		c.line.Touch(m)
	case 2:
		m := c.limits[0]
		m.Limiter.(*limit.Rolling).SetLimit(c.now, int64(2+c.rng.IntN(30)))
		c.line.Review(c.now, m)
	case 3:
		i := c.rng.IntN(len(c.shares))
		c.shares[i].Set(c.share(i))
	case 4:
		if i := c.rng.IntN(len(c.lanes)); c.lanes[i].Len() == 0 {
			c.line.Retire(c.lanes[i])
			c.lanes[i] = c.lane(i)
		}
	default:
		if len(c.waits) > 0 {
			t := c.waits[c.rng.IntN(len(c.waits))]
			c.say("%v leaves: %t", t.Of, c.line.Leave(c.now, t))
		}
	}
}

func (c *crowd) changeMore() {
	if len(c.keys) > 0 {
		if of := c.keys[c.rng.IntN(len(c.keys))]; len(of) > 0 {
			m := of[c.rng.IntN(len(of))]
			if r, ok := m.Limiter.(*limit.Rolling); ok {
				r.SetLimit(c.now, int64(1+c.rng.IntN(6)))
			}
			c.line.Review(c.now, m)
		}
	}
	if c.kind.quiet && c.rng.IntN(4) == 0 {
		c.now += mono.Time(1500+c.rng.IntN(1000)) * ms
	}
}

// look has the Scheduler say all that it knows.
func (c *crowd) look() {
	pending, _, _ := c.line.Due(c.now)
	c.say("pending %t", pending)
	for t := c.line.Next(c.now); t != nil; t = c.line.Next(c.now) {
		c.verdict(t)
	}
	var still []*scheduler.Ticket
	for _, t := range c.waits {
		if t.State == scheduler.Waiting {
			still = append(still, t)
		}
	}
	c.waits = still
	if c.say("%d wait, until %v", c.line.Waiting(), c.line.Wake()); c.rng.IntN(3) > 0 {
		return
	}
	if t := c.line.Soonest(); t != nil {
		c.say("the soonest is %v", t.Of)
	}
	for _, m := range c.limits {
		n, _ := m.Waiting()
		c.say("%d at %v for %v", n, m.Of, binds(m.Rule(c.now)))
	}
	for _, of := range c.keys {
		for _, m := range of {
			n, _ := m.Waiting()
			c.say("%d for %v", n, binds(m.Rule(c.now)))
		}
	}
	for _, a := range c.lanes {
		c.say("lane %v: %d, %d went", a.Of, a.Len(), a.Granted())
		if on, at := a.At(); on != nil {
			c.say("at %v until %v, the first is %v, the last goes at %v", on.Of, at, a.First().Of, c.line.LastGoes(c.now, a))
		}
	}
	for _, s := range c.shares {
		c.say("share %d", s.Len())
	}
}

var crowds = []struct {
	name string
	kind crowdKind
}{
	{"by place", crowdKind{}},
	{"fair", crowdKind{fair: true}},
	{"fair, with head starts", crowdKind{fair: true, heads: true}},
	{"several ways", crowdKind{several: true}},
	{"several ways, fair", crowdKind{several: true, fair: true}},
	{"filled", crowdKind{fill: 3}},
	{"filled by several ways", crowdKind{fill: 2, several: true}},
	{"filled, fair, with head starts", crowdKind{fill: 2, fair: true, heads: true}},
	{"of bounded size", crowdKind{size: 9}},
	{"of bounded size, fair, several ways", crowdKind{size: 9, fair: true, several: true, heads: true}},
	{"keys", crowdKind{keys: true, several: true, back: true}},
	{"a key each, apart", crowdKind{keys: true, apart: true, back: true}},
	{"keys, filled, fair", crowdKind{keys: true, several: true, fill: 2, fair: true, heads: true}},
	{"apart", crowdKind{apart: true, back: true}},
	{"apart, fair, several ways", crowdKind{apart: true, back: true, fair: true, several: true}},
	{"apart, a key each, filled", crowdKind{apart: true, keys: true, fill: 3}},
	{"quiet at times, fair", crowdKind{quiet: true, fair: true}},
	{"quiet at times, fair, with head starts", crowdKind{quiet: true, back: true, fair: true, heads: true}},
	{"busy, filled", crowdKind{busy: true, fill: 3, several: true}},
	{"busy, fair", crowdKind{busy: true, fair: true}},
}

// A Scheduler gives the same results as before. They are: which ticket goes when and by which way,
// which is refused, the forecasts, and the limit that each ticket waits for.
func TestWhatALineSays(t *testing.T) {
	var b strings.Builder
	for _, w := range crowds {
		for seed := range uint64(2) {
			fmt.Fprintf(&b, "\n%s, %d\n", w.name, seed)
			c := newCrowd(seed, w.kind)
			for step := 1; step <= 1000; step++ {
				c.step()
				if step%50 == 0 {
					fmt.Fprintf(&b, "  %s\n", c.summary())
				}
			}
		}
	}
	golden.CompareFloats(t, "told.golden", b.String())
}

// Instants have no zero: a Scheduler says the same of a crowd that comes an hour before it.
func TestCrowdsBeforeZero(t *testing.T) {
	for _, w := range crowds {
		at, before := newCrowd(3, w.kind), newCrowdAt(-3600*second, 3, w.kind)
		for step := range 400 {
			at.step()
			before.step()
			if at.said.String() != before.said.String() {
				t.Errorf("%s, step %d: before zero it says\n%safter it\n%s", w.name, step, before.said.String(), at.said.String())
				break
			}
			at.said.Reset()
			before.said.Reset()
		}
	}
}

// The same of others, in which tickets are used again: a line for all that is said.
func TestWhatLinesSayOfTicketsUsedAgain(t *testing.T) {
	var b strings.Builder
	for _, w := range crowds {
		fmt.Fprintf(&b, "\n%s\n", w.name)
		w.kind.again = true
		for seed := range uint64(6) {
			c := newCrowd(100+seed, w.kind)
			for range 300 {
				c.step()
			}
			fmt.Fprintf(&b, "  %s\n", c.summary())
		}
	}
	golden.CompareFloats(t, "again.golden", b.String())
}

func (c *crowd) step() {
	if c.kind.back && c.rng.IntN(8) == 0 {
		d := mono.Time(c.rng.IntN(3000)) * ms / 1000
		c.now -= d
		defer func() { c.now += d }()
	}
	if c.kind.busy && c.rng.IntN(3) == 0 && len(c.waits) < 40 {
		c.enter()
	}
	switch k := c.rng.IntN(20); {
	case k < 6:
		c.enter()
	case k < 7:
		c.try()
	case k < 13:
		c.settle()
	case k < 15:
		c.change()
	case k < 18 && c.line.Wake() < limit.AfterSettle:
		c.now = max(c.now, c.line.Wake())
	default:
		c.now += mono.Time(c.rng.IntN(3000)) * ms / 1000
	}
	c.look()
}

// summary counts the outcomes, and has a hash of the results since the last one.
func (c *crowd) summary() string {
	defer c.said.Reset()
	return fmt.Sprintf("at %v: %d came, %d went, %d never, %d late, %d full, %d wait; all it says: %s", c.now, c.came, c.ends[scheduler.Granted], c.ends[scheduler.Never],
		c.ends[scheduler.Late], c.ends[scheduler.Full], len(c.waits), golden.Sum(c.said.String()))
}

// binds writes the rule that something waits for.
func binds(r limit.Rule) string { return fmt.Sprint(r.Name, ", ", r.Most(), " ", r.Unit) }
