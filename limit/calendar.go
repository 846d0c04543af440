package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Calendar keeps every interval of a server's clock at or under a limit: so many per minute of the
// clock, per UTC day, or per day of Los Angeles. It needs to know when the intervals begin. It then
// allows more than Rolling: a whole limit late in one interval, and another early in the next. If
// the beginnings are not known, Rolling is right. For a day of a place with summer time its Window
// must be 25 h, since one day a year is that long.
//
// A cost w may go at s when, with b the beginning of the interval that s − Skew is in,
//
//	Σ open + w + Σ {w_i : u_i ≥ b − Skew} ≤ Limit
//
// Why no interval overflows: let m be the last sent of the requests that arrive in an interval. m
// is sent either after the interval's beginning or before it. In the first case each other request
// is open or has u_i ≥ a_i. a_i is not before the true beginning. That is not before b − Skew. In
// the second case b is an earlier beginning, and more is counted.
//
// Not safe for concurrent use. Ready, Admit and Settle do not allocate. All requests settled in one
// interval share one entry of 16 bytes.
type Calendar struct {
	account
	phase   mono.Time
	zone    *zoned // nil: intervals of one length, from phase on
	skew    time.Duration
	settled log       // keyed by when a request no longer counts, not by its arrival
	given   bool      // the configuration named a skew
	latest  mono.Time // upper bound of all arrivals so far
	recent  meter
}

// CalendarConfig describes a server's window that is aligned to a clock.
type CalendarConfig struct {
	// Limit is the most cost in any interval.
	Limit  int64
	Window time.Duration
	// Phase is the beginning of any one interval, on the driver's scale: mono.Of(epoch, midnight).
	Phase mono.Time
	// Zone, if not nil, is the place whose clock has the intervals, instead of Phase. With a Window
	// of 24 h they are its days, of 23, 24 or 25 hours. With 7 * 24 h they are weeks from Monday
	// on, and with Month the months. A Window that divides a day is also possible.
	Zone *time.Location
	// Epoch is the wall time of the zero of the driver's scale. Only a Calendar with a Zone needs
	// it, and only if the driver does not call SetEpoch, as Gate, Group, Pool, transport and share
	// do.
	Epoch time.Time
	// Skew is how far the server's beginnings may be from those by Phase, either way. The first
	// request goes that long after each beginning. If zero, 50 ms, the error of NTP on a bad day.
	// Negative: none.
	Skew time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	Arrivals
}

