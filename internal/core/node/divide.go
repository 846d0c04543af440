package node

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// divide grants this node's share. All nodes that want more take, those first that got least for
// their weight. Another node takes its share itself, in its own turn, by the same rule. A grant
// that another node cannot fetch in time goes to this one, and the other node catches up later.
// That has a bound, as otherwise all grants could go that way where slots come in bursts.
//
// divide finds the size of the share first. Then it takes that from the earliest slots on. A
// limiter counts earlier grants against the earliest free slots. So a later slot for this node
// would waste the time between.
//
// Nodes whose requests leave a part free take after the others: see left_free.go.
func (t *pending) divide() {
	if t.book.From != 0 {
		t.wantsNow, t.heirs = true, 1
		return
	}
	if t.places != nil {
		t.dividePlaces()
		return
	}
	t.unstick()
	plain, yielding := t.wants(false), t.wants(true)
	t.mine.Want = plain + yielding
	t.wantsNow = t.mine.Want > 0
	t.catchUp()
	t.askMost()
	t.mine.Want = t.room(t.mine.Want)
	t.mine.Yielding, t.mine.Leaves = max(t.mine.Want-plain, 0), 0
	if yielding > 0 {
		t.mine.Leaves = thousandths(t.yielded)
	}
	heirs := t.heirsOf(all)
	weigh(heirs)
	t.heirs = len(heirs)
	if t.now < t.book.Quiet || t.mine.Want == 0 {
		return
	}
	horizon := t.now.Add(t.poll(t.heirs) + 2*t.took)
	spared := t.spares(horizon)
	if yields(heirs) {
		t.divideYielding(horizon, &spared)
		return
	}
	t.take(t.falls(heirs, horizon, &spared, false), horizon, false)
}

// take grants so many requests to this node, until horizon. yields means that they leave something free.
func (t *pending) take(mine int, horizon mono.Time, yields bool) {
	for i := range mine {
		cost := t.next(i == 0)
		at := t.readyOf(&t.mine, cost, yields)
		if at > horizon && (i > 0 || at > t.far(horizon)) {
			break
		}
		t.admit(t.now, cost)
		if t.mine.Want--; t.mine.Want < t.mine.Yielding {
			t.mine.Yielding = t.mine.Want
		}
		t.mine.Served += share(&cost, &t.mine.Mean, t.mine.Counts)
		t.granted = append(t.granted, part{at, cost, yields})
	}
}

// unstick gives grants back that do not cover the head, if the rest cannot be had before the next
// turn. Another node may be able to use them.
func (t *pending) unstick() {
	if !t.asksNow() || len(t.pool.parts) == 0 {
		return
	}
	if _, ok := t.pool.covers(t.head, t.leaves > 0); ok {
		return
	}
	if t.limiter.Ready(t.now, t.next(true)) > t.now.Add(t.poll(t.rivals+1)+2*t.took) {
		t.giveBack()
	}
}

// falls returns the number of requests in this node's share until horizon. It changes only the
// heirs' copies.
func (t *pending) falls(heirs []*Entry, horizon mono.Time, spared *spare, yields bool) (mine int) {
	own := t.mine
	for i, e := range heirs {
		if e == &t.mine {
			heirs[i] = &own
		}
	}
	var sent []*limit.Sent
	lead := t.lead(heirs)
	for most := t.most(t.heirs); own.Want > 0 && int64(mine) < most; {
		e := least(heirs)
		cost := e.Mean
		if e == &own {
			cost = t.next(mine == 0)
		}
		at := t.ready(e, cost, spared, yields)
		// Nobody gains by grants held for an incomplete head.
		if e != &own && at > horizon && mine == 0 && t.completes() {
			e, cost = &own, t.next(true)
			at = t.ready(e, cost, spared, yields)
		}
		// It is never the least while it waits for the rest of its head.
		if mine == 0 && t.starves() && t.completes() {
			e, cost = &own, t.next(true)
			at = t.readyOf(e, cost, yields)
		}
		// The other node cannot fetch it in time.
		if e != &own && at < limit.AfterSettle && at < e.Next && own.Served < e.Served+lead/max(e.Counts, 1) {
			e, cost = &own, t.next(mine == 0)
			at = t.ready(e, cost, spared, yields)
		}
		if at > horizon && (mine > 0 || at > t.far(horizon)) {
			break
		}
		sent = append(sent, t.admit(t.now, cost))
		e.Want--
		e.Served += share(&cost, &e.Mean, e.Counts)
		if e == &own {
			mine++
		}
	}
	unsent := limit.Outcome{Result: limit.Unsent}
	for _, s := range sent {
		t.limiter.Settle(t.now, s, &unsent)
	}
	return mine
}

