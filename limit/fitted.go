package limit

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Fitted is a Limiter that finds out when its configuration is wrong: when requests were refused although its rates were kept. Then it
// puts a limit in front, of what the server was seen to accept. It can only be stricter than the Limiter in it. It matters because
// servers ban clients that go on regardless.
//
//	free ── refused ──► held at what fits ── 10 min × 2^k ──► growing ── the configured rate ──► free
//	  │                   │         ▲                            │
//	  │ in the first      │ refused │ found                      └── refused ──► held
//	  │ window            ▼         │
//	  ▼                searching ───┘
//	trial ── refused later ──► held
//	  └── growing ──► free
//
// What fits is what was answered without a refusal in the last window before the answer that refused, and what was in flight with it.
// At a server that counts in rolling windows this is its limit, give or take what the latency varies by. One that counts in intervals
// of its clock, or in a bucket, may have accepted up to twice its limit in that time. So if what fits is refused, too, half of that is
// safe, and the truth is searched for between the two, one try in a minute.
//
// In the first window a refusal may be due to what a process before this one sent. Then what fits is in front for a window, and
// grows if it is kept to: nothing is said. When a wrong limit is relied on again it grows as carefully, from a sixteenth more, twice
// as much each two windows: a server of 20 that was taken for one of 100 refuses one request then, not 80.
//
// A refusal that something else explains is no evidence: another limit (Outcome.Elsewhere, or that something is left of what this one
// counts), that the server has too much to do (Outcome.Overloaded), an opt-in that retreats (Cautious), a Retry-After that was not
// waited for, or that nothing was accepted in the last window. That somebody else uses the same quota cannot be told from a limit that
// is wrong. Where that is normal use package fairshare: Limiters without Rates are left alone.
//
// Made by NewFitted. Not safe for concurrent use. Ready, Admit and Settle do not allocate, but Settle at refusals and while what fits is
// in front.
type Fitted struct {
	own    Limiter
	made   [1]Limiter // own
	front  Limiter    // the ledgers of all fits; nil: there are no rates
	fits   []fit
	book   Book[fitting]
	last   mono.Time
	sent   uint64
	began  mono.Time // the first Admit; mono.Min: none
	asked  mono.Time // the server asked to stay away until then
	bound  bool      // a fit is in front
	deaf   bool      // refusals do not count as evidence now, or did not for a time
	struck uint64    // requests up to this one were sent with an opt-in that proved wrong
	cause  cause
	news   uint64 // counts changes of what is learned
}

// fitting is what is kept of a request.
type fitting struct {
	own    Lease
	at     mono.Time
	number uint64
	cost   Cost
}

// cause is the latest evidence: a refusal, and the requests that were in flight with it.
type cause struct {
	fit   *fit
	at    mono.Time
	upTo  uint64
	open  int   // of the requests up to that
	fits  int64 // what was answered in the window before it, and what of the requests in flight may yet be
	fresh bool  // it came in the first window
}

// Misfit says that a configured limit is not what the server enforces, or that others use it, too: requests were refused within it.
type Misfit struct {
	Rate                   // as configured
	Fits     int64         // what goes in its place: so much per Rate.Per was accepted
	Gap      time.Duration // if not zero, one request goes in this time; Fits is then 1
	Until    mono.Time
	Times    int  // how often lately, up to 10
	Refusals int  // refusals since it was last free; those of requests in flight together count as one
	Sure     bool // Fits was kept to for a minute and a window without a refusal; before that, it may still have to be lowered
}

// NewFitted returns l with an eye on whether it is right, and a Fitted as it is. It panics if l is nil; l now belongs to it, but for
// SetLimit and SetWindow.
func NewFitted(l Limiter) *Fitted {
	if l == nil {
		panic("limit: Fitted: the Limiter is nil")
	}
	if f, is := l.(*Fitted); is {
		return f
	}
	f := &Fitted{own: l, made: [1]Limiter{l}, last: mono.Min, began: mono.Min, asked: mono.Min}
	f.watch()
	return f
}

