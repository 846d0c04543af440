package fairshare

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// asks sends when it may, and is answered 100 ms later: served or refused, and no word else but
// when to come again.
func (f *Fair) asks(refused bool, retryAfter time.Duration) (sent mono.Time) {
	sent = f.Ready(f.last, limit.One)
	o := limit.Outcome{Result: limit.Accepted, RetryAfter: retryAfter}
	if refused {
		o.Result = limit.Limited
	}
	f.Settle(sent.Add(100*time.Millisecond), limittest.Admit(f, sent, limit.One), &o)
	return sent
}

// Where refusals are the only sign, a long Retry-After shows a window. Long is more than a fiftieth
// of it, and more than twice the time of a turn in a bucket.
func TestSilenceRetryAfter(t *testing.T) {
	for _, c := range []struct {
		limit        int64
		start, retry time.Duration
		window       bool
	}{
		{3600, 0, 71 * time.Second, false},
		{3600, 0, 73 * time.Second, true},
		{3600, 100 * time.Second, 199 * time.Second, false},
		{3600, 100 * time.Second, 201 * time.Second, true},
		{7200, 100 * time.Second, 199 * time.Second, false},
		{7200, 100 * time.Second, 201 * time.Second, true},
	} {
		config := hourly
		config.Limit, config.Start = c.limit, c.start
		f := fairOf(t, config)
		f.last = second(0)
		f.asks(false, 0)
		f.asks(true, c.retry)
		if f.isWindow() != c.window {
			t.Errorf("told to come in %v, with %v between two: taken for a window: %v", c.retry, c.start, f.isWindow())
		}
	}
	known := hourly
	known.Kind = TokenBucket
	f := fairOf(t, known)
	f.last = second(0)
	f.asks(false, 0)
	if f.asks(true, time.Hour); f.isWindow() {
		t.Error("it is known to be a bucket")
	}
}

// So do three refusals in a row or more, for longer than a tenth of the window. A bucket of
// thousands of sharers refuses for as long. So a process that was served less than five times
// before searches for the window's end at once.
func TestSilenceRefusedForLong(t *testing.T) {
	for _, served := range []int{0, 1} {
		f := fairOf(t, hourly)
		f.last = second(100_000)
		f.asks(false, 0)
		f.asks(true, 0)
		for range served {
			f.asks(false, 0)
		}
		first := f.asks(true, 0)
		for i := range 40 {
			at := f.asks(true, 0)
			want := i >= 1 && at.Sub(first) > 6*time.Minute
			if f.isWindow() != want || f.silence.window.lost != (want && served == 0) {
				t.Fatalf("served %d, refused for %v and %d times: taken for a window: %v, looks for its end: %v", served, at.Sub(first), i+2, f.isWindow(), f.silence.window.lost)
			}
			if want {
				break
			}
		}
	}
	slow := hourly
	slow.Start = 300 * time.Second
	f := fairOf(t, slow)
	f.last = second(100_000)
	f.asks(false, 0)
	for i := range 3 {
		if f.asks(true, 0); f.isWindow() != (i == 2) {
			t.Errorf("refused %d times, five minutes apart: taken for a window: %v", i+1, f.isWindow())
		}
	}
	f = fairOf(t, hourly)
	f.last = second(100_000)
	f.asks(false, 0)
	for range 100 { // refused now and then
		f.asks(true, 0)
		f.asks(true, 0)
		if f.asks(false, 0); f.isWindow() {
			t.Fatal("it was served between")
		}
	}
}

// A server that refuses for long before it serves is taken for a silent window, until an answer has
// a remainder. It is not where refusals have one.
func TestSilenceThatSpeaks(t *testing.T) {
	f := fairOf(t, hourly)
	f.last = second(0)
	for range 40 {
		f.asks(true, 0)
	}
	if !f.isWindow() {
		t.Fatal("refused again and again")
	}
	if f.hears(f.last.Sub(0).Seconds()+10, 500, 0); f.isWindow() || f.silence.on {
		t.Error("it says what remains")
	}
	f = fairOf(t, hourly)
	for i := range 40 {
		if f.refuses(float64(1000*i), true); f.isWindow() {
			t.Fatal("it is not silent")
		}
	}
}

