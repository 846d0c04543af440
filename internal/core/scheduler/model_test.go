package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

const ms = mono.Time(time.Millisecond)

// long asks for many more seeds.
var long = need.Long()

// eachSeed runs a story by so many seeds, or by 5,000.
func eachSeed(t *testing.T, seeds uint64, run func(seed uint64) error) {
	t.Helper()
	if long {
		seeds = 5000
	}
	for seed := range seeds {
		if err := run(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// watched is a limiter that knows whether it was asked before it admitted, and whom it should have
// admitted before.
type watched struct {
	limit.Limiter
	id   int
	net  *net
	fair bool
}

func (w *watched) Admit(s *limit.Sent) {
	if at := w.Ready(s.At, s.Cost); at > s.At {
		w.net.fail("limit %d: admitted at %v what is ready at %v", w.id, s.At, at)
	}
	w.net.admits(w, s.Cost)
	w.Limiter.Admit(s)
}

func (w *watched) ReadyAfter(now mono.Time, first, c limit.Cost) mono.Time {
	return limit.ReadyAfter(w.Limiter, now, first, c)
}

func (w *watched) NotBefore(now mono.Time, n int, ahead, c limit.Cost) mono.Time {
	return limit.NotBefore(w.Limiter, now, n, ahead, c)
}

// netConfig describes a net.
type netConfig struct {
	limits, lanes, ways, fill int
	fair                      bool // some limits are
	own                       bool // most lanes share no limit, nor do their ways
	classes                   bool // most tickets have other costs by other ways
	// Limits change, lanes come and go, some have deadlines, each limit reads an outcome of its
	// own.
	churn bool
}

// net is limits, lanes and tickets at random, and knowledge of them that does not come from the
// Scheduler.
type net struct {
	netConfig
	rng    *rand.Rand
	line   *scheduler.Scheduler
	limits []*scheduler.Limit
	lanes  []*scheduler.Lane
	ways   [][][]int
	class  [][]int // of each way of a lane
	now    mono.Time
	waits  []*guest // all that wait
	open   []*guest
	guests []*guest // all that have come
	named  bool     // limit.Other of a cost is who it is
	ended  int
	size   int // the most that may wait; 0: any number
	err    error
}

type guest struct {
	scheduler.Ticket
	n     int
	lane  int
	until mono.Time // settled then
}

func (n *net) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("at %v: "+format, append([]any{n.now}, args...)...)
	}
}

func newNet(seed uint64, c netConfig) *net {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := &net{netConfig: c, rng: rng, named: c.ways == 1 || seed%2 == 0}
	if c.churn && rng.IntN(4) == 0 {
		n.size = rng.IntN(12) + 1
	}
	n.line = scheduler.New(scheduler.Config{Fill: c.fill, Size: n.size})
	for i := range c.limits {
		var l limit.Limiter
		switch kind := rng.IntN(6); {
		case kind < 2:
			l, _ = limit.NewConcurrency(limit.ConcurrencyConfig{Limit: int64(rng.IntN(3) + 1), Late: -1})
		case kind == 2 && c.churn:
			l, _ = limit.NewCooldown(0)
		default:
			l, _ = limit.NewRolling(limit.RollingConfig{Limit: int64(rng.IntN(6) + 3), Window: time.Duration(rng.IntN(40)+5) * time.Millisecond, Margin: -1})
		}
		w := &watched{Limiter: l, id: i, net: n, fair: c.fair && rng.IntN(2) == 0}
		n.limits = append(n.limits, n.line.Limit(w, scheduler.Sharing{Fair: w.fair}))
	}
	n.lanes, n.ways, n.class = make([]*scheduler.Lane, c.lanes), make([][][]int, c.lanes), make([][]int, c.lanes)
	for a := range c.lanes {
		n.join(a)
	}
	return n
}

// join makes lane a, or another in its place.
func (n *net) join(a int) {
	var all [][]*scheduler.Limit
	n.ways[a], n.class[a] = nil, nil
	own := n.own && (!n.churn || n.rng.IntN(6) > 0)
	for k := range n.rng.IntN(n.netConfig.ways) + 1 {
		var way []*scheduler.Limit
		var id []int
		some := n.rng.Perm(len(n.limits))[:n.rng.IntN(min(len(n.limits), 3))+1]
		if own {
			first := 2 * (a*n.netConfig.ways + k)
			some = []int{first, first + 1}[:1+n.rng.IntN(2)]
		}
		for _, i := range some {
			way, id = append(way, n.limits[i]), append(id, i)
		}
		all, n.ways[a] = append(all, way), append(n.ways[a], id)
	}
	if n.classes {
		for range all {
			n.class[a] = append(n.class[a], n.rng.IntN(costClasses))
		}
	}
	n.lanes[a] = n.line.Lane(scheduler.LaneConfig{Weight: float64([]int{1, 2, 5}[n.rng.IntN(3)]), Classes: n.class[a]}, all...)
}

const costClasses = 3

// cost is what g costs by way k.
func (n *net) cost(g *guest, k int) limit.Cost {
	if g.Costs == nil {
		return g.Cost
	}
	return g.Costs[n.class[g.lane][k]]
}

// could reports whether g may go now by one of its ways.
func (n *net) could(g *guest) bool {
	for k, way := range n.ways[g.lane] {
		all := true
		for _, i := range way {
			all = all && n.limits[i].Limiter.Ready(n.now, n.cost(g, k)) <= n.now
		}
		if all {
			return true
		}
	}
	return false
}

func (n *net) share(a, b int) bool {
	for _, v := range n.ways[a] {
		for _, w := range n.ways[b] {
			for _, i := range v {
				if slices.Contains(w, i) {
					return true
				}
			}
		}
	}
	return false
}

// held reports whether a ticket waits that may be before g at one of its limits.
func (n *net) held(g *guest) bool {
	for _, w := range n.waits {
		if w != g && (n.fair || !later(w, g)) && (w.lane == g.lane || n.share(w.lane, g.lane)) {
			return true
		}
	}
	return false
}

// later reports whether a comes after b.
func later(a, b *guest) bool { return a.Place > b.Place || a.Place == b.Place && a.n > b.n }

// admits holds an admission against laws 4 and 5.
func (n *net) admits(m *watched, c limit.Cost) {
	if !n.named {
		return
	}
	g := n.guests[c[limit.Other]]
	right := g // whose right it goes by
	if f := n.lanes[g.lane].First(); f != nil && later(g, f.Of.(*guest)) {
		right = f.Of.(*guest)
	}
	for i, a := range n.lanes {
		if a.First() == nil || i == g.lane {
			continue
		}
		h := a.First().Of.(*guest)
		if !later(right, h) {
			continue
		}
		on, _ := a.At()
		if !m.fair && len(n.ways[i]) == 1 && on == n.limits[m.id] {
			n.fail("%d overtakes %d, which waits at limit %d", g.n, h.n, m.id)
		}
		if !n.fair && n.fill == 0 && (!n.own || n.share(i, g.lane)) && n.could(h) && !n.held(h) {
			n.fail("%d goes, and %d could", g.n, h.n)
		}
	}
}

func (n *net) enter() {
	rng := n.rng
	g := &guest{n: len(n.guests), lane: rng.IntN(len(n.lanes))}
	n.guests = append(n.guests, g)
	g.Cost, g.Place, g.Deadline = limit.Cost{limit.Requests: int64(rng.IntN(3) + 1)}, n.now, limit.Never
	if n.named {
		g.Cost[limit.Other] = int64(g.n)
	}
	if n.classes && rng.IntN(4) > 0 {
		n.differ(g)
	}
	if n.fill == 0 && rng.IntN(4) == 0 {
		g.Place -= mono.Time(rng.IntN(30)) * ms // a head start
	}
	if n.churn && rng.IntN(6) == 0 {
		g.Deadline = n.now + mono.Time(rng.IntN(60))*ms
	}
	g.Of = g
	if n.line.Enter(n.now, n.lanes[g.lane], &g.Ticket) == scheduler.Waiting {
		n.waits = append(n.waits, g)
	} else {
		n.verdict(g)
	}
	n.drain()
}

// differ gives g costs by classes of ways.
func (n *net) differ(g *guest) {
	costs := make([]limit.Cost, costClasses)
	for i := range costs {
		costs[i] = g.Cost
		costs[i][limit.Requests] = int64(n.rng.IntN(3) + 1)
	}
	for i := range costs {
		g.Cost[limit.Requests] = max(g.Cost[limit.Requests], costs[i][limit.Requests])
	}
	g.AskEach(&g.Cost, costs)
}

// try lets a ticket go at once or not at all, behind all that wait.
func (n *net) try() {
	g := &guest{n: len(n.guests), lane: n.rng.IntN(len(n.lanes))}
	n.guests = append(n.guests, g)
	g.Cost, g.Place = limit.Cost{limit.Requests: int64(n.rng.IntN(3) + 1)}, mono.Max
	if n.named {
		g.Cost[limit.Other] = int64(g.n)
	}
	var least *limit.Cost
	if n.rng.IntN(2) == 0 {
		least = &g.Cost
	}
	p, at := n.line.Try(n.now, n.lanes[g.lane], &g.Cost, least)
	held := n.held(g)
	switch {
	case at <= n.now:
		g.Pass, g.State = p, scheduler.Granted
		n.verdict(g)
	case n.could(g) && !held:
		n.fail("%d could go and is told to wait until %v", g.n, at)
	default:
		n.ended++
	}
	if at == limit.Never && !slices.ContainsFunc(n.ways[g.lane][0], func(i int) bool { return n.limits[i].Limiter.Ready(n.now, g.Cost) == limit.Never }) {
		n.fail("%d is told that it goes never", g.n)
	}
	n.drain()
}

// verdict takes note of one.
func (n *net) verdict(g *guest) {
	n.ended++
	switch g.State {
	case scheduler.Granted:
		g.until = n.now + mono.Time(n.rng.IntN(25))*ms
		n.open = append(n.open, g)
		return
	case scheduler.Never:
		for k, way := range n.ways[g.lane] {
			cost := n.cost(g, k)
			if !slices.ContainsFunc(way, func(i int) bool { return n.limits[i].Limiter.Ready(n.now, cost) == limit.Never }) {
				n.fail("%d is to go never, but %v has room for it", g.n, way)
			}
		}
	case scheduler.Late:
		if g.At <= g.Deadline {
			n.fail("%d is too late, but could go at %v", g.n, g.At)
		}
	case scheduler.Full:
		if n.size == 0 || len(n.waits) < n.size {
			n.fail("%d finds no place, with %d in line", g.n, len(n.waits))
		}
	}
	if !n.churn {
		n.fail("%d was refused: %d", g.n, g.State)
	}
}

func (n *net) drain() {
	for t := n.line.Next(n.now); t != nil; t = n.line.Next(n.now) {
		g := t.Of.(*guest)
		i := slices.Index(n.waits, g)
		if i < 0 {
			n.fail("%d got another verdict", g.n)
			return
		}
		n.waits = slices.Delete(n.waits, i, i+1)
		n.verdict(g)
	}
	if n.line.Waiting() != len(n.waits) {
		n.fail("%d are said to wait of %d", n.line.Waiting(), len(n.waits))
	}
	for _, g := range n.waits {
		if n.could(g) && !n.held(g) {
			n.fail("%d waits and could go, and nobody is before it", g.n)
		}
	}
}

// settle closes the passes that have been answered by now.
func (n *net) settle() {
	for i := 0; i < len(n.open); {
		g := n.open[i]
		if g.until > n.now {
			i++
			continue
		}
		n.open = slices.Delete(n.open, i, i+1)
		if n.churn && n.rng.IntN(3) > 0 {
			n.settleEach(g)
		} else {
			n.line.Settle(n.now, g.Pass, &accepted)
		}
		n.drain()
	}
}

// settleEach settles each limit with another outcome.
func (n *net) settleEach(g *guest) {
	open := *n.line.Sent(g.Pass)
	sent := n.line.SettleEach(n.now, g.Pass, func(*scheduler.Limit) *limit.Outcome {
		o := limit.Outcome{Result: limit.Result(n.rng.IntN(int(limit.Unsent) + 1))}
		if o.Result == limit.Limited {
			o.RetryAfter = time.Duration(n.rng.IntN(20)) * time.Millisecond
		}
		if n.rng.IntN(4) == 0 {
			o.Metered, o.Actual = true, limit.Cost{limit.Requests: int64(n.rng.IntN(5))}
		}
		return &o
	})
	if *sent != open || sent.Cost != *g.Pass.Way.Cost(&g.Ticket) {
		n.fail("%d: %+v was open, and %+v is closed", g.n, open, *sent)
	}
}

// change gives a limit another size, or another instant, and says so.
func (n *net) change() {
	m := n.limits[n.rng.IntN(len(n.limits))]
	switch l := m.Limiter.(*watched).Limiter.(type) {
	case *limit.Rolling:
		l.SetLimit(n.now, int64(n.rng.IntN(8)+1))
	case *limit.Concurrency:
		l.SetLimit(n.now, int64(n.rng.IntN(4)+1))
	case *limit.Cooldown:
		l.Extend(n.now + mono.Time(n.rng.IntN(30))*ms)
	}
	if n.rng.IntN(2) == 0 {
		n.line.Touch(m)
		n.drain()
		return
	}
	n.line.Review(n.now, m)
	n.drain()
	for _, g := range n.waits {
		for _, i := range n.ways[g.lane][0] {
			if len(n.ways[g.lane]) == 1 && n.limits[i] == m && m.Limiter.Ready(n.now, g.Cost) == limit.Never {
				n.fail("%d waits after a review, and fits limit %d never", g.n, i)
			}
		}
	}
}

// retire replaces a lane without waiting tickets by another.
func (n *net) retire() {
	if a := n.rng.IntN(len(n.lanes)); n.lanes[a].Len() == 0 {
		n.line.Retire(n.lanes[a])
		n.join(a)
		n.drain()
	}
}

func (n *net) leave() {
	if len(n.waits) == 0 {
		return
	}
	i := n.rng.IntN(len(n.waits))
	g := n.waits[i]
	n.waits = slices.Delete(n.waits, i, i+1)
	if !n.line.Leave(n.now, &g.Ticket) {
		n.fail("%d could not leave", g.n)
	}
	n.ended++
	n.drain()
}

// step goes to the next instant at which anything happens.
func (n *net) step() {
	at := n.line.Wake()
	for _, g := range n.open {
		at = min(at, max(g.until, n.now))
	}
	if at == limit.Never {
		if len(n.waits) > 0 {
			n.fail("%d wait, and nobody knows for what", len(n.waits))
		}
		n.now += ms
		return
	}
	n.now = max(n.now, at)
	n.drain()
	n.settle()
}

func runNet(seed uint64, c netConfig) error {
	n := newNet(seed, c)
	for step := 0; step < 300 && n.err == nil; step++ {
		switch k := n.rng.IntN(8); {
		case k < 3:
			n.enter()
		case k == 7:
			n.try()
		case k == 3:
			n.leave()
		case k == 4 && n.churn:
			if n.rng.IntN(3) == 0 {
				n.retire()
			} else {
				n.change()
			}
		default:
			n.step()
		}
	}
	for i := 0; len(n.waits) > 0 && n.err == nil; i++ {
		if n.step(); i > 10_000 {
			n.fail("%d wait for ever", len(n.waits))
		}
	}
	if n.err == nil && n.ended != len(n.guests) {
		n.fail("%d came and %d ended", len(n.guests), n.ended)
	}
	return n.err
}

// Laws 1, 3, 4, 5 and 6 in random nets. No ticket goes without leave of all limits. No ticket waits
// that could go, unless an earlier one waits for one of its limits. No ticket goes before an
// earlier one that could, or past one that waits at a limit. Each ticket gets one end. The same
// holds in nets that churn, where limits change and lanes come and go.
func TestNets(t *testing.T) {
	seeds := uint64(100)
	if long {
		seeds = 5000
	}
	for seed := range seeds {
		for _, c := range []netConfig{
			{limits: 1, lanes: 1, ways: 1}, {limits: 3, lanes: 4, ways: 1}, {limits: 4, lanes: 6, ways: 3}, {limits: 5, lanes: 1, ways: 5},
			{limits: 1, lanes: 1, ways: 1, fill: 4}, {limits: 3, lanes: 3, ways: 1, fill: 4}, {limits: 3, lanes: 5, ways: 1, fair: true},
			{limits: 4, lanes: 4, ways: 1, churn: true}, {limits: 4, lanes: 5, ways: 3, churn: true}, {limits: 2, lanes: 1, ways: 4, churn: true},
			{limits: 8, lanes: 1, ways: 4, own: true}, {limits: 24, lanes: 3, ways: 4, own: true, churn: true}, {limits: 8, lanes: 1, ways: 4, own: true, churn: true},
			{limits: 3, lanes: 4, ways: 1, fill: 3, churn: true}, {limits: 4, lanes: 5, ways: 2, fair: true, churn: true},
			{limits: 4, lanes: 2, ways: 3, fill: 4}, {limits: 8, lanes: 1, ways: 4, own: true, fill: 4}, {limits: 4, lanes: 4, ways: 3, fill: 4, churn: true},
			{limits: 4, lanes: 6, ways: 3, classes: true}, {limits: 5, lanes: 1, ways: 5, classes: true}, {limits: 8, lanes: 1, ways: 4, own: true, classes: true},
			{limits: 24, lanes: 3, ways: 4, own: true, churn: true, classes: true}, {limits: 4, lanes: 5, ways: 2, fair: true, churn: true, classes: true},
			{limits: 4, lanes: 4, ways: 3, fill: 4, churn: true, classes: true},
		} {
			if err := runNet(seed, c); err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, c, err)
			}
		}
	}
}

func FuzzNets(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(4), uint8(2), uint8(0))
	f.Add(uint64(2), uint8(1), uint8(1), uint8(1), uint8(8))
	f.Add(uint64(3), uint8(131), uint8(132), uint8(2), uint8(0))
	f.Add(uint64(4), uint8(131), uint8(132), uint8(131), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, limits, lanes, ways, fill uint8) {
		c := netConfig{limits: int(limits%8) + 1, lanes: int(lanes%8) + 1, ways: int(ways%6) + 1, fill: int(fill % 16)}
		c.fair, c.churn, c.classes = limits >= 128, lanes >= 128, ways >= 128
		if err := runNet(seed, c); err != nil {
			t.Fatal(err)
		}
	})
}
