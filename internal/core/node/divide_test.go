package node

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// An heir whose weight is enough keeps to its weight; one with less has its least part of the whole.
func TestWeigh(t *testing.T) {
	for _, c := range []struct {
		heirs []Entry
		want  []uint64
	}{
		{[]Entry{{Weight: 1000, Least: 300}, {Weight: 1000, Least: 150}, {Weight: 8000, Least: 100}}, []uint64{3000, 1500, 5500}},
		{[]Entry{{Weight: 1000}, {Weight: 3000}}, []uint64{1000, 3000}},
		{[]Entry{{Weight: 1000, Least: 950}, {Weight: 1000, Least: 950}, {Weight: 8000}}, []uint64{4750, 4750, 500}},
	} {
		var heirs []*Entry
		for i := range c.heirs {
			heirs = append(heirs, &c.heirs[i])
		}
		weigh(heirs)
		for i, e := range heirs {
			if e.Counts != c.want[i] {
				t.Errorf("%+v: heir %d counts as %d, want %d", c.heirs, i, e.Counts, c.want[i])
			}
		}
	}
}

// dividing is a turn of a node at a limit of 100 of which nothing is used. Another node wants as much as it can get.
func dividing(head, mean int64) *pending {
	const now = 60_000 * ms
	n := New(Config{ID: "a", New: func() limit.Limiter { return limit.MustRolling(100, time.Second) }})
	n.Line(1000, limit.Cost{limit.Requests: head}, 0)
	n.any, n.costs[limit.Requests] = true, float64(mean)
	n.last = now
	each := limit.Cost{limit.Requests: mean}
	t := &pending{Node: n, limiter: n.config.New(), now: now, mine: Entry{ID: "a", Want: 1000, Weight: 1000, Mean: each},
		others: []Entry{{ID: "b", Want: 1000, Weight: 1000, Mean: each, Until: now + 1000*ms}}}
	t.heirs = 2
	return t
}

// share has the node find its share until a quarter of a second later.
func (t *pending) share() (mine int) {
	heirs := t.heirsOf(all)
	weigh(heirs)
	return t.falls(heirs, t.now.Add(250*time.Millisecond), &spare{}, false)
}

// The first request of a node's share costs what its head costs, and the others cost the mean. So a node whose head is
// cheap gets no more than another with the same weight.
func TestShareOfACheapHead(t *testing.T) {
	for _, c := range []struct {
		head, mean int64
		want       int
	}{
		{1, 10, 5},  // 1 and four of 10, beside five of 10
		{10, 10, 5}, // five of 10, beside five
		{50, 10, 1}, // 50, beside five of 10
	} {
		if got := dividing(c.head, c.mean).share(); got != c.want {
			t.Errorf("with a head of %d and others of %d, %d fall to it, want %d", c.head, c.mean, got, c.want)
		}
	}
}

// A node that has a part of its head, and has sent nothing for longer than grants hold, gets the rest of it first.
// Others that had less are served after that. A node that sends has to wait for its turn.
func TestStarvingNodeGetsTheRestOfItsHead(t *testing.T) {
	for _, c := range []struct {
		name  string
		since time.Duration // its latest request
		want  int
	}{{"starves", 2001 * time.Millisecond, 1}, {"sends", 2 * time.Second, 0}} {
		d := dividing(10, 1)
		d.lastUse = d.last.Add(-c.since)
		d.pool.add(part{d.now, limit.Cost{limit.Requests: 4}, false})
		d.mine.Served = 1e6
		if got := d.share(); got != c.want {
			t.Errorf("%s: %d fall to it, want %d", c.name, got, c.want)
		}
	}
}

