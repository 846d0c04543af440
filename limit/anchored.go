package limit

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Anchored keeps a limit whose intervals begin with a message, as CME counts messages. Each
// interval begins with the first message after the end of the interval before. Rolling is right for
// such servers, too, but Anchored allows more. A whole limit is free at once when the interval of
// the first answered request is over, however long the others took.
//
// Time is cut into epochs. Within an epoch every request counts from its Admit. A settled request
// counts at least until u_i + W⁺, with W⁺ = Window + Margin, as in Rolling. A request of the epoch
// that the server accepted is a witness: it arrived at or before its u. Let h be the least u of the
// witnesses. By h + W⁺ the interval of this witness is over.
//
// Let b be an instant before which no interval of this epoch began. Then the earliest end of the
// witness's interval is b + W⁻, with W⁻ = Window − Margin. All requests that surely arrived before
// b + W⁻ are over, too. Only open requests, and those that may have arrived later, count in the
// next epoch.
//
// Why no interval overflows: let m be the last sent of the requests in one interval. Let i be
// another that no longer counts when m goes at s. If s > u_i + W⁺, the interval of m began after
// a_i. Otherwise s > h + W⁺. Then the interval of m began after that of the witness. That interval
// ended at b + W⁻ or later, which is after a_i.
//
// b of the first epoch is the instant of its first Admit. The same holds for a later epoch, with
// one exception. A request carried over into the epoch may have begun the interval when the
// witness's interval was over. Then b is W⁻ after the b before it. But a request begins one
// interval at most. So b of epoch k is the least, over r, of r·W⁻ after the first Admit of epoch
// k − r. r goes back over as many epochs in a row as there were requests to be carried over, and at
// most to the first epoch. In any case b is no less than the epoch's own first Admit less W⁺.
//
// A simpler rule would put each epoch's b at W⁻ after the last. Then a chain of slow requests would
// let b lag by a whole interval, and only the rate of Rolling would be left.
//
// The proof rests on the length of an interval by our clock, as that of no other kind does. Margin
// allows for drift. If our clock is set back, an interval is shorter than W⁻ by that unknown step.
// So a change with an earlier time than the one before it has two effects. Requests that were not
// over by then count until u_i + W⁺, and b of later epochs is not derived from earlier ones. A step
// back between two changes is not visible. Use a clock that is never set, as Gate and Pool do.
//
// Not safe for concurrent use. It allocates only while the history grows beyond its largest size so
// far. Its memory is that of Rolling, and 6 kB for the last 256 epochs. If slow requests may have
// begun more epochs in a row than these, it counts as Rolling does.
type Anchored struct {
	account
	over    time.Duration // W⁺
	least   time.Duration // W⁻
	settled log
	epoch   uint64
	begun   mono.Time // b of the epoch
	witness mono.Time // h; Never: no witness yet
	sent    Book[anchoredSent]
	margin  time.Duration // as given
	// fresh counts the requests of this epoch that are open, or were settled too late to be over
	// with its interval.
	fresh  int64
	past   [anchoredPast]anchoredEpoch
	recent meter
}

// anchoredSent is the record of an open request: its epoch, and its Admit.
type anchoredSent struct {
	epoch uint64
	at    mono.Time
}

// anchoredEpoch is an epoch of the past: its first Admit, the requests carried over into it, and
// how many of these for the first time. Settled requests are counted by their cost, which is no
// less than their number.
type anchoredEpoch struct {
	first          mono.Time
	carried, fresh int64
	stepped        bool // the clock was set back in this epoch, or the window changed
}

const anchoredPast = 256

// AnchoredConfig describes a server's window that begins with a message.
type AnchoredConfig struct {
	// Limit is the most cost in any interval.
	Limit  int64
	Window time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is how much longer or shorter than Window an interval may be by our clock. If zero,
	// 1.1 ms + Window/10000. Negative: none.
	Margin time.Duration
	Arrivals
}

