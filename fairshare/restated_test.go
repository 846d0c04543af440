package fairshare

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

func autoOf(t *testing.T, c AutoConfig) *Auto {
	t.Helper()
	c.Rng = rng(1)
	a, err := NewAuto(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A quota that is stated later has the longest wait and the unit of cost of one that was known from
// the beginning. 450,000 tokens an hour are reckoned in units of 300, of which 4,500 sharers would
// need three hours for one each.
func TestToldLaterAsFromTheBeginning(t *testing.T) {
	a := autoOf(t, AutoConfig{Unit: limit.Tokens})
	a.State(0, []limit.Rule{{Unit: limit.Tokens, N: 450_000, Per: time.Hour, Counts: limit.CountsBucket}})
	unit := limit.Cost{limit.Requests: 1, limit.Tokens: 300}
	limittest.Admit(a, 0, unit)
	l := limittest.Admit(a, 0, unit)
	paid := a.fair.paid
	if got := a.fair.due(300, 0, 0).Sub(paid); got != 22800*time.Millisecond { // 9.5 units of 2.4 s
		t.Errorf("the next unit goes %v after the one before", got)
	}
	o := limit.Outcome{Result: limit.Limited, RetryAfter: 1000 * time.Hour}
	a.Settle(0, l, &o)
	if got := a.Ready(0, unit); got != second(3*3600) {
		t.Errorf("the longest wait ends at %v", got)
	}
}

// A found pace is kept, however the quota is stated: the time for the same tokens stays the same,
// in any unit.
func TestToldAgainAtTheSamePace(t *testing.T) {
	a := autoOf(t, AutoConfig{Unit: limit.Tokens})
	told := func(n int64, per time.Duration) {
		a.State(0, []limit.Rule{{Unit: limit.Tokens, N: n, Per: per, Counts: limit.CountsBucket}})
	}
	told(450_000, time.Hour) // in units of 300
	a.fair.known, a.fair.n = true, 5
	for _, again := range []struct {
		n   int64
		per time.Duration
	}{{900_000, time.Hour}, {90_000, time.Minute}, {450_000, time.Hour}} {
		told(again.n, again.per)
		if got := a.fair.times(a.fair.step, 300); (got - 12*time.Second).Abs() > time.Microsecond {
			t.Errorf("told %d in %v, 300 tokens take %v, and took 12 s before", again.n, again.per, got)
		}
	}
}

// The first minute is a minute long, to its end. Later refusals count as later, and refusals by
// another limit not at all.
func TestFoundInTheFirstMinute(t *testing.T) {
	a := autoOf(t, AutoConfig{})
	refused := func(at float64, o limit.Outcome) {
		o.Result = limit.Limited
		a.Settle(second(at), limittest.Admit(a, second(at), limit.One), &o)
	}
	a.Settle(second(100), limittest.Admit(a, second(100), limit.One), &limit.Outcome{Result: limit.Accepted})
	refused(100, limit.Outcome{})
	refused(159, limit.Outcome{Elsewhere: true})
	refused(160, limit.Outcome{})
	refused(160.001, limit.Outcome{})
	if f := a.Found(); f.Soon != 2 || f.Later != 1 || f.In != 60001*time.Millisecond {
		t.Errorf("%d refused in the first minute and %d since, in %v", f.Soon, f.Later, f.In)
	}
}

// After a refusal requests go one at a time until there is an answer, and then two.
func TestAccountAfterARefusal(t *testing.T) {
	a := newAccount(time.Hour, 1)
	a.pay(0, 1)
	a.hold(0, second(10), 10*time.Second)
	s := a.pay(second(10), 1)
	a.plan(second(11), &sighting{sent: s}, 0, 0)
	for open, want := range map[int]float64{1: 10, 2: 20} {
		if got := a.due(1, open, 10*time.Second); got != second(want) {
			t.Errorf("with %d in flight the next goes at %v, want %v", open, got, second(want))
		}
	}
}

// A process of weight 40 begins with a blind window of a fortieth of that of weight 1, and reads
// its result in the same way.
func TestBlindWindowByWeight(t *testing.T) {
	for _, weight := range []float64{1, 40} {
		c := hourly
		c.Kind, c.Weight = TokenBucket, weight
		f := fairOf(t, c)
		f.Settle(0, limittest.Admit(f, 0, limit.One), &limit.Outcome{Result: limit.Limited, Known: 1})
		if want := 9.5 / weight; f.blind != want || f.n != want {
			t.Errorf("of weight %v it begins with a blind window of %v, and n = %v; want %v", weight, f.blind, f.n, want)
		}
		first := f.Ready(0, limit.One)
		limittest.Admit(f, first, limit.One)
		est, ok := f.estimate(&sighting{sent: sent{seq: 2, at: first.Add(time.Hour), sum: f.sum}, left: 0.5 + f.tokens(first.Add(time.Hour).Sub(0)) - 2*f.n})
		// By then all have sent, if there are as many as were assumed, and 2n were taken; and the n
		// of before weighs as much.
		if want := 1.5 * f.n; !ok || math.Abs(est-want) > 1e-6 {
			t.Errorf("of weight %v the estimate is %v, %v; want %v", weight, est, ok, want)
		}
		o := limit.Outcome{Result: limit.Accepted, Known: 1, Remaining: limit.Cost{limit.Requests: 100}}
		f.Settle(first.Add(time.Second), limittest.Admit(f, first, limit.One), &o)
		if f.blind != 0 || !f.known || f.revised != f.seq {
			t.Errorf("of weight %v it was served, and is blind still: %v", weight, f.blind)
		}
	}
}

// In a rolling window the rates of its parts are scaled to its content, however little that is, by
// twice or a half at most. Without consumption no rates are known.
func TestRatesOfARollingWindow(t *testing.T) {
	for _, c := range []struct{ held, took, want float64 }{
		{0.5, 0.5, 0.5}, {0.4, 0.6, 0.6}, {0.2, 0.6, 0.4}, {8, 2, 4}, {40, 44, 44}, {0, 10, 0}, {0, -0.5, 0},
	} {
		w := newRollingLevel(3600, time.Hour)
		for i := range w.rate {
			w.rate[i] = c.held / 3600
		}
		w.took, w.time = c.held*100/3600, 100
		w.turn(1, 3600-c.took)
		sum := 0.0
		for _, r := range w.rate {
			sum += r * 3600 / rollingParts
		}
		if !(math.Abs(sum-c.want) < 1e-9) {
			t.Errorf("of a window by whose parts %v were taken and by what remains %v, %v were", c.held, c.took, sum)
		}
	}
}

// The amount served until the first refusal is of a whole window, unless it is large and took long.
// Then the pace of the end counts: from the last but one of the answers that are multiples of 64.
func TestFirstGuess(t *testing.T) {
	for _, c := range []struct {
		served  int
		away    float64 // for how long
		exactly bool
		first   float64
	}{
		{40, 1, true, 40}, {127, 1, true, 127}, {128, 1, false, 64}, {191, 1, false, 127}, {192, 1, false, 64},
		{192, 90, false, 64}, {192, 110, true, 192},
	} {
		a := autoOf(t, AutoConfig{})
		now := second(1000)
		answer := func(r limit.Result) {
			now = max(now, a.Ready(now, limit.One))
			a.Settle(now, limittest.Admit(a, now, limit.One), &limit.Outcome{Result: r})
			now = now.Add(time.Second)
		}
		for range c.served {
			answer(limit.Accepted)
		}
		began := now
		answer(limit.Limited)
		now = max(now, began.Add(time.Duration(c.away*1e9)))
		answer(limit.Accepted)
		if u := a.fair.unknown; u.exact != c.exactly || u.first != c.first || u.stage != measuring {
			t.Errorf("served %d in as many seconds, and away for %v: %v are of a whole window: %v; want %v, %v", c.served, c.away, u.first, u.exact, c.first, c.exactly)
		}
	}
}

// If a server states nothing, the limit concluded from remainders stays.
func TestNothingIsStated(t *testing.T) {
	a := autoOf(t, AutoConfig{})
	o := limit.Outcome{Result: limit.Accepted, Known: 1, Remaining: limit.Cost{limit.Requests: 74}}
	o.Reset[limit.Requests] = time.Minute
	a.Settle(0, limittest.Admit(a, 0, limit.One), &o)
	a.State(0, nil)
	if f := a.Found(); f.By != byRemains || f.Rule.N != 75 {
		t.Errorf("found %v", f)
	}
}

// The narrower of two limits under two names stays, however narrow it is.
func TestTheNarrowestLimitStays(t *testing.T) {
	a := autoOf(t, AutoConfig{})
	narrow := limit.Rule{Name: "core", N: 1, Per: time.Hour}
	for range 2 {
		a.State(0, []limit.Rule{narrow})
		a.State(0, []limit.Rule{{Name: "search", N: 30, Per: time.Minute}})
		if f := a.Found(); f.Rule != narrow {
			t.Errorf("found %v", f)
		}
	}
}