// far returns the horizon of a node that has sent nothing yet, for its first grant. Others with
// much demand look farther ahead than it does, and take all that is free before its own horizon. So
// it would come back for nothing until they want less.
func (t *pending) far(horizon mono.Time) mono.Time {
	if t.lastUse > mono.Min || len(t.pool.parts) > 0 {
		return horizon
	}
	return max(horizon, t.now.Add(t.config.TTL/2))
}

// lead is how far this node may be before another of weight 1 in virtual time and still take a grant that
// the other cannot fetch in time. It is four turns' worth of this node's requests, and four requests
// where that is less. Without it the next node to come would take all that is free, whatever its
// weight. In a burst, a turn's worth counts as no more than the node's part of what the limit allows in
// the time between two turns. Otherwise one node would take most of a long window's burst, and the others
// could catch up only in the next window.
func (t *pending) lead(heirs []*Entry) uint64 {
	rate, counts := t.even(), 0.0
	for _, e := range heirs {
		counts += float64(e.Counts)
	}
	rate = min(t.rate, rate*float64(t.mine.Counts)/max(counts, 1))
	return uint64(2*max(int64(2*rate*(t.poll(t.heirs)+2*t.took).Seconds())+1, 2)) * 1e6
}

// even returns how many requests of mean cost the limit allows in a second, in the long run.
func (t *pending) even() float64 {
	mean, rate := t.mean(), math.Inf(1)
	for _, u := range limit.AppendUsage(nil, t.limiter, t.now) {
		if u.PerWindow > 0 && u.Window > 0 && mean[u.Unit] > 0 {
			rate = min(rate, float64(u.PerWindow)/u.Window.Seconds()/float64(mean[u.Unit]))
		}
	}
	return rate
}

// starves reports whether the node has sent nothing for some time.
func (t *pending) starves() bool { return t.last.Sub(t.lastUse) > t.config.TTL }

// completes reports whether the pool has a part of the head's cost, and not all of it.
func (t *pending) completes() bool {
	if !t.asksNow() {
		return false
	}
	lack, all := t.head, t.usable()
	minus(&lack, &all)
	return lack != t.head && lack != (limit.Cost{})
}

// share returns a cost in virtual time: 1 for the mean cost, in thousandths, divided by the weight
// in thousandths.
func share(cost, mean *limit.Cost, weight uint64) uint64 {
	part := 0.0
	for u, n := range cost {
		if mean[u] > 0 {
			part = max(part, float64(n)/float64(mean[u]))
		}
	}
	if part == 0 {
		part = 1
	}
	return uint64(part * 1e6 / float64(max(weight, 1)))
}

// heirsOf returns the nodes that want more of a kind, including this one. They are copies with that Want,
// except for its own.
func (t *pending) heirsOf(k kind) (heirs []*Entry) {
	if t.mine.want(k) > 0 {
		heirs = append(heirs, &t.mine)
	}
	var copies []Entry // never grows, since heirs points into it
	for i := range t.others {
		if e := &t.others[i]; e.want(k) > 0 && e.Until > t.now && e.Mean != (limit.Cost{}) {
			if copies == nil {
				copies = make([]Entry, 0, len(t.others)-i)
			}
			copies = append(copies, *e)
			copies[len(copies)-1].Want = e.want(k)
			heirs = append(heirs, &copies[len(copies)-1])
		}
	}
	return heirs
}

// leastMost is the most of the whole for all least parts together, in thousandths. If they are
// more, each is smaller. So something is left for nodes without one.
const leastMost = 950