// Of nodes that had equally much the first goes, which is the one that has its turn. If each left a single slot to the
// other, neither would take it.
func TestLeast(t *testing.T) {
	for _, c := range []struct {
		heirs []Entry
		want  string
	}{
		{[]Entry{{ID: "a", Want: 1, Served: 5}, {ID: "b", Want: 1, Served: 5}}, "a"},
		{[]Entry{{ID: "a", Want: 1, Served: 6}, {ID: "b", Want: 1, Served: 5}, {ID: "c", Want: 1, Served: 5}}, "b"},
		{[]Entry{{ID: "a", Served: 4}, {ID: "b", Want: 1, Served: 5}}, "b"},
	} {
		var heirs []*Entry
		for i := range c.heirs {
			heirs = append(heirs, &c.heirs[i])
		}
		if e := least(heirs); e.ID != c.want {
			t.Errorf("%+v: %s goes, want %s", c.heirs, e.ID, c.want)
		}
	}
}

// A share is taken from the earliest slots on, and never beyond the horizon: others may be ahead there.
func TestTakeEndsAtTheHorizon(t *testing.T) {
	for _, c := range []struct {
		mine, used int64
		last       mono.Time // the node's latest request
		want       int
	}{
		{99, 0, 0, 99}, {100, 0, 0, 100}, {101, 0, 0, 100}, {20, 90, 0, 10},
		{20, 100, 0, 0},        // nothing is free before the horizon
		{20, 100, mono.Min, 1}, // its first grant may be later: see far
	} {
		d := dividing(1, 1)
		d.lastUse = c.last
		for range c.used { // these are free again 300 ms from now
			d.limiter.Settle(d.now, d.admit(mono.Min, limit.One), &limit.Outcome{ArrivedAgo: 700 * time.Millisecond})
		}
		if d.take(int(c.mine), d.now.Add(250*time.Millisecond), false); len(d.granted) != c.want {
			t.Errorf("of %d beside %d that are used: %d are granted, want %d", c.mine, c.used, len(d.granted), c.want)
		}
	}
}

// A slot at the horizon itself is within it: for a share that is found, and for one that is taken.
func TestSlotAtTheHorizon(t *testing.T) {
	for before, want := range map[time.Duration]int{0: 10, 1: 0} {
		d := dividing(1, 1)
		d.lastUse, d.others = 0, nil
		d.limiter.Settle(d.now, d.admit(mono.Min, limit.Cost{limit.Requests: 100}), &limit.Outcome{ArrivedAgo: 700 * time.Millisecond})
		free := d.limiter.Ready(d.now, limit.One).Add(-before)
		d.mine.Want = 10
		found := d.falls(d.heirsOf(all), free, &spare{}, false)
		d.mine.Want = 10
		if d.take(10, free, false); found != want || len(d.granted) != want {
			t.Errorf("%v before the slot: %d are found and %d taken, want %d", before, found, len(d.granted), want)
		}
	}
}

