package limit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// AppendState implements Keeper.
func (r *Rolling) AppendState(b []byte) []byte {
	w := r.keep(b, 'r')
	w.log(&r.settled)
	return w
}

// Restore implements Keeper.
func (r *Rolling) Restore(b []byte) error {
	in := reading("Rolling", 'r', b)
	s, settled := in.account(), in.log()
	span, err := r.spanOf(time.Duration(max(s.window, 1)))
	if err := errors.Join(r.keeps(), in.end(), err); err != nil {
		return err
	}
	r.resume(s)
	r.span, r.settled = span, settled
	return nil
}

// resume puts to use what was read.
func (a *account) resume(s restored) {
	a.last, a.limit, a.window = max(a.last, s.last), s.limit, time.Duration(s.window)
}

// AppendState implements Keeper.
func (c *Calendar) AppendState(b []byte) []byte {
	w := c.keep(b, 'c')
	w.instant(c.latest)
	w.log(&c.settled)
	return w
}

// Restore implements Keeper.
func (c *Calendar) Restore(b []byte) error {
	in := reading("Calendar", 'c', b)
	s, latest, settled := in.account(), in.instant("the last arrival"), in.log()
	if err := errors.Join(c.keeps(), in.end(), c.fits(time.Duration(max(s.window, 1)))); err != nil {
		return err
	}
	c.resume(s)
	c.latest, c.settled = latest, settled
	return nil
}

// AppendState implements Keeper.
func (l *Weighted) AppendState(b []byte) []byte {
	w := l.keep(b, 'w')
	w.timeline(&l.settled)
	return w
}

// Restore implements Keeper.
func (l *Weighted) Restore(b []byte) error {
	in := reading("Weighted", 'w', b)
	s, settled := in.account(), in.timeline()
	span, grain, err := l.spanOf(time.Duration(max(s.window, 1)))
	if err := errors.Join(l.keeps(), in.end(), err); err != nil {
		return err
	}
	l.resume(s)
	l.span, l.grain, l.settled, l.room = span, grain, settled, -1
	return nil
}

// AppendState implements Keeper.
func (b *Bucket) AppendState(to []byte) []byte {
	w := b.keep(to, 'b')
	w.number(b.rate.limit)
	w.number(int64(b.rate.window))
	w.instant(b.raised)
	n := b.levels.len()
	w.number(int64(n))
	for i := range n {
		if full := b.levels.full(i); i == 0 {
			w.instant(full)
		} else {
			w.after(full, b.levels.full(i-1))
		}
		w.number(b.levels.since(i))
	}
	w.log(&b.late)
	return w
}

// Restore implements Keeper.
func (b *Bucket) Restore(from []byte) error {
	in := reading("Bucket", 'b', from)
	s := in.account()
	to := rate{in.number("the refill", 1, MaxCost), time.Duration(in.number("its window", 1, math.MaxInt64))}
	raised, kept := in.instant("the last rise"), in.levels()
	late := in.log()
	if err := errors.Join(b.keeps(), in.end()); err != nil {
		return err
	}
	if err := to.fills("Bucket", s.limit); err != nil {
		return err
	}
	b.resume(s)
	b.rate, b.per, b.raised, b.levels, b.late = to, to.per(), raised, kept, late
	return nil
}

// levels reads those of a bucket. From one to the next the instant rises, and what has gone since falls.
func (r *reader) levels() (v levels) {
	full, since := mono.Min, int64(1<<61)
	for i := range r.number("the number of levels", 0, int64(len(r.all)-r.at)/2) {
		if i == 0 {
			full = r.instant("a level")
		} else {
			full = r.after("a level", full, true)
		}
		since = r.number("what has gone since a level", 0, since)
		if r.err != nil {
			return levels{}
		}
		if i == 0 {
			v.gone = since
		}
		v.list = append(v.list, level{full, v.gone - since})
	}
	return v
}

// AppendState implements Keeper.
func (a *Anchored) AppendState(b []byte) []byte {
	w := a.keep(b, 'm')
	w.number(int64(a.epoch))
	w.instant(a.begun)
	if a.witness == Never {
		w.number(0)
	} else {
		w.number(1)
		w.instant(a.witness)
	}
	w.number(a.fresh)
	before := mono.Min
	for k := a.oldestPast(); k <= a.epoch; k++ {
		e := &a.past[k%anchoredPast]
		w.after(e.first, before)
		w.number(e.carried)
		n := e.fresh << 1
		if e.stepped {
			n++
		}
		w.number(n)
		before = e.first
	}
	w.log(&a.settled)
	return w
}

// oldestPast is the first of the epochs that are remembered. They are counted from 1.
func (a *Anchored) oldestPast() uint64 { return max(a.epoch, anchoredPast) - anchoredPast + 1 }

// Restore implements Keeper.
func (a *Anchored) Restore(b []byte) error {
	in := reading("Anchored", 'm', b)
	s := in.account()
	next := Anchored{epoch: uint64(in.number("the number of the epoch", 0, 1<<62)), begun: in.instant("its beginning")}
	if next.witness = Never; in.number("whether there is a witness", 0, 1) == 1 {
		next.witness = in.instant("the witness")
	}
	next.fresh = in.number("what is fresh", 0, 1<<60)
	before := mono.Min
	for k := next.oldestPast(); k <= next.epoch && in.err == nil; k++ {
		e := &next.past[k%anchoredPast]
		e.first = in.after("an epoch", before, true)
		e.carried = in.number("what was carried over", 0, 1<<61)
		n := in.number("what was fresh", 0, 1<<62)
		e.fresh, e.stepped = n>>1, n&1 == 1
		before = e.first
	}
	if before > s.last {
		in.fail("the epoch begins after the last change")
	}
	next.settled = in.log()
	over, least, err := a.spansOf(time.Duration(max(s.window, 1)))
	if err := errors.Join(a.keeps(), in.end(), err); err != nil {
		return err
	}
	a.resume(s)
	a.over, a.least = over, least
	a.epoch, a.begun, a.witness, a.fresh, a.past, a.settled = next.epoch, next.begun, next.witness, next.fresh, next.past, next.settled
	for i := range a.book.slots {
		if slot := &a.book.slots[i]; slot.generation&1 == 1 {
			a.epochs[i] = a.epochAt(slot.kept.at)
		}
	}
	return nil
}

