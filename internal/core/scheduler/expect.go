package scheduler

import (
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// lookedAt is how many shares or lanes at a limit are looked at for a guess. Where more wait, they stand for the others.
const lookedAt = 256

// Expect guesses when cost would go from a place in the lane, which is the present for one that comes now: if all who wait stay, use what they surely use, and nobody else comes. Unlike what Ask
// returns that counts the other lanes, too, and so is no bound: whoever leaves makes room. At limit.AfterSettle or limit.Never no
// instant is known. ahead is how many wait in the lane, or in all lanes of its share. It changes nothing.
func (l *Scheduler) Expect(now mono.Time, a *Lane, cost *limit.Cost, place mono.Time) (at mono.Time, ahead int) {
	now = max(now, l.last)
	if ahead = a.count; a.share != nil {
		ahead = max(ahead, a.share.count)
	}
	at = limit.Never
	for _, w := range a.ways {
		t := now
		for k, m := range w.limits {
			n, some := m.before(w, k, now, place)
			less(&some, &m.spare)
			t = max(t, limit.NotBefore(m.Limiter, now, n, some, *cost))
			if r := m.Limiter.Ready(now, *cost); r < limit.AfterSettle {
				t = max(t, r) // a pause may end at once, but is not expected to
			}
		}
		at = min(at, t)
	}
	if _, turn := a.At(); turn >= limit.AfterSettle && at <= now { // only an answer can tell
		at = limit.AfterSettle
	}
	return at, ahead
}

// before returns about how many tickets would go at m before one with that place that goes by w, and what they will surely use.
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

// earlier returns who waits for m with an earlier place, in any lane, or in those of one share.
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

// before returns who would go before one of the share with that place: of its own those with an earlier one, and of the others those
// whose start tags are before.
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

// tag returns the start tag of the first of the share that waits, or would if one came.
func (f *flow) tag() float64 {
	if w := f.front; w != nil && !w.barred && !w.claims {
		return w.start
	}
	return f.start()
}