// Beside a node that presses, a cost stays free for newcomers of each part of a limit where one is free soon all the
// same: even requests are no more than a poll apart, and a window takes longer than two. Dear costs stay free only if
// all are alike, or a small part of the limit.
func TestSpares(t *testing.T) {
	const horizon, trip = 300 * time.Millisecond, 40 * time.Millisecond
	for _, c := range []struct {
		name         string
		n            int64
		window       time.Duration
		mean, spread int64
		change       func(d *pending)
		until        time.Duration // 0: nothing stays free
	}{
		{"even requests 10 ms apart", 100, time.Second, 1, 0, nil, horizon},
		{"a poll apart", 12, 3 * time.Second, 1, 0, nil, 500 * time.Millisecond},
		{"more than a poll apart", 11, 3 * time.Second, 1, 0, nil, 0},
		{"all is free within two polls", 10, 500 * time.Millisecond, 1, 0, nil, 0},
		{"in a nanosecond more", 10, 500*time.Millisecond + 10, 1, 0, nil, horizon},
		{"dear, and alike", 100, time.Second, 20, 0, nil, 400 * time.Millisecond},
		{"a sixteenth of the limit", 160, 1600 * time.Millisecond, 4, 6, nil, horizon},
		{"more than a sixteenth", 159, 1590 * time.Millisecond, 4, 6, nil, 0},
		{"alone", 100, time.Second, 1, 0, func(d *pending) { d.others = nil }, 0},
		{"it wants nothing", 100, time.Second, 1, 0, func(d *pending) { d.wanted = false }, 0},
		{"it wants more since TTL", 100, time.Second, 1, 0, func(d *pending) { d.wantedFrom = d.began.Add(-d.config.TTL) }, 0},
		{"requests take two polls", 100, time.Second, 1, 0, func(d *pending) { d.trip = 500 * time.Millisecond }, horizon + 460*time.Millisecond},
		{"requests take longer", 100, time.Second, 1, 0, func(d *pending) { d.trip = 500*time.Millisecond + 1 }, 0},
		{"a unit of which it uses nothing", 100, time.Second, 0, 0, nil, 0},
	} {
		d := dividing(1, c.mean)
		d.spread[limit.Requests] = float64(c.spread)
		d.limiter = limit.MustRolling(c.n, c.window)
		d.began, d.wanted, d.wantedFrom, d.trip = d.now, true, d.now.Add(-d.config.TTL-1), trip
		if c.change != nil {
			c.change(d)
		}
		s := d.spares(d.now.Add(horizon))
		if len(s.parts) > 1 || len(s.parts) == 1 != (c.until > 0) || c.until > 0 && (s.until[0].Sub(d.now) != c.until+trip || s.one[limit.Requests] != c.mean+c.spread) {
			t.Errorf("%s: %v stays free until %v, want %v", c.name, s.one, s.until, d.now.Add(c.until+trip))
		}
	}
}

// A node that has sent nothing yet, and has no grant, looks ahead for half of the time that grants hold. All
// others look no farther than to their horizon.
func TestFar(t *testing.T) {
	const soon, later = 250 * time.Millisecond, 1500 * time.Millisecond
	for _, c := range []struct {
		name    string
		last    mono.Time
		parts   []part
		horizon time.Duration
		want    time.Duration
	}{
		{"new", mono.Min, nil, soon, time.Second}, {"new, far horizon", mono.Min, nil, later, later},
		{"it has sent", 0, nil, soon, soon}, {"it has a grant", mono.Min, []part{{0, limit.One, false}}, soon, soon},
	} {
		d := dividing(1, 1)
		d.lastUse, d.pool.parts = c.last, c.parts
		if got := d.far(d.now.Add(c.horizon)).Sub(d.now); got != c.want {
			t.Errorf("%s: it looks %v ahead, want %v", c.name, got, c.want)
		}
	}
}