// weigh sets the effective weight of each heir, so that none has less than its least part. Heirs
// whose weight is too small for that get just the least part. The others divide the rest by their
// weights.
func weigh(heirs []*Entry) {
	whole, leasts := 0.0, 0.0
	for _, e := range heirs {
		e.Counts = e.Weight
		whole, leasts = whole+float64(e.Weight), leasts+float64(e.Least)/1000
	}
	if leasts == 0 {
		return
	}
	scale := min(1, leastMost/1000.0/leasts)
	part := func(e *Entry) float64 { return float64(e.Least) / 1000 * scale * whole }
	raised := make([]bool, len(heirs))
	for rest, weights, more := whole, whole, true; more; {
		more = false
		for i, e := range heirs {
			switch {
			case raised[i]:
			case part(e) > float64(e.Weight)*rest/weights:
				raised[i], more = true, true
				rest, weights = rest-part(e), weights-float64(e.Weight)
				e.Counts = uint64(part(e))
			default:
				e.Counts = uint64(float64(e.Weight) * rest / weights)
			}
		}
	}
}

// Parts returns the part of the limit that each node gets while the nodes want more than the limit allows. The part is 0
// for a node that wants no more, or is gone at now.
func Parts(nodes []Entry, now mono.Time) []float64 {
	parts, at, heirs, sum := make([]float64, len(nodes)), []int{}, []*Entry{}, 0.0
	for i, e := range nodes {
		if e.Want > 0 && e.Until > now {
			at, heirs = append(at, i), append(heirs, &e)
		}
	}
	weigh(heirs)
	for _, e := range heirs {
		sum += float64(e.Counts)
	}
	for n, i := range at {
		parts[i] = float64(heirs[n].Counts) / sum
	}
	return parts
}

// least returns the heir with the least virtual time that wants more.
func least(heirs []*Entry) (next *Entry) {
	for _, e := range heirs {
		if e.Want > 0 && (next == nil || e.Served < next.Served) {
			next = e
		}
	}
	return next
}

// catchUp makes a node without demand for a while begin with the others: it loses its unused share.
func (t *pending) catchUp() {
	e := &t.mine
	e.Weight, e.Least, e.Mean = uint64(t.config.Weight*1000), uint64(t.config.Least*1000), t.mean()
	e.Counts = e.Weight
	e.Served = max(e.Served, t.served)
	if t.wanted {
		return
	}
	least, most := uint64(math.MaxUint64), uint64(0)
	for i := range t.others {
		o := &t.others[i]
		if most = max(most, o.Served); o.Want > 0 {
			least = min(least, o.Served)
		}
	}
	e.Served = max(e.Served, min(least, most))
}

// next returns the next cost that the node takes: first the lack of its head, to the unit, then its
// mean.
func (t *pending) next(first bool) limit.Cost {
	if first && t.asksNow() {
		lack, all := t.head, t.usable()
		minus(&lack, &all)
		if lack != (limit.Cost{}) {
			return lack
		}
	}
	return t.mean()
}

// demand is the node's demand, from its driver.
type demand struct {
	head    limit.Cost
	asks    bool
	waiting int
	leaves  float64 // the part of each limit that all who wait leave free
	yielded float64 // the latest such part above 0
	wanted  bool    // it wanted more at its last turn
	// wantedFrom is the turn since which it wanted more at each.
	wantedFrom mono.Time
}

func (d *demand) asksNow() bool { return d.asks || d.waiting > 0 }

// pace is how fast a node sends, and how quick turns are.
type pace struct {
	used     [2]float64 // requests since the last turn; of index 1, those that leave something free
	rates    [2]float64 // requests in a second, as used
	rate     float64    // all requests in a second
	costs    [len(limit.Cost{})]float64
	spread   [len(limit.Cost{})]float64 // the mean deviation of costs
	any      bool
	lastUse  mono.Time
	lastUses [2]mono.Time  // as used
	elapsed  time.Duration // from the turn before to this one
	took     time.Duration // the time that a turn takes
	quickest time.Duration
	shift    time.Duration // of the next turn
	rivals   int           // other nodes that want more
	failures int
	waits    int // turns for which a newcomer has waited for the time
	grain    time.Duration
	trip     time.Duration // of a request, until its answer
}

func (s *pace) reset() {
	*s = pace{lastUse: mono.Min, lastUses: [2]mono.Time{mono.Min, mono.Min}, grain: 1}
}

func (s *pace) use(p mono.Time, c *limit.Cost, yields bool) {
	k := bit(yields)
	s.used[k]++
	s.lastUse, s.lastUses[k] = p, p
	for u, n := range c {
		if !s.any {
			s.costs[u] = float64(n)
		} else {
			s.spread[u] += (math.Abs(float64(n)-s.costs[u]) - s.spread[u]) / 16
			s.costs[u] += (float64(n) - s.costs[u]) / 16
		}
	}
	s.any = true
}

