package fairshare

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func fairOf(t *testing.T, c FairConfig) *Fair {
	t.Helper()
	if c.Rng == nil {
		c.Rng = rng(1)
	}
	f, err := NewFair(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// hourly is a quota of a unit per second.
var hourly = FairConfig{Limit: 3600, Window: time.Hour}

// hears sends a request at a second and answers it at once, with a remainder and a reset in
// seconds; 0: without one.
func (f *Fair) hears(at, left, reset float64) {
	now := mono.Time(at * 1e9)
	o := limit.Outcome{Result: limit.Accepted, Known: 1}
	o.Remaining[0], o.Reset[0] = int64(left), time.Duration(reset*1e9)
	f.Settle(now, limittest.Admit(f, now, limit.One), &o)
}

func (f *Fair) isWindow() bool { return f.level == &f.window }

// Fair finds the kind from answers. A reset that stands still, or leaps, is a window's end. A reset
// that moves with the remainder is the refill of a bucket. A bucket of 3,600 is full again as many
// seconds later as it is short of that.
func TestFairFindsTheKind(t *testing.T) {
	type told struct {
		at, left, reset float64
		window          bool // is it taken for one, from then on
	}
	down := func(n int, at, left, by, every float64, window bool) (s []told) { // a bucket from which others take
		for i := range n {
			a, l := at+float64(i)*every, left-float64(i)*by
			s = append(s, told{a, l, 3600 - l, window})
		}
		return s
	}
	found := []told{{0, 3000, 600, false}, {10, 2900, 590, false}, {20, 2800, 580, true}} // a window, by an end that stands still
	rises := func(n int, at, left float64) (s []told) {
		for i := range n {
			s = append(s, told{at + float64(10*i), left, 0, true}, told{at + float64(10*i) + 5, left + 2, 0, true})
			left -= 10
		}
		return s
	}
	for name, steps := range map[string][]told{
		"an end that is no bucket's":                   {{0, 3590, 1800, true}},
		"one that may be a bucket's":                   {{0, 3590, 13, false}},
		"one that hardly may":                          {{0, 3590, 14, true}},
		"one that is sooner":                           {{0, 3000, 595, true}},
		"an end that stands still":                     found,
		"as far as whole seconds and a slow path tell": {{0, 3000, 600, false}, {10, 2900, 592, false}, {20, 2800, 584, true}},
		"an end that moves, but not with what is left": {{0, 3000, 600, false}, {10, 2900, 600, false}, {20, 2800, 600, false}, {30, 2700, 600, false}},
		"a bucket":                                        down(9, 0, 3000, 50, 10, false),
		"too little has happened at first":                {{0, 3000, 600, false}, {1, 2998, 599, false}, {2, 2996, 598, false}, {3, 2994, 597, false}, {4, 2992, 596, true}},
		"hardly enough has":                               {{0, 3000, 600, false}, {1, 2997, 599, false}, {2, 2994, 598, false}, {3, 2991, 597, false}, {4, 2988, 596, true}},
		"where nothing happens it is neither":             {{0, 3000, 600, false}, {2, 3000, 598, false}, {4, 3000, 596, false}, {4, 3000, 596, false}},
		"a reset is left out now and then":                {{0, 3000, 600, false}, {10, 2900, 590, false}, {15, 2900, 0, false}, {20, 2800, 580, true}},
		"a bucket that is full tells none":                {{0, 2000, 1600, false}, {10, 3599, 0, false}, {20, 3598, 2, false}},
		"a window, and then a bucket":                     append(found[:3:3], append(down(3, 30, 2700, 100, 10, true), down(3, 60, 2400, 100, 10, false)...)...),
		"a window again after a bucket's":                 append(found[:3:3], told{30, 2700, 900, true}, told{40, 2600, 890, true}, told{50, 2500, 1100, true}, told{60, 2400, 1200, true}, told{70, 2300, 1300, true}),
		"two fifths of a window are no leap":              append(found[:3:3], told{30, 2700, 2010, true}, told{40, 2600, 560, true}, told{50, 2500, 1990, true}, told{60, 2400, 540, false}),
		"a leap by half of a window and more":             {{0, 3000, 600, false}, {610, 3590, 1900, false}, {2600, 3590, 1900, true}},
		"what comes back to where it was moves":           append(found[:3:3], told{30, 2700, 900, true}, told{40, 3010, 590, true}, told{50, 2700, 900, true}, told{60, 3010, 590, false}),
		"nothing is told, and little comes back":          {{0, 100, 0, false}, {100, 2150, 0, false}},
		"nothing is told, and more than a bucket refills": {{0, 100, 0, false}, {100, 2151, 0, true}},
		"nothing is told, and it rises a little":          append([]told{{0, 100, 0, false}, {100, 2700, 0, true}}, rises(7, 200, 2600)...),
		"nothing is told, and it rises again and again": append(append([]told{{0, 100, 0, false}, {100, 2700, 0, true}}, rises(7, 200, 2600)...),
			told{300, 2000, 0, true}, told{305, 2002, 0, false}),
		"and again, after another leap": append(append([]told{{0, 100, 0, false}, {100, 2700, 0, true}}, rises(7, 200, 2600)...),
			append([]told{{300, 2000, 0, true}, {305, 2002, 0, false}, {310, 10, 0, false}, {320, 3500, 0, true}}, rises(7, 400, 2600)...)...),
		"a leap among rises":            append(append([]told{{0, 100, 0, false}, {100, 2700, 0, true}}, append(rises(7, 200, 600), told{290, 3590, 0, true})...), rises(7, 300, 3500)...),
		"by one it may waver":           append([]told{{0, 100, 0, false}, {100, 2700, 0, true}}, []told{{110, 2600, 0, true}, {111, 2601, 0, true}, {112, 2602, 0, true}, {113, 2603, 0, true}, {114, 2604, 0, true}, {115, 2605, 0, true}, {116, 2606, 0, true}, {117, 2607, 0, true}, {118, 2608, 0, true}, {119, 2609, 0, true}}...),
		"and a reset is told after all": {{0, 100, 0, false}, {100, 2700, 0, true}, {110, 2690, 910, true}, {120, 2590, 1010, true}, {130, 2490, 1110, false}},
	} {
		f := fairOf(t, hourly)
		for i, s := range steps {
			if f.hears(s.at, s.left, s.reset); f.isWindow() != s.window {
				t.Errorf("%s: taken for a window after %d answers: %v", name, i+1, f.isWindow())
				break
			}
		}
	}
	// A small one leaps by more than an eighth with each request that comes back: eight are the
	// least.
	for n, want := range map[float64]bool{8: false, 9: true} {
		f := fairOf(t, FairConfig{Limit: 20, Window: time.Hour})
		f.hears(0, 1, 0)
		if f.hears(0.001, 1+n, 0); f.isWindow() != want {
			t.Errorf("of 20, %v came back at once, and it is taken for a window: %v", n, f.isWindow())
		}
	}
}

// The documented kind holds until resets contradict it. The units that come back prove nothing
// then. Little comes back in windows of which others leave some, and much in a bucket that many
// leave.
func TestResetsOverruleWhatIsDocumented(t *testing.T) {
	stated := func(c limit.Counting) *Fair {
		f := fairOf(t, hourly)
		f.State(0, []limit.Rule{{N: 3600, Per: time.Hour, Counts: c}})
		return f
	}
	f := stated(limit.CountsWindow)
	for i := range 40 {
		if f.hears(float64(10*i), float64(1000+i%2*5), 0); !f.isWindow() {
			t.Fatalf("what comes back makes it a bucket after %d answers", i)
		}
	}
	for i := range 5 {
		f.hears(float64(500+10*i), float64(3000-50*i), float64(600+50*i))
	}
	if f.isWindow() {
		t.Error("resets of a bucket do not make it one")
	}
	f.State(0, []limit.Rule{{N: 3600, Per: time.Hour, Counts: limit.CountsWindow}})
	if f.isWindow() {
		t.Error("that it is documented counts again, after resets have said otherwise")
	}
	f = stated(limit.CountsBucket)
	if f.hears(0, 100, 0); f.isWindow() {
		t.Error("it is a window")
	}
	if f.hears(100, 3590, 0); f.isWindow() {
		t.Error("what comes back makes it a window")
	}
	for i, left := range []float64{3000, 2900, 2800} {
		f.hears(float64(200+10*i), left, float64(600-10*i))
	}
	if !f.isWindow() {
		t.Error("an end that stands still does not make it a window")
	}
	f = stated(limit.CountsRolling)
	for i, left := range []float64{3000, 2900, 2800} {
		f.hears(float64(10*i), left, float64(600-10*i))
	}
	if f.level != &f.rolling {
		t.Error("a rolling window is taken for another kind by resets, which cannot show it")
	}
}

// A measurement under one kind is no measure of another.
func TestFairForgetsTheOtherKind(t *testing.T) {
	f := fairOf(t, hourly)
	for i := range 20 {
		f.hears(float64(10*i), 600, 0)
	}
	if !f.known || f.base.seq == 0 {
		t.Fatal("nothing was measured of the bucket")
	}
	f.hears(300, 3590, 1800)
	f.blind = 1
	f.be(&f.bucket)
	if f.known || f.blind != 0 || f.base.seq != 0 {
		t.Errorf("known %v, blind %v, from %d on", f.known, f.blind, f.base.seq)
	}
	f.known = true
	if f.be(&f.bucket); !f.known {
		t.Error("it is the same kind")
	}
}