// A turn moves towards the middle between the turns of the nodes before and after it: by a quarter of what one of
// them is nearer, and an eighth of a poll at most. Their turns repeat each poll. Nodes that are gone do not count.
func TestApart(t *testing.T) {
	const poll, took = 800 * time.Millisecond, 50 * time.Millisecond
	for _, c := range []struct {
		name   string
		others []time.Duration // their next turns, after this one's
		want   time.Duration
	}{
		{"alone", nil, 0},
		{"at the same instant", []time.Duration{0}, -100 * time.Millisecond}, // one of the two goes first
		{"just before it", []time.Duration{-1}, 100 * time.Millisecond},
		{"half a poll away", []time.Duration{poll / 2}, 0},
		{"40 ms after the middle", []time.Duration{poll/2 + 40*time.Millisecond}, 20 * time.Millisecond},
		{"40 ms before the middle", []time.Duration{poll/2 - 40*time.Millisecond}, -20 * time.Millisecond},
		{"in polls before", []time.Duration{poll/2 + 40*time.Millisecond - 3*poll}, 20 * time.Millisecond},
		{"in polls to come", []time.Duration{poll/2 + 40*time.Millisecond + 3*poll}, 20 * time.Millisecond},
		{"the nearest on each side", []time.Duration{-200 * time.Millisecond, -300 * time.Millisecond,
			280 * time.Millisecond, 320 * time.Millisecond}, 20 * time.Millisecond},
	} {
		d := dividing(1, 1)
		d.took, d.others = took, []Entry{{Until: d.now, Next: d.now.Add(poll + took)}} // the first is gone
		for _, after := range c.others {
			d.others = append(d.others, Entry{Until: d.now + 1, Next: d.now.Add(poll + took + after)})
		}
		if got := d.apart(poll); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A node's pool is to have what waits, and what comes until the next turn: by its rate lately, or by that since the
// last turn if it is higher. The time since counts as a poll at least, as a burst is no rate.
func TestDesired(t *testing.T) {
	const poll = 250 * time.Millisecond
	for _, c := range []struct {
		name    string
		change  func(n *Node)
		plain   int64
		yielded int64
	}{
		{"nothing was sent lately", func(n *Node) {}, 7, 0},
		{"the next asks", func(n *Node) { n.waiting, n.asks = 0, true }, 1, 0},
		{"nobody asks", func(n *Node) { n.waiting, n.asks = 0, false }, 0, 0},
		{"those who wait leave a part free", func(n *Node) { n.leaves = 0.1 }, 0, 7},
		{"it sends", func(n *Node) { n.lastUses[0], n.rates[0] = n.last, 10 }, 7 + 1 + 3, 0},
		{"it sent long ago", func(n *Node) { n.lastUses[0], n.rates[0] = n.last.Add(-n.config.TTL), 10 }, 7, 0},
		{"its turns take long", func(n *Node) { n.lastUses[0], n.rates[0], n.took = n.last, 10, poll }, 7 + 1 + 8, 0},
		{"it sends what leaves a part free", func(n *Node) { n.lastUses[1], n.rates[1] = n.last, 10 }, 7, 1 + 3},
		{"it sends more of late", func(n *Node) {
			n.lastUses[0], n.rates[0], n.used[0], n.elapsed = n.last, 10, 20, 2*poll // 40 a second
		}, 7 + 1 + 10, 0},
		{"it sends less of late", func(n *Node) {
			n.lastUses[0], n.rates[0], n.used[0], n.elapsed = n.last, 10, 1, 2*poll
		}, 7 + 1 + 3, 0},
		{"a burst", func(n *Node) {
			n.lastUses[0], n.rates[0], n.used[0], n.elapsed = n.last, 10, 5, poll/10 // as 20 a second
		}, 7 + 1 + 5, 0},
		{"it was closed", func(n *Node) { n.Close() }, 0, 0},
		{"more than anybody sends", func(n *Node) { n.waiting = 1<<20 + 1 }, 1 << 20, 0},
	} {
		n := dividing(1, 1).Node
		n.lastUses, n.waiting, n.asks = [2]mono.Time{mono.Min, mono.Min}, 7, true
		c.change(n)
		if plain, yielded := n.desired(false), n.desired(true); plain != c.plain || yielded != c.yielded {
			t.Errorf("%s: %d and %d that leave a part free, want %d and %d", c.name, plain, yielded, c.plain, c.yielded)
		}
	}
}

// The time from one turn to the next is Poll. It is more where each turn is worth many requests, or where all nodes
// would keep the store busy for more than half of the time. It is a third of TTL at most, and half of it for very many
// nodes.
func TestPoll(t *testing.T) {
	const quick = 10 * time.Millisecond
	for _, c := range []struct {
		rate     float64
		heirs    int
		quickest time.Duration
		want     time.Duration
	}{
		{0, 1, 0, 250 * time.Millisecond}, {79.9, 2, quick, 250 * time.Millisecond}, {80, 2, quick, 350 * time.Millisecond},
		{0, 25, quick, 250 * time.Millisecond}, {0, 26, quick, 260 * time.Millisecond}, {80, 36, quick, 360 * time.Millisecond},
		{0, 67, quick, 2 * time.Second / 3}, {0, 100, quick, 2 * time.Second / 3}, {0, 101, quick, time.Second}, {0, 500, quick, time.Second},
	} {
		n := dividing(1, 1).Node
		n.rate, n.quickest = c.rate, c.quickest
		if got := n.poll(c.heirs); got != c.want {
			t.Errorf("%v a second, %d nodes, turns of %v: %v, want %v", c.rate, c.heirs, c.quickest, got, c.want)
		}
	}
}

// Grants that do not cover the head are kept if the rest can be had by the next turn, and are given back otherwise.
func TestUnstick(t *testing.T) {
	for _, c := range []struct {
		name string
		more time.Duration // that a turn takes
		head int64
		asks bool
		want int64 // of four grants
	}{
		{"the rest comes by the next turn", 0, 10, true, 4},
		{"just after it", -1, 10, true, 0},
		{"they cover the head", -1, 4, true, 4},
		{"nobody waits", -1, 10, false, 4},
	} {
		d := dividing(c.head, 1)
		if !c.asks {
			d.Line(0, limit.Cost{limit.Requests: c.head}, 0)
		}
		d.pool.add(part{d.now, limit.Cost{limit.Requests: 4}, false})
		d.held, d.kept = d.admit(mono.Min, limit.Cost{}), d.admit(mono.Min, d.pool.sum())
		used := d.admit(mono.Min, limit.Cost{limit.Requests: 95})
		d.limiter.Settle(d.now, used, &limit.Outcome{ArrivedAgo: 700 * time.Millisecond})
		free := d.limiter.Ready(d.now, limit.Cost{limit.Requests: 6}).Sub(d.now)
		d.took = (free-250*time.Millisecond+1)/2 + c.more
		if d.unstick(); d.pool.sum()[limit.Requests] != c.want {
			t.Errorf("%s: %v are left, want %d", c.name, d.pool.sum(), c.want)
		}
	}
}

// A node is granted as many as it may hold, beside what it holds: its head counts as that, and all others as the mean.
// A newcomer has half of what is left for newcomers. Units that no request uses, or that are not limited, bound
// nothing.
func TestRoom(t *testing.T) {
	const want = 50
	costs := func(requests, tokens int64) limit.Cost {
		return limit.Cost{limit.Requests: requests, limit.Tokens: tokens}
	}
	for _, c := range []struct {
		name       string
		most, has  limit.Cost
		head, mean limit.Cost
		steady     bool
		others     []Entry
		wants      int64
	}{
		{name: "as many as it may hold", most: costs(10, 0), head: costs(1, 0), mean: costs(1, 0), wants: 10},
		{name: "beside those that it has", most: costs(10, 0), has: costs(4, 0), head: costs(1, 0), mean: costs(1, 0), wants: 6},
		{name: "a dear head", most: costs(10, 0), head: costs(5, 0), mean: costs(2, 0), wants: 3},
		{name: "a head that is just as much", most: costs(10, 0), head: costs(10, 0), mean: costs(2, 0), wants: 1},
		{name: "a head that is too dear", most: costs(10, 0), head: costs(11, 0), mean: costs(1, 0), wants: 0},
		{name: "of both units the one that bounds more", most: costs(10, 90), head: costs(1, 30), mean: costs(1, 30), wants: 3},
		{name: "tokens that nobody uses", most: costs(10, 0), has: costs(0, 5), head: costs(1, 0), mean: costs(1, 0), wants: 10},
		{name: "a head without tokens", most: costs(10, 90), has: costs(0, 60), head: costs(1, 0), mean: costs(1, 30), wants: 2},
		{name: "tokens of the head alone", most: costs(10, 90), has: costs(0, 61), head: costs(1, 30), mean: costs(1, 0), wants: 0},
		{name: "a clock that nobody sets", steady: true, head: costs(1, 0), mean: costs(1, 0), wants: want},
		{name: "a newcomer", head: costs(1, 0), mean: costs(1, 0), wants: 2},
		{name: "a second one", others: []Entry{{Open: costs(2, 0)}}, head: costs(1, 0), mean: costs(1, 0), wants: 1},
		{name: "others that are seen", others: []Entry{{Open: costs(2, 0), Most: costs(2, 0)}}, head: costs(1, 0), mean: costs(1, 0), wants: 2},
	} {
		d := dividing(1, 1)
		d.Line(1, c.head, 0)
		d.costs, d.keeps = [len(limit.Cost{})]float64{}, c.has
		for u, n := range c.mean {
			d.costs[u] = float64(n)
		}
		d.whole, d.steady, d.mine.Most, d.others = costs(100, 3000), c.steady, c.most, c.others
		if got := d.room(want); got != c.wants {
			t.Errorf("%s: %d, want %d", c.name, got, c.wants)
		}
	}
}

// A node wants what its grants do not cover, and one more if they do not cover its head. Costs of nothing cover
// nothing.
func TestWants(t *testing.T) {
	for _, c := range []struct {
		name          string
		waiting       int
		head, mean    int64
		pool          int64
		stock, wanted int64
	}{
		{"nothing is granted", 5, 1, 1, 0, 0, 5}, {"some is", 5, 1, 1, 3, 3, 2}, {"enough is", 5, 1, 1, 5, 5, 0}, {"too much is", 5, 1, 1, 9, 9, 0},
		{"enough but for the head", 2, 10, 1, 9, 9, 1}, {"and for the head", 2, 10, 1, 10, 10, 0}, {"half of a request", 1, 4, 4, 6, 1, 0},
		{"costs of nothing", 2, 0, 0, 9, 0, 2},
	} {
		d := dividing(c.head, c.mean)
		d.Line(c.waiting, limit.Cost{limit.Requests: c.head}, 0)
		d.lastUses = [2]mono.Time{mono.Min, mono.Min}
		d.pool.add(part{d.now, limit.Cost{limit.Requests: c.pool}, false})
		if stock, wants := d.stock(false), d.wants(false); stock != c.stock || wants != c.wanted || d.wants(true) != 0 {
			t.Errorf("%s: of a stock of %d it wants %d more, and %d that yield; want %d and %d", c.name, stock, wants, d.wants(true), c.stock, c.wanted)
		}
	}
}

// In two turns a node sends twice its rate, for the time from one turn to the next and both calls of the store.
func TestTwoTurns(t *testing.T) {
	for _, c := range []struct {
		rate float64
		took time.Duration
		want int64
	}{{0, 0, 1}, {40, 0, 21}, {40, 125 * time.Millisecond, 41}, {2, 125 * time.Millisecond, 3}} {
		d := dividing(1, 1)
		d.rate, d.took = c.rate, c.took
		if got := d.twoTurns(2); got != c.want {
			t.Errorf("%v a second, and calls of %v: %d in two turns, want %d", c.rate, c.took, got, c.want)
		}
	}
}

// A node enters its weight and its least part as its configuration has them, and is served by them.
func TestWeightOfTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		weight, least float64
		want          int // of ten that go, beside a node of weight 1
	}{{1, 0, 5}, {3, 0, 7}, {0.25, 0, 2}, {0.25, 0.5, 5}, {1, 0.8, 8}} {
		d := dividing(10, 10)
		d.config.Weight, d.config.Least = c.weight, c.least
		d.others[0].Served = 1 // so that of equals this node is the first
		d.catchUp()
		if got := d.share(); got != c.want {
			t.Errorf("with a weight of %v and at least %v, %d fall to it, want %d", c.weight, c.least, got, c.want)
		}
	}
}

