package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

func second(s float64) mono.Time { return mono.Time(s * 1e9) }

// Without resets, each leap shows between which two sightings a window began. All of them, whole
// windows apart, bound it better. Within that the estimate is the mean of the guesses, of eight at
// most. An impossible leap begins anew.
func TestPhaseLeaps(t *testing.T) {
	type leap struct{ low, high, guess, start, from, to float64 }
	for name, leaps := range map[string][]leap{
		"the first":                   {{990, 1010, 1005, 1005, 990, 1010}},
		"a guess that is too early":   {{990, 1010, 900, 990, 990, 1010}},
		"a guess that is too late":    {{990, 1010, 1020, 1010, 990, 1010}},
		"the next":                    {{990, 1010, 1005, 1005, 990, 1010}, {1095, 1115, 1101, 1103, 1095, 1110}},
		"three windows later":         {{990, 1010, 1005, 1005, 990, 1010}, {1280, 1306, 1305, 1305, 1290, 1306}},
		"most of one later":           {{990, 1010, 1005, 1005, 990, 1010}, {1060, 1098, 1097, 1098, 1090, 1098}},
		"a guess outside of both":     {{990, 1010, 1005, 1005, 990, 1010}, {1101, 1115, 1090, 1103, 1101, 1110}},
		"the mean is kept within":     {{990, 1010, 990, 990, 990, 1010}, {1108, 1130, 1108, 1108, 1108, 1110}},
		"as of when none was thought": {{990, 1010, 1005, 1005, 990, 1010}, {1030, 1050, 1041, 1041, 1030, 1050}},
		"then two agree again": {{990, 1010, 1005, 1005, 990, 1010}, {1030, 1050, 1041, 1041, 1030, 1050},
			{1130, 1150, 1145, 1143, 1130, 1150}},
	} {
		var p phase
		for i, l := range leaps {
			p.leap(second(l.low), second(l.high), second(l.guess), 100*time.Second)
			if p.start != second(l.start) || p.low != second(l.from) || p.high != second(l.to) {
				t.Errorf("%s: after %d it began at %v, between %v and %v", name, i+1, p.start, p.low, p.high)
			}
		}
	}
	var p phase
	for i := range 20 {
		p.leap(second(float64(100*i)), second(float64(100*i+60)), second(float64(100*i+20)), 100*time.Second)
	}
	if p.leap(second(2000), second(2060), second(2036), 100*time.Second); p.start != second(2022) {
		t.Errorf("by an eighth of what the last was later: %v", p.start)
	}
}

// untold is a window of an hour and 3,600, without resets, with the remainders at some seconds.
func untold(t *testing.T, told ...[2]float64) *Fair {
	f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: time.Hour})
	for _, s := range told {
		f.hears(s[0], s[1], 0)
	}
	return f
}

// The first answer shows when the window began, by even use. If more than a fiftieth comes back,
// the next one has begun.
func TestPhaseFromUse(t *testing.T) {
	for _, c := range []struct {
		told   [][2]float64
		ends   float64
		number int
	}{
		{[][2]float64{{10000, 1800}}, 10000 + 1800, 0},
		{[][2]float64{{10000, 3600}}, 10000 + 3600, 0},
		{[][2]float64{{10000, 900}, {10100, 800}}, 10000 + 900, 0},
		{[][2]float64{{10000, 900}, {10100, 971}}, 10000 + 900, 0},
		{[][2]float64{{10000, 900}, {10100, 973}}, 10000 + 3600, 1},
		{[][2]float64{{10000, 100}, {10200, 99}}, 10200, 0}, // it should be over, and goes on
		{[][2]float64{{10000, 100}, {10200, 3500}}, 10200 + 3500, 1},
		{[][2]float64{{10000, 100}, {10200, 3500}, {13900, 3580}}, (10100+3600+10200+3600)/2 + 3600, 2},
		// Two requests of each sharer may have been sent at once, and the window that was found had
		// begun by then.
		{[][2]float64{{10000, 3590}, {10010, 3580}, {10020, 3570}}, 10000 + 3600, 0},
		{[][2]float64{{10000, 3575}, {10010, 3565}, {10020, 3555}}, 10000 - 25 + 3600, 0},
		{[][2]float64{{10000, 3590}, {13580, 20}, {13650, 3580}}, 10000 + 7200, 1},
	} {
		f := untold(t, c.told...)
		if w := &f.window; w.ends.Sub(second(c.ends)).Abs() > time.Second || w.number != c.number {
			t.Errorf("%v: window %d ends at %v, want %d at %v", c.told, w.number, w.ends, c.number, second(c.ends))
		}
	}
}

// The sharers at the first sighting of the window may all have sent at once. A larger number of
// later ones says nothing of it.
func TestPhaseOfThoseWhoFoundIt(t *testing.T) {
	for revisions, start := range map[int]float64{newsSoon: 10000, newsSoon + 1: 9900} {
		f := untold(t, [2]float64{10000, 3500}, [2]float64{10010, 3490}, [2]float64{10020, 3480})
		f.n, f.revisions = 100, revisions
		f.hears(10030, 3470, 0)
		if p := &f.window.phase; p.start.Sub(second(start)).Abs() > time.Second {
			t.Errorf("one of 100 at revision %d: it began at %v, want %v", revisions, p.start, second(start))
		}
	}
}

// One that comes back is no leap, however small the window.
func TestPhaseOfASmallWindow(t *testing.T) {
	for rise, number := range map[float64]int{1: 0, 2: 1} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 20, Window: time.Hour})
		f.hears(10000, 10, 0)
		if f.hears(10100, 10+rise, 0); f.window.number != number {
			t.Errorf("%v more than before: window %d", rise, f.window.number)
		}
	}
}