// put notes that a turn was put, and how long it took.
func (s *pace) put(took, shift time.Duration, rivals int) {
	if s.took == 0 {
		s.took, s.quickest = took, took
	}
	s.took += (took - s.took) / 4
	s.quickest = min(took, s.quickest+s.quickest/64+1)
	if s.elapsed > 0 {
		for k, used := range s.used {
			s.rates[k] += 0.5 * (used/s.elapsed.Seconds() - s.rates[k])
		}
		s.rate += 0.5 * ((s.used[0]+s.used[1])/s.elapsed.Seconds() - s.rate)
	}
	s.used, s.failures, s.waits, s.shift = [2]float64{}, 0, 0, shift
	s.rivals = max(rivals, 0)
}

func (s *pace) failed() { s.failures, s.waits = s.failures+1, 0 }

// mean returns the mean cost of a request.
func (n *Node) mean() (c limit.Cost) {
	if !n.any {
		return n.head
	}
	for u := range c {
		c[u] = int64(math.Ceil(n.costs[u] - 1e-9))
	}
	return c
}

// large returns a cost that most requests do not exceed.
func (n *Node) large() limit.Cost {
	c := n.mean()
	for u := range c {
		c[u] += int64(n.spread[u])
	}
	return c
}

// poll returns the time from one turn to the next, with so many nodes that want more. All of them
// together leave the store idle for half of the time. It is a third of TTL at most, since late
// reports count for longer in short windows and small buckets. It is half of TTL at most where so
// many nodes would be busy all the time.
func (n *Node) poll(heirs int) time.Duration {
	poll := n.config.Poll
	if n.rate*poll.Seconds() >= 20 { // a turn of two statements should be worth 40 permits
		poll += poll * 2 / 5
	}
	busy, most := time.Duration(heirs)*n.quickest, n.config.TTL/3
	if busy > n.config.TTL/2 {
		most = n.config.TTL / 2
	}
	return min(max(poll, busy), most)
}

// apart returns by how much the next turn should be earlier or later than a poll from now. It moves
// the turn towards the middle between the turns of the nodes before and after it, half the way each
// time. So none loses a race (Degesys et al., DESYNC, 2007).
func (t *pending) apart(poll time.Duration) time.Duration {
	before, after := poll, poll
	for i := range t.others {
		if e := &t.others[i]; e.Until > t.now {
			d := e.Next.Sub(t.now.Add(poll+t.took)) % poll
			if d < 0 {
				d += poll
			}
			before, after = min(before, poll-d), min(after, d)
		}
	}
	return min(max((after-before)/4, -poll/8), poll/8)
}

// again returns the time from a turn that failed to the next. Grants hold for TTL, and a store that
// crashed may be back within that. So the time is short at first, as nobody has grants until all
// are back (gather). Only later is it longer.
func (n *Node) again() time.Duration {
	poll := n.config.Poll
	soon := min(poll, n.config.TTL/16)
	if over := n.failures - int(n.config.TTL/soon); over > 0 {
		return min(poll<<min(over, 3), max(poll, time.Second))
	}
	return soon
}

// lately reports whether a request of a kind was sent a short while ago.
func (n *Node) lately(p mono.Time, yields bool) bool {
	last := n.lastUses[bit(yields)]
	return last > mono.Min && p.Sub(last) < n.config.TTL
}

// desired returns how many requests of a kind the pool should have: those that wait, and those that will
// come until the next turn.
func (n *Node) desired(yields bool) (d int64) {
	if n.closed {
		return 0
	}
	if n.leaves > 0 == yields {
		d = int64(n.waiting)
		if n.asks {
			d = max(d, 1)
		}
	}
	if n.lately(n.last, yields) {
		rate := n.rates[bit(yields)]
		if n.elapsed > 0 {
			rate = max(rate, n.used[bit(yields)]/max(n.elapsed, n.config.Poll).Seconds())
		}
		d += 1 + int64(math.Ceil(rate*(n.poll(n.rivals+1)+2*n.took).Seconds()))
	}
	return min(d, 1<<20)
}

