package limit_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// changing is the common interface of the kinds with a window.
type changing interface {
	limit.Limiter
	SetLimit(now mono.Time, n int64) error
	SetWindow(now mono.Time, d time.Duration) error
}

func (t timeline) window(now, d time.Duration) {
	t.Helper()
	if err := t.Limiter.(changing).SetWindow(at(now), d); err != nil {
		t.Error(err)
	}
}

// answeredAt sends n at an instant, and settles them at the same instant.
func (t timeline) answeredAt(now time.Duration, n int64) {
	t.Helper()
	t.send(now, n, "it")
	t.answered(now, "it", limit.Accepted)
}

func TestRollingWindowTimeline(t *testing.T) {
	l := newTimeline[*limit.Rolling](t)(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: 10 * time.Second, Margin: -1}))
	l.answeredAt(0, 1)
	l.answeredAt(4*time.Second, 2)
	l.ready(5*time.Second, 1, at(10*time.Second))
	l.window(5*time.Second, 5*time.Second) // the first has left it at this instant
	l.ready(5*time.Second, 1, at(5*time.Second))
	l.ready(5*time.Second, 2, at(9*time.Second))
	l.window(5*time.Second, 2*time.Second)
	l.ready(5*time.Second, 2, at(6*time.Second))
	l.window(5*time.Second, 20*time.Second) // nothing was settled meanwhile, so nothing is forgotten
	l.ready(5*time.Second, 1, at(20*time.Second))
	l.ready(5*time.Second, 2, at(24*time.Second))
	l.window(5*time.Second, time.Second)
	l.answeredAt(6*time.Second, 1)         // now both earlier ones are forgotten
	l.window(6*time.Second, 2*time.Second) // it does not reach back to them
	l.ready(6*time.Second, 2, at(6*time.Second))
	l.window(6*time.Second, 3*time.Second) // it does: 3 may have come at 4 s
	l.ready(6*time.Second, 1, at(7*time.Second))
	l.window(6500*ms, 2*time.Second)
	l.ready(6500*ms, 2, at(6500*ms))
	l.send(6500*ms, 2, "open")
	l.window(6500*ms, time.Second)
	l.ready(7*time.Second, 1, at(7*time.Second))
	l.ready(7*time.Second, 2, limit.AfterSettle)
	l.answered(7500*ms, "open", limit.Accepted)
	l.ready(7500*ms, 2, at(8500*ms))
	l.window(6500*ms, 1500*ms) // by a clock that went back
	l.ready(7500*ms, 2, at(9*time.Second))
	l.window(7700*ms, 1500*ms)
	l.ready(7500*ms, 1, at(7700*ms))

	l = newTimeline[*limit.Rolling](t)(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Margin: -1}))
	l.answeredAt(-time.Minute, 2) // replayed
	l.answeredAt(0, 1)
	l.window(0, time.Hour)
	l.ready(0, 2, at(0)) // no more than 2 were ever forgotten
	l.ready(0, 3, at(time.Hour-time.Minute))
	if err := l.Limiter.(*limit.Rolling).SetLimit(0, 6); err != nil {
		t.Fatal(err)
	}
	l.ready(0, 3, at(0))
}

// A Margin or Grain that was not given is that of the new window, and one that was given stays.
func TestMarginsOfAChangedWindow(t *testing.T) {
	for _, c := range []struct {
		given, want time.Duration
	}{
		{0, 20*time.Second + 1100*time.Microsecond + 2*ms},
		{7 * ms, 20*time.Second + 7*ms},
		{-1, 20 * time.Second},
	} {
		l := newTimeline[*limit.Rolling](t)(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: c.given}))
		l.answeredAt(0, 1)
		l.window(0, 20*time.Second)
		l.ready(0, 1, at(c.want))
		l = newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 1, Window: time.Second, Margin: c.given}))
		l.answeredAt(0, 1)
		l.window(0, 20*time.Second)
		l.ready(0, 1, at(c.want))
	}
	for _, c := range []struct {
		margin, grain, want time.Duration
	}{ // of a limit of 1: the answer counts until the interval after its own is over
		{-1, -1, 40*time.Second + 3*ms},
		{-1, 0, 40*time.Second + 10*ms},
		{-1, 4 * ms, 40*time.Second + 4*ms},
		{0, -1, 40*time.Second + 3*ms + 4*ms + 1100*time.Microsecond},
	} {
		l := newTimeline[*limit.Weighted](t)(limit.NewWeighted(limit.WeightedConfig{Limit: 1, Window: time.Second, Margin: c.margin, Grain: c.grain}))
		l.window(0, 20*time.Second)
		l.answeredAt(3*ms, 1)
		l.ready(3*ms, 1, at(c.want))
	}
}