// NewAnchored checks the configuration and returns an Anchored with an empty history.
func NewAnchored(c AnchoredConfig) (*Anchored, error) {
	a, err := newAccount("Anchored", CountsWindow, c.Limit, c.Window, c.Unit, c.Arrivals)
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

// see checks whether the clock was set back. A request that was over at the last change stays over:
// the clock had not been set back by then.
func (a *Anchored) see(now mono.Time) {
	if now >= a.last || a.pair != nil {
		return
	}
	a.forget(a.last)
	a.doubt()
}

// doubt makes each request that is not over count until u_i + W⁺. It is no longer known that an
// interval has lasted as long as W⁻.
func (a *Anchored) doubt() {
	a.begun = mono.Min
	a.past[a.epoch%anchoredPast].stepped = true
}

// SetWindow changes the interval from now on; the history stays. The server's current interval may
// have begun at any instant since d ago. So until the next epoch settled requests count until
// u_i + W⁺ of the new window, as in Rolling. The forgotten cost counts so, too, as of its last
// arrival. The rest is as with Rolling.
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
func (a *Anchored) Admit(s *Sent) {
	if a.pair != nil {
		a.pair.Admit(s)
		return
	}
	a.see(s.At)
	now := max(s.At, a.last)
	a.turn(now)
	a.admit(s)
	a.sent.Open(s.Number, anchoredSent{a.epoch, now})
	a.fresh++
}

// turn begins a new epoch if the current one is over.
func (a *Anchored) turn(now mono.Time) {
	a.forget(now)
	none := a.sent.Len() == 0 && a.settled.n == 0
	if !none && (a.witness == Never || a.witness.Add(a.over) > now) {
		return
	}
	a.epoch++
	a.witness = Never
	k := a.epoch
	a.past[k%anchoredPast] = anchoredEpoch{now, int64(a.sent.Len()) + a.settled.total, a.fresh, false}
	a.fresh = 0
	a.begun = max(a.earliest(k), now.Add(-a.over))
}

// earliest returns the least possible b of epoch k, which begins now.
func (a *Anchored) earliest(k uint64) mono.Time {
	least := a.past[k%anchoredPast].first
	later := int64(0) // the cost carried over for the first time into later epochs
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

// forget drops the requests that no longer count.
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
func (a *Anchored) Settle(now mono.Time, s *Sent, o *Outcome) {
	if a.pair != nil {
		a.pair.Settle(now, s, o)
		return
	}
	a.see(now)
	own := a.sent.Close(s.Number).epoch == a.epoch
	before := a.total
	now, u, w := a.close(now, s, o)
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
	// A refusal may come from another limit. Then the request began no interval here.
	if o.Result == Accepted {
		a.witness = min(a.witness, u)
	}
}

// AppendUsage implements Describer.
func (a *Anchored) AppendUsage(to []Usage, now mono.Time) []Usage {
	if a.pair != nil {
		return a.pair.appendUsage(to, now)
	}
	now = max(now, a.last)
	over := sort.Search(a.settled.n, func(i int) bool { return a.freed(a.settled.at(i).at) > now })
	u := a.usage(now, a.open+a.settled.total-a.settled.upTo(over))
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

// oldestPast returns the number of the oldest epoch in memory. Epochs are counted from 1.
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
	for sent := range a.sent.All() {
		sent.epoch = a.epochAt(sent.at)
	}
	return nil
}

// epochAt returns the epoch of an admission at t of a request that is open. Of two epochs that
// begin at one instant, the first has no open request.
func (a *Anchored) epochAt(t mono.Time) uint64 {
	for k := a.epoch; k >= a.oldestPast(); k-- {
		if a.past[k%anchoredPast].first <= t {
			return k
		}
	}
	return 0
}

// ReadyAfter implements Forecaster. It is not known.
func (a *Anchored) ReadyAfter(mono.Time, Cost, Cost) mono.Time { return Never }

// NotBefore implements Forecaster. It does not count the requests ahead. It uses one fact: nothing
// ends sooner than the earliest possible witness allows.
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
