package limit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Produced keeps to a token bucket that pays for output as the server produces it, and not when
// requests arrive: Anthropic's limit of output tokens. Such a server looks at its bucket once, when
// a request arrives. It refuses the request if the bucket holds less than one token. An answer
// under way goes on, and may overdraw the bucket. So a cost is the largest possible answer, and
// nothing of it is reserved. The part that counts is the output that may exist when the next
// request arrives. A request whose cost is more than the bucket holds goes like any other.
//
// Two promises bound that output. No answer grows faster than PerSecond (v). No request takes
// longer than Within (D) from its Admit to its arrival. Θ is the instant at which the bucket would
// be full again, folded over the settled requests. M_i is the cost of an open request that was
// admitted at s_i. One more request, which then is open too, may go at s when
//
//	Σ g_i − min g_i + (Θ − s)⁺/p + a tick ≤ Burst − 1,   g_i = min(M_i, 1 + v·(s + D − s_i))
//
// Why no request is refused: let m arrive at a. Let n be the last request admitted by then, at s; n
// may be m. The output by a has two sources. Requests settled at s are in Θ, as of an instant no
// earlier than their output. Each open request but m has drawn at most one token at its arrival and
// v·(a − s_i) after that. Since a ≤ s_m + D ≤ s + D, this is at most g_i. m is only arriving, and
// has drawn nothing. So the whole output is at most what the admission of n counted: it left out no
// more than min g_i ≤ g_m. After a, the fate of the answers does not matter to m. Later admissions
// take care of later arrivals.
//
// Without one of the promises g_i is M_i. Then the bucket holds back the whole cost of all open
// requests, except the smallest. No output leads to a refusal, however fast or late it is. Example:
// 8,000 tokens a minute, and requests of up to 4,096 tokens that come to 300 in 2 s. With both
// promises 40 requests are answered in 33 s, and without them in 57 s
// (docs/decisions/0027-produced.md).
//
// A request settled with Actual counts as that much. A refused or unsent request counts as nothing.
// An answered request without Actual counts as the most that may have been produced by then. A
// request of unknown outcome counts as the most that can be produced until Late. An answer of w
// tokens took at least w/v. If one answer alone drains the bucket (v ≥ Limit/Window), it is folded
// as of w/v before its settlement, otherwise as of its settlement.
//
// The clock must not be set back. After a step back, open requests would seem younger than they
// are. A verdict lapses as open requests grow older. Not safe for concurrent use. Ready, Admit and
// Settle allocate only while the number of open requests exceeds its largest value so far. The time
// of Ready grows with the number of open requests.
type Produced struct {
	rate    rate
	burst   int64
	unit    Unit
	per     time.Duration
	margin  time.Duration
	late    time.Duration
	speed   int64         // v; 0: no bound
	within  time.Duration // D
	drawn   time.Duration // the refill that an answer uses up in a second: v·p
	last    mono.Time
	full    mono.Time // Θ
	book    Book[producing]
	lingers []lingering // requests of unknown outcome, in the order of until
	carried uint64      // the Number of the latest request by CarryTo
	drew    int64       // the output drawn so far, without requests that are open or linger
	scratch []producing // Ready works here, so it changes nothing else
	recent  meter
	driven
}

// producing is a request whose answer may still grow: its largest cost, and its send.
type producing struct {
	at   mono.Time
	cost int64
	all  mono.Time // all of its cost may exist from here on; Ready fills it in
}

type lingering struct {
	producing
	until mono.Time // its output ends here at the latest
}

