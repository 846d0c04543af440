package node

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// divide grants what falls to this node. All who want more take, who got least for its weight first; what falls to another it takes itself,
// in its own turn, by the same rule. Only what another cannot fetch in time goes to this one, and the other catches up later; not without bound,
// as where slots come in bursts that would be all of it.
//
// How much falls to it is found out first, and then it takes that from the earliest on: a limiter counts what was granted before against the
// earliest that is free, so to leave that to another and take what is free later would waste the time between.
func (t *pending) divide() {
	if t.book.From != "" {
		t.wantsNow, t.heirs = true, 1
		return
	}
	t.unstick()
	t.mine.Want = t.wants()
	t.wantsNow = t.mine.Want > 0
	t.catchUp()
	t.askMost()
	t.mine.Want = t.room(t.mine.Want)
	heirs := t.heirsOf()
	weigh(heirs)
	t.heirs = len(heirs)
	if t.now < t.book.Quiet || t.mine.Want == 0 {
		return
	}
	horizon := t.now.Add(t.poll(t.heirs) + 2*t.took)
	spared := t.spares(horizon)
	mine := t.falls(heirs, horizon, &spared)
	for i := range mine {
		cost := t.next(i == 0)
		at := t.limiter.Ready(t.now, cost)
		if at > horizon && (i > 0 || at > t.far(horizon)) {
			break
		}
		t.limiter.Admit(t.now, cost)
		t.mine.Want--
		t.mine.Served += share(&cost, &t.mine.Mean, t.mine.Counts)
		t.granted = append(t.granted, part{at, cost})
	}
}

// unstick gives back what is in the pool where that is not enough for the head, and the rest cannot be had before the next turn: somebody
// else may be able to use it.
func (t *pending) unstick() {
	if !t.asksNow() || len(t.pool.parts) == 0 {
		return
	}
	if _, ok := t.pool.covers(t.head); ok {
		return
	}
	if t.limiter.Ready(t.now, t.next(true)) > t.now.Add(t.poll(t.rivals+1)+2*t.took) {
		t.limiter.Settle(t.now, t.held, limit.Outcome{Result: limit.Unsent})
		t.pool.parts = nil
	}
}

// falls returns how many requests fall to this node until horizon. It changes nothing but the heirs' copies.
func (t *pending) falls(heirs []*Entry, horizon mono.Time, spared *spare) (mine int) {
	own := t.mine
	for i, e := range heirs {
		if e == &t.mine {
			heirs[i] = &own
		}
	}
	var leases []limit.Lease
	for most := t.most(t.heirs); own.Want > 0 && int64(mine) < most; {
		e := least(heirs)
		cost := e.Mean
		if e == &own {
			cost = t.next(mine == 0)
		}
		at := t.ready(cost, spared)
		if e != &own && at > horizon && mine == 0 && t.completes() { // nobody gains by what this one holds of its head
			e, cost = &own, t.next(true)
			at = t.ready(cost, spared)
		}
		if mine == 0 && t.starves() && t.completes() { // nor is it ever least while it waits for the rest of that
			e, cost = &own, t.next(true)
			at = t.limiter.Ready(t.now, cost)
		}
		if e != &own && at < limit.AfterSettle && at < e.Next && own.Served < e.Served+t.lead(e) { // it cannot fetch it in time
			e, cost = &own, t.next(mine == 0)
			at = t.ready(cost, spared)
		}
		if at > horizon && (mine > 0 || at > t.far(horizon)) {
			break
		}
		leases = append(leases, t.limiter.Admit(t.now, cost))
		e.Want--
		e.Served += share(&cost, &e.Mean, e.Counts)
		if e == &own {
			mine++
		}
	}
	for _, l := range leases {
		t.limiter.Settle(t.now, l, limit.Outcome{Result: limit.Unsent})
	}
	return mine
}

// far is until when who has sent nothing yet takes its first: others that have much to send look farther ahead than it does, so that what is
// free before its own horizon is theirs, and it would come back for nothing until they want less.
func (t *pending) far(horizon mono.Time) mono.Time {
	if t.lastUse > mono.Min || len(t.pool.parts) > 0 {
		return horizon
	}
	return max(horizon, t.now.Add(t.config.TTL/2))
}

// lead is by how much this node may be before another in virtual time and still take what that one cannot fetch in time: four turns' worth of
// this one's, and four requests where that is less. Without it whoever comes took whatever is free just then, whatever its weight.
func (t *pending) lead(e *Entry) uint64 {
	return uint64(2*max(t.twoTurns(t.heirs), 2)) * 1e6 / max(e.Counts, 1)
}

