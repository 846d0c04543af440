package scheduler

import (
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// lookedAt is how many classes or lanes of a limit are looked at for a guess. Where more wait, they
// stand for the others.
const lookedAt = 256

// Expect guesses when cost would go from a place in the lane. The place of a new ticket is the
// present. The guess assumes that all waiting tickets stay, use their least cost, and no other
// ticket comes. Unlike Ask it counts the other lanes, too. So it is no bound: a ticket that leaves
// makes room. At limit.AfterSettle or limit.Never no instant is known. ahead is the number of
// waiting tickets in the lane, or in all lanes of its class. Expect changes nothing.
func (l *Scheduler) Expect(now mono.Time, a *Lane, cost *limit.Cost, place mono.Time) (at mono.Time, ahead int) {
	l.asker.Cost = *cost
	return l.expect(now, a, &l.asker, place)
}

// ExpectOf is Expect for a ticket, at its place. The ticket need not wait.
func (l *Scheduler) ExpectOf(now mono.Time, a *Lane, t *Ticket) (at mono.Time, ahead int) {
	return l.expect(now, a, t, t.Place)
}

// TurnOf returns an instant before which t, which waits, does not go as things are. At
// limit.AfterSettle or limit.Never no instant is known.
func (l *Scheduler) TurnOf(now mono.Time, t *Ticket) mono.Time {
	now = max(now, l.last)
	n, ahead := t.lane.aheadOf(t.Place, t.seq)
	at := l.soonest(now, t.lane, t, n, ahead)
	if _, turn := t.lane.At(); turn < limit.AfterSettle || at <= now {
		at = max(at, turn)
	}
	return at
}

func (l *Scheduler) expect(now mono.Time, a *Lane, of *Ticket, place mono.Time) (at mono.Time, ahead int) {
	now = max(now, l.last)
	if ahead = a.count; a.share != nil {
		ahead = max(ahead, a.share.count)
	}
	at = limit.Never
	for _, w := range a.ways {
		t, cost := now, w.Cost(of)
		for k, m := range w.limits {
			n, some := m.before(w, k, now, place)
			less(&some, &m.spare)
			t = max(t, limit.Expected(m.Limiter, now, n, some, *cost))
			if r := m.Limiter.Ready(now, *cost); r < limit.AfterSettle {
				t = max(t, r) // a pause may end at once, but probably does not
			}
		}
		at = min(at, t)
	}
	if n, least := a.ahead(place); a.sole == nil && n > 0 { // faster ways carry more
		at = max(at, l.soonest(now, a, of, n, least))
	}
	if _, turn := a.At(); turn >= limit.AfterSettle && at <= now { // only an answer can change that
		at = limit.AfterSettle
	}
	return at, ahead
}

// before returns about how many tickets would go at m before one with that place that goes by w,
// and their least use.
func (m *Limit) before(w *Way, k int, now, place mono.Time) (n int, some limit.Cost) {
	var sum float64
	var use amounts
	if m.fair == nil {
		sum, use = m.earlier(place, nil)
	} else {
		sum, use = w.flows[k].before(now, place)
	}
	for u := range use {
		some[u] = int64(math.Round(min(use[u], limit.MaxCost)))
	}
	return int(math.Round(sum)), some
}

// earlier returns the tickets that wait for m with an earlier place, in any lane, or in those of
// one class.
func (m *Limit) earlier(place mono.Time, of *Class) (sum float64, use amounts) {
	step := (len(m.ways) + lookedAt - 1) / lookedAt
	for i := 0; i < len(m.ways); i += step {
		a := m.ways[i].lane
		if a.count == 0 || of != nil && a.share != of {
			continue
		}
		n, least := a.ahead(place)
		part := float64(step) / float64(len(a.ways))
		sum += part * float64(n)
		for u, c := range least {
			use[u] += part * float64(c)
		}
	}
	return sum, use
}

// before returns the tickets that would go before one of this class with that place. Those are the
// class' own tickets with an earlier place, and others' tickets with an earlier start tag.
func (f *flow) before(now, place mono.Time) (sum float64, use amounts) {
	q := f.limit.fair
	add := func(g *flow, n, times float64) {
		if n = min(n, g.waiting); n <= 0 {
			return
		}
		sum += times * n
		for u, c := range &g.least {
			use[u] += times * c * n / g.waiting
		}
	}
	uses := f.uses
	if place >= now.Add(-f.share.config.HeadStart) || f.waiting == 0 {
		add(f, f.waiting, 1)
	} else { // it came earlier, and is sent again
		sum, use = f.limit.earlier(place, f.share)
		uses *= min(sum/f.waiting, 1)
	}
	own := f.tag() + uses/f.share.config.Weight
	step := (len(q.active) + lookedAt - 1) / lookedAt
	for i := 0; i < len(q.active); i += step {
		g := q.active[i]
		if g == f {
			continue
		}
		each := max(g.uses/g.waiting, 1e-12) / g.share.config.Weight
		if n := (own-g.tag())/each + 1e-9; n >= 0 {
			add(g, math.Floor(n)+1, float64(step))
		}
	}
	return sum, use
}

// tag returns the start tag of the first waiting ticket of the class, or of the next one to come.
func (f *flow) tag() float64 {
	if w := f.front; w != nil && !w.barred && !w.claims {
		return w.start
	}
	return f.start()
}
