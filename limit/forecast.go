package limit

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Forecaster is a Limiter that can bound from below when a cost can go that has others ahead of it. With it a caller that cannot wait
// for so long is told at once. All limiters of this package are.
type Forecaster interface {
	Limiter
	// NotBefore returns an instant, not before now, that is no later than any at which cost can be admitted once n requests
	// that together cost at least ahead have been admitted before it, one by one, from now on; Never if it never can. It
	// changes nothing, and takes as long for a million ahead as for one.
	//
	// What is open counts in full, unless the caller takes off ahead what it has reserved beyond what it surely uses: so a
	// component of ahead may be negative. The bound holds whenever and however what is open and ahead is answered, at any
	// latency; but a request that ends Unsent, refused where refusals are free, or cheaper than was counted, a SetLimit,
	// and one ahead who leaves, make room that it does not know of.
	//
	// With nothing open and nobody ahead it is what Ready says, where LearnLead is not at work.
	NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time
}

// NotBefore asks l if it is a Forecaster. Otherwise it returns the instant of Ready, as if nobody were ahead, with now in place of
// AfterSettle, since an answer may come at once.
func NotBefore(l Limiter, now mono.Time, n int, ahead, cost Cost) mono.Time {
	if f, ok := l.(Forecaster); ok {
		return f.NotBefore(now, n, ahead, cost)
	}
	t := l.Ready(now, cost)
	if t == AfterSettle {
		return now
	}
	return t
}

// Least returns what a request of that cost surely uses, which is what a forecast may count of it: all that is known
// when it is sent, and of the tokens only the input. Output, money and what else is metered may turn out to be nothing: of
// 1,000 prompts that reserve 1,000 tokens and use 300, at 30,000 a minute, 970 go within 10 min, and 330 would if the
// others were refused because of what is reserved.
func (c Cost) Least() Cost {
	return Cost{Requests: c[Requests], Weight: c[Weight], Orders: c[Orders], Input: c[Input], Tokens: min(c[Tokens], c[Input])}
}

// NotBefore implements Forecaster: the latest of all.
func (a *All) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	t := max(now, a.last)
	for _, l := range a.each {
		t = max(t, NotBefore(l, now, n, ahead, cost))
	}
	return t
}

// NotBefore implements Forecaster.
func (n *named) NotBefore(now mono.Time, ahead int, costs, cost Cost) mono.Time {
	return NotBefore(n.Limiter, now, ahead, costs, cost)
}

// asked is the question of a forecast, in the unit of one account.
type asked struct {
	now         mono.Time
	ahead, cost int64
}

// ask picks the account's unit out of the question. If done, verdict is the answer already.
func (a *account) ask(now mono.Time, ahead, cost *Cost) (q asked, verdict mono.Time, done bool) {
	q = asked{max(now, a.last), ahead[a.unit], cost.of(a.unit)}
	switch {
	case q.cost > a.limit:
		return q, Never, true
	case q.cost == 0 && q.ahead <= 0:
		return q, q.now, true
	}
	return q, q.now, false
}

// history is what was settled of a limit, however that is kept.
type history struct {
	total int64
	// freed returns from when on at least cost of it no longer counts. cost is between 1 and the total.
	freed func(cost int64) mono.Time
	// last is the latest bound of an arrival in it.
	last mono.Time
}

// first returns an instant no later than any at which room is enough for what is settled and open now, if what is open
// counts until ends or longer.
func (a *account) first(now mono.Time, room int64, h history, ends mono.Time) mono.Time {
	if h.total+a.open <= room {
		return now
	}
	t := Never
	if a.open <= room {
		t = h.freed(h.total + a.open - room)
	}
	if a.open > 0 { // or it goes, too
		if h.total > room {
			ends = max(ends, h.freed(h.total-room))
		}
		t = min(t, ends)
	}
	return max(now, t)
}

