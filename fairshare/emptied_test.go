package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// refuses sends a request at a second and refuses it at once. says: the refusal has a remainder.
func (f *Fair) refuses(at float64, says bool) {
	now := mono.Time(at * 1e9)
	o := limit.Outcome{Result: limit.Limited}
	if says {
		o.Known = 1
	}
	f.Settle(now, limittest.Admit(f, now, limit.One), &o)
}

// There was plenty, without any reset. Then all requests are refused for a tenth of a window, and
// for five times as long as a share takes to come. So nothing flows in. If there is no plenty a
// window later, it was a bucket all the same.
func TestFairSeesAWindowUsedUp(t *testing.T) {
	const (
		limited = -1 // nothing is left
		mute    = -2 // a refusal without a remainder
	)
	type step struct {
		at, left float64
		kind     string
	}
	until := func(at float64, then ...step) []step { // refused three times, until then
		return append([]step{{200, limited, "b"}, {201, limited, "b"}, {at, limited, "w"}}, then...)
	}
	for name, c := range map[string]struct {
		left, n float64 // of 3,600, at 100 s, and its n
		steps   []step
	}{
		"for a tenth of a window":        {1200, 10, until(561)},
		"not for so long":                {1200, 10, []step{{200, limited, "b"}, {201, limited, "b"}, {559, limited, "b"}}},
		"twice is not enough":            {1200, 10, []step{{200, limited, "b"}, {1900, limited, "b"}, {1901, limited, "w"}}},
		"a refusal may say nothing else": {1200, 10, []step{{200, mute, "b"}, {201, mute, "b"}, {561, mute, "w"}}},
		"one was served":                 {1200, 10, []step{{200, limited, "b"}, {201, limited, "b"}, {559, 0, "b"}, {561, limited, "b"}, {922, limited, "b"}, {923, limited, "w"}}},
		"there was no plenty":            {449, 10, []step{{200, limited, "b"}, {201, limited, "b"}, {561, limited, "b"}, {3000, limited, "b"}}},
		"it just was":                    {450, 10, until(561)},
		"one of a crowd waits for long":  {1200, 80, []step{{200, limited, "b"}, {201, limited, "b"}, {599, limited, "b"}, {601, limited, "w"}}},
		"there is plenty again":          {1200, 10, until(561, step{3600, 3000, "w"}, step{4200, 2500, "w"}, step{8000, 0, "w"}, step{13000, 0, "w"})},
		"there is none, a window after":  {1200, 10, until(561, step{4059, 1, "w"}, step{4061, 1, "b"}, step{5500, 3000, "b"}, step{5600, limited, "b"}, step{5601, limited, "b"}, step{7000, limited, "b"})},
		"nor was any served":             {1200, 10, until(561, step{4059, limited, "w"}, step{4061, limited, "b"})},
		"it comes back little by little": {1200, 10, until(561, step{3600, 451, "w"}, step{3601, 453, "w"}, step{3602, 455, "w"}, step{3603, 457, "w"},
			step{3604, 459, "w"}, step{3605, 461, "w"}, step{3606, 463, "w"}, step{3607, 465, "w"}, step{3608, 467, "r"})},
	} {
		f := fairOf(t, hourly)
		f.n = c.n
		f.hears(100, c.left, 0)
		for i, s := range c.steps {
			if s.left >= 0 {
				f.hears(s.at, s.left, 0)
			} else {
				f.refuses(s.at, s.left == limited)
			}
			if kind := map[level]string{&f.bucket: "b", &f.window: "w", &f.rolling: "r"}[f.level]; kind != s.kind {
				t.Errorf("%s: after %d answers it is %s, want %s", name, i+1, kind, s.kind)
				break
			}
		}
	}

	// A Fair that knows the kind, or reads resets, concludes nothing.
	known := hourly
	known.Kind = TokenBucket
	f, g := fairOf(t, known), fairOf(t, hourly)
	f.hears(100, 1200, 0)
	g.hears(100, 1200, 2400)
	for i := range 20 {
		f.refuses(200+float64(100*i), true)
		g.refuses(200+float64(100*i), true)
	}
	if f.isWindow() || g.isWindow() {
		t.Errorf("a window: by who knows it for a bucket %v, by who is told when it is full %v", f.isWindow(), g.isWindow())
	}
}

// Its end is at most a window after the first that was seen of it, were it used evenly until then;
// all go on from there.
func TestFairKnowsWhenWhatIsUsedUpComesBack(t *testing.T) {
	f := fairOf(t, hourly)
	f.hears(100, 2700, 0) // a quarter is used: it may have begun at −800 s
	for _, at := range []float64{110, 300, 500} {
		f.refuses(at, true)
	}
	if next, end := f.Ready(second(500), limit.One), second(-800).Add(f.config.Window); !f.isWindow() || next < end || next > end.Add(f.span(f.n)) {
		t.Errorf("it goes at %v, and there is more at %v or so", next, end)
	}
}

// A silent server serves a burst, of which all took what they could, and then refuses for long. It
// counts in windows, and the burst was this process' part of one. If it refuses for longer than any
// window, it does not count so, and that is not concluded again.
func TestSilenceAfterABurst(t *testing.T) {
	f := fairOf(t, hourly)
	f.last = second(100_000)
	for range 360 {
		f.asks(false, 0)
	}
	first := f.asks(true, 0)
	for f.level == &f.bucket {
		at := f.asks(true, 0)
		if d := at.Sub(first); f.isWindow() != (d > 6*time.Minute) {
			t.Fatalf("refused for %v: taken for a window: %v", d, f.isWindow())
		}
	}
	if f.n != 10 {
		t.Errorf("360 of 3600 were its own: it is one of %v", f.n)
	}
	if next, end := f.Ready(f.last, limit.One), second(100_000).Add(time.Hour); next < end || next > end.Add(f.span(f.n)) {
		t.Errorf("it goes at %v, and the window is over at %v at the latest", next, end)
	}
	for f.isWindow() {
		if at := f.asks(true, 0); f.isWindow() != (at.Sub(first) <= 66*time.Minute) {
			t.Fatalf("refused for %v: taken for a window: %v", at.Sub(first), f.isWindow())
		}
	}
	for range 30 {
		if f.asks(true, 0); f.isWindow() {
			t.Fatal("taken for a window again")
		}
	}
}

// A request that was served longer than a window ago is no part of this one.
func TestSilenceAfterALongBurst(t *testing.T) {
	f := fairOf(t, hourly)
	for i := range 36 {
		now := second(200 * float64(i))
		f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	if q := &f.silence; q.burst != 17 || q.first != second(19*200) {
		t.Errorf("%v were served since %v", q.burst, q.first)
	}
}
