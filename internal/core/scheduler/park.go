package scheduler

import (
	"cmp"
	"math"
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// thefts is how often others may take the room that the first of a lane has waited for, before it
// claims all its limits. A smaller number costs throughput (docs/decisions/0011-one-line.md). With
// any number no ticket starves. After twice as many nobody goes ahead of the claim: the costs of
// those that should not have delayed it were wrong.
const thefts = 8

// ask returns when t may go by w, and, if that is not now, the limit that t has to wait for. That
// is the limit that will be ready last, and the first of several such. t is the first of its lane,
// or comes to an empty one.
func (l *Scheduler) ask(now mono.Time, w *Way, t *Ticket) (at mono.Time, on *Limit) {
	at = now
	reserves := w.lane.reserves
	cost := *w.Cost(t) // passed on from a pointer it would be copied twice each time
	for _, m := range w.limits {
		r := now
		if !*m.silent {
			if reserves {
				r = m.leaving(now, w, nil, w.Cost(t))
			} else {
				r = m.Limiter.Ready(now, cost)
			}
		}
		if r <= now && (m.claims != nil || len(m.parked.all) > 0 && m.parked.first() != w) {
			r = m.held(now, w, t)
		}
		if r > at {
			at, on = r, m
		}
	}
	if w.door != nil {
		if r := l.opens(now, w, t); r > at {
			at, on = r, w.door.limit
		}
	}
	return at, on
}

// held returns now if t, going by w, has the best right to the room of m, or needs none of it.
// Otherwise it returns when the ticket with a better right may go.
func (m *Limit) held(now mono.Time, w *Way, t *Ticket) mono.Time {
	if m.claims != nil {
		if at := m.claimed(now, w, t); at > now {
			return at
		}
	}
	if len(m.parked.all) == 0 || m.parked.first().lane == w.lane {
		return now
	}
	h := m.top()
	if h == nil {
		return now
	}
	if m.fair != nil && h.lane.share != w.lane.share {
		start := math.Inf(-1)
		if !w.claims {
			start = w.flow(m).start()
		}
		if h.start > start || h.start == start && !h.earlier(t.Place, t.seq) {
			return now
		}
	} else if !h.earlier(t.Place, t.seq) {
		return now
	}
	if m.yields(now, h, w, t) {
		return now
	}
	return min(max(m.first, now+1), limit.AfterSettle)
}

// claimed returns now if t, going by w, delays no earlier ticket that claims m: each of those still
// goes when its other limits let it. Otherwise it returns when to ask again.
func (m *Limit) claimed(now mono.Time, w *Way, t *Ticket) mono.Time {
	at := now
	for _, c := range *m.claims {
		h := c.lane.ends[0].head
		switch {
		case !h.before(t):
			return at
		case c.lane == w.lane, m.yields(now, c, w, t):
			continue
		case h.stolen >= 2*thefts:
			return limit.AfterSettle
		}
		goes := now
		if c.ready < limit.AfterSettle {
			goes = max(now, c.ready)
		}
		own, waits := w.Cost(t), c.Cost(h)
		if limit.ReadyAfter(m.Limiter, now, *own, *waits) <= goes {
			continue
		}
		at = min(max(at, limit.ReadyAfter(m.Limiter, now, *waits, *own)), limit.AfterSettle)
		if at <= now {
			return limit.AfterSettle
		}
	}
	return at
}

func (w *Way) earlier(place mono.Time, seq int64) bool {
	return w.place < place || w.place == place && w.seq < seq
}

// top returns the first way that waits at m. It unparks those of lanes without waiting tickets.
func (m *Limit) top() *Way {
	for len(m.parked.all) > 0 {
		w := m.parked.first()
		if w.lane.count > 0 {
			return w
		}
		if w.lane.own {
			w.lane.doubt(w)
			return nil
		}
		m.line.unpark(w)
		w.lane.loosen(w)
	}
	return nil
}

// choose returns a way by which t may go now, or the instant of the soonest way. t is the first of
// its lane, or comes to an empty one.
func (l *Scheduler) choose(now mono.Time, a *Lane, t *Ticket) (*Way, mono.Time) {
	if w := a.sole; w != nil {
		at, on := l.ask(now, w, t)
		w.on = on
		return w, at
	}
	if a.count > 0 { // it stands behind others, and the ways wait for those
		return nil, limit.AfterSettle
	}
	same := a.asks(t)
	switch {
	case a.own && !same:
		l.reask(now, a, t)
	case !a.own && (!same || !a.isAlone()):
		a.loosenAll()
	}
	if len(a.loose) > 1 {
		slices.SortFunc(a.loose, func(v, w *Way) int { return cmp.Or(cmp.Compare(v.used, w.used), v.Index-w.Index) })
	}
	for i := 0; i < len(a.loose); i++ { // it may grow
		l.put(now, a.loose[i], t)
		a.loose[i].doubted = false
	}
	a.loose = a.loose[:0]
	for w := a.ready.first; w != nil; w = a.ready.first {
		if w.asked == t.seq || l.put(now, w, t) <= now {
			return w, now
		}
	}
	if a.own {
		if slices.ContainsFunc(a.ways, func(w *Way) bool { return w.ready < limit.Never }) {
			return nil, limit.AfterSettle
		}
		return nil, limit.Never
	}
	for _, w := range a.ways {
		// It was parked behind another way of this lane at the same limit, where the scheduler did
		// not look at it.
		if w.ready <= now && l.put(now, w, t) <= now {
			return w, now
		}
	}
	return nil, a.soonest()
}

// reask asks the ways of a lane, whose limits no other way has, for another cost. Ready ways are
// asked when their turn comes.
func (l *Scheduler) reask(now mono.Time, a *Lane, t *Ticket) {
	for _, w := range a.ways {
		if w.state == parked && !w.doubted {
			l.put(now, w, t)
		}
	}
}

// put asks w about t, which comes to an empty lane. Then it lists w as ready, or parks it.
func (l *Scheduler) put(now mono.Time, w *Way, t *Ticket) mono.Time {
	a := w.lane
	at, on := l.ask(now, w, t)
	switch {
	case at <= now && w.state == ready && !w.doubted: // it keeps its turn
		return at
	case at <= now && w.state == ready:
		a.ready.remove(w)
		w.ready, w.asked = at, t.seq
		a.ready.insert(w)
		return at
	case at > now && w.state == parked && w.at == on && a.own && at < limit.Never && !w.barred:
		w.ready, on.first = at, at
		l.rouse(on, at)
		return at
	case w.state == ready:
		a.ready.remove(w)
	}
	l.unpark(w)
	if at > now {
		l.park(w, on, at, t)
		return at
	}
	w.ready, w.asked, w.state = at, t.seq, ready
	a.ready.insert(w)
	return at
}

// parkAll parks the ways of a lane for its only ticket. at is the latest result of choose.
func (l *Scheduler) parkAll(a *Lane, t *Ticket, at mono.Time) {
	if a.sole != nil {
		l.park(a.sole, a.sole.on, at, t)
		return
	}
	if a.own {
		return
	}
	for _, w := range a.ways { // choose has parked them; now they get the rank of t
		l.rerank(w, t)
	}
}

// share notes that a way of another lane has a limit of this one, too. From now on the rank of its
// parked ways matters.
func (l *Scheduler) share(a *Lane) {
	if a.count > 0 {
		for _, w := range a.ways {
			if w.state == parked {
				l.rerank(w, a.ends[0].head)
			}
		}
	}
	a.own = false
}

// renew makes the ways of a lane wait for its new first ticket. All of them are parked, since a
// ticket was waiting.
func (l *Scheduler) renew(a *Lane) {
	t := a.ends[0].head
	if a.sole != nil {
		l.inherit(a.sole, t)
		return
	}
	if a.asks(t) && a.isAlone() && a.fill == 0 {
		// The limits' answers for the ticket before hold for this one, and no other lane is there.
		return
	}
	for _, w := range a.ways {
		l.inherit(w, t)
	}
}

// inherit gives a parked way the rank of another ticket, and marks its limit.
func (l *Scheduler) inherit(w *Way, t *Ticket) {
	w.ready = min(w.ready, limit.AfterSettle) // Never was the verdict on another cost
	l.rerank(w, t)
	l.mark(w.at)
}

// empty unparks the ways of a lane without waiting tickets. In a lane of several ways that shares
// no limit with another they stay. The next ticket of the same cost finds them in place.
func (l *Scheduler) empty(a *Lane) {
	if a.sole == nil && a.isAlone() {
		return
	}
	for _, w := range a.ways {
		if w.state == parked {
			l.unpark(w)
			a.loosen(w)
		}
	}
}

// park makes w wait at m for t, which may go at the instant at.
func (l *Scheduler) park(w *Way, m *Limit, at mono.Time, t *Ticket) {
	l.changes++
	w.state, w.at, w.ready = parked, m, at
	w.rank(m, t)
	m.enqueue(w)
	if m.parked.first() == w {
		m.first = at
		l.rouse(m, at)
		l.reorder(m)
	}
	if l.reserve > 0 || w.lane.classes { // those that leave more free than t, or cost less, are to be asked
		l.mark(m)
	}
}

// rank gives w, parked at m, the rank of t. If t wants more than m ever has, it ranks behind all
// others. Otherwise it would hold up tickets that fit while it waits to go by another way. If t uses
// nothing of m, it ranks before all others: it delays none of them.
func (w *Way) rank(m *Limit, t *Ticket) {
	w.place, w.seq, w.start = t.Place, t.seq, 0
	if w.unused = !m.uses(w.Cost(t)); w.unused {
		w.place = mono.Min
	}
	if m.fair != nil {
		w.start = w.turn(m)
	}
	if w.ready == limit.Never {
		w.place, w.seq, w.start = mono.Max, math.MaxInt64, math.Inf(1)
	}
	if barred := w.ready == limit.Never; barred != w.barred {
		w.barred = barred
		if barred {
			m.barred++
		} else {
			m.barred--
		}
	}
}

// turn returns the rank of w at m, which is fair. A claim goes before all turns. Otherwise the two
// could wait for each other for ever.
func (w *Way) turn(m *Limit) float64 {
	if w.claims || w.unused {
		return math.Inf(-1)
	}
	return w.flow(m).start()
}

// readmit asks again about tickets that wanted more than m ever had, in their order: m may be
// larger now.
func (l *Scheduler) readmit(m *Limit) {
	for _, w := range m.ways {
		switch {
		case !w.barred || w.at != m:
		case w.lane.count == 0:
			l.unpark(w)
			w.lane.loosen(w)
		default:
			w.ready = limit.AfterSettle
			l.rerank(w, w.lane.ends[0].head)
		}
	}
}

// rerank gives a parked way the rank of another ticket.
func (l *Scheduler) rerank(w *Way, t *Ticket) {
	m := w.at
	w.rank(m, t)
	m.requeue(w)
	l.reorder(m)
}

// unpark takes w away from the limit where it is parked, and marks that limit for the ways that
// remain.
func (l *Scheduler) unpark(w *Way) {
	m := w.at
	if w.state != parked {
		return
	}
	first := m.parked.first() == w
	// This comes before the heaps lose the key by which they are sorted.
	if len(m.parked.all) == 1 && first && (m.fair == nil || len(w.flow(m).rest.all) == 0) {
		m.first = limit.Never
		l.rouse(m, limit.Never)
		l.agenda.remove(&m.due)
	}
	m.dequeue(w)
	if w.barred {
		w.barred = false
		m.barred--
	}
	w.state, w.at = loose, nil
	if first && len(m.parked.all) > 0 {
		l.mark(m)
		l.reorder(m)
	}
}

// mark puts m on the agenda, if a ticket waits for it.
func (l *Scheduler) mark(m *Limit) {
	if m.due < 0 && len(m.parked.all) > 0 {
		l.schedule(m)
	}
}

func (l *Scheduler) schedule(m *Limit) {
	var k key
	// Most often it is the only one, and then its place does not matter.
	if n := len(l.agenda.all); n > 0 {
		if n == 1 {
			l.agenda.all[0].key = l.agenda.first().byPlace()
		}
		k = m.byPlace()
	}
	l.agenda.push(m, &m.due, k)
}

// reorder sorts m into the agenda by the place of its present first ticket.
func (l *Scheduler) reorder(m *Limit) {
	if m.due >= 0 && len(l.agenda.all) > 1 {
		l.agenda.fix(&m.due, m.byPlace())
	}
}

// rouse sets the instant to look at m.
func (l *Scheduler) rouse(m *Limit, at mono.Time) {
	if m.wake != at {
		l.retime(m, at)
	}
}

func (l *Scheduler) retime(m *Limit, at mono.Time) {
	m.wake = at
	switch {
	case at >= limit.AfterSettle && m.timer >= 0:
		l.timers.remove(&m.timer)
	case at < limit.AfterSettle && m.timer < 0:
		l.timers.push(m, &m.timer, m.byWake())
	case at < limit.AfterSettle:
		l.timers.fix(&m.timer, m.byWake())
	default:
		return
	}
	l.wake = limit.Never
	if len(l.timers.all) > 0 {
		l.wake = l.timers.first().wake
	}
}

// claim keeps room at the limits of w for t, the first of its lane, from all tickets later than t.
// Those take what is left beside. At every limit the claims are in the order of places. Otherwise two
// lanes could wait for each other for ever.
func (l *Scheduler) claim(w *Way, t *Ticket) {
	if w.claims {
		return
	}
	w.claims = true
	w.lane.claims++
	for _, m := range w.limits {
		if m.claims == nil {
			m.claims = new([]*Way)
		}
		all, i := *m.claims, 0
		for i < len(all) && all[i].lane.ends[0].head.before(t) {
			i++
		}
		*m.claims = slices.Insert(all, i, w)
	}
}

// bar ends the claim of a way by which t can never go, as it would hold up all others for ever.
func (l *Scheduler) bar(w *Way, t *Ticket) {
	if w.claims {
		l.disclaim(w)
		t.stolen = 0 // it may claim another
	}
}

func (l *Scheduler) disclaim(w *Way) {
	if !w.claims {
		return
	}
	w.claims = false
	w.lane.claims--
	for _, m := range w.limits {
		*m.claims = slices.DeleteFunc(*m.claims, func(c *Way) bool { return c == w })
		if len(*m.claims) == 0 {
			m.claims = nil
		}
		l.mark(m)
	}
}

// The following functions are for lanes of several ways: they note which ways to ask again.

// never reports whether no way ever has room for t.
func (a *Lane) never(now mono.Time, t *Ticket) bool {
	return !slices.ContainsFunc(a.ways, func(w *Way) bool {
		cost := w.Cost(t)
		return !slices.ContainsFunc(w.limits, func(m *Limit) bool { return m.Limiter.Ready(now, *cost) == limit.Never })
	})
}

// doubt notes that w, in any state, is to be asked.
func (a *Lane) doubt(w *Way) {
	if !w.doubted {
		w.doubted = true
		a.loose = append(a.loose, w)
	}
}

// loosen notes that w, which is not parked, is to be asked.
func (a *Lane) loosen(w *Way) {
	if a.sole == nil {
		w.state = loose
		a.doubt(w)
	}
}

func (a *Lane) loosenAll() {
	for _, w := range a.ways {
		if w.state == ready {
			a.ready.remove(w)
		}
		a.line.unpark(w)
		a.loosen(w)
	}
}

// ease notes that a ticket goes by w while no other waits: w is to be asked again.
func (a *Lane) ease(w *Way) {
	if a.count > 0 {
		return
	}
	if a.own {
		a.doubt(w)
		return
	}
	if w.state == ready {
		a.ready.remove(w)
	}
	if w.state != loose {
		a.line.unpark(w)
		a.loosen(w)
	}
}

// Rule returns the rule that the first ticket at m waits for.
func (m *Limit) Rule(now mono.Time) limit.Rule {
	w := m.top()
	if w == nil {
		return limit.Rule{}
	}
	return m.Binds(now, *w.Cost(w.lane.ends[0].head))
}

// Binds returns the rule at m that a cost waits for. A limiter with a method Explain, as a stack and
// a breaker, also names a pause or an outage.
func (m *Limit) Binds(now mono.Time, cost limit.Cost) (r limit.Rule) {
	if e, ok := m.Limiter.(interface {
		Explain(now mono.Time, cost limit.Cost) (mono.Time, limit.Rule)
	}); ok {
		_, r = e.Explain(now, cost)
	} else {
		_, r = limit.Explain(m.Limiter, now, cost)
	}
	return r
}