// Minutes that begin at :00, then hours, then minutes, then ten seconds.
func TestCalendarWindowTimeline(t *testing.T) {
	l := newTimeline[*limit.Calendar](t)(limit.NewCalendar(limit.CalendarConfig{Limit: 10, Window: time.Minute, Skew: time.Second}))
	l.answeredAt(61*time.Second, 4)
	l.answeredAt(70*time.Second, 4)
	l.ready(80*time.Second, 4, at(121*time.Second))
	l.window(80*time.Second, 10*time.Second) // by the bound, all came by 70 s, in the interval that begins then
	l.ready(80*time.Second, 4, at(81*time.Second))
	l.window(100*time.Second, time.Hour)
	l.ready(100*time.Second, 2, at(100*time.Second))
	l.ready(100*time.Second, 3, at(time.Hour+time.Second))
	l.ready(90*time.Second, 2, at(100*time.Second)) // a clock that went back
	l.window(100*time.Second, time.Minute)
	l.ready(118*time.Second, 4, at(121*time.Second))
	l.answeredAt(122*time.Second, 1) // the minute before is forgotten
	l.window(123*time.Second, 2*time.Minute)
	l.ready(123*time.Second, 9, at(123*time.Second)) // and those before this interval do not count
	l.window(123*time.Second, time.Hour)
	l.ready(123*time.Second, 1, at(123*time.Second))
	l.ready(123*time.Second, 2, at(time.Hour+time.Second)) // 8 may have come by 70 s
}

// A window that began before the change may last as long as the new one.
func TestAnchoredWindowTimeline(t *testing.T) {
	l := newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 3, Window: time.Second, Margin: -1}))
	l.answeredAt(0, 1)
	l.answeredAt(900*ms, 2)
	l.ready(900*ms, 1, at(time.Second))
	l.window(950*ms, 2*time.Second) // the request of 900 ms may have begun the interval
	l.ready(950*ms, 1, at(2*time.Second))
	l.ready(950*ms, 3, at(2900*ms))
	l.window(2*time.Second, 500*ms)
	l.answeredAt(2*time.Second, 3)
	l.answeredAt(2500*ms, 1)
	l.ready(2500*ms, 3, at(3*time.Second))
	l.window(2600*ms, time.Second) // the 3 of 2 s are forgotten, and the interval may have begun with them
	l.ready(2600*ms, 1, at(3*time.Second))
	l.window(3500*ms, 600*ms)
	l.answeredAt(3500*ms, 3)
	l.ready(3500*ms, 3, at(4100*ms))

	l = newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 3, Window: time.Second, Margin: -1}))
	l.answeredAt(0, 1)
	l.send(0, 1, "comes at 1.1 s, and begins an interval")
	l.window(1500*ms, 3*time.Second) // until 4.1 s
	l.answeredAt(3100*ms, 1)         // in a new epoch: the interval of 0 s would be over, if it had been as long
	l.answered(3150*ms, "comes at 1.1 s, and begins an interval", limit.Accepted)
	l.send(3200*ms, 1, "comes at 4.4 s, and begins the next")
	l.answered(4500*ms, "comes at 4.4 s, and begins the next", limit.Accepted)
	l.ready(6200*ms, 2, at(6200*ms))
	l.ready(6200*ms, 3, at(7500*ms))
}