// epochAt returns the epoch in which something was admitted, if it is still open: two epochs that begin at one instant have nothing open
// from the one to the other.
func (a *Anchored) epochAt(t mono.Time) uint64 {
	for k := a.epoch; k >= a.oldestPast(); k-- {
		if a.past[k%anchoredPast].first <= t {
			return k
		}
	}
	return 0
}

// AppendState implements Keeper.
func (p *Produced) AppendState(b []byte) []byte {
	w := begun(b, 'p')
	w.instant(p.last)
	w.number(p.burst)
	w.number(p.rate.limit)
	w.number(int64(p.rate.window))
	w.instant(p.full)
	w.number(p.drew)
	w.number(int64(len(p.lingers)))
	before := mono.Min
	for i := range p.lingers {
		g := &p.lingers[i]
		w.after(g.until, before)
		w.instant(g.at)
		w.number(g.cost)
		before = g.until
	}
	return w
}

// Restore implements Keeper.
func (p *Produced) Restore(b []byte) error {
	in := reading("Produced", 'p', b)
	last, burst := in.instant("the last change"), in.number("the burst", 1, MaxCost)
	to := rate{in.number("the refill", 1, MaxCost), time.Duration(in.number("its window", 1, math.MaxInt64))}
	full, drew := in.instant("when the bucket is full"), in.number("what was drawn", 0, math.MaxInt64)
	var lingers []lingering
	until := mono.Min
	for range in.number("the number of lost requests", 0, int64(len(b))/3) {
		until = in.after("the end of a lost request", until, true)
		at, cost := in.instant("when it was sent"), in.number("its cost", 0, MaxCost)
		lingers = append(lingers, lingering{producing{at: at, cost: cost}, until})
	}
	if err := in.end(); err != nil {
		return err
	}
	if err := p.set(to, burst); err != nil {
		return err
	}
	p.last, p.full, p.drew, p.lingers = max(p.last, last), full, drew, lingers
	return nil
}

// Configuration implements Keeper.
func (r *Rolling) Configuration() string {
	s := r.configured("Rolling") + fmt.Sprintf(", margin %v", r.span-r.window)
	if r.grain > 0 {
		s += fmt.Sprintf(", grain %v", r.grain)
	}
	return s
}

// configured says what all kinds with an account have.
func (a *account) configured(kind string) string {
	s := fmt.Sprintf("%s: %v", kind, Rate{Unit: a.unit, N: a.limit, Per: a.window})
	if a.arrivals.Late != 0 && a.arrivals.Late != defaultLate {
		s += fmt.Sprintf(", late %v", max(a.arrivals.Late, 0))
	}
	if a.arrivals.RejectsFree {
		s += ", rejects free"
	}
	return s
}

// Configuration implements Keeper.
func (c *Calendar) Configuration() string {
	return c.configured("Calendar") + fmt.Sprintf(", from %v, skew %v", c.begins(), c.skew)
}

// begins is the first beginning of an interval from the zero of the scale on: phases that differ by whole windows are the same.
func (c *Calendar) begins() time.Duration {
	in := time.Duration(c.phase) % c.window
	if in < 0 {
		in += c.window
	}
	return in
}

// Configuration implements Keeper.
func (a *Anchored) Configuration() string {
	return a.configured("Anchored") + fmt.Sprintf(", margin %v", a.over-a.window)
}

// Configuration implements Keeper.
func (l *Weighted) Configuration() string {
	s := l.configured("Weighted") + fmt.Sprintf(", margin %v, drift %v, grain %v", l.margin, l.span-l.window, l.grain)
	if l.less > 0 {
		s += ", rounds down"
	}
	return s
}

// Configuration implements Keeper.
func (b *Bucket) Configuration() string {
	refill := account{unit: b.unit, limit: b.rate.limit, window: b.rate.window, arrivals: b.arrivals}
	s := refill.configured("Bucket") + fmt.Sprintf(", burst %d, margin %v", b.limit, b.margin)
	if b.alone {
		s += ", alone"
	}
	return s
}

// Configuration implements Keeper.
func (p *Produced) Configuration() string {
	refill := account{unit: p.unit, limit: p.rate.limit, window: p.rate.window, arrivals: Arrivals{Late: p.late}}
	return refill.configured("Produced") + fmt.Sprintf(", burst %d, margin %v, %d per second, within %v", p.burst, p.margin, p.speed, p.within)
}

// Span implements Keeper.
func (r *Rolling) Span() time.Duration { return r.span + r.grain }

// Span implements Keeper.
func (c *Calendar) Span() time.Duration { return c.window + 2*c.skew }

// Span implements Keeper. An interval may have begun as late as the request.
func (a *Anchored) Span() time.Duration { return a.over }

// Span implements Keeper.
func (l *Weighted) Span() time.Duration { return 2*l.span + l.margin + l.grain }

// Span implements Keeper: how long an empty bucket takes to fill.
func (b *Bucket) Span() time.Duration { return b.times(b.limit) + b.margin }

// Span implements Keeper: how long an empty bucket takes to fill.
func (p *Produced) Span() time.Duration { return p.times(p.burst) + p.margin }