// A node that wants more after a while begins with the node that had least of those that want more: what
// was its share meanwhile is gone. Where nobody wants more, it begins with the one that had most. It loses
// nothing of what it had, and nothing where it wanted more all the time.
func TestCatchUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		mine   uint64
		wanted bool
		others []Entry
		want   uint64
	}{
		{"those that want more", 1, false, []Entry{{Served: 7, Want: 1}, {Served: 5, Want: 1}, {Served: 3}}, 5},
		{"nobody wants more", 1, false, []Entry{{Served: 3}, {Served: 7}, {Served: 5}}, 7},
		{"it had more", 9, false, []Entry{{Served: 7, Want: 1}, {Served: 5, Want: 1}}, 9},
		{"it wanted more all the time", 1, true, []Entry{{Served: 7, Want: 1}, {Served: 5, Want: 1}}, 1},
		{"alone", 1, false, nil, 1},
	} {
		d := dividing(1, 1)
		d.mine.Served, d.wanted, d.others = c.mine, c.wanted, c.others
		if d.catchUp(); d.mine.Served != c.want {
			t.Errorf("%s: it begins at %d, want %d", c.name, d.mine.Served, c.want)
		}
	}
}

// A node's mean cost follows its requests, by a sixteenth of what each differs. Its deviation does, too.
func TestMeanFollowsTheCosts(t *testing.T) {
	var n Node
	n.reset()
	n.Line(1, limit.Cost{limit.Requests: 7}, 0)
	for i, c := range []struct{ cost, mean, large int64 }{
		{0, 7, 7}, // nothing was sent: the head
		{16, 16, 16},
		{32, 17, 18}, // 16 more: by 1, and a deviation of 1
		{1, 16, 17},  // 16 less, and a deviation of 1 + 15/16
	} {
		if i > 0 {
			n.use(mono.Time(i), &limit.Cost{limit.Requests: c.cost}, false)
		}
		if mean, large := n.mean()[0], n.large()[0]; mean != c.mean || large != c.large {
			t.Errorf("after %d requests, the last of %d: a mean of %d and %d at most, want %d and %d", i, c.cost, mean, large, c.mean, c.large)
		}
	}
}