func TestBucketWindowTimeline(t *testing.T) {
	l := newTimeline[*limit.Bucket](t)(limit.NewBucket(limit.BucketConfig{Limit: 1, Window: 10 * time.Second, Burst: 2, Margin: -1}))
	const spare = 5001 // of 5000, for clocks that drift
	after := func(d time.Duration) time.Duration { return d / 5000 * spare }
	l.answeredAt(0, 2)
	l.ready(0, 1, at(after(10*time.Second)+1))
	half := after(5*time.Second) + 1 // of a token is there
	l.window(half, time.Second)
	l.ready(half, 1, at(half+after(500*ms)+1))
	l.window(half, time.Minute)
	if got, want := l.Ready(at(half), limit.One), at(half+after(30*time.Second)); got < want || got > want.Add(time.Microsecond) {
		t.Errorf("one ready at %v, want %v: it takes 30 s for the other half", got, want)
	}
}

func TestWeightedWindowTimeline(t *testing.T) {
	l := newTimeline[*limit.Weighted](t)(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second, Margin: -1, Grain: -1}))
	l.answeredAt(0, 2)
	l.ready(0, 5, at(2*time.Second)) // when the interval after that of the 2 is over
	l.window(0, 10*time.Second)
	l.ready(0, 5, at(20*time.Second))
	l.window(0, time.Second)
	l.answeredAt(10*time.Second, 1) // the earlier ones are forgotten
	l.window(10*time.Second, time.Hour)
	l.ready(10*time.Second, 2, at(10*time.Second))           // no more than 2 ever were
	l.ready(10*time.Second, 3, at(time.Hour+20*time.Minute)) // a third of the interval after one with all 3
	l.window(10*time.Second, 2*time.Hour)
	l.ready(10*time.Second, 2, at(10*time.Second))
	l.ready(10*time.Second, 3, at(2*time.Hour+40*time.Minute))
	l.window(10*time.Second, time.Second)
	l.answeredAt(20*time.Second, 1) // and now 3 are, not 5
	l.window(20*time.Second, time.Hour)
	l.ready(20*time.Second, 1, at(20*time.Second))
}

// A late answer proves an early arrival. It must not hide the requests forgotten before it.
func TestTheLastThatWasForgotten(t *testing.T) {
	for _, c := range []struct {
		l    changing
		want time.Duration
	}{
		{must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: time.Second, Margin: -1})), 9*time.Second + time.Hour},
		{must(limit.NewAnchored(limit.AnchoredConfig{Limit: 3, Window: time.Second, Margin: -1})), 9*time.Second + time.Hour},
		{must(limit.NewWeighted(limit.WeightedConfig{Limit: 3, Window: time.Second, Margin: -1, Grain: -1})), 9*time.Second + 2*time.Hour},
	} {
		l := c.l
		slow := limittest.Admit(l, 0, limit.One)
		l.Settle(at(9*time.Second), limittest.Admit(l, at(9*time.Second), limit.One), &limit.Outcome{Result: limit.Accepted})
		l.Settle(at(20*time.Second), slow, &limit.Outcome{Result: limit.Accepted, ArrivedAgo: 20 * time.Second})
		l.Settle(at(30*time.Second), limittest.Admit(l, at(30*time.Second), limit.Cost{}), &limit.Outcome{Result: limit.Unsent})
		if err := l.SetWindow(at(30*time.Second), time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := l.Ready(at(30*time.Second), limit.Cost{3}); got != at(c.want) {
			t.Errorf("%T: 3 ready at %v, want %v: one came at 9 s", l, got, c.want)
		}
	}
}

