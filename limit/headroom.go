package limit

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Headroom is a Limiter that uses a part of the limits in it. The rest stays free for others who use
// the same quota, and after a pause the load can rise slowly. With r the part that is free now,
//
//	r = max(1 − Use, 1 − t/Ramp)
//
// where t is the time since the ramp began. A cost goes when it leaves r·N of each limit N free: see
// ReadyLeaving. So no window has more than (1 − r)·N, but for one cost that is larger than that: it
// goes when all of N is free. What refills evenly (Bucket, Produced) would still give its whole rate.
// There a level of its own refills at (1 − r) of the rate, and holds (1 − r)·Burst.
//
// A ramp begins with the first Admit, with the first after a time without a request in flight, and
// with Begin. That time is the longer one of Ramp and the Span of the limits.
//
// NewHeadroom makes it. Not safe for concurrent use. It can only be stricter than the Limiter in it,
// which belongs to it. Ready, Admit and Settle do not allocate. While a ramp lasts, Ready costs some
// 40 times that of the limits in it.
type Headroom struct {
	limiter Limiter
	made    [1]Limiter
	use     float64
	ramp    time.Duration
	began   mono.Time // of the ramp; mono.Min: there was none
	idle    mono.Time // since when nothing is in flight
	last    mono.Time
	open    int
	blanks  int           // of these, without a cost: as in a turn of a store, they are no load
	after   uint64        // requests up to this one are not its own
	once    time.Duration // the length of a ramp that is not repeated; 0: none
	tanks   []tank
}

// HeadroomConfig describes a Headroom. Only Limiter has no default.
type HeadroomConfig struct {
	// Limiter has the limits, which others use, too. It may be of any kind. A part without ReadyLeaving,
	// such as a share.Member, is used as a whole.
	Limiter Limiter
	// Use is the part of each limit that is used, above 0 and at most 1. If zero, 1.
	Use float64
	// Ramp is the time in which the used part grows evenly from nothing to all. If zero, there is no
	// ramp.
	Ramp time.Duration
	// After is the Number of the latest request that the Limiter has admitted without the Headroom.
	After uint64
}

// Check returns an error that names the field that makes no sense, and its value.
func (c *HeadroomConfig) Check() error {
	switch {
	case !(c.Use >= 0 && c.Use <= 1): // NaN, too
		return fmt.Errorf("limit: Headroom: Use %v is not between 0 and 1", c.Use)
	case c.Ramp < 0:
		return fmt.Errorf("limit: Headroom: Ramp %v is negative", c.Ramp)
	}
	return nil
}

