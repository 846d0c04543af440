package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Fitted is a Limiter that finds out when its configuration is wrong: requests were refused
// although they kept to its rates. Then it adds a stricter limit, the fit. The fit follows from the
// requests that the server was seen to accept. A Fitted is never looser than the Limiter in it. It
// matters because servers ban clients that go on regardless of refusals.
//
//	free ── refused ──► held at the fit ── 10 min × 2^k ──► growing ── the configured rate ──► free
//	  │                   │         ▲                          │
//	  │ in the first      │ refused │ found                    └── refused ──► held
//	  │ window            ▼         │
//	  ▼                searching ───┘
//	trial ── refused later ──► held
//	  └── growing ──► free
//
// The fit is a sum of two parts. One is the requests answered without a refusal in the last window
// before the refusal. The other is the requests in flight with the refused one. At a server that
// counts in rolling windows this is its limit, give or take the variation of the latency. A server
// that counts in intervals of its clock, or in a bucket, may have accepted up to twice its limit in
// that time. So if the fit is refused, too, half of it is safe. Fitted then searches between the
// two, one try in a minute.
//
// In the first window the requests of an earlier process may cause a refusal. Then the fit holds
// for a window, and grows without further refusals: Misfits reports nothing. When a wrong limit is
// in use again, the fit grows as carefully: first by a sixteenth, then by twice as much each two
// windows. Example: the configuration says 100, and the server allows 20. Then one request is
// refused at that time, not 80.
//
// A refusal with another explanation is no evidence. Such explanations are:
//   - another limit: Outcome.Elsewhere, or something is left of this limit's unit;
//   - the load of the server: Outcome.Overloaded;
//   - an opt-in that retreats: Retreat;
//   - a request sent before the end of a Retry-After;
//   - a last window without any accepted request.
//
// Other users of the same quota look the same as a wrong limit. If such users are normal, use
// package fairshare. A Limiter without Rates is left alone.
//
// Made by NewFitted. Not safe for concurrent use. Ready, Admit and Settle do not allocate, with two
// exceptions: Settle of a refusal, and Settle while a fit holds.
type Fitted struct {
	own    Limiter
	made   [1]Limiter // own
	front  Limiter    // the ledgers of all fits; nil: there are no rates
	fits   []fit
	open   int  // requests in flight
	costs  Cost // of these
	last   mono.Time
	sent   uint64    // the Number of the latest request
	began  mono.Time // the first Admit; mono.Min: none
	asked  mono.Time // the end of the pause that the server asked for
	bound  bool      // a fit holds
	deaf   bool      // refusals do not count as evidence now, or did not for a time
	struck uint64    // requests up to this one were sent with an opt-in that proved wrong
	cause  cause
	news   uint64 // how often the learned state changed
}

// cause is the latest evidence: a refusal, and the requests in flight with it.
type cause struct {
	fit   *fit
	at    mono.Time
	upTo  uint64
	open  int   // how many requests up to upTo are open
	fits  int64 // answered in the window before the refusal, and possibly yet of the requests in flight
	fresh bool  // the refusal came in the first window
}

// Misfit says that a configured limit is not the server's limit, or that others use it, too:
// requests were refused within it.
type Misfit struct {
	Rule                   // as configured
	Fits     int64         // the limit in its place: so much per Per was accepted
	Gap      time.Duration // if not zero, one request goes in this time, and Fits is 1
	Until    mono.Time
	Times    int // how often lately, up to 10
	Refusals int // refusals since the limit was last free; requests in flight together count as one
	// Sure says that no refusal came within Fits for a minute and a window. Before that, Fits may
	// still fall.
	Sure bool
}

// NewFitted returns a Fitted around l. If l is a Fitted, it returns l. It panics if l is nil. From
// then on l belongs to the Fitted, except for SetLimit and SetWindow.
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

// watch makes a fit for each rate. The fits know nothing yet.
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
			// The window is too long to matter.
			continue
		}
		f.fits = append(f.fits, fit{index: i, rate: r.rate(), ledger: ledger, answered: mono.Min, stage: stage{n: MaxCost, caution: newCaution()}, doubt: doubt{deaf: mono.Min}})
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

// Follow adapts f to other rates of the Limiter in it, as after Varying.Change: more, fewer, or in
// another order. Equal rates change nothing. Otherwise f forgets its fits, and their first windows
// begin anew. It is not needed after SetLimit and SetWindow.
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
	f.opens(&f.costs)
}

// Ready implements Limiter.
func (f *Fitted) Ready(now mono.Time, cost Cost) mono.Time {
	t := max(f.last, f.own.Ready(now, cost))
	if f.bound {
		t = max(t, f.front.Ready(now, f.fitting(cost)), f.oneByOne(now, &cost), f.spaced(&cost))
	}
	return t
}