// Both limiters of a pair change, with the facts that each relies on.
func TestWindowOfAPair(t *testing.T) {
	known := limit.Arrivals{OneWayMax: 50 * ms}
	for _, c := range []struct {
		l          changing
		bold, safe time.Duration
	}{
		{must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1, Arrivals: known})), 3900 * ms, 4000 * ms},
		{must(limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: time.Second, Phase: at(950 * ms), Skew: -1, Arrivals: known})), 1000 * ms, 3950 * ms},
		{must(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second, Margin: -1, Arrivals: known})), 3900 * ms, 4000 * ms},
		{must(limit.NewWeighted(limit.WeightedConfig{Limit: 2, Window: time.Second, Margin: -1, Grain: -1, Arrivals: known})), 5400 * ms, 5500 * ms},
		// The missing tokens of a bucket that was empty at 900 ms, or at 1000 ms: 1.5 s for each.
		{must(limit.NewBucket(limit.BucketConfig{Limit: 2, Window: time.Second, Margin: -1, Arrivals: known})), 2200*ms + 300*time.Microsecond + 2, 2500*ms + 300*time.Microsecond + 1},
	} {
		l := c.l
		// A request is sent 150 ms before the end of a second, and answered at its end. By the
		// promise it arrived 100 ms before that end.
		first := limittest.Admit(l, at(850*ms), limit.Cost{2})
		l.Settle(at(1000*ms), first, &limit.Outcome{Result: limit.Accepted, RTT: 150 * ms})
		if err := l.SetWindow(at(1000*ms), 3*time.Second); err != nil {
			t.Fatal(err)
		}
		bold := l.Ready(at(1000*ms), limit.One)
		l.Settle(at(1000*ms), limittest.Admit(l, at(1000*ms), limit.Cost{}), &limit.Outcome{Result: limit.Limited})
		safe := l.Ready(at(1000*ms), limit.One)
		if bold != at(c.bold) || safe != at(c.safe) {
			t.Errorf("%T: ready at %v, and at %v without what was promised; want %v and %v", l, bold, safe, c.bold, c.safe)
		}
	}
}

func TestWindowsThatAreNone(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, c := range []struct {
		l    changing
		d    time.Duration
		want string
	}{
		{must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Grain: 100 * ms})), 50 * ms, "Rolling: Grain 100ms is negative or longer than Window 50ms"},
		{must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second})), 1<<63 - 1, "Rolling: Window 2562047h47m16.854775807s and Margin 0s overflow"},
		{must(limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: time.Second, Skew: 100 * ms})), 99 * ms, "Calendar: Skew 100ms is longer than Window 99ms: then the phase is not known"},
		{must(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second, Margin: year})), 292 * year, "Anchored: Window 2557920h0m0s and Margin 8760h0m0s overflow"},
		{must(limit.NewWeighted(limit.WeightedConfig{Limit: 2, Window: time.Second, Grain: 100 * ms})), 50 * ms, "Weighted: Grain 100ms is longer than Window 50ms"},
		{must(limit.NewBucket(limit.BucketConfig{Limit: 2, Window: time.Second, Burst: 1e9})), year, "Bucket: Burst 1000000000 at 2 per 8760h0m0s takes longer than 640511h56m49.213693952s to fill"},
	} {
		kind := fmt.Sprintf("%T", c.l)[len("*limit."):]
		for d, want := range map[time.Duration]string{
			c.d: c.want,
			0:   kind + ": Window 0s is not positive",
			-1:  kind + ": Window -1ns is not positive",
		} {
			c.l.Settle(0, limittest.Admit(c.l, 0, limit.Cost{2}), &limit.Outcome{Result: limit.Accepted})
			before := c.l.Ready(0, limit.One)
			if err := c.l.SetWindow(0, d); err == nil || err.Error() != "limit: "+want {
				t.Errorf("%s: %v, want %s", kind, err, want)
			}
			if after := c.l.Ready(0, limit.One); after != before {
				t.Errorf("%s: ready at %v, and after a change that was refused at %v", kind, before, after)
			}
		}
	}
}

// A sum of costs wraps round. The costs are not forgotten with it.
func TestWindowAfterVeryMuch(t *testing.T) {
	for _, l := range []changing{
		must(limit.NewRolling(limit.RollingConfig{Limit: limit.MaxCost, Window: 1, Margin: -1})),
		must(limit.NewWeighted(limit.WeightedConfig{Limit: limit.MaxCost, Window: 1, Margin: -1, Grain: -1})),
	} {
		now := mono.Time(0)
		for range 1 << 20 { // 2⁶⁴ in all
			l.Settle(now, limittest.Admit(l, now, limit.Cost{limit.MaxCost}), &limit.Outcome{Result: limit.Accepted})
			now = now.Add(time.Microsecond)
		}
		l.Settle(now, limittest.Admit(l, now, limit.Cost{}), &limit.Outcome{Result: limit.Unsent}) // all is forgotten
		if err := l.SetWindow(now, time.Hour); err != nil {
			t.Fatal(err)
		}
		if ready := l.Ready(now, limit.One); ready < now.Add(time.Hour-2*time.Microsecond) {
			t.Errorf("%T: ready at %v", l, ready)
		}
	}
}