// starves tells whether the node has sent nothing for some time.
func (t *pending) starves() bool { return t.last.Sub(t.lastUse) > t.config.TTL }

// completes tells whether the pool has a part of what the head needs, and not all.
func (t *pending) completes() bool {
	if !t.asksNow() {
		return false
	}
	lack, all := t.head, t.pool.sum()
	minus(&lack, &all)
	return lack != t.head && lack != (limit.Cost{})
}

// share is what a cost adds to a virtual time: it is 1 for the mean cost, in thousandths, and of a unit of weight.
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

// heirsOf returns who takes, with this node. Those are copies, but for its own.
func (t *pending) heirsOf() (all []*Entry) {
	if t.mine.Want > 0 {
		all = append(all, &t.mine)
	}
	for i := range t.others {
		if e := t.others[i]; e.Want > 0 && e.Until > t.now && e.Mean != (limit.Cost{}) {
			all = append(all, &e)
		}
	}
	return all
}

// leastMost is how much of the whole least parts may be together, in thousandths: if they are more, each is less. So something is left for those
// who have none.
const leastMost = 950

// weigh sets what each heir's weight counts, so that none has less than its least part. Those whose weight is too small for that have just the
// least, and the others have the rest by their weights.
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

// least returns the heir with the least virtual time that wants more.
func least(heirs []*Entry) (next *Entry) {
	for _, e := range heirs {
		if e.Want > 0 && (next == nil || e.Served < next.Served) {
			next = e
		}
	}
	return next
}

// catchUp has a node that did not want anything for a while begin with the others: what it did not take then is gone.
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

// next is what the node takes next: first what its head lacks, to the unit, then its mean.
func (t *pending) next(first bool) limit.Cost {
	if first && t.asksNow() {
		lack, all := t.head, t.pool.sum()
		minus(&lack, &all)
		if lack != (limit.Cost{}) {
			return lack
		}
	}
	return t.mean()
}

// demand is what a node's driver would send.
type demand struct {
	head    limit.Cost
	asks    bool
	waiting int
	wanted  bool // at its last turn it wanted more
	// wantedFrom is the turn from which on it did at each.
	wantedFrom mono.Time
}

func (d *demand) asksNow() bool { return d.asks || d.waiting > 0 }

// pace says how fast a node goes, and how quick turns are.
type pace struct {
	used     float64 // requests since the last turn
	rate     float64 // of them, in a second
	costs    [len(limit.Cost{})]float64
	spread   [len(limit.Cost{})]float64 // the mean deviation of costs
	any      bool
	lastUse  mono.Time
	elapsed  time.Duration // from the turn before to this one
	took     time.Duration // a turn takes so long
	quickest time.Duration
	shift    time.Duration // of the next turn
	rivals   int           // others that want more
	failures int
	waits    int // a newcomer waits for the time, so many turns
	grain    time.Duration
	trip     time.Duration // of a request, until its answer
}

func (s *pace) reset() { *s = pace{lastUse: mono.Min, grain: 1} }

