package throttle

import (
	"testing"
	"time"
)

// A window that was found by what came back at once began between the two answers: so the next leap says better when windows begin.
func TestLeapThatShowsAWindow(t *testing.T) {
	f := fairOf(t, hourly)
	for _, told := range [][2]float64{{0, 100}, {100, 2700}, {3550, 10}, {3640, 3500}} {
		f.hears(told[0], told[1], 0)
	}
	if p := &f.window.phase; !f.isWindow() || p.low != second(3600) || p.high != second(3640) {
		t.Errorf("taken for a window: %v, one of which began between %v and %v", f.isWindow(), p.low, p.high)
	}
}

// A refusal at the instant at which a silent window is over at the latest shows that it is not: the next is asked for a twentieth later.
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