// version is the limit in force from an instant on, for the requests from one number on.
type version struct {
	from   mono.Time
	first  int
	limit  int64
	window time.Duration
}

// judged is a request in the judge's list: numbered in the order of sends.
type judged struct {
	number  int
	arrived mono.Time
	cost    int64
	counts  bool
}

// A judge reads all arrivals of the requests sent before the last version was over, in order. It
// returns an error if a window of the last version holds more than its limit. Only windows with a
// request sent under that version count.
type judge func(arrivals []judged, versions []version) error

// over reports whether the counted arrivals are too much, and one of them was sent under v.
func (v *version) over(arrivals []judged, what string, counts func(judged) float64) error {
	sum, own := 0.0, false
	for _, a := range arrivals {
		if c := counts(a); c > 0 {
			sum += c
			own = own || a.number >= v.first
		}
	}
	if own && sum > float64(v.limit)+1e-6 {
		return fmt.Errorf("%.3f in %s, %d per %v since %v", sum, what, v.limit, v.window, v.from)
	}
	return nil
}

func judgeRolling(arrivals []judged, versions []version) error {
	v := versions[len(versions)-1]
	for i, last := range arrivals {
		if err := v.over(arrivals[:i+1], fmt.Sprintf("the window that ends at %v", last.arrived), func(a judged) float64 {
			if last.arrived.Sub(a.arrived) > v.window {
				return 0
			}
			return float64(a.cost)
		}); err != nil {
			return err
		}
	}
	return nil
}