// NewHeadroom checks the configuration and returns a Headroom that has sent nothing. The error names
// the field and the value.
func NewHeadroom(c HeadroomConfig) (*Headroom, error) {
	if c.Limiter == nil {
		return nil, fmt.Errorf("limit: Headroom: the Limiter is nil")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	h := &Headroom{limiter: c.Limiter, made: [1]Limiter{c.Limiter}, began: mono.Min, idle: mono.Min, last: mono.Min,
		after: c.After}
	h.set(c.Use, c.Ramp)
	h.Follow(mono.Min)
	return h, nil
}

func (h *Headroom) set(use float64, ramp time.Duration) {
	h.use, h.ramp = cmp.Or(use, 1), ramp
}

// Set changes the part and the ramp from now on, by HeadroomConfig's rules. It begins no ramp, and
// returns the error of Check. As after SetLimit, call Ready again.
func (h *Headroom) Set(now mono.Time, use float64, ramp time.Duration) error {
	if err := (&HeadroomConfig{Use: use, Ramp: ramp}).Check(); err != nil {
		return err
	}
	h.pass(now)
	h.set(use, ramp)
	return nil
}

// Begin begins a ramp, as after a refusal for a load that rose too quickly.
func (h *Headroom) Begin(now mono.Time) {
	h.BeginOnce(now, 0)
}

// BeginOnce is Begin for a Headroom without a Ramp: there is one of that length, and no other later.
func (h *Headroom) BeginOnce(now mono.Time, ramp time.Duration) {
	h.pass(now)
	h.began, h.once = h.last, ramp
	for i := range h.tanks { // they begin anew
		h.tanks[i].level = 0
	}
	if h.open == h.blanks {
		h.idle = h.last
	}
}

// Follow adapts h to a Limiter that got other parts, as after Varying.Change.
func (h *Headroom) Follow(now mono.Time) {
	h.last = max(now, h.last)
	was := h.tanks
	h.tanks = nil
	visit(h.limiter, nil, func(l Limiter, _ *string) bool {
		t := tank{at: h.last}
		switch l := l.(type) {
		case *Bucket:
			t.of, t.rate, t.burst, t.unit, t.counts = l, &l.rate, &l.limit, l.unit, true
		case *Produced:
			t.of, t.rate, t.burst, t.unit = l, &l.rate, &l.burst, l.unit
		default:
			return false
		}
		for i := range was {
			if was[i].of == t.of {
				t = was[i]
			}
		}
		h.tanks = append(h.tanks, t)
		return true
	})
}

// Unwrap returns the Limiter in it.
func (h *Headroom) Unwrap() []Limiter { return h.made[:] }

// used returns the part that is used at an instant: 1 − r.
func (h *Headroom) used(at mono.Time) float64 {
	if at >= h.ends() {
		return h.use
	}
	return max(float64(at.Sub(h.began)), 0) / float64(h.rises())
}

// rises returns the length of the present ramp.
func (h *Headroom) rises() time.Duration {
	if h.ramp > 0 {
		return h.ramp
	}
	return h.once
}

// ends returns the instant from which all of Use is used.
func (h *Headroom) ends() mono.Time {
	if h.rises() == 0 || h.began == mono.Min {
		return mono.Min
	}
	return h.began.Add(time.Duration(h.use * float64(h.rises())))
}

// Free returns the part that stays free at now: r.
func (h *Headroom) Free(now mono.Time) float64 { return 1 - h.used(max(now, h.last)) }

// Ready implements Limiter.
func (h *Headroom) Ready(now mono.Time, cost Cost) mono.Time { return h.ready(now, nil, &cost) }

// ready is Ready, or ReadyAfter if first is not nil.
func (h *Headroom) ready(now mono.Time, first, cost *Cost) mono.Time {
	t := max(now, h.last)
	ends := h.ends()
	last := h.leaves(t, max(t, ends), first, cost) // with all of Use
	for i := range h.tanks {
		last = max(last, h.tanks[i].empties(h, max(t, ends), first, cost))
	}
	if last >= AfterSettle {
		return last
	}
	if h.may(t, t, first, cost) {
		return t
	}
	if t >= ends && len(h.tanks) == 0 {
		return last
	}
	// The free part only falls, so what may go at one instant may go at each later one.
	low, high := t, max(last, ends) // not at low, and at high
	for high-low > 1 {
		if middle := low + (high-low)/2; h.may(t, middle, first, cost) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// leaves returns when a cost may go, as of now, with the part that is free at an instant.
func (h *Headroom) leaves(now, at mono.Time, first, cost *Cost) mono.Time {
	return ReadyLeaving(h.limiter, now, first, *cost, 1-h.used(at))
}

// may reports whether a cost may go at an instant, as of now.
func (h *Headroom) may(now, at mono.Time, first, cost *Cost) bool {
	for i := range h.tanks {
		if !h.tanks[i].may(h, at, first, cost) {
			return false
		}
	}
	return h.leaves(now, at, first, cost) <= at
}

// ReadyAfter implements Forecaster. A ramp that the first would begin is not foreseen: then it returns
// AfterSettle.
func (h *Headroom) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	t := h.ready(now, &first, &cost)
	if h.begins(max(now, h.last)) {
		t = max(t, AfterSettle)
	}
	return t
}

// NotBefore implements Forecaster.
func (h *Headroom) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	t := max(h.last, NotBefore(h.limiter, now, n, ahead, cost))
	if n == 0 && h.open == 0 && ahead == (Cost{}) {
		t = max(t, h.ready(now, nil, &cost))
	}
	return t
}

// expected guesses what Expected does: where a part is used, all that goes uses so much more.
func (h *Headroom) expected(now mono.Time, n int, ahead, cost Cost) mono.Time {
	now = max(now, h.last)
	for u := range ahead {
		if all := ahead[u] + cost[u]; all > 0 {
			ahead[u] = int64(min(float64(all)/h.use, MaxCost)) - cost[u]
		}
	}
	t := Expected(h.limiter, now, int(float64(n+1)/h.use)-1, ahead, cost)
	if ends := h.ends(); t > now && t < AfterSettle && now < ends {
		// The part grows evenly until then, so half of what is missing now is lost.
		t = t.Add(time.Duration(float64(ends.Sub(now)) / 2 * (1 - h.used(now)/h.use)))
	}
	return t
}

// ReadyLeaving is the function ReadyLeaving. What is left free is not the same for all, so the larger part counts.
func (h *Headroom) ReadyLeaving(now mono.Time, first *Cost, cost Cost, free float64) mono.Time {
	return max(plainly(h, now, first, cost), ReadyLeaving(h.limiter, max(now, h.last), first, cost, free))
}

// begins reports whether the next Admit begins a ramp.
func (h *Headroom) begins(now mono.Time) bool {
	if h.ramp == 0 || h.open > h.blanks {
		return false
	}
	rested := now.Sub(h.idle)
	return h.began == mono.Min || rested >= h.ramp && rested >= Span(h.limiter)
}

// pass notes that time has passed.
func (h *Headroom) pass(now mono.Time) {
	h.last = max(now, h.last)
	for i := range h.tanks {
		t := &h.tanks[i]
		t.level, t.at = t.left(h, h.last), h.last
	}
}

// Admit implements Limiter.
func (h *Headroom) Admit(s *Sent) {
	counts := s.Cost != (Cost{})
	if counts && h.begins(max(s.At, h.last)) {
		h.Begin(s.At)
	}
	h.pass(s.At)
	h.limiter.Admit(s)
	if h.open++; !counts {
		h.blanks++
	}
	for i := range h.tanks {
		h.tanks[i].open += h.tanks[i].asks(&s.Cost)
	}
}

// Settle implements Limiter.
func (h *Headroom) Settle(now mono.Time, s *Sent, o *Outcome) {
	h.pass(now)
	h.limiter.Settle(now, s, o)
	if s.Number <= h.after {
		return
	}
	h.open--
	switch {
	case s.Cost == (Cost{}):
		h.blanks--
	case h.open == h.blanks:
		h.idle = h.last
	}
	for i := range h.tanks {
		t := &h.tanks[i]
		t.open -= t.asks(&s.Cost)
		if o.Result != Unsent {
			c := &s.Cost
			if o.Metered {
				c = &o.Actual
			}
			t.level += float64(c.of(t.unit))
		}
	}
}

// AppendState implements Keeper, if the limits in it are Keepers.
func (h *Headroom) AppendState(b []byte) []byte {
	w := begun(b, 'h')
	w.number(int64(math.Float64bits(h.use)))
	w.number(int64(h.ramp))
	w.number(int64(h.once))
	for _, t := range []mono.Time{h.began, h.idle, h.last} {
		w.instant(t)
	}
	for i := range h.tanks {
		w.number(int64(math.Float64bits(h.tanks[i].level)))
		w.instant(h.tanks[i].at)
	}
	part := appendState(nil, h.limiter)
	w.number(int64(len(part)))
	return append(w, part...)
}

// Restore implements Keeper.
func (h *Headroom) Restore(state []byte) error {
	r := reading("Headroom", 'h', state)
	use := math.Float64frombits(r.uvarint("the part that is used"))
	ramp := time.Duration(r.number("the ramp", 0, math.MaxInt64))
	once := time.Duration(r.number("a ramp that is not repeated", 0, math.MaxInt64))
	began, idle := r.instant("the beginning of the ramp"), r.instant("the last answer")
	last := r.instant("the last change")
	tanks := make([]tank, len(h.tanks))
	for i := range tanks {
		level := math.Float64frombits(r.uvarint("a level"))
		if r.err == nil && !(level >= 0 && level <= MaxCost) {
			return r.fail("a level of %v", level)
		}
		tanks[i].level, tanks[i].at = level, r.instant("the time of a level")
	}
	part := r.bytes("the limit")
	if err := r.end(); err != nil {
		return err
	}
	if !(use > 0) || (&HeadroomConfig{Use: use}).Check() != nil {
		return r.fail("a part of %v is used", use)
	}
	if err := Restore(h.limiter, part); err != nil {
		return fmt.Errorf("limit: Headroom: %w", err)
	}
	h.use, h.ramp, h.once, h.began, h.idle = use, ramp, once, began, idle
	h.last = max(h.last, last)
	for i := range tanks {
		h.tanks[i].level, h.tanks[i].at = tanks[i].level, tanks[i].at
	}
	return nil
}

// tank is the use of a bucket as if it held and gave only the used part.
type tank struct {
	of     Limiter
	rate   *rate
	burst  *int64
	unit   Unit
	counts bool // a request counts while it is open
	open   int64
	level  float64 // what is missing in it, at the instant at
	at     mono.Time
}

// asks returns what a request in flight takes.
func (t *tank) asks(cost *Cost) int64 {
	if !t.counts || cost == nil {
		return 0
	}
	return cost.of(t.unit)
}

// speed returns how much a second of the whole rate gives, times a nanosecond.
func (t *tank) speed() float64 { return float64(t.rate.limit) / float64(t.rate.window) }

// left returns what is missing at a later instant.
func (t *tank) left(h *Headroom, at mono.Time) float64 {
	if t.level == 0 || at <= t.at {
		return t.level
	}
	gave := 0.0 // the used part, summed over the time in ns
	from := t.at
	if until := min(h.ends(), at); from < until {
		a, b := max(float64(from.Sub(h.began)), 0), float64(until.Sub(h.began))
		gave, from = (b*b-a*a)/2/float64(h.rises()), until
	}
	if at > from {
		gave += h.use * float64(at.Sub(from))
	}
	return max(t.level-gave*t.speed(), 0)
}

// may reports whether a cost may go at an instant. One that is larger than the tank waits until nothing
// is missing.
func (t *tank) may(h *Headroom, at mono.Time, first, cost *Cost) bool {
	w := float64(cost.of(t.unit))
	if w == 0 {
		return true
	}
	most := h.used(at) * float64(*t.burst)
	return t.left(h, at)+float64(t.open+t.asks(first))+min(w, most) <= most*(1+1e-12)
}

// empties returns an instant at which nothing is missing and all of Use is used: AfterSettle if the
// requests in flight take too much.
func (t *tank) empties(h *Headroom, from mono.Time, first, cost *Cost) mono.Time {
	w, most := float64(cost.of(t.unit)), h.use*float64(*t.burst)
	if w == 0 {
		return from
	}
	if float64(t.open+t.asks(first))+min(w, most) > most*(1+1e-12) {
		return AfterSettle
	}
	wait := math.Ceil(t.left(h, from) / t.speed() / h.use)
	if wait >= float64(AfterSettle-max(from, 0)) {
		return AfterSettle - 1
	}
	return from.Add(time.Duration(wait) + 1)
}