// A process that was refused first does not take all that it can once it is served. A process that
// was served again long after the first of three refusals searches for the end of a window. It does
// so even if it asked too rarely to have been refused for so long.
func TestSilenceServedAfterRefusals(t *testing.T) {
	for _, c := range []struct {
		served float64
		window bool
	}{
		{350, false},
		{370, true},
	} {
		f := fairOf(t, hourly)
		for _, at := range []float64{0, 20, 100} {
			f.answers(at, true, 0)
		}
		f.answers(c.served, false, 0)
		if f.isWindow() != c.window || f.silence.window.lost != c.window {
			t.Errorf("served after %v s: taken for a window: %v, looks for its end: %v", c.served, f.isWindow(), f.silence.window.lost)
		}
		if wait := f.Ready(second(c.served), limit.One).Sub(second(c.served)); wait < 5*time.Second {
			t.Errorf("served after %v s, it goes again after %v", c.served, wait)
		}
	}
	// Of few requests in a window ends say little: it takes a whole window.
	for served, window := range map[float64]bool{50: false, 65: true} {
		c := hourly
		c.Limit, c.Window = 75, time.Minute
		f := fairOf(t, c)
		for _, at := range []float64{0, 8, 30} {
			f.answers(at, true, 0)
		}
		if f.answers(served, false, 0); f.isWindow() != window {
			t.Errorf("75 a minute, served after %v s: taken for a window: %v", served, f.isWindow())
		}
	}
}

// Ends by Retry-After are whole windows apart, or it is no window: a bucket's move on.
func TestSilenceIsToldThatItIsNoWindow(t *testing.T) {
	for _, c := range []struct {
		each, retry time.Duration
		window      bool
	}{
		{time.Hour, 1000 * time.Second, true},
		{10 * time.Second, time.Second, false},
	} {
		f := fairOf(t, hourly)
		f.answers(0, false, 0)
		f.answers(1, true, 1000*time.Second)
		f.answers(1001, false, 0)
		for i := range 12 {
			f.answers(3601+float64(i)*c.each.Seconds(), true, c.retry)
		}
		if f.isWindow() != c.window {
			t.Errorf("each %v it is told to come in %v: taken for a window: %v", c.each, c.retry, f.isWindow())
		}
	}
}

// answers has a request served or refused at an instant, and no word else but when to come again.
func (f *Fair) answers(at float64, refused bool, retryAfter time.Duration) {
	o := limit.Outcome{Result: limit.Accepted, RetryAfter: retryAfter}
	if refused {
		o.Result = limit.Limited
	}
	f.Settle(second(at), limittest.Admit(f, second(at), limit.One), &o)
}

// A server whose answers had remainders falls silent. By the third answer without one, another law
// takes over, until an answer has one.
func TestSilenceFalls(t *testing.T) {
	f := fairOf(t, hourly)
	f.last = second(0)
	if f.asks(false, 0); !f.silence.on {
		t.Error("it never said what remains")
	}
	f.hears(10, 500, 0)
	for i, want := range []bool{false, false, true, true} {
		f.asks(false, 0)
		if f.silence.on != want {
			t.Errorf("silent after %d: %v", i+1, f.silence.on)
		}
	}
	f.blind = 3
	f.hears(f.last.Sub(0).Seconds()+10, 500, 0)
	if f.silence.on || f.base.seq != f.heard || !f.known || f.blind != 0 {
		t.Errorf("it says it again: silent %v, measured from %d on", f.silence.on, f.base.seq)
	}
	f.asks(false, 0)
	f.asks(false, 0)
	f.hears(f.last.Sub(0).Seconds()+10, 500, 0)
	f.asks(false, 0)
	if f.asks(false, 0); f.silence.on {
		t.Error("three in a row, and not three in all")
	}
	if f.asks(true, 0); f.silence.on {
		t.Error("a refusal need not say it")
	}
}

// A known window refuses at first, without a reset. It is over a window later at the latest, and no
// request asks again and again before that.
func TestSilenceOfAKnownWindow(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	f := fairOf(t, c)
	f.last = second(0)
	f.asks(true, 0)
	if next := f.Ready(f.last, limit.One); next < second(3600) || next > second(4000) {
		t.Errorf("after a refusal it goes at %v", next)
	}
}

// A refusal arrives after the window has ended. Nothing is known of the next one, so the next
// request waits for a twentieth of it.
func TestWindowRefusedAtItsEnd(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	f := fairOf(t, c)
	f.hears(0, 500, 10)
	l := limittest.Admit(f, second(9), limit.One)
	f.Settle(second(10.5), l, &limit.Outcome{Result: limit.Limited, Known: 1})
	if wait := f.Ready(second(10.5), limit.One).Sub(second(9)); wait < 3*time.Minute || wait > 216*time.Second {
		t.Errorf("it waits for %v", wait)
	}
}

