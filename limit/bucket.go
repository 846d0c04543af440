package limit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Bucket keeps to a token bucket: Burst at once, and Limit per Window in the long run. GCRA is the
// same, and so is a leaky bucket used as a meter. Θ is the instant at which the bucket would be
// full again. It is folded over the settled requests by their upper bounds of arrival u:
//
//	Θ ← max(Θ, u_i) + w_i·p,   p = Window·1.0002 / Limit, in whole ns, rounded up
//
// A cost w may go at s when, with I = Σ open,
//
//	I + w ≤ Burst   and   s ≥ Θ + (I + w − Burst)·p
//
// Why no request is refused: consider the requests that arrive from a_i to a_j. Let m be the last
// sent among them. When m was admitted, each other was either open or folded at its u ≥ a_i. So
// Θ ≥ a_i + Σ folded·p. The admission of m bounds their sum by Burst and the refill from a_i to
// s ≤ a_m ≤ a_j. Two numbers keep the whole recursion. A history cut to some length would let the
// rate drift upward until a refusal.
//
// A server that counts in milliseconds sees an interval up to a tick too short, which Margin
// covers. That matters only if more than Burst has gone since the bucket was full. It matters once,
// not per request, unless Burst is 1 and the bucket is full before each request. So Bucket keeps,
// beside Θ, the cost since the bucket was full. It keeps the same for each earlier time at which
// the bucket was full, as long as that Θ is less than Margin behind. The server may see no refill
// between the two.
//
// The open cost is taken out of the bucket. So the whole rate is used only if
// Burst − 1 > Limit/Window · the mean round trip. With a smaller Burst, about Burst goes in the
// time of a round trip and Window/Limit.
//
// Not safe for concurrent use. Ready, Admit and Settle allocate only for requests of unknown
// outcome: 16 bytes each until they can no longer arrive.
type Bucket struct {
	account // limit is Burst
	per     time.Duration
	margin  time.Duration
	levels  levels
	scratch []level // Ready works here, so it changes nothing else
	late    log     // requests of unknown outcome, by their u
	rate    rate
	raised  mono.Time // when the rate rose last; before that the refill was less than per says
	alone   bool
	recent  meter
}

// levels keeps the folded part of a bucket. There is a level for each instant at which the bucket
// was full, oldest first. From one level to the next Θ rises, and the cost since then falls. A fold
// changes all levels alike, so took and gone keep that change once.
type levels struct {
	list []level
	head int           // index of the first level in use
	took time.Duration // Θ of a level is its full plus took
	gone int64         // the folded cost, on the scale of each level's before
}

type level struct {
	full   mono.Time // Θ − took
	before int64     // the part of gone folded before this level
}

// maxLevels is the largest number of levels after an Admit.
const maxLevels = 4

func (v *levels) len() int             { return len(v.list) - v.head }
func (v *levels) full(i int) mono.Time { return v.list[v.head+i].full.Add(v.took) }
func (v *levels) since(i int) int64    { return v.gone - v.list[v.head+i].before }
func (v *levels) one(full mono.Time, since int64) {
	*v = levels{list: append(v.list[:0], level{full, 0}), gone: min(since, 2*MaxCost)}
}

// fold adds a cost w at u that is refilled in d.
func (v *levels) fold(u mono.Time, w int64, d, margin time.Duration) {
	if n := v.len(); n == 0 {
		v.one(u, 0)
	} else if u > v.full(n-1) {
		if v.head > 0 && len(v.list) == cap(v.list) {
			v.list = v.list[:copy(v.list, v.list[v.head:])]
			v.head = 0
		}
		v.list = append(v.list, level{u.Add(-v.took), v.gone})
	}
	for last := v.list[len(v.list)-1].full; v.len() > 1 && v.list[v.head].full.Add(margin) <= last; {
		v.head++
	}
	if v.len() == 1 || v.gone > 1<<60 { // before gone overflows, all levels become one
		v.one(v.full(v.len()-1).Add(d), v.since(0)+w)
		return
	}
	v.took += d
	v.gone += w
}

type rate struct {
	limit  int64
	window time.Duration
}

// per returns how long the refill of one unit takes, by a clock that may drift against ours.
func (r rate) per() time.Duration {
	w := uint64(r.window)
	w += w/5000 + 1
	return time.Duration((w-1)/uint64(r.limit) + 1)
}

// fills refuses a bucket that would take so long to fill that instants overflow.
func (r rate) fills(kind string, burst int64) error {
	const longest = time.Duration(1 << 61)
	if d := scale(r.per(), time.Duration(burst), 1); d > longest {
		return fmt.Errorf("limit: %s: Burst %d at %d per %v takes longer than %v to fill", kind, burst, r.limit, r.window, longest)
	}
	return nil
}

