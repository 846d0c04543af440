package scheduler

import (
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Try admits cost now or not at all, and makes no Ticket. It goes if at <= now. Otherwise at is
// when both it and the tickets before it in the lane could go, as far as is known. That is an
// instant, limit.AfterSettle or limit.Never. If least is nil it is cost.Least().
func (l *Scheduler) Try(now mono.Time, a *Lane, cost, least *limit.Cost) (p Pass, at mono.Time) {
	now = l.Tick(now)
	if len(l.agenda.all) > 0 {
		l.serve(now)
	}
	if least == nil {
		least = cost
		if !sure(cost) {
			own := cost.Least()
			least = &own
		}
	}
	// Most often no other ticket is here, and the cost is all there is to ask about.
	if w := a.sole; w != nil && a.count == 0 && !a.reserves {
		// One limit is asked apart, as the code below and admit would: that saves a fifteenth of Gate.Wait.
		if m := w.limits[0]; least == cost && len(w.limits) == 1 && len(m.parked.all) == 0 && m.claims == nil &&
			!*m.silent && !w.fair {
			if at = max(now, m.Limiter.Ready(now, *cost)); at > now {
				return Pass{}, at
			}
			a.granted++
			kept := l.record(now, w, cost)
			m.Limiter.Admit(&kept.Sent)
			return Pass{w, kept.Number}, at
		}
		c, alone := *cost, true
		at = now
		for _, m := range w.limits {
			if alone = len(m.parked.all) == 0 && m.claims == nil; !alone {
				break
			}
			if !*m.silent {
				at = max(at, m.Limiter.Ready(now, c))
			}
		}
		switch {
		case alone && at > now:
			return Pass{}, at
		case alone:
			a.granted++
			return l.admit(now, w, cost, least), at
		}
	}
	l.seq++
	t := &l.asker
	t.Cost, t.Place, t.seq, t.Came, t.Deadline, t.Homes = *cost, mono.Max, l.seq, now, limit.Never, 0
	var w *Way
	w, at = l.choose(now, a, t)
	if a.count == 0 {
		l.empty(a)
	} else {
		_, turn := a.At()
		return Pass{}, max(at, min(turn, limit.AfterSettle))
	}
	if at > now {
		if a.own {
			at = a.soonest()
		}
		return Pass{}, at
	}
	a.granted++
	return l.admit(now, w, cost, least), at
}

// Enter makes t wait, unless it can go at once, or never can. The driver fills in Place, Deadline,
// Cost and Least before. Call Next after it, since the call may grant other tickets. Next returns t
// only if Enter returned Waiting.
func (l *Scheduler) Enter(now mono.Time, a *Lane, t *Ticket) State {
	now = l.Tick(now)
	if len(l.agenda.all) > 0 {
		l.serve(now)
	}
	l.seq++
	t.lane, t.seq, t.passed, t.stolen = a, l.seq, 0, 0
	if a.sole != nil && t.each() {
		t.Ask(a.sole.Cost(t))
	}
	n, ahead := a.ahead(t.Place)
	t.Ahead = n
	first := a.count == 0 || t.before(a.First())
	var w *Way
	at := limit.AfterSettle
	// Behind a ticket that costs as much only its place counts.
	if a.count == 0 || !within(&t.Cost, &a.ends[0].head.Cost) {
		w, at = l.choose(now, a, t)
	}
	switch {
	case at <= now && a.count == 0:
		a.granted++
		t.State = Granted
	case at == limit.Never && a.never(now, t):
		t.State = Never
	case t.Deadline < limit.AfterSettle && l.late(now, a, t, n, ahead):
		t.State = Late
	case !t.Again && l.full(a):
		t.State = Full
	default:
		t.State = Waiting
	}
	if t.State != Waiting {
		if a.count == 0 {
			l.empty(a)
		}
		if t.State == Granted {
			t.Pass = l.pass(now, w, t)
		}
		return t.State
	}
	l.waiting++
	if t.Metered {
		for u, n := range &t.Cost {
			t.Least[u] = max(min(t.Least[u], n, limit.MaxCost), 0)
		}
	}
	a.insert(t)
	a.tally(t, 1)
	switch {
	case first && a.count > 1:
		l.renew(a)
	case first:
		l.parkAll(a, t, at)
		l.watch(now, a)
	case a.count <= int(a.fill)+1:
		l.refill(a)
	}
	return Waiting
}

// full reports whether as many wait as may, in all lanes, in this one, or in its Class.
func (l *Scheduler) full(a *Lane) bool {
	return l.config.Size > 0 && l.waiting >= l.config.Size || a.config.Size > 0 && a.count >= a.config.Size ||
		a.share != nil && a.share.full()
}

// late reports whether t cannot go by its deadline, behind n tickets with the least use ahead.
func (l *Scheduler) late(now mono.Time, a *Lane, t *Ticket, n int, ahead *limit.Cost) bool {
	bound := l.soonest(now, a, t, n, ahead)
	if bound <= t.Deadline || bound == limit.AfterSettle {
		return false
	}
	t.At = bound
	return true
}

// soonest returns an instant before which t cannot go by any way, behind n tickets with the
// least use ahead. The instant of the first ticket is no such bound. An answer that its limit did
// not foresee may make room earlier. So may a ticket of another lane that moves on to wait at
// another limit.
func (l *Scheduler) soonest(now mono.Time, a *Lane, t *Ticket, n int, ahead *limit.Cost) mono.Time {
	at, k := limit.Never, n
	if a.fill > 0 && n > 0 {
		l.spreads.ahead = *ahead
		ahead = &l.spreads.ahead
		k = a.surelyBefore(n, ahead)
	}
	for _, w := range a.ways {
		at = min(at, l.bound(now, w, w.Cost(t), k, ahead))
	}
	if a.sole == nil && k > 0 {
		at = max(at, l.spread(now, a, t, k, ahead))
	}
	// Only the next Fill tickets may pass the first, and only until it was passed Fill times.
	h := a.ends[0].head
	if n == 0 || n < 2*int(a.fill) || !h.each() && within(&h.Cost, &t.Cost) {
		return at
	}
	turn := limit.Never
	for _, w := range a.ways {
		turn = min(turn, l.bound(now, w, w.Cost(h), 0, &noCost))
	}
	return max(at, turn)
}

// within reports whether a is no larger than b. Here and in more and less the units are written out: a
// loop over them takes three times as long, and each turn has several. TestCosts knows all units.
func within(a, b *limit.Cost) bool {
	return a[limit.Requests] <= b[limit.Requests] &&
		a[limit.Weight] <= b[limit.Weight] &&
		a[limit.Orders] <= b[limit.Orders] &&
		a[limit.Input] <= b[limit.Input] &&
		a[limit.Output] <= b[limit.Output] &&
		a[limit.Tokens] <= b[limit.Tokens] &&
		a[limit.Money] <= b[limit.Money] &&
		a[limit.Other] <= b[limit.Other]
}

// bound returns an instant before which cost cannot go by w, behind n tickets with the least use
// ahead. Requests in flight, too, count with their least use only.
func (l *Scheduler) bound(now mono.Time, w *Way, cost *limit.Cost, n int, ahead *limit.Cost) mono.Time {
	if w.lane.sole != nil {
		return notBefore(now, w.limits, cost, n, ahead)
	}
	at := notBefore(now, w.limits, cost, 0, &noCost) // the tickets before it may go other ways
	return max(at, notBefore(now, w.lane.common, cost, n, ahead))
}

var noCost limit.Cost

// Ask returns an instant before which cost, if it came now, could not go behind the waiting tickets
// of the lane, and their number. At limit.AfterSettle or limit.Never no such instant is known. It
// changes nothing.
func (l *Scheduler) Ask(now mono.Time, a *Lane, cost, least *limit.Cost) (at mono.Time, ahead int) {
	now = max(now, l.last)
	at = limit.Never
	c := *cost // passed on from a pointer it would be copied twice each time
	for _, w := range a.ways {
		t := now
		for _, m := range w.limits {
			t = max(t, m.Limiter.Ready(now, c))
		}
		at = min(at, t)
	}
	if _, turn := a.At(); turn >= limit.AfterSettle { // only an answer can change that
		at = max(at, limit.AfterSettle)
	}
	if at < limit.Never {
		l.asker.Cost = *cost
		// Although an answer decides, the line may be too long for any answer.
		if bound := l.soonest(now, a, &l.asker, a.count, &a.least); at < limit.AfterSettle || bound > now {
			at = bound
		}
	}
	return at, a.count
}

// Leave removes a waiting ticket. It is false if the ticket has its verdict.
func (l *Scheduler) Leave(now mono.Time, t *Ticket) bool {
	if t.State != Waiting {
		return false
	}
	l.Tick(now)
	a := t.lane
	l.end(t, None)
	l.refill(a)
	return true
}

// Touch notes a change of a limiter, or news of it. The scheduler asks again about the tickets that
// wait for it.
func (l *Scheduler) Touch(m *Limit) {
	l.changes++
	m.units = 0 // it may count others now
	l.news(m)
}

// news marks m, if a ticket waits for it.
func (l *Scheduler) news(m *Limit) {
	if len(m.parked.all) > 0 {
		l.wanted(m)
	}
}

func (l *Scheduler) wanted(m *Limit) {
	if m.barred > 0 {
		l.readmit(m)
	}
	l.mark(m)
}

// Review is Touch, and also refuses all tickets without hope: those whose cost no longer fits, or
// not by their deadline.
func (l *Scheduler) Review(now mono.Time, m *Limit) {
	now = l.Tick(now)
	l.Touch(m)
	// This refuses a first ticket without hope, so that it is not counted ahead of the others.
	l.serve(now)
	review := l.changes
	for _, w := range m.ways {
		if a := w.lane; a.reviewed != review {
			a.reviewed = review
			l.review(now, m, a)
			a.knock()
		}
	}
}

func (l *Scheduler) review(now mono.Time, m *Limit, a *Lane) {
	w, n := a.ways[0], 0
	ahead, waiting := limit.Cost{}, a.count
	t := a.ends[0].head
	if t != nil && a.sole != nil && w.at == m && m.parked.first() == w { // it has just been looked at
		t, n, ahead = t.next[0], 1, *t.uses()
	}
	for t != nil {
		next := t.next[0]
		switch {
		case a.never(now, t):
			l.refuse(t, Never)
		case a.sole != nil && t.Deadline < limit.AfterSettle && l.late(now, a, t, n, &ahead):
			l.refuse(t, Late)
		default:
			n++
			more(&ahead, t.uses())
		}
		t = next
	}
	if a.count < waiting {
		l.refill(a)
	}
}

// refill marks the limits of a lane in which other tickets may now pass the first.
func (l *Scheduler) refill(a *Lane) {
	if a.fill == 0 || a.count == 0 {
		return
	}
	for _, w := range a.ways {
		l.mark(w.at)
	}
}

// Tick notes the limits that time has made ready, and returns the present.
func (l *Scheduler) Tick(now mono.Time) mono.Time {
	now = max(l.last, now)
	l.last = now
	if l.wake <= now {
		l.awake()
	}
	return now
}

func (l *Scheduler) awake() {
	for l.wake <= l.last {
		m := l.timers.first()
		l.mark(m)
		l.rouse(m, limit.Never)
	}
}

// Wake returns the instant at which to call Next again, limit.Never if none is known.
func (l *Scheduler) Wake() mono.Time { return l.wake }

// Soonest returns the ticket that Wake is for: the first of those that are known to go then, or
// nil.
func (l *Scheduler) Soonest() *Ticket {
	if l.Wake() == limit.Never {
		return nil
	}
	return l.timers.first().parked.first().lane.ends[0].head
}

// Due returns what a driver looks at after every other call. pending reports whether there is anything
// for Next to do now. changes grows with anything that may have changed the result of Try. wake is
// Wake.
func (l *Scheduler) Due(now mono.Time) (pending bool, changes uint64, wake mono.Time) {
	return l.told != nil || len(l.agenda.all) > 0 || l.wake <= now, l.changes, l.wake
}

// Next returns the next ticket with a verdict, in the order of the verdicts, or nil. After nil no
// ticket waits that could go, unless an earlier one waits for one of its limits.
func (l *Scheduler) Next(now mono.Time) *Ticket {
	l.serve(l.Tick(now))
	t := l.told
	if t == nil {
		return nil
	}
	l.told = t.next[0]
	if l.told == nil {
		l.untold = nil
	}
	t.next[0] = nil
	return t
}

// record returns the record of a new pass. It has no spare.
func (l *Scheduler) record(now mono.Time, w *Way, cost *limit.Cost) *record {
	l.changes++
	kept := l.records.take()
	kept.Cost = *cost // apart from the others: it would be copied twice
	kept.At, kept.Leaves, kept.way, kept.skipped, kept.metered = now, w.lane.reserve, w, 0, false
	return kept
}

// admit lets a cost go by a way. least is cost itself if all of it is surely used.
func (l *Scheduler) admit(now mono.Time, w *Way, cost, least *limit.Cost) Pass {
	if w.lane.sole == nil {
		l.turn++
		w.used = l.turn + w.later()
		w.lane.ease(w)
	}
	kept := l.record(now, w, cost)
	if kept.metered = least != cost; kept.metered {
		for u, n := range cost {
			n = min(max(n, 0), limit.MaxCost)
			kept.spare[u] = n - min(max(least[u], 0), n)
		}
	}
	for k, m := range w.limits {
		if *m.silent {
			kept.skipped |= 1 << k
			m.unaware++
		} else {
			m.Limiter.Admit(&kept.Sent)
			if w.fair {
				w.advance(k, cost)
			}
		}
		if kept.metered {
			more(&m.spare, &kept.spare)
		}
	}
	return Pass{w, kept.Number}
}

// sure reports whether a request surely uses all of cost. It is false for units of which a request
// may use less, even where cost happens to be its Least. It takes a fraction of the time of Least.
func sure(cost *limit.Cost) bool {
	return cost[limit.Output]|cost[limit.Tokens]|cost[limit.Money]|cost[limit.Other] == 0
}

// more and less add c to a sum, and take it off.
func more(sum, c *limit.Cost) {
	sum[limit.Requests] += c[limit.Requests]
	sum[limit.Weight] += c[limit.Weight]
	sum[limit.Orders] += c[limit.Orders]
	sum[limit.Input] += c[limit.Input]
	sum[limit.Output] += c[limit.Output]
	sum[limit.Tokens] += c[limit.Tokens]
	sum[limit.Money] += c[limit.Money]
	sum[limit.Other] += c[limit.Other]
}

func less(sum, c *limit.Cost) {
	sum[limit.Requests] -= c[limit.Requests]
	sum[limit.Weight] -= c[limit.Weight]
	sum[limit.Orders] -= c[limit.Orders]
	sum[limit.Input] -= c[limit.Input]
	sum[limit.Output] -= c[limit.Output]
	sum[limit.Tokens] -= c[limit.Tokens]
	sum[limit.Money] -= c[limit.Money]
	sum[limit.Other] -= c[limit.Other]
}

// refuse gives a waiting ticket a verdict other than Granted.
func (l *Scheduler) refuse(t *Ticket, s State) {
	l.end(t, s)
	l.tell(t)
}

func (l *Scheduler) tell(t *Ticket) {
	if l.untold == nil {
		l.told = t
	} else {
		l.untold.next[0] = t
	}
	l.untold = t
}

// end takes t out of its lane. If it was the first, the ways wait for the next.
func (l *Scheduler) end(t *Ticket, s State) {
	a := t.lane
	first := a.ends[0].head == t
	a.remove(t)
	a.tally(t, -1)
	t.State = s
	l.waiting--
	if !first {
		return
	}
	l.changes++
	if a.claims > 0 {
		for _, w := range a.ways {
			l.disclaim(w)
		}
	}
	if a.count == 0 {
		l.empty(a)
		l.watch(l.last, a)
	} else {
		l.renew(a)
	}
}

// serve looks at all changed limits, in the order of their first tickets. So of two tickets that
// become ready at one instant, at different limits, the earlier goes first.
func (l *Scheduler) serve(now mono.Time) {
	for len(l.agenda.all) > 0 {
		m := l.agenda.first()
		if w := m.top(); w == nil || !l.look(now, m, w) && !(w.lane.classes && l.lookBeside(now, m, w)) {
			l.agenda.remove(&m.due)
		}
	}
}

// look asks about the first ticket that waits for m, and reports whether to look at the next as
// well.
func (l *Scheduler) look(now mono.Time, m *Limit, w *Way) (more bool) {
	a, t := w.lane, w.lane.ends[0].head
	l.changes++
	at, on := l.ask(now, w, t)
	switch {
	case at <= now:
		l.grant(now, w, t)
		return true
	case l.hopeless(now, w, t, at):
		return true
	case at == limit.Never && a.never(now, t):
		// The next ticket may cost the same, and no event would make the scheduler look at it
		// again.
		for a.count > 0 && a.never(now, a.ends[0].head) {
			l.refuse(a.ends[0].head, Never)
		}
		return true
	case on != m:
		if at == limit.Never {
			l.bar(w, t)
		} else if w.atDoor(m, on) {
			l.disclaim(w) // it has no right to room until it opens
		} else if t.stolen = min(t.stolen+1, 2*thefts); t.stolen == thefts {
			l.claim(w, t)
			// It waited for another lane's turn alone, and a claim goes before turns.
			if at, on = l.ask(now, w, t); at <= now {
				l.grant(now, w, t)
				return true
			}
		}
		l.unpark(w)
		l.park(w, on, at, t)
		l.watch(now, a)
		return true
	}
	w.ready, m.first = at, at
	if at == limit.Never && !w.barred {
		l.bar(w, t)
		l.rerank(w, t)
		return true
	}
	if a.fill == 0 {
		l.rouse(m, at)
		l.watch(now, a)
		return false
	}
	soon, filled := l.fill(now, w, t, at)
	if filled {
		if at, on = l.ask(now, w, t); at <= now || on != m {
			return true
		}
		w.ready, m.first = at, at
	}
	l.rouse(m, min(soon, at))
	l.watch(now, a)
	return false
}

func (l *Scheduler) watch(now mono.Time, a *Lane) {
	if a.Watched && l.config.Watch != nil {
		l.config.Watch(now, a)
	}
}

// hopeless refuses t, whose verdict at w is at, if that is too late, and nothing can bring it before the
// deadline by any way.
func (l *Scheduler) hopeless(now mono.Time, w *Way, t *Ticket, at mono.Time) bool {
	if at >= limit.AfterSettle || at <= t.Deadline {
		return false
	}
	b := limit.Never
	for _, v := range w.lane.ways {
		b = min(b, l.bound(now, v, v.Cost(t), 0, &noCost))
	}
	if b <= t.Deadline || b >= limit.AfterSettle {
		return false
	}
	t.At = b
	l.refuse(t, Late)
	return true
}

// grant lets the first ticket of a lane go.
func (l *Scheduler) grant(now mono.Time, w *Way, t *Ticket) {
	w.lane.granted++
	t.Pass = l.pass(now, w, t)
	l.end(t, Granted)
	l.tell(t)
}

// fill lets tickets go by w ahead of t, the first of its lane. They must not delay t, by whichever
// way t will go. at is the instant at which t may go by w. The results are the instant at which the
// next ticket may go, if that is before at, and whether any went.
func (l *Scheduler) fill(now mono.Time, w *Way, t *Ticket, at mono.Time) (again mono.Time, filled bool) {
	again = at
	fill, u := w.lane.fill, t.next[0]
	first, goes := l.foremost(now, w, t, at)
	// A ticket that goes ahead overtakes all before it, always including the first. So no ticket
	// was overtaken more often than the first, whose count bounds all.
	for n := fill; n > 0 && u != nil && t.passed < fill && goes < limit.AfterSettle; {
		next := u.next[0]
		may, when := l.mayPass(now, w, u, t, first, goes)
		if !may {
			again = min(again, when)
			u = next
			n--
			continue
		}
		for v := u.prev; v != nil; v = v.prev {
			v.passed++
		}
		w.lane.granted++
		u.Pass = l.pass(now, w, u)
		l.end(u, Granted)
		l.tell(u)
		// A ticket that may not pass now may not pass after another did, either, so one walk is
		// enough.
		filled = true
		u = next
	}
	return again, filled
}

// foremost returns the way by which t, the first of its lane, may go soonest, and when. That is w,
// by which t may go at the instant at, or another way.
func (l *Scheduler) foremost(now mono.Time, w *Way, t *Ticket, at mono.Time) (*Way, mono.Time) {
	first := w
	for _, v := range w.lane.ways {
		if v == w {
			continue
		}
		if goes, _ := l.ask(now, v, t); goes < at {
			first, at = v, goes
		}
	}
	return first, at
}

// mayPass reports whether u may go by w ahead of t, which may go by first at the instant at. If
// not, when is the instant at which u may, before that, or limit.Never. t does not need the limits
// of w that first does not have.
func (l *Scheduler) mayPass(now mono.Time, w *Way, u, t *Ticket, first *Way, at mono.Time) (may bool, when mono.Time) {
	own, cost, waits := now, w.Cost(u), first.Cost(t)
	if w.door != nil {
		own = l.opens(now, w, u)
	}
	for _, m := range w.limits {
		r := now
		if w.lane.reserves {
			r = m.leaving(now, w, nil, cost)
		} else {
			r = m.Limiter.Ready(now, *cost)
		}
		if r <= now {
			r = m.held(now, w, u)
		}
		own = max(own, r)
	}
	if own >= at {
		return false, limit.Never
	}
	for _, m := range w.limits {
		if w != first && !slices.Contains(first.limits, m) {
			continue
		}
		if !limit.MayPass(m.Limiter, own, *cost, *waits, at) ||
			w.lane.reserves && m.leaving(own, w, cost, waits) > at {
			return false, limit.Never // nor later, unless something changes: it needs the room that t needs
		}
	}
	return own <= now, own
}