// watch puts a fit in front of each rate, which knows nothing yet.
func (f *Fitted) watch() {
	f.fits, f.front = nil, nil
	rates, ok := Rates(f.own)
	if !ok {
		return
	}
	var fronts []Limiter
	for i, r := range rates {
		ledger, err := NewRolling(RollingConfig{
			Limit: MaxCost, Window: r.Per, Unit: r.Unit, Grain: r.Per / 1024, Arrivals: Arrivals{RejectsFree: true},
		})
		if err != nil {
			continue // a window so long that nobody lives to see its end
		}
		f.fits = append(f.fits, fit{index: i, rate: r, ledger: ledger, answered: mono.Min, stage: stage{n: MaxCost, caution: newCaution()}, doubt: doubt{deaf: mono.Min}})
		fronts = append(fronts, ledger)
	}
	switch len(fronts) {
	case 0:
	case 1:
		f.front = fronts[0]
	default:
		f.front = NewAll(fronts...)
	}
}

// Follow tells it that the Limiter in it has other rates now, as after Varying.Change: more, fewer, or in another order. If they are
// the same it changes nothing. Otherwise it forgets what was learned of them, and their first windows begin anew. It is not needed
// after SetLimit and SetWindow.
func (f *Fitted) Follow(now mono.Time) {
	f.last = max(now, f.last)
	rates, ok := Rates(f.own)
	if same := ok && len(rates) == len(f.fits); same {
		for i := range f.fits {
			same = same && f.fits[i].index == i && f.fits[i].rate.Per == rates[i].Per && f.fits[i].rate.Unit == rates[i].Unit
		}
		if same {
			return
		}
	}
	f.watch()
	f.cause, f.bound, f.deaf, f.began = cause{}, false, false, f.last
	f.news++
	for r := range f.book.All() {
		if f.front != nil { // else nobody looks at r.front
			f.opens(&r.cost)
		}
	}
}

// Ready implements Limiter.
func (f *Fitted) Ready(now mono.Time, cost Cost) mono.Time {
	t := max(f.last, f.own.Ready(now, cost))
	if f.bound {
		t = max(t, f.front.Ready(now, f.fitting(cost)), f.oneByOne(now, &cost), f.spaced(&cost))
	}
	return t
}

// oneByOne returns when a cost may go beside others that are in flight. While it is not sure what fits, half of that may be in flight
// together. The rest goes one by one, so that a single request is refused and not all that are in flight.
func (f *Fitted) oneByOne(now mono.Time, cost *Cost) mono.Time {
	t := now
	if f.book.Len() == 0 {
		return t
	}
	for i := range f.fits {
		if fit := &f.fits[i]; fit.careful {
			half := *fit.ledger
			half.limit = fit.n / 2
			t = max(t, min(half.Ready(now, *cost), AfterSettle))
		}
	}
	return t
}

// spaced returns when a cost may go by the gaps.
func (f *Fitted) spaced(cost *Cost) mono.Time {
	t := mono.Min
	for i := range f.fits {
		if fit := &f.fits[i]; fit.gap > 0 && cost.of(fit.rate.Unit) > 0 {
			t = max(t, fit.latest.Add(fit.gap))
		}
	}
	return t
}

// fitting returns a cost as the limits in front take it: if it is more than a limit, the whole limit.
func (f *Fitted) fitting(cost Cost) Cost {
	for i := range f.fits {
		if fit := &f.fits[i]; fit.state != free {
			cost[fit.rate.Unit] = min(cost[fit.rate.Unit], fit.n)
		}
	}
	return cost
}

// ReadyAfter implements Foreseer. If the Limiter in it does not foresee, nothing may pass.
func (f *Fitted) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	t := max(f.last, ReadyAfter(f.own, now, first, cost))
	if f.bound {
		t = max(t, ReadyAfter(f.front, now, first, f.fitting(cost)), AfterSettle, f.spaced(&cost))
	}
	return t
}

// NotBefore implements Forecaster. What is in front may grow while others go.
func (f *Fitted) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	t := max(f.last, NotBefore(f.own, now, n, ahead, cost))
	if f.bound && n == 0 && f.book.Len() == 0 {
		t = max(t, f.front.Ready(now, f.fitting(cost)), f.spaced(&cost))
	}
	return t
}