// A cost in a unit that is not limited takes nothing of what a node may hold: it is granted as many requests.
func TestUnitsThatAreNotLimited(t *testing.T) {
	granted := func(cost limit.Cost) (n int64) {
		s := &shelf{incarnation: "one"}
		a := asking("a", 100)
		for p := mono.Time(0); p < 10_000*ms; p += 250 * ms {
			a.Line(1000, cost, 0)
			n = of(s.turn(t, a, p), "a").Open[limit.Requests]
		}
		return n
	}
	want := granted(limit.One)
	if got := granted(limit.Cost{limit.Requests: 1, limit.Tokens: 5000}); got != want || want < 10 {
		t.Errorf("of requests with 5,000 tokens %d are granted, of others %d", got, want)
	}
}

// numbered is a limiter that notes whether two open requests have the same number.
type numbered struct {
	*limit.Rolling
	open  map[uint64]bool
	twice *int
}

func (l numbered) Admit(s *limit.Sent) {
	if l.open[s.Number] {
		*l.twice++
	}
	l.open[s.Number] = true
	l.Rolling.Admit(s)
}

func (l numbered) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	delete(l.open, s.Number)
	l.Rolling.Settle(now, s, o)
}

// A node is the driver of the limiter of its turn: each request in it has a number of its own.
func TestRequestsOfATurnDiffer(t *testing.T) {
	twice, s := 0, &shelf{incarnation: "one"}
	a := New(Config{ID: "a", New: func() limit.Limiter {
		return numbered{limit.MustRolling(100, time.Second), map[uint64]bool{}, &twice}
	}})
	for p := mono.Time(0); p < 10_000*ms; p += 250 * ms {
		a.Line(1000, limit.One, 0)
		s.turn(t, a, p)
	}
	if twice > 0 || a.holds() == (limit.Cost{}) {
		t.Errorf("%d requests have the number of an open one; it holds %v", twice, a.holds())
	}
}