// ProducedConfig describes a bucket that pays for output as the server produces it.
type ProducedConfig struct {
	// Limit is the refill per Window. The refill is even.
	Limit  int64
	Window time.Duration
	// Burst is the size of the full bucket. If zero, Limit.
	Burst int64
	// Unit is the component of Cost that holds the largest possible answer. If zero, Output.
	Unit Unit
	// PerSecond is the highest speed of one answer. If zero, 500 a second, twice the highest speed
	// known of Anthropic's models; if negative, no bound is known.
	PerSecond int64
	// Within is the longest time from a request's Admit until the server looks at its bucket. It
	// includes a new connection and stalls of this machine. If zero, 1 s; if negative, no bound is
	// known.
	Within time.Duration
	// Late is how long after an unknown outcome (a timeout, a reset) the server may still produce
	// the answer. If zero, 5 s; negative: not at all.
	Late time.Duration
	// Margin is one tick of the server's clock and a little. If zero, 1.1 ms. Negative: none.
	Margin time.Duration
}

const (
	defaultPerSecond = 500
	defaultWithin    = time.Second
	// oldest is the largest age by which an answer counts: 18 min. After that, all of it counts.
	oldest = time.Duration(1 << 40)
	// atATime is more output than servers count at once. The speed v holds only over longer times.
	atATime = 16
)

// NewProduced checks the configuration and returns a Produced whose bucket is full.
func NewProduced(c ProducedConfig) (*Produced, error) {
	c.Burst = cmp.Or(c.Burst, c.Limit)
	if c.Unit == Requests {
		c.Unit = Output
	}
	if err := errors.Join(checkLimit("Produced", c.Limit), checkWindow("Produced", c.Window)); err != nil {
		return nil, err
	}
	if c.Unit >= units {
		return nil, fmt.Errorf("limit: Produced: no such Unit: %d", c.Unit)
	}
	p := &Produced{burst: c.Burst, unit: c.Unit, margin: max(c.Margin, 0), late: max(c.Late, 0), last: mono.Min, full: mono.Min}
	if c.Margin == 0 {
		p.margin = defaultTick
	}
	if c.Late == 0 {
		p.late = defaultLate
	}
	if c.PerSecond >= 0 && c.Within >= 0 {
		p.speed, p.within = c.PerSecond, c.Within
		if c.PerSecond == 0 {
			p.speed = defaultPerSecond
		}
		if c.Within == 0 {
			p.within = defaultWithin
		}
	}
	if p.within > oldest/2 {
		return nil, fmt.Errorf("limit: Produced: Within %v is longer than %v", p.within, oldest/2)
	}
	return p, p.set(rate{c.Limit, c.Window}, c.Burst)
}

// set checks a rate and a size of the bucket, and takes them.
func (p *Produced) set(r rate, burst int64) error {
	if burst < 1 || burst > MaxCost {
		return fmt.Errorf("limit: Produced: Burst %d is not between 1 and %d", burst, int64(MaxCost))
	}
	if err := r.fills("Produced", burst); err != nil {
		return err
	}
	per := r.per()
	if d := scale(per, time.Duration(burst-1), 1); d < p.margin {
		return fmt.Errorf("limit: Produced: Burst %d at %d per %v is refilled within a tick of %v", burst, r.limit, r.window, p.margin)
	}
	p.rate, p.burst, p.per = r, burst, per
	p.drawn = scale(per, time.Duration(p.speed), 1) // if that overflows, an answer counts as drawn at once
	return nil
}

// SetLimit changes the refill to n per Window from now on. The missing part of the bucket stays
// missing.
func (p *Produced) SetLimit(now mono.Time, n int64) error {
	if err := checkLimit("Produced", n); err != nil {
		return err
	}
	return p.setRate(now, rate{n, p.rate.window})
}

// SetWindow changes the refill to Limit per d from now on. The missing part of the bucket stays
// missing.
func (p *Produced) SetWindow(now mono.Time, d time.Duration) error {
	if err := checkWindow("Produced", d); err != nil {
		return err
	}
	return p.setRate(now, rate{p.rate.limit, d})
}

func (p *Produced) setRate(now mono.Time, r rate) error {
	before := p.per
	if err := p.set(r, p.burst); err != nil {
		return err
	}
	p.tick(now)
	if p.full > p.last {
		missing := p.full.Sub(p.last)
		if p.per > before { // a tick's loss at the old rate takes longer to refill now
			missing += p.margin
		}
		p.full = p.last.Add(scale(missing, p.per, before))
	}
	return nil
}

