package limit

import (
	"errors"
	"fmt"
	"math/bits"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Weighted keeps to a window that a server estimates from two counters. One counts this interval.
// The other counts the interval before it, in proportion to the part that is still in the window.
// Cloudflare counts so, and HAProxy its rates. The beginnings of the intervals need not be known.
//
// Let c be any possible beginning of the server's interval, W⁺ = Window + Window/10000 the interval
// with the drift of the server's clock, and a = s − Margin. A cost w may go at
// s if, for every c with a − W⁺ < c ≤ a,
//
//	Σ open + w + Σ {w_i : u_i ≥ c} + (1 − (a − c)/W⁺) · Σ {w_i : c − W⁺ ≤ u_i < c}  ≤  Limit
//
// Between two neighbours among the instants u_i and u_i + W⁺ the sums do not change, and the factor
// rises with c. So only these instants need a test as c. For one c the estimate falls with s, and
// goes on falling in the next interval. So each c gives an instant, by solution and not by search.
// The earliest s is the latest of these instants.
//
// In the long run no more than Limit goes in the time of W⁺ and a mean round trip, as with Rolling.
// On average over all beginnings c, a request counts for W⁺/2 in its own interval, and for W⁺/2 in
// the next. Its round trip counts in full. The beginning that costs most costs one or two requests
// more per window. Of requests at equal distances Limit − 1 go, which matters if few fit into a
// window.
//
// Not safe for concurrent use. Admit and Settle cost as much as those of Rolling. Ready looks at
// every distinct u of two windows, unless there is room for all of them. With the default Grain
// there are at most 4,000.
type Weighted struct {
	account
	span    time.Duration // W⁺
	margin  time.Duration
	grain   time.Duration
	less    int64 // 1 with RoundsDown: any estimate below the limit plus one passes
	given   struct{ margin, grain time.Duration }
	settled timeline
	// room and after keep the last result of earliest. They hold until the next settlement.
	room   int64 // −1: nothing is kept
	after  mono.Time
	recent meter
}

// WeightedConfig describes a server's weighted window. Limit and Window have no default.
type WeightedConfig struct {
	// Limit is the largest allowed estimate.
	Limit  int64
	Window time.Duration
	// RoundsDown says that the server rounds its estimate down to a whole unit before it compares,
	// as HAProxy does. Then any estimate below Limit + 1 passes, which is 5 % more at a Limit of
	// 20.
	RoundsDown bool
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is one tick of the server's clock and a little. Window/10000 comes on top, for the
	// drift of that clock. If zero, 1.1 ms. Negative: none, and no drift.
	Margin time.Duration
	// Grain makes arrivals within one Grain share an entry, at the end of the Grain. If zero,
	// Window/2000; if negative, each arrival has its own entry.
	Grain time.Duration
	Arrivals
}

// NewWeighted checks the configuration and returns a Weighted with an empty history.
func NewWeighted(c WeightedConfig) (*Weighted, error) {
	a, err := newAccount("Weighted", CountsWeighted, c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	l := &Weighted{account: a, margin: max(c.Margin, 0), settled: timeline{lost: mono.Min}, room: -1}
	l.given.margin, l.given.grain = c.Margin, c.Grain
	if c.RoundsDown {
		l.less = 1
	}
	if c.Margin == 0 {
		l.margin = 1100 * time.Microsecond
	}
	if l.span, l.grain, err = l.spanOf(c.Window); err != nil {
		return nil, err
	}
	if c.OneWayMax > 0 {
		bold, safe := *l, *l
		safe.sure()
		l.pair = newPair(&bold, &safe)
	}
	return l, nil
}

// SetLimit changes the limit from now on; the history stays.
func (l *Weighted) SetLimit(now mono.Time, n int64) error { return l.setLimit("Weighted", now, n) }

// spanOf returns W⁺ and the grain for a window of d.
func (l *Weighted) spanOf(d time.Duration) (span, grain time.Duration, err error) {
	if err := checkWindow("Weighted", d); err != nil {
		return 0, 0, err
	}
	span = d
	if l.given.margin >= 0 {
		span += d / 10000
	}
	grain = max(l.given.grain, 0)
	if l.given.grain == 0 {
		grain = d / 2000
	}
	if grain > d {
		return 0, 0, fmt.Errorf("limit: Weighted: Grain %v is longer than Window %v", grain, d)
	}
	if 2*span+l.margin < d {
		return 0, 0, fmt.Errorf("limit: Weighted: Window %v and Margin %v overflow", d, l.given.margin)
	}
	return span, grain, nil
}

// SetWindow changes the window from now on; the history stays. It counts as if the window had
// always been as long as d. The history holds two windows. The assumptions about forgotten
// requests, and the rest, are as with Rolling. A Grain that was not given becomes that of the new
// window.
func (l *Weighted) SetWindow(now mono.Time, d time.Duration) error {
	span, grain, err := l.spanOf(d)
	if err != nil {
		return err
	}
	l.span, l.grain, l.room = span, grain, -1
	l.settled.recall()
	return l.setWindow(now, d)
}

// Ready implements Limiter.
func (l *Weighted) Ready(now mono.Time, cost Cost) mono.Time {
	if l.pair != nil {
		return l.pair.Ready(now, cost)
	}
	now = max(now, l.last)
	w := cost.of(l.unit)
	if w == 0 || l.open+l.settled.total()+w <= l.limit {
		return now
	}
	if w > l.limit {
		return Never
	}
	room := l.limit - l.open - w
	if room < 0 {
		return AfterSettle
	}
	lead := l.margin - l.ahead()
	if l.room != room {
		l.room, l.after = room, l.earliest(l.last.Add(-lead), room)
	}
	return max(now, l.after.Add(lead))
}

// earliest returns the first instant, t or later, at which the estimate of the settled cost is at
// most room. That holds for every possible beginning of the server's intervals.
//
// A is the cost from c on, and B the cost in the interval before c. A server whose interval begins
// at c finds too much at t if
//
//	(A − room)·W⁺ + B·(c + W⁺ − t) > 0      (and with RoundsDown, room + 1 and ≥)
//
// Most c do not satisfy it. So the test is in floating point, with some slack. An exact solution
// follows only for the c that may satisfy it.
func (l *Weighted) earliest(t mono.Time, room int64) mono.Time {
	at, sum := l.settled.entries()
	n, total := len(at), l.settled.total()+sum[0] // of all entries, and of the forgotten ones before them
	span, wide := l.span, float64(l.span)
	spare := -1e-9 * wide
	most := float64(room + l.less)
	p := n // the first entry not before c − W⁺
	for i := n - 1; i >= 0 && at[i].Add(span) > t; i-- {
		c := at[i]
		for from := c.Add(-span); p > 0 && at[p-1] >= from; {
			p--
		}
		a, b := total-sum[i], sum[i]-sum[p]
		if a > room || (float64(a)-most)*wide+float64(b)*float64(c.Add(span).Sub(t)) > spare {
			t = max(t, l.calm(c, room, b, a))
		}
	}
	q := n // the first entry not before c
	for i := n - 1; i >= 0 && at[i].Add(2*span) > t; i-- {
		c := at[i].Add(span)
		for q > 0 && at[q-1] >= c {
			q--
		}
		a := int64(0)
		if q < n {
			a = total - sum[q]
		}
		b := total - a - sum[i]
		if a > room || (float64(a)-most)*wide+float64(b)*float64(c.Add(span).Sub(t)) > spare {
			t = max(t, l.calm(c, room, b, a))
		}
	}
	return t
}

// calm returns the instant from which a server whose interval begins at c finds at most room. old
// is the cost of the interval before c, and current the cost from c on.
func (l *Weighted) calm(c mono.Time, room, old, current int64) mono.Time {
	over := old + current - room - l.less
	switch {
	case over < 0 || over == 0 && l.less == 0:
		return mono.Min
	case current > room:
		return c.Add(l.span) // from then on current is old
	}
	return c.Add(scale(l.span, time.Duration(over), time.Duration(old)) + time.Duration(l.less))
}

// Admit implements Limiter.
func (l *Weighted) Admit(s *Sent) {
	if l.pair != nil {
		l.pair.Admit(s)
		return
	}
	l.admit(s)
}

// Settle implements Limiter.
func (l *Weighted) Settle(now mono.Time, s *Sent, o *Outcome) {
	if l.pair != nil {
		l.pair.Settle(now, s, o)
		return
	}
	before := l.total
	now, u, w := l.close(now, s, o)
	l.recent.add(now, l.window, before)
	l.room = -1
	l.settled.forget(now.Add(-2*l.span - l.margin))
	if w > 0 {
		l.settled.add(grained(u, l.grain), w)
	}
}

// timeline is a log with running totals. It keeps instants and totals side by side, in order of
// arrival, for a fast sweep.
type timeline struct {
	at   []mono.Time
	sum  []int64   // the costs before each entry, with the forgotten ones, as far as those are still counted
	head int       // index of the first entry that is not forgotten
	end  int64     // the sum that the next entry would have
	lost mono.Time // no earlier than any forgotten arrival
}

func (t *timeline) entries() (at []mono.Time, sum []int64) { return t.at[t.head:], t.sum[t.head:] }

func (t *timeline) total() int64 {
	if t.head == len(t.at) {
		return 0
	}
	return t.end - t.sum[t.head]
}

// freed returns the arrival at which at least cost is free, if arrivals end oldest first. cost must
// be at most the total.
func (t *timeline) freed(cost int64) mono.Time {
	at, sum := t.entries()
	i := sort.Search(len(at)-1, func(i int) bool { return sum[i+1]-sum[0] >= cost })
	return at[i]
}

// last returns the latest arrival, or mono.Min if there is none.
func (t *timeline) last() mono.Time {
	if t.head == len(t.at) {
		return mono.Min
	}
	return t.at[len(t.at)-1]
}

// forget drops the arrivals at or before u.
func (t *timeline) forget(u mono.Time) {
	for t.head < len(t.at) && t.at[t.head] <= u {
		t.lost = max(t.lost, t.at[t.head])
		t.head++
	}
	if uint64(t.gone()) > goneMost {
		t.rebase(MaxCost)
	}
}

// gone returns the forgotten sum. If that was very large, it is MaxCost or more.
func (t *timeline) gone() int64 { return t.end - t.total() }

func (t *timeline) rebase(gone int64) {
	d := gone - t.gone()
	for i := range t.sum[t.head:] {
		t.sum[t.head+i] += d
	}
	t.end += d
}

// recall puts the forgotten cost back, as log.recall does.
func (t *timeline) recall() {
	if t.gone() == 0 {
		return
	}
	cost, at := min(t.gone(), MaxCost), t.lost
	t.rebase(0)
	t.lost = mono.Min
	t.add(at, cost)
}

// add inserts an arrival. It looks for the place from the end.
func (t *timeline) add(u mono.Time, cost int64) {
	if len(t.at) == cap(t.at) && t.head > len(t.at)/2 { // make room at the front instead of growing
		n := copy(t.at, t.at[t.head:])
		copy(t.sum, t.sum[t.head:])
		t.at, t.sum, t.head = t.at[:n], t.sum[:n], 0
	}
	i := len(t.at)
	before := t.end
	for i > t.head && t.at[i-1] > u {
		i--
		before = t.sum[i]
		t.sum[i] += cost
	}
	t.end += cost
	if i > t.head && t.at[i-1] == u {
		return // the sums before it stay, and the later ones were raised above
	}
	t.at = append(t.at, 0)
	t.sum = append(t.sum, 0)
	copy(t.at[i+1:], t.at[i:])
	copy(t.sum[i+1:], t.sum[i:])
	t.at[i], t.sum[i] = u, before
}

// AppendUsage implements Describer. It reports the estimate of a server whose intervals begin at the
// worst instant.
func (l *Weighted) AppendUsage(to []Usage, now mono.Time) []Usage {
	if l.pair != nil {
		return l.pair.appendUsage(to, now)
	}
	now = max(now, l.last)
	u := l.usage(now, l.open+l.estimate(now.Add(l.ahead()-l.margin)))
	u.Recent = l.recent.within(now, l.window, l.total)
	return append(to, u)
}

// estimate returns the smallest room for which earliest lets a request go at t.
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

// finds returns the estimate at t of a server whose interval begins at c and lasts beyond t. That
// is the smallest room for which calm is no later than t.
func (l *Weighted) finds(c, t mono.Time, old, current int64) int64 {
	d := t.Sub(c) - time.Duration(l.less)
	if d < 0 {
		return current + old
	}
	hi, lo := bits.Mul64(uint64(old), uint64(d))
	gone, _ := bits.Div64(hi, lo, uint64(l.span))
	return max(current, current+old-int64(gone)-l.less)
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

// ReadyAfter implements Forecaster.
func (l *Weighted) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return l.Ready(now, l.both(first, cost))
}

// NotBefore implements Forecaster, as that of Rolling: here, too, no span of one window may hold
// more.
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
	if l.open == 0 && q.ahead >= 0 && l.lead == nil { // then the instant of Ready does not become sooner
		t = max(t, l.Ready(now, cost))
	}
	return t
}