// NewCalendar checks the configuration and returns a Calendar with an empty history.
func NewCalendar(c CalendarConfig) (*Calendar, error) {
	a, err := newAccount("Calendar", CountsWindow, c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	if c.LearnLead {
		return nil, fmt.Errorf("limit: Calendar: LearnLead is not for this kind of limit")
	}
	l := &Calendar{account: a, phase: c.Phase, skew: max(c.Skew, 0), given: c.Skew != 0,
		settled: newLog(), latest: mono.Min}
	if !l.given {
		l.skew = 50 * time.Millisecond
	}
	if c.Zone != nil {
		if c.Phase != 0 {
			return nil, fmt.Errorf("limit: Calendar: Phase %v beside a Zone, which has its own beginnings", c.Phase)
		}
		l.zone = &zoned{zone: c.Zone, window: c.Window}
		l.setEpoch(c.Epoch)
	}
	if err := l.fits(c.Window); err != nil {
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
func (c *Calendar) SetLimit(now mono.Time, n int64) error { return c.setLimit("Calendar", now, n) }

// fits refuses a window whose phase would not be known.
func (c *Calendar) fits(d time.Duration) error {
	if err := checkWindow("Calendar", d); err != nil {
		return err
	}
	if c.zone != nil {
		if err := CheckZone(d); err != nil {
			return fmt.Errorf("limit: Calendar: %w", err)
		}
	}
	if c.given && c.skew > d {
		return fmt.Errorf("limit: Calendar: Skew %v is longer than Window %v: then the phase is not known", c.skew, d)
	}
	return nil
}

// SetWindow changes the intervals from now on. Each is as long as d, and Phase is a beginning of
// one of them, as of those before. Earlier requests count in the interval that the new division
// puts them in. So no interval that receives a request from now on holds more than the limit.
//
// For the requests settled in one old interval, only a bound is known. They arrived by the end of
// that interval, and by the last arrival of all. So all of them count as of then, and so does the
// forgotten cost. If the current interval began after that, nothing is assumed. The rest is as with
// Rolling.
func (c *Calendar) SetWindow(now mono.Time, d time.Duration) error {
	if err := c.fits(d); err != nil {
		return err
	}
	before := c.settled
	lost, bounds := c.arrived(before.lost), make([]mono.Time, before.n)
	for i := range bounds {
		bounds[i] = c.arrived(before.at(i).at)
	}
	c.settled = newLog()
	c.divide(d)
	changed := c.setWindow(now, d) // from here on freed uses the new window
	if gone := min(before.gone, MaxCost); gone > 0 {
		c.settled.add(c.freed(lost), gone)
	}
	for i, u := range bounds {
		c.settled.add(c.freed(u), before.upTo(i+1)-before.upTo(i))
	}
	return changed
}

// arrived returns an upper bound of the arrival of requests that count until free.
func (c *Calendar) arrived(free mono.Time) mono.Time {
	if free == mono.Max { // the cost may count for longer
		return c.latest
	}
	return min(free.Add(-2*c.skew)-1, c.latest)
}

// divide makes the intervals of a zone as long as d.
func (c *Calendar) divide(d time.Duration) {
	if c.zone != nil {
		c.zone.window, c.zone.to = d, mono.Min // and forget the interval that was asked for last
	}
}

func (c *Calendar) setEpoch(epoch time.Time) {
	if c.zone != nil && !epoch.IsZero() {
		c.zone.epoch, c.zone.to = epoch.UnixNano(), mono.Min
	}
}

// Zone returns the place whose clock has the intervals; nil: they are by Phase.
func (c *Calendar) Zone() *time.Location {
	if c.zone == nil {
		return nil
	}
	return c.zone.zone
}

// begin returns the beginning of the interval that t is in, by Phase.
func (c *Calendar) begin(t mono.Time) mono.Time {
	in := t.Sub(c.phase) % c.window
	if in < 0 {
		in += c.window
	}
	return t.Add(-in)
}

// freed returns when a request that arrived by u no longer counts.
func (c *Calendar) freed(u mono.Time) mono.Time {
	if c.zone != nil {
		return c.zone.over(u.Add(c.skew)).Add(c.skew)
	}
	return c.begin(u.Add(c.skew)).Add(c.window).Add(c.skew)
}

// Ready implements Limiter.
func (c *Calendar) Ready(now mono.Time, cost Cost) mono.Time {
	if c.pair != nil {
		return c.pair.Ready(now, cost)
	}
	now = max(now, c.last)
	w := cost.of(c.unit)
	over := c.open + c.settled.total + w - c.limit
	if over <= 0 || w == 0 {
		return now
	}
	if w > c.limit {
		return Never
	}
	if c.open+w > c.limit {
		return AfterSettle
	}
	return max(now, c.settled.freed(over))
}

// Admit implements Limiter.
func (c *Calendar) Admit(s *Sent) {
	if c.pair != nil {
		c.pair.Admit(s)
		return
	}
	c.admit(s)
}

// Settle implements Limiter.
func (c *Calendar) Settle(now mono.Time, s *Sent, o *Outcome) {
	if c.pair != nil {
		c.pair.Settle(now, s, o)
		return
	}
	before := c.total
	now, u, w := c.close(now, s, o)
	c.recent.add(now, c.window, before)
	c.settled.forget(now)
	if w > 0 {
		c.latest = max(c.latest, u)
		c.settled.add(c.freed(u), w)
	}
}

// AppendUsage implements Describer.
func (c *Calendar) AppendUsage(to []Usage, now mono.Time) []Usage {
	if c.pair != nil {
		return c.pair.appendUsage(to, now)
	}
	now = max(now, c.last)
	u := c.usage(now, c.open+c.settled.after(now))
	u.Recent = c.recent.within(now, c.window, c.total)
	return append(to, u)
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
	c.divide(c.window)
	c.latest, c.settled = latest, settled
	return nil
}

// begins returns the first beginning of an interval from the zero of the scale on. Phases that
// differ by whole windows are the same.
func (c *Calendar) begins() time.Duration {
	in := time.Duration(c.phase) % c.window
	if in < 0 {
		in += c.window
	}
	return in
}

// ReadyAfter implements Forecaster.
func (c *Calendar) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return c.Ready(now, c.both(first, cost))
}

// NotBefore implements Forecaster. The limit can go once in the rest of this interval, and once in
// each later interval.
func (c *Calendar) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if c.pair != nil {
		return c.pair.NotBefore(now, n, ahead, cost)
	}
	q, t, done := c.ask(now, &ahead, &cost)
	if done {
		return t
	}
	h := history{total: c.settled.total, freed: c.settled.freed}
	ends := c.freed(c.ages.oldest)
	t = c.first(q.now, less(c.limit, plus(q.cost, min(q.ahead, 0))), h, ends)
	if q.ahead <= 0 {
		return t
	}
	counts := c.settled.after(q.now)
	if ends > q.now {
		counts += c.open
	}
	rest := less(plus(q.ahead, q.cost), max(0, c.limit-counts))
	if rest <= 0 {
		return t
	}
	whole := (rest - 1) / c.limit // intervals that are used up before
	if c.zone != nil {
		return max(t, c.zone.after(q.now.Add(-c.skew), whole).Add(c.skew))
	}
	begun := c.begin(q.now.Add(-c.skew)).Add(c.skew)
	return max(t, begun.Add(scale(c.window, time.Duration(whole+1), 1)))
}
