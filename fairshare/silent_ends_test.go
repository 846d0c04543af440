package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A process that is served before the estimated end was wrong, and searches for the end. A process
// that is refused then knows it.
func TestSilentWindowIsTested(t *testing.T) {
	for served, want := range map[float64]struct {
		lost      bool
		low, high float64
	}{
		4581: {true, 3400, 4581}, // a window that should end at 4600
		4600: {false, 3400, 4600},
		4700: {false, 3400, 4600},
	} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
		f.n = 500
		w := silentWindow{low: second(3000), high: second(4600), seen: true, waits: true, last: second(3400), usedUp: second(3400), ended: lostFrom}
		w.back(f, &sighting{mid: second(served)}, time.Hour)
		if w.lost != want.lost || w.low != second(want.low) || w.high != second(want.high) {
			t.Errorf("served at %v: lost %v, a window ends between %v and %v", second(served), w.lost, w.low, w.high)
		}
		if n := map[bool]float64{true: 120, false: 500}[want.lost]; f.n != n {
			t.Errorf("served at %v, n is %v", second(served), f.n)
		}
	}
}

// A lost process asks soon after a window was used up, then twice as late, and in the middle at the
// latest. Meanwhile it ignores its x.
func TestSilentWindowLooksForItsEnd(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
	f.n = 20
	w := &f.silence.window
	*w = silentWindow{low: second(3000), high: second(6600), seen: true, ended: lostFrom, lost: true, served: true}
	for _, c := range [][2]float64{{3400, 3616}, {3616, 4048}, {4048, 5324}, {5324, 5962}, {5962, 6281}} {
		f.seq++
		f.sentAt = second(c[0])
		w.refused(f, second(c[0]), &sighting{sent: sent{at: second(c[0])}, mid: second(c[0]), limited: true}, 0, time.Hour)
		if next := f.Ready(second(c[0]), limit.One); next != second(c[1]) {
			t.Errorf("refused at %v, it asks at %v, want %v", second(c[0]), next, second(c[1]))
		}
	}
	if f.n < 9.5 || f.n > 20 {
		t.Errorf("n is %v", f.n)
	}
}

// A process that has found the end takes its n from the time when the window was used up, like
// those that knew it.
func TestSilentWindowFound(t *testing.T) {
	for used, want := range map[float64]float64{3400: 9.5, 3420: 9.5, 2880: 51, 60: 9.5} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
		f.n = 120
		w := silentWindow{low: second(7195), high: second(7200), seen: true, lost: true, usedUp: second(used)}
		w.found(f, time.Hour)
		if f.n < want*0.8 || f.n > want*1.2 {
			t.Errorf("used up at %v: n is %v, want about %v", second(used), f.n, want)
		}
	}
}
