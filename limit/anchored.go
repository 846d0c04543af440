package limit

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Anchored keeps a limit whose interval begins with the first message after the one before it is over, as CME counts
// messages. It allows more than Rolling, which is right for such servers too: a whole limit is free at once when the
// interval of the first answered request is over, however long the others took.
//
// Time is cut into epochs. Within an epoch every request counts from its Admit; a settled one counts at least until u_i + W⁺, with W⁺ =
// Window + Margin, as in Rolling. A request of the epoch that the server accepted is a witness: it arrived at or before its u. Let h be
// the least u of the witnesses. By h + W⁺ the interval that this witness fell into is over. Then every request is over that surely arrived
// before the earliest end of that interval: before b + W⁻, with W⁻ = Window − Margin, if no interval of this epoch began before b. Only
// what is open or may have arrived later counts in the next epoch.
//
// Why no interval overflows: let m be the last sent of those in one, and i another that is no longer counted when m goes
// at s. If s > u_i + W⁺, the interval of m began after a_i. Otherwise s > h + W⁺, so the interval of m began after that of
// the witness, which ended at b + W⁻ or later, after a_i.
//
// The first epoch's b is the instant of its first Admit. So is the b of a later epoch, unless a request that was carried over into it
// began the interval when the witness's interval was over: then b is W⁻ after the b before it. But a request begins one interval at most.
// So b of epoch k is the least, over r, of r·W⁻ after the first Admit of epoch k − r, for as many epochs in a row as there were requests
// to be carried over, and back to the first epoch at most. In any case it is no less than the epoch's own first Admit less W⁺. If each
// epoch's b were simply W⁻ after the last, one slow request after the other would let it lag by a whole interval, and what is left would
// be Rolling.
//
// This rests on how long an interval lasts by our clock, as none of the other kinds does; Margin allows for it. When our clock is set
// back, by nobody knows how much, an interval is shorter than W⁻ by that. So if a change has an earlier time than the one before it, what
// was not over by then counts until u_i + W⁺, and b of later epochs is not derived from earlier ones. A step back that falls between two
// changes cannot be seen: keep to a clock that is not set, as Gate and Pool do.
//
// Not safe for concurrent use. It does not allocate once the largest history has been seen. Its memory is that of Rolling, and 6 kB for
// the last 256 epochs. Where slow requests may have begun more epochs in a row than these, it counts as Rolling does.
type Anchored struct {
	account
	over    time.Duration // W⁺
	least   time.Duration // W⁻
	settled log
	epoch   uint64
	begun   mono.Time     // b of the epoch
	witness mono.Time     // h; Never: there is no witness yet
	epochs  []uint64      // the epoch of each open lease
	margin  time.Duration // as given
	fresh   int64         // how many requests of this epoch are open, or were settled too late to be over with its interval
	past    [anchoredPast]anchoredEpoch
	recent  meter
}

// anchoredEpoch is an epoch of the past: its first Admit, how many requests were carried over into it, and how many of these for the first
// time. Settled requests are counted by their cost, which is no less than their number.
type anchoredEpoch struct {
	first          mono.Time
	carried, fresh int64
	stepped        bool // the clock was set back in it, or the window changed
}

const anchoredPast = 256

// AnchoredConfig describes a server's window that begins with a message.
type AnchoredConfig struct {
	// Limit is the most cost in any interval.
	Limit  int64
	Window time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is how much longer or shorter than Window an interval may be by our clock. If zero, 1.1 ms + Window/10000.
	// Negative: none.
	Margin time.Duration
	Arrivals
}