// oneByOne returns when a cost may go beside others in flight. While the fit is not sure, half of
// it may be in flight together. The rest goes one by one, so that a refusal hits a single request
// and not all in flight.
func (f *Fitted) oneByOne(now mono.Time, cost *Cost) mono.Time {
	t := now
	if f.open == 0 {
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

// spaced returns when the gaps let a cost go.
func (f *Fitted) spaced(cost *Cost) mono.Time {
	t := mono.Min
	for i := range f.fits {
		if fit := &f.fits[i]; fit.gap > 0 && cost.of(fit.rate.Unit) > 0 {
			t = max(t, fit.latest.Add(fit.gap))
		}
	}
	return t
}

// fitting cuts a cost to the fits: a cost above a fit takes the whole fit.
func (f *Fitted) fitting(cost Cost) Cost {
	for i := range f.fits {
		if fit := &f.fits[i]; fit.state != free {
			cost[fit.rate.Unit] = min(cost[fit.rate.Unit], fit.n)
		}
	}
	return cost
}

// ReadyAfter implements Forecaster. If the Limiter in it does not foresee, nothing may pass.
func (f *Fitted) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	t := max(f.last, ReadyAfter(f.own, now, first, cost))
	if f.bound {
		t = max(t, ReadyAfter(f.front, now, first, f.fitting(cost)), AfterSettle, f.spaced(&cost))
	}
	return t
}

// NotBefore implements Forecaster. A fit may grow while others go.
func (f *Fitted) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	t := max(f.last, NotBefore(f.own, now, n, ahead, cost))
	if f.bound && n == 0 && f.open == 0 {
		t = max(t, f.front.Ready(now, f.fitting(cost)), f.spaced(&cost))
	}
	return t
}

// binds returns the rule that a cost waits for. A fit has the name of its limit.
func (f *Fitted) binds(now mono.Time, cost Cost) Rule {
	at, r := Explain(f.own, now, cost)
	at = max(at, f.last)
	if !f.bound {
		return r
	}
	cost = f.fitting(cost)
	for i := range f.fits {
		fit := &f.fits[i]
		t := fit.ledger.Ready(now, cost)
		if fit.gap > 0 && cost.of(fit.rate.Unit) > 0 {
			t = max(t, fit.latest.Add(fit.gap))
		}
		if t > at {
			at, r = t, fit.rate
			r.N = fit.n
		}
	}
	return r
}

// Trust is called by the function Trust. It also puts the configured limits back into use.
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

// Misfits returns the limits that are known to be wrong, usually none. It contains a limit once all
// requests in flight at the refusal are answered.
func (f *Fitted) Misfits() (all []Misfit) {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		fit := &f.fits[i]
		rate := rates[fit.index].rate()
		if fit.rate.Per != rate.Per {
			continue // the fit belongs to a window that no longer holds
		}
		if fit.state > trial && (fit != f.cause.fit || f.cause.open == 0) {
			all = append(all, Misfit{Rule: rate, Fits: fit.n, Gap: fit.gap, Until: fit.until, Times: fit.times, Refusals: fit.refusals, Sure: fit.sure()})
		}
	}
	return all
}

// Admit implements Limiter.
func (f *Fitted) Admit(s *Sent) {
	f.last = max(s.At, f.last)
	f.open++
	f.sent = s.Number
	f.own.Admit(s)
	for u, n := range &s.Cost {
		f.costs[u] += n
	}
	if f.front == nil {
		return
	}
	if f.began == mono.Min {
		f.began = f.last
	}
	f.opens(&s.Cost)
	if f.bound {
		for i := range f.fits {
			if s.Cost.of(f.fits[i].rate.Unit) > 0 {
				f.fits[i].latest = f.last
			}
		}
	}
}

// opens and closes keep each fit's history of accepted requests, and its open cost.
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

// Settle implements Limiter. The Limiter in it gets the whole outcome.
func (f *Fitted) Settle(now mono.Time, s *Sent, o *Outcome) {
	f.last = max(now, f.last)
	f.open--
	for u, n := range &s.Cost {
		f.costs[u] -= n
	}
	if f.front == nil {
		f.own.Settle(now, s, o)
		return
	}
	f.closes(s.At, &s.Cost, o)
	refused := o.Result == Limited && !o.Elsewhere && !o.Overloaded
	if (f.bound || f.deaf) && (o.Result == Accepted || o.Result == Failed) {
		for i := range f.fits {
			if f.fits[i].serve(f.last, s.Cost.of(f.fits[i].rate.Unit)) {
				f.news++
			}
		}
	}
	if !refused {
		f.own.Settle(now, s, o)
	} else if was := f.retreat(); true {
		f.own.Settle(now, s, o)
		if f.retreat() > was {
			f.struck = f.sent
		}
	}
	switch {
	case f.cause.fit != nil && s.Number <= f.cause.upTo:
		f.cause.ended(s, o)
		f.news++
	case refused && s.Number > f.struck && s.At >= f.asked:
		f.blame(s, o)
	}
	if o.RetryAfter > 0 {
		f.asked = max(f.asked, f.last.Add(o.RetryAfter))
	}
	if f.bound {
		f.move()
	}
}