// stock returns how many requests of mean cost the grants of a kind cover.
func (n *Node) stock(yields bool) int64 {
	all, mean := n.pool.kind(yields), n.mean()
	least := int64(math.MaxInt64)
	for u, c := range mean {
		if c > 0 {
			least = min(least, all[u]/c)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// wants returns how many more requests of a kind the node would take.
func (t *pending) wants(yields bool) int64 {
	want := max(t.desired(yields)-t.stock(yields), 0)
	if want == 0 && t.asksNow() && t.leaves > 0 == yields {
		if _, ok := t.pool.covers(t.head, yields); !ok {
			want = 1
		}
	}
	return want
}

// trimPool gives back grants beyond the desired number, and tokens without a request for them.
func (t *pending) trimPool() {
	if t.places != nil { // dividePlaces does it
		return
	}
	for _, yields := range []bool{false, true} {
		most, n := t.mean(), min(t.desired(yields), t.stock(yields)+1)
		for u := range most {
			most[u] *= n
			if t.asksNow() && t.leaves > 0 == yields {
				most[u] += t.head[u]
			}
		}
		t.pool.trim(most, yields)
	}
}

// aTurnEach is the least that all nodes take together when each has had a turn. A rate takes some
// seconds to find. In longer windows all would otherwise begin slowly in each.
const aTurnEach = 64

// most returns the most that a node takes in a turn where others want more, too.
func (t *pending) most(heirs int) int64 {
	all, n := int64(1<<20), int64(len(t.others)+1)
	if t.last.Sub(t.since) < t.config.TTL && t.long() {
		all = max(int64(t.even()*limit.Span(t.limiter).Seconds())/firstTurns, aTurnEach)
	}
	if n == 1 {
		return all
	}
	return max(8, aTurnEach/n, min(t.twoTurns(heirs), all/n))
}

// A process in its first TTL takes a long window's requests in this many turns, and not all at once. Processes
// that start together otherwise find that the first of them has taken the whole window. In shorter windows
// the others have their part soon, and the turns would cost more.
const firstTurns = 8

func (t *pending) long() bool { return limit.Span(t.limiter) >= 15*t.config.TTL }

// twoTurns returns the number of requests that the node sends in two turns.
func (t *pending) twoTurns(heirs int) int64 {
	return int64(2*t.rate*(t.poll(heirs)+2*t.took).Seconds()) + 1
}

// A newcomer waits for another node's turn to know the time. Beside eight busy nodes a turn comes
// each thirtieth of a second. Where hardly any comes, more than one look each tenth would be
// wasted.
const (
	waitFirst = 25 * time.Millisecond
	waitMost  = 100 * time.Millisecond
)

// Next returns when the next turn is due. limit.Never: not before there is demand.
func (n *Node) Next() mono.Time {
	holds := n.holds()
	any := holds != (limit.Cost{})
	switch {
	case !any && !n.in && !n.asksNow() && len(n.changes) == 0:
		return limit.Never
	case n.began == mono.Min:
		return n.last
	case n.waits > 0:
		return n.began.Add(min(n.config.Poll, waitMost, waitFirst<<min(n.waits-1, 8)))
	case n.failures > 0:
		return n.began.Add(n.again())
	}
	// The time counts from the try that was put, and not from the turn's beginning. Otherwise the
	// quicker node of two would keep that instant, and be quicker the next time.
	soon := n.put.Add(n.poll(n.rivals+1) + n.shift)
	if n.gathers() || n.places != nil && n.hastes() { // the gathering is over any moment, and nobody has grants
		soon = n.put.Add(n.poll(n.rivals+1) / 4)
	}
	if quiet := n.view.Quiet.For; quiet > 0 && !n.closed { // only to be there, for others to see
		soon = max(soon, min(n.put.Add(quiet+n.took), n.began.Add(n.config.TTL/2)))
	}
	switch {
	case n.places != nil && !n.hurries() && len(n.changes) == 0:
	case n.places != nil:
		return soon
	case len(n.changes) > 0, n.asksNow() && n.stock(n.leaves > 0) < int64(max(n.waiting, 1)):
		return soon
	case n.rivals > 0 && len(n.answers) > 0:
		return soon
	case n.lowOf(false), n.lowOf(true):
		return soon
	}
	return n.began.Add(n.config.TTL / 2)
}