// NewAnchored checks the configuration and returns an Anchored with an empty history.
func NewAnchored(c AnchoredConfig) (*Anchored, error) {
	a, err := newAccount("Anchored", c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	if c.LearnLead {
		return nil, fmt.Errorf("limit: Anchored: LearnLead is not for this kind of limit")
	}
	l := &Anchored{account: a, settled: newLog(), begun: mono.Min, witness: Never, margin: c.Margin}
	if l.over, l.least, err = l.spansOf(c.Window); err != nil {
		return nil, err
	}
	if c.OneWayMax > 0 {
		bold, safe := *l, *l
		safe.sure()
		l.pair = newPair(&bold, &safe)
	}
	return l, nil
}

// spansOf returns W⁺ and W⁻ of a window of d.
func (a *Anchored) spansOf(d time.Duration) (over, least time.Duration, err error) {
	if err := checkWindow("Anchored", d); err != nil {
		return 0, 0, err
	}
	m := margin(a.margin, d)
	if d+m < d {
		return 0, 0, fmt.Errorf("limit: Anchored: Window %v and Margin %v overflow", d, a.margin)
	}
	return d + m, max(d-m, 0), nil
}

// SetLimit changes the limit from now on; the history stays.
func (a *Anchored) SetLimit(now mono.Time, n int64) error {
	a.see(now)
	return a.setLimit("Anchored", now, n)
}

// see notices that the clock was set back. What was over at the last change stays over: the clock had not been set back by then.
func (a *Anchored) see(now mono.Time) {
	if now >= a.last || a.pair != nil {
		return
	}
	a.forget(a.last)
	a.doubt()
}

// doubt has all that is not over count until u_i + W⁺, since it is no longer known that an interval has lasted as long as W⁻.
func (a *Anchored) doubt() {
	a.begun = mono.Min
	a.past[a.epoch%anchoredPast].stepped = true
}

// SetWindow changes the interval from now on; the history stays. It allows for a server whose current interval began at any instant since
// d ago. So until the next epoch settled requests count until u_i + W⁺ of the new window, as in Rolling, and so does all that was
// forgotten, as of the last arrival of it. The rest is as with Rolling.
func (a *Anchored) SetWindow(now mono.Time, d time.Duration) error {
	over, least, err := a.spansOf(d)
	if err != nil {
		return err
	}
	a.over, a.least = over, least
	a.doubt()
	a.settled.recall()
	return a.setWindow(now, d)
}

// freed returns when a request that arrived by u no longer counts.
func (a *Anchored) freed(u mono.Time) mono.Time {
	if u < a.begun.Add(a.least) {
		u = min(u, a.witness)
	}
	return u.Add(a.over)
}

// Ready implements Limiter.
func (a *Anchored) Ready(now mono.Time, cost Cost) mono.Time {
	if a.pair != nil {
		return a.pair.Ready(now, cost)
	}
	now = max(now, a.last)
	w := cost.of(a.unit)
	over := a.open + a.settled.total + w - a.limit
	if over <= 0 || w == 0 {
		return now
	}
	if w > a.limit {
		return Never
	}
	if a.open+w > a.limit {
		return AfterSettle
	}
	return max(now, a.freed(a.settled.freed(over)))
}

// Admit implements Limiter.
func (a *Anchored) Admit(now mono.Time, cost Cost) Lease {
	if a.pair != nil {
		return a.pair.Admit(now, cost)
	}
	a.see(now)
	now = max(now, a.last)
	a.turn(now)
	l := a.admit(now, cost.of(a.unit))
	for len(a.epochs) <= int(l.index) {
		a.epochs = append(a.epochs, 0)
	}
	a.epochs[l.index] = a.epoch
	a.fresh++
	return l
}

// turn begins a new epoch if the current one is over.
func (a *Anchored) turn(now mono.Time) {
	a.forget(now)
	none := a.book.Len() == 0 && a.settled.n == 0
	if !none && (a.witness == Never || a.witness.Add(a.over) > now) {
		return
	}
	a.epoch++
	a.witness = Never
	k := a.epoch
	a.past[k%anchoredPast] = anchoredEpoch{now, int64(a.book.Len()) + a.settled.total, a.fresh, false}
	a.fresh = 0
	a.begun = max(a.earliest(k), now.Add(-a.over))
}

// earliest returns the least that b of epoch k can be. The epoch begins now.
func (a *Anchored) earliest(k uint64) mono.Time {
	least := a.past[k%anchoredPast].first
	later := int64(0) // what was carried over for the first time into the epochs after
	lag := time.Duration(0)
	for r := int64(1); ; r++ {
		e := &a.past[(k+1-uint64(r))%anchoredPast]
		if e.carried+later < r {
			return least
		}
		if uint64(r) >= k {
			return least // nothing was sent before epoch 1, so no chain is longer
		}
		before := &a.past[(k-uint64(r))%anchoredPast]
		if r == anchoredPast || before.stepped {
			return mono.Min
		}
		later += e.fresh
		if lag += a.least; lag < a.least {
			return mono.Min
		}
		least = min(least, before.first.Add(lag))
	}
}

// forget drops what no longer counts.
func (a *Anchored) forget(now mono.Time) {
	for a.settled.n > 0 {
		e := a.settled.at(0)
		if a.freed(e.at) > now {
			return
		}
		a.settled.forget(e.at)
	}
}

// Settle implements Limiter.
func (a *Anchored) Settle(now mono.Time, l Lease, o Outcome) {
	if a.pair != nil {
		a.pair.Settle(now, l, o)
		return
	}
	a.see(now)
	own := a.epochs[l.index] == a.epoch
	before := a.total
	now, u, w := a.close(now, l, &o)
	a.recent.add(now, a.window, before)
	a.forget(now)
	if own {
		a.fresh--
	}
	if w == 0 {
		return
	}
	a.settled.add(u, w)
	if !own {
		return
	}
	if u >= a.begun.Add(a.least) {
		a.fresh += w
	}
	if o.Result == Accepted { // a refusal may have come from another limit, and then the request began no interval here
		a.witness = min(a.witness, u)
	}
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

// Configuration implements Keeper.
func (a *Anchored) Configuration() string {
	return a.configured("Anchored") + fmt.Sprintf(", margin %v", a.over-a.window)
}

// Span implements Keeper. An interval may have begun as late as the request.
func (a *Anchored) Span() time.Duration { return a.over }

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

// Explain implements Explainer.
func (a *Anchored) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return a.Ready(now, cost), a.bound(&cost)
}