// Explain implements Explainer. What is in front has the name of the limit that it is in front of.
func (f *Fitted) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	at, b := Explain(f.own, now, cost)
	at = max(at, f.last)
	if !f.bound {
		return at, b
	}
	ready := f.Ready(now, cost)
	cost = f.fitting(cost)
	for i := range f.fits {
		fit := &f.fits[i]
		t := fit.ledger.Ready(now, cost)
		if fit.gap > 0 && cost.of(fit.rate.Unit) > 0 {
			t = max(t, fit.latest.Add(fit.gap))
		}
		if t > at {
			at, b = t, fit.ledger.bound(&cost)
			b.Name = fit.rate.Limit
		}
	}
	return max(at, ready), b // what is in front may be careful, too
}

// Trust implements Cautious: the configured limit, too, is relied on from now on.
func (f *Fitted) Trust(now mono.Time) {
	f.last = max(now, f.last)
	Trust(f.own, now)
	for i := range f.fits {
		f.fits[i].release(f.last)
		f.fits[i].trust(f.last)
	}
	f.cause, f.bound = cause{}, false
	f.news++
}

// Misfits returns the limits that are wrong, as far as this knows; usually nothing. One is there when all is answered that was in
// flight at the refusal.
func (f *Fitted) Misfits() (all []Misfit) {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		fit := &f.fits[i]
		rate := rates[fit.index]
		if fit.rate.Per != rate.Per {
			continue // what was found is of a window that no longer holds
		}
		if fit.state > trial && (fit != f.cause.fit || f.cause.open == 0) {
			all = append(all, Misfit{Rate: rate, Fits: fit.n, Gap: fit.gap, Until: fit.until, Times: fit.times, Refusals: fit.refusals, Sure: fit.sure()})
		}
	}
	return all
}

// Admit implements Limiter.
func (f *Fitted) Admit(now mono.Time, cost Cost) Lease {
	f.last = max(now, f.last)
	lease, r := f.book.Take()
	f.sent++
	*r = fitting{own: f.own.Admit(now, cost), at: f.last, number: f.sent, cost: cost}
	if f.front == nil {
		return lease
	}
	if f.began == mono.Min {
		f.began = f.last
	}
	f.opens(&cost)
	if f.bound {
		for i := range f.fits {
			if cost.of(f.fits[i].rate.Unit) > 0 {
				f.fits[i].latest = f.last
			}
		}
	}
	return lease
}

// opens and closes keep what is in front: a history of what was accepted, and what of a request is open in it.
func (f *Fitted) opens(cost *Cost) {
	for i := range f.fits {
		l := f.fits[i].ledger
		l.open += cost.of(l.unit)
	}
}

func (f *Fitted) closes(at mono.Time, cost *Cost, o *Outcome) {
	for i := range f.fits {
		l := f.fits[i].ledger
		w := cost.of(l.unit)
		l.open -= w
		l.last = max(f.last, l.last)
		if o.Metered {
			w = o.Actual.of(l.unit)
		}
		l.settled.forget(f.last.Add(-l.span))
		if u, counts := l.arrivals.bound(f.last, at, o); counts && w > 0 {
			l.settled.add(grained(u, l.grain), w)
		}
	}
}

// Settle implements Limiter. The Limiter in it hears all that the outcome says.
func (f *Fitted) Settle(now mono.Time, l Lease, o Outcome) {
	r := f.book.Return(l)
	f.last = max(now, f.last)
	if f.front == nil {
		f.own.Settle(now, r.own, o)
		return
	}
	f.closes(r.at, &r.cost, &o)
	refused := o.Result == Limited && !o.Elsewhere && !o.Overloaded
	if (f.bound || f.deaf) && (o.Result == Accepted || o.Result == Failed) {
		for i := range f.fits {
			if f.fits[i].serve(f.last, r.cost.of(f.fits[i].rate.Unit)) {
				f.news++
			}
		}
	}
	if !refused {
		f.own.Settle(now, r.own, o)
	} else if was := f.retreat(); true {
		f.own.Settle(now, r.own, o)
		if f.retreat() > was {
			f.struck = f.sent
		}
	}
	switch {
	case f.cause.fit != nil && r.number <= f.cause.upTo:
		f.cause.ended(r, &o)
		f.news++
	case refused && r.number > f.struck && r.at >= f.asked:
		f.blame(r, &o)
	}
	if o.RetryAfter > 0 {
		f.asked = max(f.asked, f.last.Add(o.RetryAfter))
	}
	if f.bound {
		f.move()
	}
}