func (s *pace) use(p mono.Time, c *limit.Cost) {
	s.used++
	s.lastUse = p
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

// put notes that a turn was put which took so long.
func (s *pace) put(took, shift time.Duration, rivals int) {
	if s.took == 0 {
		s.took, s.quickest = took, took
	}
	s.took += (took - s.took) / 4
	s.quickest = min(took, s.quickest+s.quickest/64+1)
	if s.elapsed > 0 {
		s.rate += 0.5 * (s.used/s.elapsed.Seconds() - s.rate)
	}
	s.used, s.failures, s.waits, s.shift = 0, 0, 0, shift
	s.rivals = max(rivals, 0)
}

func (s *pace) failed() { s.failures, s.waits = s.failures+1, 0 }

// mean is what a request costs.
func (n *Node) mean() (c limit.Cost) {
	if !n.any {
		return n.head
	}
	for u := range c {
		c[u] = int64(math.Ceil(n.costs[u] - 1e-9))
	}
	return c
}

// large is what most requests cost at most.
func (n *Node) large() limit.Cost {
	c := n.mean()
	for u := range c {
		c[u] += int64(n.spread[u])
	}
	return c
}

// poll is the time from one turn to the next, where so many want more: all of them together leave the store half of the time idle. It is a third of
// TTL at most, as what is told late counts for longer in short windows and small buckets, and half of it where so many would be busy all the time.
func (n *Node) poll(heirs int) time.Duration {
	poll := n.config.Poll
	if n.rate*poll.Seconds() >= 20 { // two statements a turn should be worth 40 permits
		poll += poll * 2 / 5
	}
	busy, most := time.Duration(heirs)*n.quickest, n.config.TTL/3
	if busy > n.config.TTL/2 {
		most = n.config.TTL / 2
	}
	return min(max(poll, busy), most)
}

// apart is by how much this node's next turn should be earlier or later than a poll from now, so that it is midway between the turns of who
// comes before it and who comes after, and none loses a race: half the way there each time (Degesys et al., DESYNC, 2007).
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

// again is the time from a turn that failed to the next. Grants hold for TTL, and a store that crashed may be there again within that: so it is short
// at first, as nobody has anything until all are back (gather), and longer only then.
func (n *Node) again() time.Duration {
	poll := n.config.Poll
	soon := min(poll, n.config.TTL/16)
	if over := n.failures - int(n.config.TTL/soon); over > 0 {
		return min(poll<<min(over, 3), max(poll, time.Second))
	}
	return soon
}

// lately tells whether something was sent a short while ago.
func (n *Node) lately(p mono.Time) bool {
	return n.lastUse > mono.Min && p.Sub(n.lastUse) < n.config.TTL
}

// desired is how many requests the node would have in its pool: those that wait, and those that will come until the next turn.
func (n *Node) desired() int64 {
	d := int64(n.waiting)
	if n.closed {
		return 0
	}
	if n.asks {
		d = max(d, 1)
	}
	if n.lately(n.last) {
		rate := n.rate
		if n.elapsed > 0 {
			rate = max(rate, n.used/max(n.elapsed, n.config.Poll).Seconds())
		}
		d += 1 + int64(math.Ceil(rate*(n.poll(n.rivals+1)+2*n.took).Seconds()))
	}
	return min(d, 1<<20)
}

// stock is how many requests of mean cost the pool is good for.
func (n *Node) stock() int64 {
	all, mean := n.pool.sum(), n.mean()
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

// wants is how many requests more the node would take.
func (t *pending) wants() int64 {
	want := max(t.desired()-t.stock(), 0)
	if want == 0 && t.asksNow() {
		if _, ok := t.pool.covers(t.head); !ok {
			want = 1
		}
	}
	return want
}

// trimPool gives back what is more than desired, or has nothing to go with it: tokens without a request.
func (t *pending) trimPool() {
	most, n := t.mean(), min(t.desired(), t.stock()+1)
	for u := range most {
		most[u] *= n
		if t.asksNow() {
			most[u] += t.head[u]
		}
	}
	t.pool.trim(most)
}

// aTurnEach is what all nodes take together at least when each has had a turn: a rate is found by some seconds, and where windows are longer all
// would begin slowly in each.
const aTurnEach = 64

// most is how much a node takes in a turn at most where others want something, too.
func (t *pending) most(heirs int) int64 {
	if len(t.others) == 0 {
		return 1 << 20
	}
	return max(8, aTurnEach/int64(len(t.others)+1), t.twoTurns(heirs))
}

// twoTurns is what the node sends from one turn to the next but one.
func (t *pending) twoTurns(heirs int) int64 {
	return int64(2*t.rate*(t.poll(heirs)+2*t.took).Seconds()) + 1
}

// A newcomer waits for another's turn to know the time. Beside eight that are busy one comes each thirtieth of a second; where hardly any comes,
// more than a look each tenth would be wasted.
const (
	waitFirst = 25 * time.Millisecond
	waitMost  = 100 * time.Millisecond
)

// Next returns when the next turn is due; limit.Never: not before there is demand.
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
	// From the try that was put on, and not from the turn's beginning: who was quicker has that instant, and would be quicker the next time.
	soon := n.put.Add(n.poll(n.rivals+1) + n.shift)
	if n.gathers() { // it is over any moment, and nobody has anything
		soon = n.put.Add(n.poll(n.rivals+1) / 4)
	}
	if quiet := n.view.Quiet.For; quiet > 0 && !n.closed { // it is only to be there, for others to see
		soon = max(soon, min(n.put.Add(quiet+n.took), n.began.Add(n.config.TTL/2)))
	}
	switch {
	case len(n.changes) > 0, n.asksNow() && n.stock() < int64(max(n.waiting, 1)):
		return soon
	case n.rivals > 0 && len(n.answers) > 0:
		return soon
	case n.lately(n.last) && n.stock() < n.desired()/2:
		return soon
	}
	return n.began.Add(n.config.TTL / 2)
}