// After a silent bucket refused, the pace is the one at which it lately served, where that is
// slower: by twice at most, and a little.
func TestSilentBucketSlows(t *testing.T) {
	for name, c := range map[string]struct {
		served int
		over   float64 // seconds in which that was, at one per second
		in     int     // refused before, in a row
		n      float64 // of 10
	}{
		"few answers":                   {7, 1000, 0, 10 * 1.07},
		"as fast as planned":            {9, 100, 0, 10 * 1.07},
		"faster":                        {9, 50, 0, 10 * 1.07},
		"half again as slow":            {9, 150, 0, 15 * 1.07},
		"eight":                         {8, 135, 0, 15 * 1.07},
		"far slower":                    {9, 1000, 0, 20 * 1.07},
		"refused again at once":         {0, 1000, 1, 10 * 1.05},
		"and again":                     {0, 1000, 2, 10 * 1.2},
		"the fifth, whatever was meant": {0, 1000, 4, 10 * 1.2},
	} {
		f := fairOf(t, hourly)
		f.n = 10
		b := &f.silence.bucket
		*b = silentBucket{stage: limitedAgain, served: c.served, begun: second(5000 - c.over), in: c.in}
		b.limited(f, second(5000), &sighting{sent: sent{at: second(5000)}, limited: true}, 0)
		if math.Abs(f.n-c.n) > 1e-6 {
			t.Errorf("%s: n was 10 and is %v, want %v", name, f.n, c.n)
		}
	}
}

// A silent bucket that does not refuse is used faster. Each answer counts by the time since the one
// before, and for no more than two turns: an idle process learns nothing.
func TestSilentBucketQuickens(t *testing.T) {
	for gap, counts := range map[float64]float64{5: 5, 20: 20, 25: 20, 500: 20} {
		f := fairOf(t, hourly)
		f.n = 10
		f.silence.bucket = silentBucket{stage: limitedAgain, refused: second(9000), heard: true, heardAt: second(10000 - gap)}
		f.silence.bucket.answer(f, second(10000), &sighting{sent: sent{at: second(10000)}}, 0)
		if want := 10 * (1 - 3*0.03*0.25*counts/2000); math.Abs(f.n-want) > 1e-9 {
			t.Errorf("%v s after the answer before, n is %v, want %v", gap, f.n, want)
		}
	}
}

// A process of a larger weight comes back sooner after the first refusal of a silent bucket: it
// assumes to be one of ten by weight.
func TestSilentBucketByWeight(t *testing.T) {
	for weight, most := range map[float64]time.Duration{1: 16 * time.Second, 5: 6 * time.Second} {
		longest := time.Duration(0)
		for seed := range uint64(60) {
			c := hourly
			c.Weight, c.Rng, c.Kind = weight, rng(seed), TokenBucket
			f := fairOf(t, c)
			f.last = second(0)
			f.asks(false, 0)
			at := f.asks(true, 0)
			longest = max(longest, f.Ready(f.last, limit.One).Sub(at))
		}
		if longest > most || longest < most*2/5 {
			t.Errorf("of weight %v, the last of sixty comes back after %v, want about %v", weight, longest, most)
		}
	}
}

// A silent window that never refuses is used ever faster, up to sixteen times the configured limit.
func TestSilentWindowThatNeverRefuses(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	f := fairOf(t, c)
	f.last = second(0)
	var at, before mono.Time
	for at < second(2*3600) {
		before, at = at, f.asks(false, 0)
	}
	if gap := at.Sub(before); f.n != sharesLeast || gap > time.Second/8 {
		t.Errorf("after two hours it goes every %v, at n = %v", gap, f.n)
	}
}

// A refusal is no sign that there is less than should remain: some may be left for cheaper ones.
func TestWindowOwesNothingByARefusal(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	f := fairOf(t, c)
	f.hears(0, 3599, 3600)
	now := second(600)
	f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Limited, Known: 1, Reset: [len(limit.Cost{})]time.Duration{3000 * time.Second}})
	if f.window.debt {
		t.Error("it goes slower until the window ends")
	}
	if f.hears(700, 100, 2900); !f.window.debt {
		t.Error("of 2,900 that should remain 100 do")
	}
}

// A silent window that refuses when it should be over is asked again each twentieth of its length,
// and now and then at half of that.
func TestSilentWindowThatIsNotOver(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	f := fairOf(t, c)
	f.last = second(0)
	before := f.asks(true, 0)
	for i := range 20 {
		at := f.asks(true, 0)
		wait, turn := at.Sub(before), f.span(f.n)
		if i > 0 && (wait < 90*time.Second || wait > 3*time.Minute+time.Second+turn) {
			t.Errorf("refused %d times, it comes again after %v, and its turn is each %v", i+2, wait, turn)
		}
		before = at
	}
}