// follow has the fits follow the rates as they are configured now.
func (f *Fitted) follow() {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		if fit := &f.fits[i]; fit.follow(f.last, rates[fit.index]) {
			f.began = f.last
		}
	}
}

// retreat returns until when the last opt-in that proved wrong is not relied on.
func (f *Fitted) retreat() mono.Time {
	t := mono.Min
	for _, r := range Retreats(f.own, f.last) {
		t = max(t, r.Until)
	}
	return t
}

// blame finds the limit that a refusal is evidence against: the one of which most was used.
func (f *Fitted) blame(r *fitting, o *Outcome) {
	f.follow()
	var worst *fit
	share, most := 0.0, int64(0)
	for i := range f.fits {
		fit := &f.fits[i]
		n := fit.ledger.counted(f.last)
		if r.cost.of(fit.rate.Unit) == 0 || !fit.serves(f.last) || o.leaves(fit.rate.Unit) {
			continue
		}
		if s := float64(n) / float64(fit.allows()); worst == nil || s > share {
			worst, share, most = fit, s, n
		}
	}
	if worst == nil {
		return
	}
	fresh := r.at < f.began.Add(worst.rate.Per)
	if fresh && worst.rate.Per > longTrial {
		return
	}
	f.news++
	if worst.disbelieves(f.last) {
		return
	}
	f.cause = cause{fit: worst, at: f.last, upTo: f.sent, open: f.book.Len(), fits: most, fresh: fresh}
	if worst.refused(f.last, &f.cause); worst.state == free {
		f.cause, f.deaf = cause{}, true
	}
	f.bound = true
}

// ended tells it the end of a request that was in flight at the refusal, and that was counted as one that may yet be accepted.
func (c *cause) ended(r *fitting, o *Outcome) {
	c.open--
	u := c.fit.rate.Unit
	was, is := r.cost.of(u), r.cost.of(u)
	switch {
	case o.Result == Unsent || o.Result == Limited:
		is = 0
	case o.Metered:
		is = o.Actual.of(u)
	}
	if was == is || !c.fit.learns {
		return
	}
	c.fits -= was - is
	c.fit.set(c.at, c)
}

// move has what is in front grow where it is time for it.
func (f *Fitted) move() {
	f.follow()
	f.bound = false
	for i := range f.fits {
		if fit := &f.fits[i]; fit.state != free && (fit != f.cause.fit || f.cause.open == 0) {
			was := fit.stage
			if fit.move(f.last, fit.full(f.last, f.book.Len())); fit.stage != was || fit.gap > 0 {
				f.news++
			}
		}
		f.bound = f.bound || f.fits[i].state != free
	}
}

// fit is what is in front of one rate.
type fit struct {
	index  int // of rate in Rates
	rate   Rate
	ledger *Rolling // of what was accepted; its limit is n
	stage
	doubt
	latest   mono.Time // when a request was last admitted
	answered mono.Time // when one was last answered without a refusal
	learns   bool      // n is what the cause says, as far as that is known
	below    int64     // n before this one
}

// stage is how far a fit has come, in the picture above.
type stage struct {
	state fitState
	n     int64
	caution
	refusals  int
	since     mono.Time     // since when n holds
	gap       time.Duration // where even 1 is too much: the least time from one to the next
	step      int64         // while growing
	low, high int64         // while searching or growing: low was kept to and not refused, or surely is not; high was refused
	careful   bool          // the second half of n goes one by one
}

