package limit

import (
	"math/bits"
	"sort"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Usage is how much of one limit is used at an instant, to be looked at.
type Usage struct {
	// Limit is the name of the limit, as in Bound, and Unit what it counts. InFlight: it counts requests in flight, whatever they cost.
	Limit    string
	Unit     Unit
	InFlight bool
	// Used counts now, of Allowed: Allowed − Used may go at once. Of a bucket Allowed is what the full one holds, and Used what is, or
	// may be, missing from it. More than Allowed is used only where the limit was lowered, or what went was not Ready. Open is what of Used
	// is not settled.
	Used, Open, Allowed int64
	// Window is the time in which PerWindow may go in the long run. Both are 0 of a limit of requests in flight.
	Window    time.Duration
	PerWindow int64
	// Total is what was ever counted of what is settled, since this Limiter was made; and Recent what of that was in the last Window, to an eighth of it where it has to be
	// kept for this alone. Both are 0 of a limit of requests in flight.
	Total, Recent int64
	// Fits is what was found to be allowed per Window, if that is less than PerWindow; 0: nothing else is known. See Fitted.
	Fits int64
}

// Gauged is a Limiter that can tell how much is used. All limiters of this package are; Spacing, Sequence and Cooldown, which count nothing,
// tell nothing.
type Gauged interface {
	Limiter
	// AppendUsage appends what is used at now of each limit in it, always as many and in the same order, and changes nothing that Ready or
	// anything else can tell.
	AppendUsage(to []Usage, now mono.Time) []Usage
}

// AppendUsage asks l if it is Gauged; otherwise it appends nothing.
func AppendUsage(to []Usage, l Limiter, now mono.Time) []Usage {
	if g, ok := l.(Gauged); ok {
		return g.AppendUsage(to, now)
	}
	return to
}

// AppendUsage implements Gauged.
func (a *All) AppendUsage(to []Usage, now mono.Time) []Usage {
	for _, l := range a.each {
		to = AppendUsage(to, l, max(now, a.last))
	}
	return to
}

// AppendUsage implements Gauged.
func (n *named) AppendUsage(to []Usage, now mono.Time) []Usage {
	first := len(to)
	to = AppendUsage(to, n.Limiter, now)
	for i := first; i < len(to); i++ {
		to[i].Limit = n.name
	}
	return to
}

// AppendUsage implements Gauged: what is used of the configured limits, and what was found out about each.
func (f *Fitted) AppendUsage(to []Usage, now mono.Time) []Usage {
	first := len(to)
	to = AppendUsage(to, f.own, max(now, f.last))
	for i := range f.fits {
		fit := &f.fits[i]
		if n := fit.allows(); fit.state != free && n < fit.rate.N {
			for k := first; k < len(to); k++ {
				if u := &to[k]; u.Limit == fit.rate.Limit && u.Unit == fit.rate.Unit && u.Window == fit.rate.Per && u.PerWindow == fit.rate.N {
					u.Fits = n
				}
			}
		}
	}
	return to
}

// usage is what all accounts tell alike.
func (a *account) usage(used int64) Usage {
	return Usage{
		Limit: a.unit.String(), Unit: a.unit, Used: used, Open: min(a.open, used), Allowed: a.limit, Window: a.window, PerWindow: a.limit, Total: a.total,
	}
}

// appendUsage takes what the two limiters have in common from the safe one. Of what counts it tells the smaller figure, if the bold
// one is relied on.
func (p *pair) appendUsage(to []Usage, now mono.Time) []Usage {
	now = max(now, p.last)
	n := len(to)
	to = AppendUsage(AppendUsage(to, p.safe, now), p.bold, now)
	if bold := to[n+1].Used; p.until <= now && bold < to[n].Used {
		to[n].Used, to[n].Open = bold, min(to[n].Open, bold)
	}
	return to[:n+1]
}

// AppendUsage implements Gauged.
func (r *Rolling) AppendUsage(to []Usage, now mono.Time) []Usage {
	if r.pair != nil {
		return r.pair.appendUsage(to, now)
	}
	now = max(now, r.last)
	u := r.usage(r.open + r.settled.after(now.Add(r.ahead()-r.span)))
	u.Recent = r.settled.after(now.Add(-r.window))
	return append(to, u)
}

// AppendUsage implements Gauged.
func (c *Calendar) AppendUsage(to []Usage, now mono.Time) []Usage {
	if c.pair != nil {
		return c.pair.appendUsage(to, now)
	}
	now = max(now, c.last)
	u := c.usage(c.open + c.settled.after(now))
	u.Recent = c.recent.within(now, c.window, c.total)
	return append(to, u)
}

// AppendUsage implements Gauged.
func (a *Anchored) AppendUsage(to []Usage, now mono.Time) []Usage {
	if a.pair != nil {
		return a.pair.appendUsage(to, now)
	}
	now = max(now, a.last)
	over := sort.Search(a.settled.n, func(i int) bool { return a.freed(a.settled.at(i).at) > now })
	u := a.usage(a.open + a.settled.total - a.settled.upTo(over))
	u.Recent = a.recent.within(now, a.window, a.total)
	return append(to, u)
}

// AppendUsage implements Gauged. An overdrawn bucket is used up.
func (b *Bucket) AppendUsage(to []Usage, now mono.Time) []Usage {
	if b.pair != nil {
		return b.pair.appendUsage(to, now)
	}
	now = max(now, b.last)
	var cost Cost
	fits, not := int64(0), b.limit+1
	if b.open == 0 && b.late.n == 0 && (b.levels.len() == 0 || b.levels.full(b.levels.len()-1).Add(b.margin) <= now) {
		fits = b.limit
	}
	for not-fits > 1 {
		middle := fits + (not-fits)/2
		if cost[b.unit] = middle; b.Ready(now, cost) <= now {
			fits = middle
		} else {
			not = middle
		}
	}
	u := b.usage(b.limit - fits)
	u.Window, u.PerWindow = b.rate.window, b.rate.limit
	u.Recent = b.recent.within(now, b.rate.window, b.total)
	return append(to, u)
}

// AppendUsage implements Gauged: what the server whose intervals begin at the worst instant would make of it.
func (l *Weighted) AppendUsage(to []Usage, now mono.Time) []Usage {
	if l.pair != nil {
		return l.pair.appendUsage(to, now)
	}
	now = max(now, l.last)
	u := l.usage(l.open + l.estimate(now.Add(l.ahead()-l.margin)))
	u.Recent = l.recent.within(now, l.window, l.total)
	return append(to, u)
}

// estimate is the smallest room for which earliest says that a request may go at t.
func (l *Weighted) estimate(t mono.Time) (most int64) {
	at, sum := l.settled.entries()
	n := len(at)
	if n == 0 {
		return 0
	}
	total := l.settled.total() + sum[0]
	p, q := n, n // the first entries not before c − W⁺, and not before c
	for i := n - 1; i >= 0 && at[i].Add(2*l.span) > t; i-- {
		if c := at[i]; c.Add(l.span) > t {
			for from := c.Add(-l.span); p > 0 && at[p-1] >= from; {
				p--
			}
			most = max(most, l.finds(c, t, sum[i]-sum[p], total-sum[i]))
		}
		c := at[i].Add(l.span)
		for q > 0 && at[q-1] >= c {
			q--
		}
		upTo := total
		if q < n {
			upTo = sum[q]
		}
		most = max(most, l.finds(c, t, upTo-sum[i], total-upTo))
	}
	return most
}

// finds is the estimate at t of a server whose interval begins at c and lasts beyond t: the smallest room for which calm is no later
// than t.
func (l *Weighted) finds(c, t mono.Time, old, current int64) int64 {
	d := t.Sub(c) - time.Duration(l.less)
	if d < 0 {
		return current + old
	}
	hi, lo := bits.Mul64(uint64(old), uint64(d))
	gone, _ := bits.Div64(hi, lo, uint64(l.span))
	return max(current, current+old-int64(gone)-l.less)
}

// AppendUsage implements Gauged: what may have been drawn by now. What an answer overdraws is left out.
func (p *Produced) AppendUsage(to []Usage, now mono.Time) []Usage {
	now = max(now, p.last)
	full, open := p.full, int64(0)
	for i := range p.lingers {
		if g := &p.lingers[i]; g.ends(p) <= now {
			full = g.folded(p, full)
		} else {
			open = plus(open, p.by(&g.producing, min(now, g.until)))
		}
	}
	for r := range p.book.All() {
		open = plus(open, p.by(r, now))
	}
	missing := int64(0)
	if full > now {
		missing = int64((full.Sub(now)-1)/p.per) + 1
	}
	open = min(open, p.burst)
	return append(to, Usage{
		Limit: p.unit.String(), Unit: p.unit, Used: min(plus(missing, open), p.burst), Open: open, Allowed: p.burst,
		Window: p.rate.window, PerWindow: p.rate.limit, Total: p.drew, Recent: p.recent.within(now, p.rate.window, p.drew),
	})
}

// AppendUsage implements Gauged.
func (c *Concurrency) AppendUsage(to []Usage, now mono.Time) []Usage {
	open := int64(c.book.Len())
	return append(to, Usage{Limit: "concurrency", InFlight: true, Used: open + c.lingers.after(max(now, c.last)), Open: open, Allowed: c.limit})
}

// AppendUsage implements Gauged. What is in flight when the bound shrinks is above it.
func (a *Adaptive) AppendUsage(to []Usage, _ mono.Time) []Usage {
	open := int64(a.book.Len())
	return append(to, Usage{Limit: "adaptive concurrency", InFlight: true, Used: open, Open: open, Allowed: a.Most()})
}

// marks is how many marks a window has.
const marks = 8

// meter remembers what a sum was lately, for limiters whose own history does not tell. It costs a comparison per change. The zero meter is
// ready.
type meter struct {
	next mono.Time // when a mark is due
	past *[marks + 2]mark
	n    int // marks ever made; the i-th is at i modulo their number
}

// mark is what the sum was until at. In the time of a mark after that it grew to what the next says.
type mark struct {
	at    mono.Time
	total int64
}

// add is called before what is added to the sum.
func (m *meter) add(now mono.Time, window time.Duration, total int64) {
	if now >= m.next || m.past == nil {
		m.mark(now, window, total)
	}
}

func (m *meter) mark(now mono.Time, window time.Duration, total int64) {
	if m.past == nil {
		m.past = new([marks + 2]mark)
	}
	m.past[m.n%len(m.past)] = mark{now, total}
	m.n++
	m.next = now.Add(window/marks + 1)
}

// within returns by how much the sum, which is total now, grew in the last window.
func (m *meter) within(now mono.Time, window time.Duration, total int64) int64 {
	begin, step, after := now.Add(-window), window/marks+1, total
	for i := m.n - 1; i >= 0 && i >= m.n-len(m.past); i-- {
		k := m.past[i%len(m.past)]
		if k.at <= begin {
			grew := after - k.total
			if in := begin.Sub(k.at); in < step {
				return total - after + grew - int64(float64(grew)*(float64(in)/float64(step)))
			}
			return total - after
		}
		after = k.total
	}
	return total - after
}