// BucketConfig describes a server's token bucket. Limit and Window have no default.
type BucketConfig struct {
	// Limit is the refill per Window. A server that rounds each refill down gives less. nginx gives
	// up to a thousandth per request less, if its rate in thousandths of a request per second is no
	// whole number: 10r/m is 166 per 1001 s.
	Limit  int64
	Window time.Duration
	// Burst is the size of the full bucket: the most that may arrive at once. If zero, Limit.
	// nginx's burst=b and GCRA's "b extra" are Burst b + 1.
	Burst int64
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is one tick of the server's clock and a little. If zero, 1.1 ms. Negative: none.
	Margin time.Duration
	// Alone says that a full bucket serves a cost above Burst, too, and is then overdrawn: nothing
	// else goes until the refill. With Alone such a request goes when nothing is open and
	// everything sent has been refilled. Without Alone it never goes.
	Alone bool
	Arrivals
}

// defaultTick is a tick of a server that counts in milliseconds, and 0.1 ms more.
const defaultTick = 1100 * time.Microsecond

// NewBucket checks the configuration and returns a Bucket that is full, as a server's is after a
// long pause. An error names the wrong field and its allowed values.
func NewBucket(c BucketConfig) (*Bucket, error) {
	c.Burst = cmp.Or(c.Burst, c.Limit)
	a, err := newAccount("Bucket", CountsBucket, c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	if c.Burst < 1 || c.Burst > MaxCost {
		return nil, fmt.Errorf("limit: Bucket: Burst %d is not between 1 and %d", c.Burst, int64(MaxCost))
	}
	a.limit = c.Burst
	m := cmp.Or(c.Margin, defaultTick)
	r := rate{c.Limit, c.Window}
	if err := r.fills("Bucket", c.Burst); err != nil {
		return nil, err
	}
	b := &Bucket{account: a, rate: r, per: r.per(), margin: max(m, 0), raised: mono.Min, alone: c.Alone}
	if c.OneWayMax > 0 {
		bold, safe := *b, *b
		safe.sure()
		b.pair = newPair(&bold, &safe)
	}
	return b, nil
}

// SetLimit changes the refill to n per Window from now on. The missing part of the bucket stays
// missing.
func (b *Bucket) SetLimit(now mono.Time, n int64) error {
	if err := checkLimit("Bucket", n); err != nil {
		return err
	}
	return b.setRate(now, rate{n, b.rate.window})
}

// SetWindow changes the refill to Limit per d from now on. The missing part of the bucket stays
// missing: it belongs to no window, and nothing was forgotten. As after SetLimit, call Ready again.
func (b *Bucket) SetWindow(now mono.Time, d time.Duration) error {
	if err := checkWindow("Bucket", d); err != nil {
		return err
	}
	return b.setRate(now, rate{b.rate.limit, d})
}

func (b *Bucket) setRate(now mono.Time, r rate) error {
	if err := r.fills("Bucket", b.limit); err != nil {
		return err
	}
	now = max(now, b.last)
	b.last = now
	b.fold(now)
	before := b.per
	b.rate = r
	b.per = r.per()
	if b.pair != nil {
		return change(b.pair, func(l *Bucket) error { return l.setRate(now, r) })
	}
	if b.per <= before {
		b.raised = now
		for i := range b.levels.len() {
			l := &b.levels.list[b.levels.head+i]
			if full := b.levels.full(i); full > now {
				full = now.Add(scale(full.Sub(now), b.per, before))
				l.full = full.Add(-b.levels.took)
			}
		}
		return nil
	}
	// The rate falls. A tick's loss was refilled at the old rate, and takes longer at the new one.
	// Levels less than a tick apart may now be more than Margin apart. So one level takes the place
	// of all. No more is missing than has gone.
	if n := b.levels.len(); n > 0 {
		full := b.levels.full(n - 1).Add(b.margin)
		if full > now {
			full = now.Add(scale(full.Sub(now), b.per, before))
		}
		since := b.levels.since(0)
		b.levels.one(min(full.Add(-b.margin), now.Add(b.times(since))), since)
	}
	return nil
}

// SetBurst changes the size of the bucket from now on. Its content stays: a larger bucket has to
// fill.
func (b *Bucket) SetBurst(now mono.Time, n int64) error {
	if n < 1 || n > MaxCost {
		return fmt.Errorf("limit: Bucket: Burst %d is not between 1 and %d", n, int64(MaxCost))
	}
	if err := b.rate.fills("Bucket", n); err != nil {
		return err
	}
	now = max(now, b.last)
	b.fold(now)
	if n > b.limit {
		b.take(&b.levels, now, n-b.limit)
	}
	b.last, b.limit = now, n
	if b.pair != nil {
		return errors.Join(b.pair.bold.(*Bucket).SetBurst(now, n), b.pair.safe.(*Bucket).SetBurst(now, n))
	}
	return nil
}

// Alone reports whether a cost above Burst goes by itself: see BucketConfig.
func (b *Bucket) Alone() bool { return b.alone }

// scale returns d·num/den, rounded up.
func scale(d, num, den time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(num))
	if hi >= uint64(den) {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, uint64(den))
	if r > 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64))
}

// times returns n·per, within ±math.MaxInt64.
func (b *Bucket) times(n int64) time.Duration {
	if n < 0 {
		return -b.times(-n)
	}
	return scale(time.Duration(n), b.per, 1)
}

func (b *Bucket) take(v *levels, u mono.Time, w int64) { v.fold(u, w, b.times(w), b.margin) }

