package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A window that was found by what came back at once began between the two answers. So the next leap
// bounds the beginning better.
func TestLeapThatShowsAWindow(t *testing.T) {
	f := fairOf(t, hourly)
	for _, told := range [][2]float64{{0, 100}, {100, 2700}, {3550, 10}, {3640, 3500}} {
		f.hears(told[0], told[1], 0)
	}
	if p := &f.window.phase; !f.isWindow() || p.low != second(3600) || p.high != second(3640) {
		t.Errorf("taken for a window: %v, one of which began between %v and %v", f.isWindow(), p.low, p.high)
	}
}

// A silent window should be over at an instant at the latest. A refusal then shows that it is not:
// the next request asks a twentieth later.
func TestSilentWindowRefusesAtItsEnd(t *testing.T) {
	for mid, high := range map[float64]float64{999: 1000, 1000: 1180, 1001: 1181} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
		w := silentWindow{low: second(900), high: second(1000), seen: true, waits: true}
		w.refused(f, second(mid), &sighting{sent: sent{at: second(mid)}, mid: second(mid), limited: true}, 0, time.Hour)
		if w.high != second(high) || w.low != second(mid) {
			t.Errorf("refused at %v, it ends between %v and %v", second(mid), w.low, w.high)
		}
	}
}

// The first refusal after a known end is of a later window. It ends a whole number of windows after that end, whichever
// window it is.
func TestSilentWindowRefusesInALaterOne(t *testing.T) {
	for mid, high := range map[float64]float64{999: 1000, 1000: 4600, 4599: 4600, 4600: 8200, 12000: 15400} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
		w := silentWindow{low: second(900), high: second(1000), seen: true}
		w.refused(f, second(mid), &sighting{sent: sent{at: second(mid)}, mid: second(mid), limited: true}, 0, time.Hour)
		if low := second(max(high-100, mid)); w.high != second(high) || w.low != low {
			t.Errorf("refused at %v, it ends between %v and %v, want %v and %v", second(mid), w.low, w.high, low, second(high))
		}
	}
}

// An answer has no reset after the stated end. If more remains, the next window began at that end.
// If not, the present one goes on, but for half a window at most.
func TestWindowThatEndsUntold(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
	f.hears(100, 3000, 500)
	for _, c := range []struct {
		at, left float64
		number   int
	}{
		{599, 3600, 0}, {600, 3600, 0}, {601, 3600, 1}, {601, 3000, 0}, {601, 3072.5, 0}, {601, 3072.6, 1}, {2400, 10, 0}, {2401, 10, 1},
	} {
		w := f.window
		s := sighting{sent: sent{seq: 2}, mid: second(c.at), left: c.left, ends: mono.Min}
		if w.look(f, &s); s.window != c.number || s.ends != second(600+3600*float64(c.number)) || s.window != w.number {
			t.Errorf("at %v with %v left it is window %d, which ends at %v", s.mid, c.left, s.window, s.ends)
		}
	}
}

// The order of two answers of one instant is not known, so the consumption between them does not
// count.
func TestTwoAnswersOfOneInstant(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: RollingWindow, Limit: 3600, Window: time.Hour})
	look := func(at, left float64) {
		f.rolling.look(f, &sighting{sent: sent{seq: 1}, mid: second(at), left: left})
	}
	look(10, 3600)
	look(20, 3590)
	look(20, 3580)
	if w := &f.rolling; w.took != 10 || w.time != 10 {
		t.Errorf("%v were taken in %v s", w.took, w.time)
	}
	look(19, 3570)
	if w := &f.rolling; w.took != 10 || w.time != 10 {
		t.Errorf("%v were taken in %v s", w.took, w.time)
	}
}

// A refusal that says nothing of when to come again says nothing of when the window ends.
func TestRefusalWithoutAWord(t *testing.T) {
	for after, ends := range map[time.Duration]float64{0: 3600, -time.Hour: 3600, 3000 * time.Second: 3010} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
		f.hears(0, 500, 3600)
		f.Settle(second(10), limittest.Admit(f, second(10), limit.One), &limit.Outcome{Result: limit.Limited, RetryAfter: after})
		if f.window.ends != second(ends) || f.window.number != 0 {
			t.Errorf("refused for %v, it is window %d that ends at %v", after, f.window.number, f.window.ends)
		}
	}
}

// Nothing is left, and the window ends soon. A request that is planned before that end goes soon
// after it, and is not put off by the number of those who share.
func TestNothingLeftBeforeTheEnd(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
	f.n = 600 // ten minutes for a round of all
	now := second(3000)
	for plan, most := range map[float64]float64{3001: 3009, 3004: 3006, 3005: 3005, 3020: 3020} {
		s := sighting{sent: sent{seq: 1, at: now}, mid: now, none: true, ends: second(3005)}
		if at := f.window.adjust(f, &s, second(plan)); at < s.ends || at > second(most) {
			t.Errorf("planned for %v s, it goes at %v s, expected no later than %v s", plan, at.Sub(0).Seconds(), most)
		}
	}
}