// judgeCalendar has a server whose beginnings are off by skew.
func judgeCalendar(phase mono.Time, skew time.Duration) judge {
	return func(arrivals []judged, versions []version) error {
		v := versions[len(versions)-1]
		interval := func(t mono.Time) int64 {
			since := int64(t.Sub(phase.Add(skew)))
			k := since / int64(v.window)
			if since < k*int64(v.window) {
				k--
			}
			return k
		}
		for i, last := range arrivals {
			if err := v.over(arrivals[:i+1], fmt.Sprintf("the interval of %v", last.arrived), func(a judged) float64 {
				if interval(a.arrived) != interval(last.arrived) {
					return 0
				}
				return float64(a.cost)
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

// judgeAnchored has a server that applies each change a part of the time earlier than the client
// does.
func judgeAnchored(early float64) judge {
	return func(arrivals []judged, versions []version) error {
		inForce := func(t mono.Time) time.Duration {
			k := 0
			for i := 1; i < len(versions); i++ {
				lag := time.Duration(early * float64(versions[i].from.Sub(versions[i-1].from)))
				if versions[i].from.Add(-lag) <= t {
					k = i
				}
			}
			return versions[k].window
		}
		v := versions[len(versions)-1]
		begun, first := mono.Min, 0
		for i, a := range arrivals {
			if begun == mono.Min || a.arrived.Sub(begun) > inForce(a.arrived) {
				begun, first = a.arrived, i
			}
			if a.arrived < v.from {
				continue // judged by an earlier one
			}
			if err := v.over(arrivals[first:i+1], fmt.Sprintf("the interval from %v to %v", begun, a.arrived), func(a judged) float64 {
				return float64(a.cost)
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

// judgeWeighted has servers of any phase.
func judgeWeighted(phases []float64) judge {
	return func(arrivals []judged, versions []version) error {
		v := versions[len(versions)-1]
		for i, last := range arrivals {
			for _, p := range phases {
				begun := last.arrived.Add(-time.Duration(p * float64(v.window)))
				if err := v.over(arrivals[:i+1], fmt.Sprintf("the estimate at %v of a server whose interval began at %v", last.arrived, begun), func(a judged) float64 {
					switch {
					case a.arrived >= begun:
						return float64(a.cost)
					case a.arrived >= begun.Add(-v.window):
						return float64(a.cost) * (1 - p)
					}
					return 0
				}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// judgeBucket has a bucket of burst with the refill of the versions.
func judgeBucket(burst int64) judge {
	return func(arrivals []judged, versions []version) error {
		v := versions[len(versions)-1]
		missing, t, own := 0.0, arrivals[0].arrived, false
		refill := func(to mono.Time) {
			for i, at := range versions {
				from, end := max(t, at.from), to
				if i == 0 {
					from = t
				}
				if i+1 < len(versions) {
					end = min(end, versions[i+1].from)
				}
				if end > from {
					missing -= float64(end.Sub(from)) * float64(at.limit) / float64(at.window)
				}
				if missing <= 0 {
					missing, own = 0, false
				}
			}
			t = to
		}
		for _, a := range arrivals {
			refill(a.arrived)
			missing += float64(a.cost)
			own = own || a.number >= v.first
			if own && missing > float64(burst)+1e-6 {
				return fmt.Errorf("%.3f missing from the bucket of %d at %v, %d per %v since %v", missing, burst, a.arrived, v.limit, v.window, v.from)
			}
		}
		return nil
	}
}

// changes is a run of a limiter whose window changes, with the record of all events.
type changes struct {
	rng      *rand.Rand
	l        changing
	now      mono.Time
	requests []judged
	versions []version
	open     []flight
	late     time.Duration
	settled  func(now, bound mono.Time, cost int64) // if not nil; the cost is 0 for a request that does not count
	asked    func(now mono.Time, cost int64)        // if not nil
}

type flight struct {
	number int
	sent   mono.Time
	lease  *limit.Sent
}

const changesBurst = 4 // the largest cost and the largest limit

func (c *changes) run(steps int) error {
	c.late = 2 * time.Second
	for range steps {
		switch c.rng.IntN(8) {
		case 0, 1:
			c.now = c.now.Add(time.Duration(c.rng.Int64N(int64(pick(c.rng, ms, 100*ms, time.Second, 9*time.Second)))))
		case 2, 3, 4:
			cost := 1 + c.rng.Int64N(2)
			if c.asked != nil {
				c.asked(c.now, cost)
			}
			t := c.l.Ready(c.now, limit.Cost{cost})
			if t > c.now && t < limit.AfterSettle && c.rng.IntN(2) == 0 {
				c.now = t
			}
			if t <= c.now {
				c.open = append(c.open, flight{len(c.requests), c.now, limittest.Admit(c.l, c.now, limit.Cost{cost})})
				c.requests = append(c.requests, judged{number: len(c.requests), cost: cost})
			}
		case 5, 6:
			if len(c.open) > 0 {
				c.answer(c.rng.IntN(len(c.open)))
			}
		case 7:
			if c.rng.IntN(3) > 0 {
				break
			}
			v := c.versions[len(c.versions)-1]
			v.from, v.first = c.now, len(c.requests)
			if v.window = pick(c.rng, 100*ms, 300*ms, time.Second, 3*time.Second, 20*time.Second); c.rng.IntN(3) == 0 {
				v.limit = 2 + c.rng.Int64N(3)
			}
			if err := c.l.SetWindow(c.now, v.window); err != nil {
				return err
			}
			if err := c.l.SetLimit(c.now, v.limit); err != nil {
				return err
			}
			c.versions = append(c.versions, v)
		}
	}
	for len(c.open) > 0 {
		c.answer(0)
	}
	return nil
}

func (c *changes) answer(i int) {
	f := c.open[i]
	c.open = append(c.open[:i], c.open[i+1:]...)
	r := &c.requests[f.number]
	o := limit.Outcome{Result: pick(c.rng, limit.Accepted, limit.Accepted, limit.Accepted, limit.Failed, limit.Unknown, limit.Unsent)}
	bound := c.now
	if o.Result == limit.Unknown {
		bound = c.now.Add(c.late)
	}
	r.counts = o.Result != limit.Unsent
	r.arrived = f.sent.Add(time.Duration(pick(c.rng, 0, 0.5, 1, c.rng.Float64()) * float64(bound.Sub(f.sent))))
	if c.rng.IntN(4) == 0 && r.counts && r.arrived < c.now { // the server said when
		o.ArrivedAgo, bound = c.now.Sub(r.arrived), r.arrived
	}
	c.l.Settle(c.now, f.lease, &o)
	if c.settled != nil && r.counts {
		c.settled(c.now, bound, r.cost)
	} else if c.settled != nil {
		c.settled(c.now, bound, 0)
	}
}

// judge judges each version, with all requests sent before it was over.
func (c *changes) judge(j judge) error {
	for k := range c.versions {
		end := len(c.requests)
		if k+1 < len(c.versions) {
			end = c.versions[k+1].first
		}
		var arrivals []judged
		for _, r := range c.requests[:end] {
			if r.counts {
				arrivals = append(arrivals, r)
			}
		}
		if len(arrivals) == 0 {
			continue
		}
		sort.SliceStable(arrivals, func(i, j int) bool { return arrivals[i].arrived < arrivals[j].arrived })
		if err := j(arrivals, c.versions[:k+1]); err != nil {
			return err
		}
	}
	return nil
}

// changesOf makes one run of a kind. The judge is a server that remembers everything.
func changesOf(kind string, seed uint64, steps int) error {
	rng := rand.New(rand.NewPCG(seed, 77))
	first := version{from: mono.Min, limit: 3, window: time.Second}
	known := limit.Arrivals{Late: 2 * time.Second}
	if rng.IntN(3) == 0 {
		known.OneWayMax = time.Hour // a pair, and both limiters are right
	}
	var l changing
	var j judge
	switch kind {
	case "Rolling":
		l, j = must(limit.NewRolling(limit.RollingConfig{Limit: first.limit, Window: first.window, Grain: pick(rng, 0, 90*ms), Arrivals: known})), judgeRolling
	case "Calendar":
		phase, skew := mono.Time(rng.Int64N(int64(time.Hour))), pick(rng, 0, -50*ms, 50*ms)
		l, j = must(limit.NewCalendar(limit.CalendarConfig{Limit: first.limit, Window: first.window, Phase: phase, Arrivals: known})), judgeCalendar(phase, skew)
	case "Anchored":
		l, j = must(limit.NewAnchored(limit.AnchoredConfig{Limit: first.limit, Window: first.window, Arrivals: known})), judgeAnchored(pick(rng, 0, 0, 0.01, 0.5, 1))
	case "Weighted":
		phases := []float64{0, rng.Float64(), rng.Float64(), rng.Float64(), 0.999999}
		l, j = must(limit.NewWeighted(limit.WeightedConfig{Limit: first.limit, Window: first.window, Arrivals: known})), judgeWeighted(phases)
	case "Bucket":
		l, j = must(limit.NewBucket(limit.BucketConfig{Limit: first.limit, Window: first.window, Burst: changesBurst, Arrivals: known})), judgeBucket(changesBurst)
	}
	c := changes{rng: rng, l: l, now: mono.Time(rng.Int64N(int64(time.Hour))) - mono.Time(30*time.Minute), versions: []version{first}}
	if err := c.run(steps); err != nil {
		return err
	}
	return c.judge(j)
}

var changingKinds = []string{"Rolling", "Calendar", "Anchored", "Weighted", "Bucket"}

// Windows and limits follow each other at random. No request that goes under one of them is too
// much for it.
func TestNoWindowOfAnyLengthOverflows(t *testing.T) {
	runs := uint64(500)
	if testing.Short() {
		runs = 100
	}
	for _, kind := range changingKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for seed := range runs {
				if err := changesOf(kind, seed, 120); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

func FuzzSetWindow(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(200))
	f.Fuzz(func(t *testing.T, seed uint64, kind, steps uint8) {
		if err := changesOf(changingKinds[int(kind)%len(changingKinds)], seed, int(steps)); err != nil {
			t.Fatal(err)
		}
	})
}

// naive is a Rolling that keeps everything for ever. It also knows which requests a real Rolling
// has forgotten.
type naive struct {
	version
	all       map[mono.Time]int64 // costs by the bound of their arrival
	open      int64
	forgotten mono.Time // no later arrival was forgotten
}

// ready returns when a cost may go, if lost more arrived with the last forgotten request.
func (n *naive) ready(now mono.Time, cost, lost int64) mono.Time {
	all := map[mono.Time]int64{}
	last := mono.Min
	for u, c := range n.all {
		all[u] = c
		if u <= n.forgotten {
			last = max(last, u)
		}
	}
	if last > mono.Min {
		all[last] += lost
	}
	fits := func(t mono.Time) bool {
		sum := n.open + cost
		for u, c := range all {
			if u.Add(n.window) > t {
				sum += c
			}
		}
		return sum <= n.limit
	}
	switch {
	case fits(now):
		return now
	case cost > n.limit:
		return limit.Never
	case n.open+cost > n.limit:
		return limit.AfterSettle
	}
	least := limit.Never
	for u := range all {
		if t := u.Add(n.window); t > now && t < least && fits(t) {
			least = t
		}
	}
	return least
}

// A Rolling with a changed window is as exact as one that keeps everything, if nothing in the
// window was forgotten. Otherwise it is ready no later than if the whole forgotten cost had come
// with its last request.
func TestAChangedWindowIsExact(t *testing.T) {
	exact, assumed := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 78))
		c := changes{rng: rng, versions: []version{{from: mono.Min, limit: 3, window: time.Second}}}
		c.l = must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{Late: 2 * time.Second}}))
		n := naive{all: map[mono.Time]int64{}, forgotten: mono.Min}
		c.settled = func(now, bound mono.Time, cost int64) {
			n.forgotten = max(n.forgotten, now.Add(-c.versions[len(c.versions)-1].window))
			if cost > 0 {
				n.all[bound] += cost
			}
		}
		c.asked = func(now mono.Time, cost int64) {
			n.version, n.open = c.versions[len(c.versions)-1], 0
			for _, f := range c.open {
				n.open += c.requests[f.number].cost
			}
			got, want := c.l.Ready(now, limit.Cost{cost}), n.ready(now, cost, 0)
			counts := false
			for u := range n.all {
				counts = counts || u <= n.forgotten && u.Add(n.window) > now
			}
			if counts {
				assumed++
			} else {
				exact++
			}
			if got < want || got > want && !counts || got > n.ready(now, cost, limit.MaxCost) {
				t.Fatalf("seed %d, at %v: %d ready at %v, want %v; anything forgotten counts: %t", seed, now, cost, got, want, counts)
			}
		}
		if err := c.run(150); err != nil {
			t.Fatal(err)
		}
	}
	if exact < 1000 || assumed < 500 {
		t.Errorf("%d were compared for equality, %d with what must be assumed", exact, assumed)
	}
}

// The name of a rate changes with its window. A fit of the window before holds no more.
func TestRatesOfAChangedWindow(t *testing.T) {
	for _, l := range []changing{
		must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second})),
		must(limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: time.Second})),
		must(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 50 * ms}})),
		must(limit.NewWeighted(limit.WeightedConfig{Limit: 2, Window: time.Second})),
		must(limit.NewBucket(limit.BucketConfig{Limit: 2, Window: time.Second})),
	} {
		if err := l.SetWindow(0, time.Minute); err != nil {
			t.Fatal(err)
		}
		if rates, _ := limit.Rates(l); len(rates) != 1 || rates[0].Per != time.Minute {
			t.Errorf("%T: %v", l, rates)
		}
	}

	own := limit.MustRolling(25, time.Second)
	f := fitted(own)
	f.burst(0, 25)
	f.burst(at(2*time.Second), 20)
	if m := f.Misfits(); len(m) != 1 || m[0].Fits != 20 {
		t.Fatalf("%+v", m)
	}
	if err := own.SetWindow(at(3*time.Second), 3*time.Second); err != nil {
		t.Fatal(err)
	}
	f.misfits(t)
	f.burst(at(8*time.Second), 8) // of 10, as long as it goes carefully: half of 20
	f.misfits(t)                  // the window counts as the first
	f.Trust(at(12 * time.Second))
	now := at(time.Minute)
	for range 10 {
		f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	f.burst(now.Add(2*time.Second), 5) // of the 15 that may go beside the others
	if m := f.Misfits(); len(m) != 1 || m[0].Per != 3*time.Second || m[0].Fits != 15 {
		t.Errorf("%+v, want 15 to fit into 3s", m)
	}
}
