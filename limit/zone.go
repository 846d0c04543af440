package limit

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Month is the Window of a Calendar with a Zone that counts by months. Rates take it as 30 days.
const Month = 30 * day

const day = 24 * time.Hour

// CheckZone reports why intervals of this length cannot be those of a zone's clock. It is nil for a
// length that divides a day, a day, a week and Month.
func CheckZone(window time.Duration) error {
	if window <= 0 || window > day && window != 7*day && window != Month || window < day && day%window != 0 {
		return fmt.Errorf("a Window of %v has no beginnings in a zone: days, weeks, months, or a length that divides a day have", window)
	}
	return nil
}

// IntervalIn returns the interval of a zone's clock that t is in, as a Calendar with this Zone and
// Window counts: the day from one local midnight to the next, for example. CheckZone must be nil
// for the Window.
func IntervalIn(zone *time.Location, window time.Duration, t time.Time) (begin, end time.Time) {
	z := zoned{zone: zone, window: window}
	z.turn(mono.Time(t.UnixNano()))
	return time.Unix(0, int64(z.from)).In(zone), time.Unix(0, int64(z.end)).In(zone)
}

// zoned divides time by the clock of a zone. The intervals are numbered by local time. A clock that
// is set back can show an interval again that was over. So a request counts in the latest interval
// that the clock has shown by its arrival, and until that interval is shown for the last time:
//
//	k(t)   = max over s ≤ t of the interval that the clock shows at s
//	end(k) = the end of the instants at which the clock shows k or an earlier interval
//
// A request that arrived at a in interval i has i ≤ k(a). Every instant of i is before end(i), and
// that is not after end(k(a)). So the request counts as long as its interval can receive another.
type zoned struct {
	zone   *time.Location
	window time.Duration
	epoch  int64 // zero of the driver's scale, in nanoseconds since 1970

	// the interval that was asked for last: k(t) = number for from ≤ t < to
	number   int64
	from, to mono.Time
	end      mono.Time
}

// Clocks are set by less than this at once, and no zone is further from UTC.
const (
	zoneStep     = int64(26 * time.Hour)
	zoneFarthest = int64(26 * time.Hour)
	// zoneLonger is how much longer than its Window an interval may be. The largest step back since
	// 1970 is one of 3 h, on a station in Antarctica. A step over the date line makes a day shorter,
	// or repeats it.
	zoneLonger = 3 * time.Hour
)

// over returns the end of the latest interval that the clock has shown by t.
func (z *zoned) over(t mono.Time) mono.Time {
	if t < z.from || t >= z.to {
		z.turn(t)
	}
	return z.end
}

// turn looks up the interval of t.
func (z *zoned) turn(t mono.Time) {
	z.number = z.latest(z.wall(t))
	z.from, z.to, z.end = z.scale(z.begin(z.number)), z.scale(z.begin(z.number+1)), z.scale(z.last(z.number))
}

// after returns the end of the n-th interval from the one on that is not over at t. n is 0 or more.
func (z *zoned) after(t mono.Time, n int64) mono.Time {
	k := z.latest(z.wall(t))
	for z.scale(z.last(k-1)) > t {
		k--
	}
	if n > (1<<62)/int64(z.window) {
		return mono.Max
	}
	return z.scale(z.last(k + n))
}

func (z *zoned) wall(t mono.Time) int64  { return int64(t.Add(time.Duration(z.epoch))) }
func (z *zoned) scale(w int64) mono.Time { return mono.Time(w).Add(time.Duration(-z.epoch)) }

// latest returns the latest interval that the clock has shown by w.
func (z *zoned) latest(w int64) int64 {
	k := int64(math.MinInt64)
	z.offsets(int64(mono.Time(w).Add(-2*time.Duration(zoneStep))), w, func(_, to, offset int64) {
		k = max(k, z.shown(min(to-1, w)+offset))
	})
	return k
}

// begin returns the first instant at which the clock shows k or a later interval.
func (z *zoned) begin(k int64) int64 {
	local, first := z.local(k), int64(mono.Max)
	z.around(local, func(from, to, offset int64) {
		if at := max(from, local-offset); at < to {
			first = min(first, at)
		}
	})
	return first
}

// last returns the end of the instants at which the clock shows k or an earlier interval.
func (z *zoned) last(k int64) int64 {
	local, end := z.local(k+1), int64(mono.Min)
	z.around(local, func(from, to, offset int64) {
		if at := min(to, local-offset); at > from {
			end = max(end, at)
		}
	})
	return end
}

// around calls f for all offsets with which the clock may show a local time.
func (z *zoned) around(local int64, f func(from, to, offset int64)) {
	far := time.Duration(zoneFarthest + zoneStep)
	z.offsets(int64(mono.Time(local).Add(-far)), int64(mono.Time(local).Add(far)), f)
}

// offsets calls f for each offset of the zone between low and high, with the instants between which
// it holds. The first of them begins at low.
func (z *zoned) offsets(low, high int64, f func(from, to, offset int64)) {
	for at, last := low, false; !last && at <= high; {
		t := time.Unix(0, at).In(z.zone)
		_, seconds := t.Zone()
		_, ends := t.ZoneBounds()
		to := int64(mono.Max)
		if last = ends.IsZero() || ends.Unix() > math.MaxInt64/int64(time.Second)-1; !last {
			to = ends.UnixNano()
		}
		f(at, to, int64(seconds)*int64(time.Second))
		at = to
	}
}

// monday is one.
const monday = 4 * int64(day)

// shown returns the interval that a clock shows with a local time, in nanoseconds since 1970.
func (z *zoned) shown(local int64) int64 {
	switch z.window {
	case Month:
		t := time.Unix(0, local).UTC()
		return int64(t.Year())*12 + int64(t.Month()) - 1
	case 7 * day:
		local -= monday
	}
	k := local / int64(z.window)
	if local%int64(z.window) < 0 {
		k--
	}
	return k
}

// local returns the local time at which an interval begins.
func (z *zoned) local(k int64) int64 {
	switch z.window {
	case Month:
		t := time.Date(int(k/12), time.Month(k%12+1), 1, 0, 0, 0, 0, time.UTC)
		if most := math.MaxInt64 / int64(time.Second); t.Unix() > most {
			return int64(mono.Max)
		} else if t.Unix() < -most {
			return int64(mono.Min)
		}
		return t.UnixNano()
	}
	from, most := mono.Time(0), math.MaxInt64/int64(z.window)
	if z.window == 7*day {
		from = mono.Time(monday)
	}
	return int64(from.Add(time.Duration(min(max(k, -most), most) * int64(z.window))))
}

// longest returns the longest length of an interval.
func (z *zoned) longest() time.Duration {
	if z.window == Month {
		return 31*day + zoneLonger
	}
	return z.window + zoneLonger
}

// SetEpoch passes to l, and to all in it, the wall time of the zero of its driver's scale. A
// Calendar with a Zone needs it. Gate, Group, Pool, transport and share call it. Call it before the
// first request.
func SetEpoch(l Limiter, epoch time.Time) {
	Ask(l, func(dated interface{ setEpoch(epoch time.Time) }) { dated.setEpoch(epoch) })
}