// SetBurst changes the size of the bucket from now on. Its content stays: a larger bucket has to
// fill.
func (p *Produced) SetBurst(now mono.Time, n int64) error {
	before := p.burst
	if err := p.set(p.rate, n); err != nil {
		return err
	}
	p.tick(now)
	if n > before {
		p.fold(p.last, n-before)
	}
	return nil
}

func (p *Produced) times(n int64) time.Duration { return scale(time.Duration(max(n, 0)), p.per, 1) }

// fold takes w out of the bucket as of u.
func (p *Produced) fold(u mono.Time, w int64) { p.full = folded(p.full, u, p.times(w)) }

func folded(full, u mono.Time, d time.Duration) mono.Time { return max(full, u).Add(d) }

// tick folds the lingering requests whose output has ended.
func (p *Produced) tick(now mono.Time) {
	p.last = max(now, p.last)
	n := 0
	for n < len(p.lingers) && p.lingers[n].ends(p) <= p.last {
		p.full = p.lingers[n].folded(p, p.full)
		p.draws(p.by(&p.lingers[n].producing, p.lingers[n].until))
		n++
	}
	if n > 0 {
		p.lingers = slices.Delete(p.lingers, 0, n)
	}
}

// draws counts output that was drawn.
func (p *Produced) draws(w int64) {
	p.recent.add(p.last, p.rate.window, p.drew)
	p.drew = plus(p.drew, w)
}

// ends returns when a lingering request is folded. That is a tick later than possible, so no
// verdict lapses by it.
func (g *lingering) ends(p *Produced) mono.Time { return g.until.Add(p.margin) }

func (g *lingering) folded(p *Produced, full mono.Time) mono.Time {
	w := p.by(&g.producing, g.until)
	return folded(full, p.began(&g.producing, g.until, w), p.times(w))
}

// by returns the largest possible output of a request by t.
func (p *Produced) by(r *producing, t mono.Time) int64 {
	age := max(t, r.at).Sub(r.at)
	if p.speed == 0 || age >= oldest {
		return r.cost
	}
	return min(r.cost, plus(1, int64(scale(age, time.Duration(p.speed), time.Second))))
}

// began returns the instant as of which w of r is folded, if w was produced by u.
func (p *Produced) began(r *producing, u mono.Time, w int64) mono.Time {
	if p.speed == 0 || p.drawn < time.Second {
		return u
	}
	took := scale(time.Duration(max(w-atATime, 0)), time.Second, time.Duration(p.speed)) - 1 // rounded down
	return min(max(u.Add(-took), r.at), u)
}

// Ready implements Limiter.
func (p *Produced) Ready(now mono.Time, cost Cost) mono.Time { return p.ready(now, 0, cost.of(p.unit)) }

// ReadyAfter implements Forecaster.
func (p *Produced) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return p.ready(now, first.of(p.unit), cost.of(p.unit))
}

// ready returns when w may go after a request of cost first, if first is not 0.
func (p *Produced) ready(now mono.Time, first, w int64) mono.Time {
	t := max(now, p.last)
	if w == 0 {
		return t
	}
	full := p.full
	for i := 0; ; i++ { // in turn i the first i lingering requests count as folded
		end := AfterSettle
		if i < len(p.lingers) {
			end = p.lingers[i].ends(p)
		}
		if t < end {
			p.scratch = p.scratch[:0]
			for r := range p.book.All() {
				p.counts(*r)
			}
			for k := range p.lingers[i:] {
				p.counts(p.lingers[i+k].producing)
			}
			if first > 0 {
				p.counts(producing{at: max(now, p.last), cost: first})
			}
			if at := p.search(t, end, full, w); at < end {
				return at
			}
			if end == AfterSettle {
				return AfterSettle
			}
			t = end
		}
		full = p.lingers[i].folded(p, full)
	}
}