// doubt collects what speaks against the rate being the cause of the refusals: they go on although the limit was lowered again and
// again and was kept to each time, and nearly all is served. A bucket that is all but empty serves little, and a smaller limit serves
// all.
type doubt struct {
	most    int64     // the most that was accepted in the window before a refusal
	kept    int64     // what was served since n has its value
	sudden  int       // how often as much as n had been served before a refusal
	served  int       // since the first refusal
	refused int       //
	deaf    mono.Time // until then refusals are no evidence
}

// refuses notes one more refusal at n, when fits had been accepted in the last window, and reports whether it has nothing to do with
// the rate.
func (d *doubt) refuses(n, fits int64) bool {
	kept := d.kept
	if kept >= n {
		d.sudden++
	}
	d.most = max(d.most, fits)
	d.kept = 0
	d.refused++
	// At 1 a bucket that is refilled more slowly may have served some before it was empty.
	return d.rare(0) && (n > 1 && n <= d.most/8 && d.sudden >= 3 || n == 1 && kept >= 64)
}

// rare reports whether at most a tenth is refused, not counting so many refusals.
func (d *doubt) rare(but int) bool { return 10*(d.refused-but) <= d.served }

// disbelieves tells whether a refusal is no evidence. Were the limit to become wrong meanwhile, many would be refused.
func (t *fit) disbelieves(now mono.Time) bool {
	if now >= t.deaf {
		return false
	}
	t.doubt.refused++
	return t.rare(3)
}

// serve notes an answer that is no refusal, and reports whether that changes the doubt: which is so once an eighth more was served, or
// all of n.
func (t *fit) serve(now mono.Time, cost int64) (news bool) {
	t.answered = now
	before := t.kept
	t.kept += cost
	t.doubt.served++
	return t.doubt.served%max(t.doubt.served/8, 1) == 0 || before < t.n && t.kept >= t.n
}

// sure reports whether n is known to hold. It may be a guess, since a bucket may have accepted twice as much in a window before it was
// empty.
func (s *stage) sure() bool { return s.state == growing || s.state == held && !s.careful }

type fitState uint8

const (
	free fitState = iota
	trial
	held
	searching
	growing
)

const (
	// try is how long a try lasts at least while what fits is searched for.
	try = time.Minute
	// longTrial is the longest window for which a refusal in the first window says anything: a limit that had to wait for a whole day
	// to be trusted would lose more than a refusal costs.
	longTrial = time.Minute
	// longStep is the longest time from one step to the next while it grows.
	longStep = 10 * time.Minute
	// longGap is the longest gap where not even one fits.
	longGap = time.Hour
)

// allows returns how much may go now.
func (t *fit) allows() int64 {
	if t.state == free {
		return t.rate.N
	}
	return min(t.n, t.rate.N)
}

// serves tells whether anything was answered but refused lately: in the last window, or where one goes at a time, the last few.
func (t *fit) serves(now mono.Time) bool {
	if t.ledger.counted(now) > t.ledger.open {
		return true
	}
	return t.state != free && t.n == 1 && now < t.answered.Add(8*max(t.gap, t.rate.Per))
}

// release takes away what is in front, so that the configured rate alone is kept.
func (t *fit) release(now mono.Time) {
	t.state, t.learns, t.careful, t.refusals, t.gap, t.doubt = free, false, false, 0, 0, doubt{deaf: t.deaf, most: t.most}
	t.put(now, MaxCost)
}

// follow takes the rate as it is configured now, and returns whether that is of another window (SetWindow). Then what was found no
// longer holds. Of the new window nothing is assumed but what is known, and that it is the first.
func (t *fit) follow(now mono.Time, r Rate) bool {
	before := t.rate.Per
	t.rate = r
	if r.Per == before {
		return false
	}
	t.release(now)
	t.ledger.grain = r.Per / 1024
	if span, err := t.ledger.spanOf(r.Per); err == nil { // or nobody lives to see its end
		t.ledger.span, t.ledger.window = span, r.Per
	}
	return true
}

// put has n in front, from now on.
func (t *fit) put(now mono.Time, n int64) {
	t.n, t.since = n, now
	if err := t.ledger.SetLimit(t.ledger.last, n); err != nil {
		panic(err) // it is between 1 and MaxCost
	}
}