// fold takes requests of unknown outcome out of the bucket once they can no longer arrive.
func (b *Bucket) fold(now mono.Time) {
	for b.late.n > 0 && b.late.at(0).at <= now {
		u := b.late.at(0).at
		b.take(&b.levels, u, b.late.upTo(1))
		b.late.forget(u)
	}
}

// asks returns the part of a cost that the bucket must hold. With Alone that is at most a full
// bucket.
func (b *Bucket) asks(w int64) int64 {
	if b.alone {
		return min(w, b.limit)
	}
	return w
}

// Ready implements Limiter.
func (b *Bucket) Ready(now mono.Time, cost Cost) mono.Time {
	if b.pair != nil {
		return b.pair.Ready(now, cost)
	}
	t := max(now, b.last)
	w := cost.of(b.unit)
	if w == 0 {
		return t
	}
	if w = b.asks(w); w > b.limit {
		return Never
	}
	levels := b.levels
	open := b.open + b.late.total + w
	// In turn i the first i late requests count as folded. That holds from the u of the i-th on.
	for i := 0; ; i++ {
		next := Never
		if i < b.late.n {
			next = b.late.at(i).at
		}
		if next > t {
			ready := t
			if open > b.limit {
				ready = AfterSettle
			} else {
				n := sort.Search(levels.len(), func(i int) bool { return levels.since(i)+open <= b.limit })
				if n > 0 { // the last of these levels is full the latest
					ready = max(t, levels.full(n-1).Add(b.times(open-b.limit)).Add(b.margin-b.ahead()))
				}
			}
			if ready < next {
				return ready
			}
			t = next
		}
		if i == 0 {
			b.scratch = append(b.scratch[:0], levels.list[levels.head:]...)
			levels.list, levels.head = b.scratch, 0
		}
		w := b.late.upTo(i+1) - b.late.upTo(i)
		b.take(&levels, next, w)
		b.scratch = levels.list
		open -= w
	}
}

// simplify keeps the last maxLevels levels. The first of them takes over the cost since the oldest.
func (v *levels) simplify() {
	if v.len() > maxLevels {
		n := len(v.list) - maxLevels
		v.list[n].before = v.list[v.head].before
		v.head = n
	}
}

// Admit implements Limiter.
func (b *Bucket) Admit(s *Sent) {
	if b.pair != nil {
		b.pair.Admit(s)
		return
	}
	b.levels.simplify() // not in Settle, since Settle must not make Ready later
	b.admit(s)
}

// Settle implements Limiter.
func (b *Bucket) Settle(now mono.Time, s *Sent, o *Outcome) {
	if b.pair != nil {
		b.pair.Settle(now, s, o)
		return
	}
	before := b.total
	now, u, w := b.close(now, s, o)
	b.recent.add(now, b.rate.window, before)
	u = max(u, b.raised)
	b.fold(now)
	switch {
	case w == 0:
	case u > now:
		b.late.add(u, w)
	default:
		b.take(&b.levels, u, w)
	}
}

// AppendUsage implements Describer. An overdrawn bucket is used up.
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
	u := b.usage(now, b.limit-fits)
	u.Window, u.PerWindow = b.rate.window, b.rate.limit
	u.Recent = b.recent.within(now, b.rate.window, b.total)
	return append(to, u)
}

// room returns the cost that may go at an instant.
func (b *Bucket) room(at mono.Time) int64 {
	return int64(sort.Search(int(b.limit), func(n int) bool {
		var c Cost
		c[b.unit] = int64(n) + 1
		return b.Ready(at, c) > at
	}))
}

// Rules implements Describer.
func (b *Bucket) Rules() []Rule {
	return []Rule{{Name: b.unit.String(), Unit: b.unit, N: b.rate.limit, Per: b.rate.window, Burst: b.limit, Counts: CountsBucket}}
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

// ReadyAfter implements Forecaster.
func (b *Bucket) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	if b.pair != nil {
		return b.pair.ReadyAfter(now, first, cost)
	}
	if b.levels.len() > maxLevels { // Admit would simplify
		after := *b
		after.levels.list = slices.Clone(b.levels.list)
		after.levels.simplify()
		b = &after
	}
	both := b.both(first, cost)
	if b.alone && both.of(b.unit) > b.limit && first.of(b.unit) > 0 && cost.of(b.unit) > 0 {
		return AfterSettle // neither is alone
	}
	return b.Ready(now, both)
}

// NotBefore implements Forecaster. The open and ahead costs may be folded in any order. Θ then
// becomes at least its present value, and at least the first fold's instant. All refills come on
// top. If more is ahead than fits into the bucket, some of it arrives now or later. The refill of
// that excess comes on top, too.
func (b *Bucket) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if b.pair != nil {
		return b.pair.NotBefore(now, n, ahead, cost)
	}
	cost[b.unit] = b.asks(cost.of(b.unit))
	q, t, done := b.ask(now, &ahead, &cost)
	if done || b.alone && q.cost == 0 { // the last request ahead may have overdrawn the bucket by any amount
		return t
	}
	from := q.now // every later fold arrives at this instant or after it
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