// counts adds a request to scratch, for search.
func (p *Produced) counts(r producing) {
	if r.cost == 0 { // the limit does not apply
		return
	}
	r.all = mono.Min
	if p.speed > 0 {
		r.all = r.at.Add(min(scale(time.Duration(max(r.cost-1, 0)), time.Second, time.Duration(p.speed)), oldest) - p.within)
	}
	p.scratch = append(p.scratch, r)
}

// atOnce returns g of a request that is sent now.
func (p *Produced) atOnce(cost int64) int64 {
	if p.speed == 0 {
		return cost
	}
	return min(cost, plus(1, int64(scale(p.within, time.Duration(p.speed), time.Second))))
}

// demand is the most that the requests in scratch may have drawn by an instant, as time of refill.
// It grows in a straight line until the next request reaches its cost.
type demand struct {
	at     mono.Time
	bound  time.Duration // of requests that reached their cost, and of one token of each other request
	grow   int           // the number of the others; ages is the sum of their ages
	ages   time.Duration
	within time.Duration
}

func (d *demand) to(t mono.Time) demand {
	e := *d
	e.ages += time.Duration(d.grow) * t.Sub(d.at)
	e.at = t
	return e
}

// misses returns how long the refill of the bucket would take, if all possible output exists.
func (p *Produced) misses(d demand, full mono.Time) time.Duration {
	open := time.Duration(plus(int64(d.bound), int64(scale(d.ages, p.drawn, time.Second))))
	return time.Duration(plus(int64(open), int64(max(full, d.at).Sub(d.at))))
}

// search returns the first instant from t on at which w may go beside the requests in scratch. If
// there is none before end, it returns end or later.
func (p *Produced) search(t, end, full mono.Time, w int64) mono.Time {
	d, least := demand{at: t, within: p.within}, w
	for i := range p.scratch {
		r := &p.scratch[i]
		least = min(least, r.cost)
		d.add(p, r)
	}
	room := p.times(p.burst-1) - p.times(p.atOnce(w)-p.atOnce(least)) - p.margin
	switch {
	case room < 0:
		return end
	case p.misses(d, full) <= room:
		return t
	}
	slices.SortFunc(p.scratch, func(a, b producing) int { return cmp.Compare(a.all, b.all) })
	next := 0
	for next < len(p.scratch) && p.scratch[next].all <= t {
		next++
	}
	for {
		until := end
		if next < len(p.scratch) {
			until = min(end, p.scratch[next].all)
		}
		// The missing part shrinks with time only if the refill is quicker than the answers.
		if stop := min(until, full); stop > d.at && scale(p.drawn, time.Duration(d.grow), 1) < time.Second {
			if p.misses(d.to(stop), full) <= room {
				n := sort.Search(int(stop.Sub(d.at)), func(i int) bool { return p.misses(d.to(d.at.Add(time.Duration(i+1))), full) <= room })
				return d.at.Add(time.Duration(n + 1))
			}
		}
		if until >= end {
			return end
		}
		d = d.to(until)
		for next < len(p.scratch) && p.scratch[next].all <= until {
			d.settle(p, &p.scratch[next])
			next++
		}
	}
}

func (d *demand) age(r *producing) time.Duration { return d.at.Add(d.within).Sub(r.at) }

// add counts a request, and settle one that has reached its cost now.
func (d *demand) add(p *Produced, r *producing) {
	if r.all <= d.at {
		d.bound = time.Duration(plus(int64(d.bound), int64(p.times(r.cost))))
		return
	}
	d.grow++
	d.ages += d.age(r)
	d.bound += p.per
}

func (d *demand) settle(p *Produced, r *producing) {
	d.grow--
	d.ages -= d.age(r)
	d.bound = time.Duration(plus(int64(d.bound-p.per), int64(p.times(r.cost))))
}

// Admit implements Limiter.
func (p *Produced) Admit(s *Sent) {
	p.tick(s.At)
	p.book.Open(s.Number, producing{at: p.last, cost: s.Cost.of(p.unit)})
}