// full tells whether n is used up, as far as that does not depend on what is open: what was answered in the last window, and of
// requests those in flight. Where tokens are counted nobody knows what those take, so half is enough.
func (t *fit) full(now mono.Time, open int) bool {
	done := t.ledger.counted(now) - t.ledger.open
	if t.rate.Unit != Requests {
		return 2*done >= t.n
	}
	return done+int64(open) >= t.n
}

// refused notes evidence: a refusal that nothing else explains.
func (t *fit) refused(now mono.Time, c *cause) {
	t.below = t.allows()
	if t.refuses(t.below, c.fits) {
		t.strike(now, now)
		pause := cautionPause << max(t.times-1, 0)
		t.release(now)
		t.trust(now)
		t.deaf = now.Add(pause)
		return
	}
	t.refusals++
	t.learns, t.careful = false, true
	switch {
	case (t.state == free || t.state == trial) && c.fresh:
		t.state, t.learns, t.step = trial, true, 0
	case t.state == free || t.state == trial:
		t.strike(now, now)
		t.state, t.learns = held, true
	case t.state == growing:
		t.strike(now, now)
		t.state = held
		t.put(now, t.low)
	case t.state == searching && t.n > t.low:
		t.high = t.n
		t.put(now, t.low)
		t.found(now)
	case t.n == 1:
		t.state, t.gap = held, min(max(2*t.gap, 2*t.rate.Per), longGap)
		t.put(now, 1)
		t.until = max(t.until, now.Add(cautionPause<<max(t.times-1, 0)))
	default:
		t.state, t.learns, t.high = searching, true, t.below
	}
	if t.learns {
		t.set(now, c)
	}
}

// set puts in front what fits, as far as the cause says that by now.
func (t *fit) set(now mono.Time, c *cause) {
	fits := min(c.fits, t.below-1)
	if t.state == searching {
		fits = min((c.fits+1)/2, (t.below+1)/2)
		t.low = max(fits, 1)
	}
	t.put(now, max(fits, 1))
	t.step = max(t.n/16, 1)
}

// move lets it grow if it is time for that. full says that what is in front is used up, and so known to hold.
func (t *fit) move(now mono.Time, full bool) {
	if t.state == held && now >= t.until {
		t.state, t.learns, t.careful, t.since, t.low, t.step = growing, false, true, now, t.n, max(t.n/16, 1)
	}
	t.careful = t.careful && (t.state != held || now < t.since.Add(max(try, t.rate.Per)))
	if !full || now < t.since.Add(t.lasts()) {
		return
	}
	t.learns = false
	switch t.state {
	case searching:
		t.low = t.n
		if !t.found(now) {
			t.put(now, t.low+(t.high-t.low)/2)
		}
	case trial, growing:
		if t.gap > 0 {
			if t.gap /= 2; t.gap <= t.rate.Per {
				t.gap = 0
			}
			t.since = now
			return
		}
		n := t.n + t.step
		if n >= t.rate.N {
			t.release(now)
			return
		}
		t.put(now, n)
		t.step *= 2
	}
}

// lasts returns how long n keeps its value at least. After a whole window nothing that is counted is older than n.
func (t *fit) lasts() time.Duration {
	switch t.state {
	case trial:
		return t.rate.Per
	case searching:
		return max(try, t.rate.Per)
	case growing:
		return min(max(try, 2*t.rate.Per), longStep)
	}
	return math.MaxInt64
}