// cycles returns an instant no later than any at which q can go, if within every span at most the limit does: what
// goes between now and now + span goes into the room that is there then, what goes in each span after that into what came
// back of those in the one before.
//
// For s in the k-th span from now, s = r + k·span, with B(r) what counts then of all that is settled and open now:
//
//	ahead + cost ≤ k·Limit + max(0, Limit − B(r))
func (a *account) cycles(q asked, span time.Duration, h history, ends mono.Time) mono.Time {
	want := plus(q.ahead, q.cost)
	k, room := int64(0), less(a.limit, want)
	if want > a.limit {
		k = (want - 1) / a.limit
		room = a.limit - 1 - (want-1)%a.limit
	}
	t := a.first(q.now, room, h, ends)
	if q.ahead <= 0 {
		return t
	}
	t = min(t, q.now.Add(span)).Add(scale(span, time.Duration(k), 1))
	if h.last > q.now { // it counts for longer than a span, and however much goes before, q itself has no room
		t = max(t, a.first(q.now, a.limit-q.cost, h, ends))
	}
	return t
}

// NotBefore implements Forecaster.
func (r *Rolling) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if r.pair != nil {
		return r.pair.NotBefore(now, n, ahead, cost)
	}
	q, t, done := r.ask(now, &ahead, &cost)
	if done {
		return t
	}
	span := r.shortest(r.span)
	return r.cycles(q, span, history{r.settled.total, func(w int64) mono.Time {
		return r.soonest(q.now, r.settled.freed(w).Add(r.span))
	}, r.settled.last()}, r.ages.oldest.Add(span))
}

// NotBefore implements Forecaster: as Rolling's, since no span of one window may hold more here either.
func (l *Weighted) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if l.pair != nil {
		return l.pair.NotBefore(now, n, ahead, cost)
	}
	q, t, done := l.ask(now, &ahead, &cost)
	if done {
		return t
	}
	span := l.shortest(l.span + l.margin)
	t = l.cycles(q, span, history{l.settled.total(), func(w int64) mono.Time {
		return l.soonest(q.now, l.settled.freed(w).Add(l.span+l.margin))
	}, l.settled.last()}, l.ages.oldest.Add(span))
	if l.open == 0 && q.ahead >= 0 && l.lead == nil { // then what Ready says does not become sooner
		t = max(t, l.Ready(now, cost))
	}
	return t
}

// NotBefore implements Forecaster: the limit once in what is left of this interval, and once in each after it.
func (c *Calendar) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if c.pair != nil {
		return c.pair.NotBefore(now, n, ahead, cost)
	}
	q, t, done := c.ask(now, &ahead, &cost)
	if done {
		return t
	}
	h := history{total: c.settled.total, freed: c.settled.freed}
	ends := c.freed(c.ages.oldest)
	t = c.first(q.now, less(c.limit, plus(q.cost, min(q.ahead, 0))), h, ends)
	if q.ahead <= 0 {
		return t
	}
	counts := c.settled.after(q.now)
	if ends > q.now {
		counts += c.open
	}
	rest := less(plus(q.ahead, q.cost), max(0, c.limit-counts))
	if rest <= 0 {
		return t
	}
	begun := c.begin(q.now.Add(-c.skew)).Add(c.skew)
	return max(t, begun.Add(scale(c.window, time.Duration((rest-1)/c.limit+1), 1)))
}

// NotBefore implements Forecaster. It does not count what is ahead, only that nothing ends sooner than the earliest that
// may be a witness lets it.
func (a *Anchored) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if a.pair != nil {
		return a.pair.NotBefore(now, n, ahead, cost)
	}
	q, t, done := a.ask(now, &ahead, &cost)
	if done {
		return t
	}
	if a.open == 0 && n <= 0 && q.ahead == 0 {
		return a.Ready(now, cost)
	}
	ends := min(q.now, a.witness)
	if a.open > 0 {
		ends = min(ends, a.ages.oldest)
	}
	ends = ends.Add(a.over)
	return a.first(q.now, less(a.limit, plus(q.cost, min(q.ahead, 0))), history{total: a.settled.total, freed: func(w int64) mono.Time {
		return min(a.freed(a.settled.freed(w)), ends)
	}}, ends)
}