// Settle implements Limiter.
func (p *Produced) Settle(now mono.Time, s *Sent, o *Outcome) {
	r := p.book.Close(s.Number)
	p.tick(now)
	if o.Metered {
		r.cost = o.Actual.of(p.unit)
	}
	switch {
	case r.cost == 0 || o.Result == Unsent || o.Result == Limited:
	case o.Result == Unknown && p.late > 0:
		if o.Metered { // an earlier process may have sent it, long ago
			r.at = mono.Min
		}
		g := lingering{r, p.last.Add(max(p.late, -max(o.ArrivedAgo, -math.MaxInt64)))}
		i := len(p.lingers)
		for i > 0 && p.lingers[i-1].until > g.until {
			i--
		}
		p.lingers = slices.Insert(p.lingers, i, g)
	default:
		w := r.cost
		if !o.Metered {
			w = p.by(&r, p.last)
		}
		p.fold(p.began(&r, p.last, w), w)
		p.draws(w)
	}
}

// Arriving returns the part of a cost that a server with the limit of l counts when the request
// arrives. It is less than the cost if the server counts the rest as it produces it. Compare it
// with the remainder that an answer states.
func Arriving(l Limiter, cost Cost) Cost {
	Ask(l, func(p *Produced) { cost[p.unit] = min(cost[p.unit], 1) })
	return cost
}

// NotBefore implements Forecaster. It assumes that the open and ahead requests produce nothing. A
// request ahead makes nothing sooner.
func (p *Produced) NotBefore(now mono.Time, _ int, _, cost Cost) mono.Time {
	t := max(now, p.last)
	switch {
	case cost.of(p.unit) == 0:
		return t
	case p.book.Len() == 0:
		return p.Ready(now, cost)
	}
	return max(t, p.full.Add(p.margin-p.times(p.burst-1)))
}

// Rules implements Describer. A cost above the Burst may go nevertheless.
func (p *Produced) Rules() []Rule {
	return []Rule{{Name: p.unit.String(), Unit: p.unit, N: p.rate.limit, Per: p.rate.window, Burst: p.burst, Counts: CountsBucket}}
}

// AppendUsage implements Describer: the output that may have been drawn by now. It leaves out the
// overdrawn part.
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
		Requests: p.book.Len(),
	})
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

// CarryTo makes another Produced count the drawn and open requests of p, as when two clients turn
// out to share a bucket. After that p must admit nothing. Call end once, when all open requests are
// settled: then they count by their outcomes. The output that existed at now counts twice from then
// on.
func (p *Produced) CarryTo(now mono.Time, to *Produced) (end func(now mono.Time)) {
	p.tick(now)
	w := int64(0)
	if p.full > p.last {
		missing := p.full.Sub(p.last)
		if w = int64(missing / p.per); p.times(w) < missing {
			w++
		}
	}
	var all []*Sent
	carry := func(r *producing) {
		w = plus(w, p.by(r, p.last)) // the possible output by now; or there was none, and all of it is to come
		to.carried--                 // no driver counts so far
		s := &Sent{At: p.last, Number: to.carried, Cost: to.of(r.cost)}
		to.Admit(s)
		all = append(all, s)
	}
	for r := range p.book.All() {
		carry(r)
	}
	for i := range p.lingers {
		carry(&p.lingers[i].producing)
	}
	to.came(p.last, w, Accepted)
	before := p.drew
	return func(now mono.Time) {
		p.tick(now)
		for _, s := range all {
			to.Settle(p.last, s, &Outcome{Result: Unsent})
		}
		to.came(p.last, p.drew-before, Accepted)
		for i := range p.lingers {
			to.came(p.last, p.by(&p.lingers[i].producing, p.lingers[i].until), Unknown)
		}
	}
}

func (p *Produced) of(n int64) (c Cost) {
	c[p.unit] = min(n, MaxCost)
	return c
}

// came counts the output that exists by now.
func (p *Produced) came(now mono.Time, w int64, r Result) {
	settleAt(p, now, p.of(w), &Outcome{Result: r, Metered: true, Actual: p.of(w)})
}