// Ends of silent windows that are whole windows apart bound the end better and better. Other ends
// show that it is no window of that length.
func TestSilentWindowEnds(t *testing.T) {
	var w silentWindow
	for i, c := range []struct {
		low, high float64
		from, to  float64
		misfits   int
	}{
		{80, 120, 80, 120, 0},
		{190, 230, 190, 220, 0},
		{480, 510, 490, 510, 0},
		{530, 540, 530, 540, 1},
		{670, 690, 670, 690, 2},
		{775, 800, 775, 790, 0},
	} {
		w.clean = true
		w.ends(second(c.low), second(c.high), 100*time.Second)
		if w.low != second(c.from) || w.high != second(c.to) || w.misfits != c.misfits || w.clean {
			t.Errorf("end %d: between %v and %v, %d misfits", i+1, w.low, w.high, w.misfits)
		}
	}
}

// An end that is known only within more than half a window may be of that window or the next. An
// end without news confirms nothing.
func TestSilentWindowEndsThatAreHardlyKnown(t *testing.T) {
	for name, c := range map[string]struct {
		low, high float64
		from, to  float64
		misfits   int
	}{
		"it was at the beginning": {110, 172, 110, 120, 0},
		"nothing new":             {170, 230, 180, 220, 1},
		"one of two":              {150, 300, 280, 320, 1},
		"none":                    {125, 175, 125, 175, 2},
	} {
		w := silentWindow{low: second(80), high: second(120), seen: true, misfits: 1}
		w.ends(second(c.low), second(c.high), 100*time.Second)
		if w.low != second(c.from) || w.high != second(c.to) || w.misfits != c.misfits {
			t.Errorf("%s: between %v and %v, %d misfits", name, w.low, w.high, w.misfits)
		}
	}
}

// A window whose ends were twice no whole windows apart is none.
func TestSilentWindowThatIsNone(t *testing.T) {
	for misfits, window := range map[int]bool{0: true, 1: true, 2: false} {
		f := fairOf(t, hourly)
		f.level, f.silence.window.misfits = &f.window, misfits
		if f.silence.find(f, &sighting{}, 0); f.isWindow() != window {
			t.Errorf("after %d ends that do not fit: taken for a window: %v", misfits, f.isWindow())
		}
	}
}

// A Retry-After states the end of a window, too.
func TestWindowEndsByRetryAfter(t *testing.T) {
	c := hourly
	c.Kind = FixedWindow
	f := fairOf(t, c)
	f.hears(0, 500, 3600)
	now := second(10)
	f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Limited, RetryAfter: 3000 * time.Second})
	if f.window.ends != second(3010) {
		t.Errorf("the window ends at %v", f.window.ends)
	}
}

// After a refusal at any pace nothing goes for a sixteenth of a second, and after each more in a
// row for four times as long.
func TestSilentUnknownStaysAway(t *testing.T) {
	a, err := NewAuto(AutoConfig{Rng: fairOf(t, hourly).config.Rng})
	if err != nil {
		t.Fatal(err)
	}
	f := a.fair
	f.last = second(0)
	f.asks(false, 0)
	f.unknown.stage, f.n = measured, 1e-6
	at := f.asks(true, 0)
	for least := time.Second / 16; least < time.Minute; least *= awayMore {
		next := f.asks(true, 0)
		if d := next.Sub(at); d < least || d > 2*least+200*time.Millisecond {
			t.Errorf("%v after the refusal before, want %v or a little more", d, least)
		}
		at = next
	}
}

// A refusal within a quarter of a plateau comes soon: each such one in a row slows by more. A time without requests
// does not count, and neither does any of that before the pace is measured.
func TestSilentUnknownRefusedSoon(t *testing.T) {
	const idle = 10 * time.Second
	soon := time.Duration(plateau * soonPart * float64(time.Second))
	for _, c := range []struct {
		name   string
		stage  unknownStage
		after  time.Duration // of requests since the refusal before
		soon   int
		lately float64
	}{
		{"soon", measured, soon - time.Millisecond, 2, 4}, {"not soon", measured, soon, 0, 7}, {"not measured", measuring, 0, 0, 4},
	} {
		f := fairOf(t, hourly)
		f.n = 7
		u := silentUnknown{stage: c.stage, refused: second(1000), busy: 5 * time.Second, soon: 1, anchor: 100, lately: [...]float64{1, 2, 3, 4}}
		u.slow(f, &sighting{sent: sent{at: second(1000).Add(c.after + idle), idle: u.busy + idle}})
		if u.soon != c.soon || u.lately[3] != c.lately {
			t.Errorf("%s: %d soon, lately %v; want %d, %v", c.name, u.soon, u.lately, c.soon, c.lately)
		}
	}
}