// follow updates the fits to the present configuration of the rates.
func (f *Fitted) follow() {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		if fit := &f.fits[i]; fit.follow(f.last, rates[fit.index].rate()) {
			f.began = f.last
		}
	}
}

// retreat returns the end of the last retreat from an opt-in that proved wrong.
func (f *Fitted) retreat() mono.Time {
	t := mono.Min
	for _, r := range Retreats(f.own, f.last) {
		t = max(t, r.Until)
	}
	return t
}

// blame finds the limit that a refusal is evidence against: the one with the largest used part.
func (f *Fitted) blame(s *Sent, o *Outcome) {
	f.follow()
	var worst *fit
	share, most := 0.0, int64(0)
	for i := range f.fits {
		fit := &f.fits[i]
		n := fit.ledger.counted(f.last)
		if s.Cost.of(fit.rate.Unit) == 0 || !fit.serves(f.last) || o.leaves(fit.rate.Unit) {
			continue
		}
		if part := float64(n) / float64(fit.allows()); worst == nil || part > share {
			worst, share, most = fit, part, n
		}
	}
	if worst == nil {
		return
	}
	fresh := s.At < f.began.Add(worst.rate.Per)
	if fresh && worst.rate.Per > longTrial {
		return
	}
	f.news++
	if worst.disbelieves(f.last) {
		return
	}
	f.cause = cause{fit: worst, at: f.last, upTo: f.sent, open: f.open, fits: most, fresh: fresh}
	if worst.refused(f.last, &f.cause); worst.state == free {
		f.cause, f.deaf = cause{}, true
	}
	f.bound = true
}

// ended counts the end of a request that was in flight at the refusal. The cause had counted it as
// possibly accepted.
func (c *cause) ended(s *Sent, o *Outcome) {
	c.open--
	u := c.fit.rate.Unit
	was, is := s.Cost.of(u), s.Cost.of(u)
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

// move lets fits grow at their time.
func (f *Fitted) move() {
	f.follow()
	f.bound = false
	for i := range f.fits {
		if fit := &f.fits[i]; fit.state != free && (fit != f.cause.fit || f.cause.open == 0) {
			was := fit.stage
			if fit.move(f.last, fit.full(f.last, f.open)); fit.stage != was || fit.gap > 0 {
				f.news++
			}
		}
		f.bound = f.bound || f.fits[i].state != free
	}
}

// marks completes the usage of the configured limits by their fits.
func (f *Fitted) marks(all []Usage) {
	for i := range f.fits {
		fit := &f.fits[i]
		if n := fit.allows(); fit.state != free && n < fit.rate.N {
			for k := range all {
				if u := &all[k]; u.Limit == fit.rate.Name && u.Unit == fit.rate.Unit && u.Window == fit.rate.Per && u.PerWindow == fit.rate.N {
					u.Fits = n
				}
			}
		}
	}
}

// Learned counts the changes that Lessons may show.
func (f *Fitted) Learned() uint64 { return f.news }

// Lessons returns the knowledge about each rate within which requests were refused; usually
// nothing.
func (f *Fitted) Lessons() (all []Lesson) {
	for i := range f.fits {
		if t := &f.fits[i]; t.state != free || t.times > 0 || t.most > 0 || t.deaf > mono.Min {
			all = append(all, t.lesson(f.began))
		}
	}
	return all
}

// Recall makes f continue from a lesson of another Fitted. It returns false, and changes nothing,
// if the lesson is of no rate of f or makes no sense. Before Recall, f may have counted requests
// only by Count.
func (f *Fitted) Recall(now mono.Time, l Lesson) bool {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		t := &f.fits[i]
		if t.index != l.Index || rates[t.index].rate() != l.Rule || t.rate != l.Rule || !l.makesSense() {
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

// Count adds a request that another process admitted earlier, settled with o, as of now. The caller
// counts it in the inner Limiter, too. It is no evidence, but it is part of the recently accepted
// cost.
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
		case o.Result == Unknown: // the lesson has the send times of the others
			t.latest = max(t.latest, now)
		case o.Result == Accepted || o.Result == Failed:
			t.answered = max(t.answered, now)
		}
	}
}