// NotBefore implements Forecaster. In whatever order what is open and ahead is folded, Θ becomes at least what it is now, or
// the first of them, and the refills of all. And when more is ahead than fits into the bucket, some of it arrived now or
// later, and the refills of what fits no more come on top of that.
func (b *Bucket) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if b.pair != nil {
		return b.pair.NotBefore(now, n, ahead, cost)
	}
	cost[b.unit] = b.asks(cost.of(b.unit))
	q, t, done := b.ask(now, &ahead, &cost)
	if done || b.alone && q.cost == 0 { // the last of those ahead may have overdrawn it by any amount
		return t
	}
	from := q.now // nothing that is to be folded arrives before
	if b.open > 0 {
		from = min(from, b.ages.oldest)
	}
	if b.late.n > 0 {
		from = min(from, b.late.at(0).at)
	}
	if last := b.levels.len() - 1; last >= 0 {
		from = max(from, b.levels.full(last))
	}
	over := less(plus(q.ahead, q.cost), b.limit)
	t = from.Add(b.times(plus(over, b.open+b.late.total)))
	if fresh := plus(over, b.late.after(q.now)); fresh > 0 {
		t = max(t, q.now.Add(b.times(fresh)))
	}
	t = max(q.now, b.soonest(q.now, t))
	if b.open == 0 && q.ahead >= 0 && b.lead == nil {
		t = max(t, b.Ready(now, cost))
	}
	return t
}

// NotBefore implements Forecaster. What is open and ahead may be answered at once.
func (c *Concurrency) NotBefore(now mono.Time, _ int, _, _ Cost) mono.Time {
	now = max(now, c.last)
	if over := c.lingers.total + 1 - c.limit; over > 0 {
		return max(now, c.lingers.freed(over))
	}
	return now
}

// NotBefore implements Forecaster.
func (s *Spacing) NotBefore(now mono.Time, n int, _, _ Cost) mono.Time {
	return s.Ready(now, Cost{}).Add(scale(s.gap, time.Duration(max(n, 0)), 1))
}

// NotBefore implements Forecaster. What is open and ahead may be answered at once, and a gap that is learned become smaller.
func (s *Sequence) NotBefore(now mono.Time, n int, _, cost Cost) mono.Time {
	now = max(now, s.last)
	if s.book.Len() == 0 && n <= 0 {
		return s.Ready(now, cost)
	}
	if s.lingers.total == 0 {
		return now
	}
	gap := s.given
	if gap == 0 {
		gap = sequenceSmallest
	}
	return min(max(now, s.lingers.freed(s.lingers.total)), max(now, s.until, s.prev.Add(gap)))
}

// NotBefore implements Forecaster.
func (c *Cooldown) NotBefore(now mono.Time, _ int, _, cost Cost) mono.Time { return c.Ready(now, cost) }

// ages keeps in two numbers how old the oldest of what is open can be: it is in one of two generations, and when the older
// one is gone, the younger takes its place.
type ages struct {
	oldest mono.Time // nothing that is open was admitted before
	young  mono.Time // what was admitted from here on is of the younger generation
	old    int       // how many are of the older one
}

// admit and close are told how many others are open.
func (g *ages) admit(at mono.Time, others int) {
	if others == 0 {
		g.oldest, g.young, g.old = at, at+1, 1
	} else if at < g.young {
		g.old++
	}
}

func (g *ages) close(now, at mono.Time, others int) {
	if at < g.young {
		if g.old--; g.old == 0 && others > 0 {
			g.oldest, g.young, g.old = g.young, now+1, others
		}
	}
}

// plus returns a + b, and less a − b, within ±math.MaxInt64.
func plus(a, b int64) int64 {
	if a > 0 {
		return a + min(b, math.MaxInt64-a)
	}
	return a + max(b, -math.MaxInt64-a)
}

func less(a, b int64) int64 { return plus(a, -max(b, -math.MaxInt64)) }
