package limit_test

import (
	"fmt"
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
		must(limit.NewRolling(limit.RollingConfig{Limit: limit.MaxCost, Window: time.Microsecond, Margin: -1})),
		must(limit.NewWeighted(limit.WeightedConfig{Limit: limit.MaxCost, Window: time.Microsecond, Margin: -1, Grain: -1})),
	} {
		now := mono.Time(0)
		for range 1 << 20 { // 2⁶⁴ in all
			l.Settle(now, limittest.Admit(l, now, limit.Cost{limit.MaxCost}), &limit.Outcome{Result: limit.Accepted})
			now = now.Add(2 * time.Microsecond)
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

const changesBurst = 4 // the largest cost and the largest limit

var changingKinds = []string{"Rolling", "Calendar", "Anchored", "Weighted", "Bucket"}

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