// found ends a search whose bounds are close to each other.
func (t *fit) found(now mono.Time) bool {
	if t.high-1-t.low > t.low/10 { // what fits is below high
		return false
	}
	t.state = held
	t.until = max(t.until, now.Add(cautionPause<<max(t.times-1, 0)))
	return true
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

// Unsettled implements Owed.
func (f *Fitted) Unsettled() (n int, since mono.Time) {
	return first(&f.book, func(k *fitting) mono.Time { return k.at })
}

// Learned counts how often what Lessons returns may have changed.
func (f *Fitted) Learned() uint64 { return f.news }

// Lessons returns what was learned about each rate within which requests were refused; usually nothing.
func (f *Fitted) Lessons() (all []Lesson) {
	for i := range f.fits {
		if t := &f.fits[i]; t.state != free || t.times > 0 || t.most > 0 || t.deaf > mono.Min {
			all = append(all, t.lesson(f.began))
		}
	}
	return all
}

// lesson has no instant before began: what ended before that has no effect, and those that never were do not overflow.
func (t *fit) lesson(began mono.Time) Lesson {
	l := Lesson{
		Index: t.index, Rate: t.rate, State: uint8(t.state), Times: t.times, Refusals: t.refusals, Gap: t.gap, Step: t.step, Low: t.low, High: t.high,
		Careful: t.careful, Most: t.most, Kept: t.kept, Sudden: t.sudden, Served: t.served, Refused: t.doubt.refused, Began: began,
		Until: max(t.until, began), Since: max(t.since, began), Latest: max(t.latest, began), Answered: max(t.answered, began), Deaf: max(t.deaf, began),
	}
	if t.state != free {
		l.Fits = t.n
	}
	return l
}

// Recall has f go on from a lesson that another has learned, and reports whether it is of a rate of f's and makes sense; if not,
// nothing changes. f has admitted nothing yet but by Count.
func (f *Fitted) Recall(now mono.Time, l Lesson) bool {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		t := &f.fits[i]
		if t.index != l.Index || rates[t.index] != l.Rate || t.rate != l.Rate || !l.makesSense() {
			continue
		}
		f.last = max(now, f.last)
		l.until(now)
		if f.began == mono.Min || l.Began < f.began {
			f.began = l.Began
		}
		t.recall(&l)
		f.bound = f.bound || t.state != free
		f.deaf = f.deaf || l.Deaf > l.Began
		return true
	}
	return false
}

func (t *fit) recall(l *Lesson) {
	t.stage = stage{
		state: fitState(l.State), n: l.Fits, caution: caution{until: l.Until, times: l.Times}, refusals: l.Refusals, since: l.Since, gap: l.Gap,
		step: l.Step, low: l.Low, high: l.High, careful: l.Careful,
	}
	t.doubt = doubt{most: l.Most, kept: l.Kept, sudden: l.Sudden, served: l.Served, refused: l.Refused, deaf: l.Deaf}
	t.latest = max(t.latest, l.Latest)
	if t.answered <= l.Since { // before that it did not look
		if t.answered = mono.Min; l.Answered > l.Began {
			t.answered = l.Answered
		}
	}
	n := t.n
	if t.state == free {
		n = MaxCost
	}
	t.put(t.ledger.last, n)
	t.since = l.Since
}

// Count tells f of a request that another process admitted before it, and that is to be settled with o, as of now. The caller tells
// the Limiter in it. It is evidence of nothing, but what was accepted lately is known by it.
func (f *Fitted) Count(now mono.Time, cost Cost, o Outcome) {
	if f.front == nil {
		return
	}
	f.last = max(now, f.last)
	f.opens(&cost)
	f.closes(f.last, &cost, &o)
	for i := range f.fits {
		switch t := &f.fits[i]; {
		case cost.of(t.rate.Unit) == 0:
		case o.Result == Unknown: // of the others the lesson knows when they were sent
			t.latest = max(t.latest, now)
		case o.Result == Accepted || o.Result == Failed:
			t.answered = max(t.answered, now)
		}
	}
}

// AppendState implements Keeper: what the Limiter in it remembers.
func (f *Fitted) AppendState(b []byte) []byte {
	mustKeep(f)
	return f.own.(Keeper).AppendState(b)
}

// Restore implements Keeper.
func (f *Fitted) Restore(b []byte) error {
	if err := Keeps(f); err != nil {
		return err
	}
	return f.own.(Keeper).Restore(b)
}

// Configuration implements Keeper: that of the Limiter in it.
func (f *Fitted) Configuration() string { return configuration(f.own) }

// Span implements Keeper.
func (f *Fitted) Span() time.Duration { return span(f.own) }

// Fresh implements Fresher.
func (f *Fitted) Fresh(lease Lease) bool { return Fresh(f.own, f.book.At(lease).own) }
