package fairshare

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// The second request does not wait for the first answer for ever: it goes as if ten shared, by
// weight.
func TestFairBegins(t *testing.T) {
	for weight, want := range map[float64]float64{1: 9.5, 5: 1.9, 0.5: 19, 40: 0.2375} {
		c := hourly
		c.Weight = weight
		f := fairOf(t, c)
		limittest.Admit(f, 0, limit.One)
		if got := f.Ready(0, limit.One); got != second(want) {
			t.Errorf("of weight %v the second goes at %v", weight, got)
		}
	}
	c := hourly
	c.Start = 7 * time.Second
	f := fairOf(t, c)
	limittest.Admit(f, 0, limit.One)
	if got := f.Ready(0, limit.One); got != second(7) || f.Sleep() != 7*time.Second {
		t.Errorf("with a start of 7 s the second goes at %v, and it sleeps for %v", got, f.Sleep())
	}
}

// A request of cost 0 passes freely.
func TestFairOfNothing(t *testing.T) {
	f := fairOf(t, hourly)
	limittest.Admit(f, second(10), limit.One)
	for range 3 {
		if got := f.Ready(second(10), limit.Cost{}); got != second(10) {
			t.Errorf("ready at %v", got)
		}
		f.Settle(second(10), limittest.Admit(f, second(10), limit.Cost{}), &limit.Outcome{Result: limit.Limited, Known: 1})
	}
	if got := f.Ready(second(10), limit.One); got != second(19.5) {
		t.Errorf("then what costs one is ready at %v", got)
	}
}

// The longest wait is two windows by default, or as long as 4,500 sharers need, and at least a
// minute.
func TestFairLongest(t *testing.T) {
	for _, c := range []struct {
		config FairConfig
		want   time.Duration
	}{
		{FairConfig{Limit: 45000, Window: time.Hour}, 2 * time.Hour},
		{FairConfig{Limit: 450, Window: time.Hour}, 10 * time.Hour},
		{FairConfig{Limit: 450_000, Window: time.Hour, Unit: limit.Tokens, MeanCost: 500}, 5 * time.Hour},
		{FairConfig{Limit: 45000, Window: time.Second}, time.Minute},
		{FairConfig{Limit: 45000, Window: time.Second, MaxWait: 5 * time.Second}, 5 * time.Second},
		{FairConfig{Limit: 45000, Window: math.MaxInt64, Kind: TokenBucket}, 1 << 62}, // two of these are more than there is
	} {
		f := fairOf(t, c.config)
		cost := limit.One
		cost[c.config.Unit] = max(1, int64(c.config.MeanCost))
		f.Settle(0, limittest.Admit(f, 0, cost), &limit.Outcome{Result: limit.Limited, RetryAfter: math.MaxInt64})
		if got := f.Ready(0, cost).Sub(0); got != c.want {
			t.Errorf("%+v: the longest wait is %v, want %v", c.config, got, c.want)
		}
	}
}

// All refused sharers may have the same Retry-After. They go within one interval after it, each at
// a time of its own.
func TestFairSpreadsAfterARefusal(t *testing.T) {
	c, least, most := hourly, mono.Time(math.MaxInt64), mono.Min
	c.Kind = TokenBucket
	for seed := range uint64(40) {
		c.Rng = rng(seed)
		f := fairOf(t, c)
		f.Settle(0, limittest.Admit(f, 0, limit.One), &limit.Outcome{Result: limit.Limited, RetryAfter: time.Minute})
		at := f.Ready(0, limit.One)
		least, most = min(least, at), max(most, at)
	}
	if least < second(60) || least > second(61) || most < second(68.5) || most > second(69.5) {
		t.Errorf("of forty who were refused, the first goes at %v and the last at %v", least, most)
	}
}

// The next request pays for the actual cost of a request, unless that is planned from a later one.
// The estimate is measured anew.
func TestFairCorrects(t *testing.T) {
	c := FairConfig{Kind: TokenBucket, Limit: 36000, Window: time.Hour, Unit: limit.Tokens, MeanCost: 10}
	f := fairOf(t, c)
	ask := func(at float64) *limit.Sent { return limittest.Admit(f, second(at), limit.Cost{limit.Tokens: 10}) }
	settle := func(l *limit.Sent, at float64, actual int64) {
		o := limit.Outcome{Result: limit.Accepted, Metered: true, Known: 1 << limit.Tokens, Remaining: limit.Cost{limit.Tokens: 1200}}
		o.Actual[limit.Tokens] = actual
		f.Settle(second(at), l, &o)
	}
	a, b, d := ask(0), ask(10), ask(20)
	before := f.paid
	f.Settle(second(20), ask(20), &limit.Outcome{Result: limit.Unsent})
	if f.paid != before {
		t.Errorf("one that was not sent holds the next up by %v", f.paid.Sub(before))
	}
	settle(b, 21, 10)
	paid, sum, base := f.paid, f.sum, f.base.sum
	settle(a, 22, 30)
	if f.paid != paid || f.sum != sum+20 || f.base.sum != base+20 {
		t.Errorf("the first cost 20 more: the next goes %v later, and %v more was used, %v before what is measured", f.paid.Sub(paid), f.sum-sum, f.base.sum-base)
	}
	e := ask(30)
	paid, base = f.paid, f.base.sum
	unsent := limit.Outcome{Result: limit.Unsent}
	f.Settle(second(31), d, &unsent)
	if sooner := paid.Sub(f.paid); sooner != f.step || f.base.sum != base {
		t.Errorf("the third was not sent: the next goes %v sooner, of %v", sooner, f.step)
	}
	if settle(e, 32, 10); f.base.sum != 50 {
		t.Errorf("up to the last, 50 were used: %v", f.base.sum)
	}
	g, h := ask(40), ask(50)
	f.Settle(second(51), h, &limit.Outcome{Result: limit.Limited, Known: 1 << limit.Tokens})
	paid = f.paid
	if settle(g, 52, 30); f.paid != paid {
		t.Errorf("after a refusal, what was sent before it has the next go %v later", f.paid.Sub(paid))
	}
}

// So it is before anything was answered.
func TestFairCorrectsTheSecond(t *testing.T) {
	f := fairOf(t, hourly)
	limittest.Admit(f, 0, limit.One)
	ready := f.Ready(0, limit.One)
	f.Settle(second(1), limittest.Admit(f, second(1), limit.One), &limit.Outcome{Result: limit.Unsent})
	if got := f.Ready(second(1), limit.One); got != ready {
		t.Errorf("the second was not sent: the next goes at %v, not %v", got, ready)
	}
	f = fairOf(t, hourly) // the first had nothing to wait for, and gives nothing back
	f.Settle(second(1), limittest.Admit(f, 0, limit.One), &limit.Outcome{Result: limit.Unsent})
	if got := f.Ready(second(1), limit.One); got != ready {
		t.Errorf("the first was not sent: the next goes at %v, not %v", got, ready)
	}
}

// A request that turned out to cost nothing says nothing of how many share.
func TestFairMeasuresNothingByNothing(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: TokenBucket, Limit: 36000, Window: time.Hour, Unit: limit.Tokens, MeanCost: 10})
	ask := func(at float64, actual, left int64) {
		o := limit.Outcome{Result: limit.Accepted, Metered: true, Known: 1 << limit.Tokens, Remaining: limit.Cost{limit.Tokens: left}}
		o.Actual[limit.Tokens] = actual
		f.Settle(second(at), limittest.Admit(f, second(at), limit.Cost{limit.Tokens: 10}), &o)
	}
	for at := range 2 {
		ask(float64(10*at), 10, 1200)
	}
	n := f.n
	for at := range 10 {
		if ask(float64(100+10*at), 0, 300); math.Abs(f.n-n) > 1e-9 {
			t.Fatalf("n was %v and is %v", n, f.n)
		}
	}
}

// Blind windows end with a request that is served, however small a part of a token a turn is.
func TestFairSeesAgain(t *testing.T) {
	c := hourly
	c.Kind, c.Weight = TokenBucket, 10000
	f := fairOf(t, c)
	for i := range 6 {
		at := second(float64(i) / 100)
		f.Settle(at, limittest.Admit(f, at, limit.One), &limit.Outcome{Result: limit.Limited, Known: 1})
	}
	if f.blind == 0 || f.known {
		t.Fatal("it is not blind")
	}
	if f.hears(1, 100, 0); f.blind > 0 || !f.known {
		t.Errorf("served, and still blind: %v", f.blind)
	}
}

// A remainder of more than a window ago says nothing of what could be used now.
func TestRollingForgets(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: RollingWindow, Limit: 1000, Window: 16 * time.Second})
	w := &f.rolling
	see := func(at, left float64, want float64, whole bool) {
		t.Helper()
		w.look(f, &sighting{sent: sent{seq: 1}, mid: second(at), left: left})
		if m, all := w.least(); m != want || all != whole {
			t.Errorf("at %v s %v were left at least, want %v; a whole window was seen: %v", at, m, want, all)
		}
	}
	for at := range 16 {
		see(float64(at)+0.5, 5, 5, false)
	}
	see(16.5, 300, 5, false)
	see(17.5, 900, 5, true)
	see(31.5, 800, 300, true)
	see(33.5, 700, 700, true)
	see(100.5, 900, 900, true)
}

// Blind windows widen quickly where nothing is known, slowly where ten to a hundred may share, and
// quickly again for a crowd.
func TestBlindWindowsWiden(t *testing.T) {
	for n, most := range map[float64]float64{9.5: 5, 15: 5, 19: 5, 20: 1.3, 150: 1.3, 151: 2, 1000: 2} {
		if got := widened(n, 1e6); math.Abs(got/n-most) > 1e-9 {
			t.Errorf("a window of %v widens to %v, want %v times as much", n, got, most)
		}
	}
}

// A drought shows at the reserve in 17 answers, and 120 tokens' time, in which this process took no
// more than its share. In them the level fell by its own requests or more, and by a third of the
// consumption of all. After plenty that never grew, four answers and 20 tokens' time are enough.
func TestDroughtIsSeen(t *testing.T) {
	const reserve = 160.5
	for _, c := range []struct {
		apart, falls float64
		want         int // sightings until it is dry; 0: never
		mean, n      float64
		first, then  float64 // the remainder at first, and before it falls
	}{
		{10, 1, 19, 1, 1, 300, reserve}, {10, 2, 19, 1, 1, 300, reserve}, {5, 1, 27, 1, 1, 300, reserve}, {5, 0, 0, 1, 1, 300, reserve},
		{1, 1, 123, 1, 1, 300, reserve}, {0.7, 1, 0, 1, 1, 300, reserve}, {10, 0.6, 19, 1, 1, 300, reserve}, {10, 0.2, 0, 1, 1, 300, reserve},
		{10, 1, 19, 10, 1, 300, reserve}, {10, 0.9, 0, 10, 1, 300, reserve},
		{10, 1, 6, 1, 1, 1000, reserve}, {5, 1, 7, 1, 1, 1000, reserve}, {0.7, 1, 0, 1, 1, 1000, reserve},
		{30, 5, 0, 1, 20, 300, reserve}, {30, 7, 23, 1, 20, 300, reserve}, {30, 7, 0, 1, 20, 5000, 5000},
	} {
		config := hourly
		config.Limit, config.MeanCost = int64(3600*c.mean), c.mean
		f := fairOf(t, config)
		f.n = c.n
		d, dry := &f.bucket.drought, 0
		for i := range 200 {
			k, left := float64(i), c.first
			if i > 0 {
				left = c.then - c.falls*k
			}
			f.last, f.sum = second(c.apart*k), c.mean*(k+1)
			d.look(f, &sighting{sent: sent{seq: uint64(i + 1), at: f.last, cost: c.mean, sum: f.sum, alone: true}, mid: f.last, left: left})
			if d.found {
				dry = i + 1
				break
			}
		}
		if dry != c.want {
			t.Errorf("%v s apart, and %v less each time, among %v, from %v: dry after %d, want %d", c.apart, c.falls, c.n, c.first, dry, c.want)
		}
	}
}

// Two drain a bucket of 3,600 that may refill by one a second, with round trips of 100 ms. As it
// passes an eighth one of them listens: it sends a request in each of five rounds, and waits until
// the other has, too. Nothing comes if the other takes as much in all rounds.
func TestListening(t *testing.T) {
	ms := func(all ...int) (d []time.Duration) {
		for _, n := range all {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	for _, c := range []struct {
		name   string
		others []float64 // the consumption of the other in each round, less the inflow
		late   time.Duration
		found  bool
	}{
		{"the other listens, too", []float64{1, 1, 1, 1, 1}, 0, true},
		{"it is alone after all", []float64{0, 0, 0, 0, 0}, 0, true},
		{"something comes", []float64{0, -1, 0, 1, 0}, 0, false},
		{"nearly as much comes in all rounds", []float64{1, 1, 1, 1, 0}, 0, false},
		{"more comes than the other takes", []float64{-1, -1, -1, -1, -1}, 0, false},
		{"the other sends what was under way", []float64{3, 1, 1, 1, 1}, 0, false},
		{"the other does not listen", []float64{6, 20, 6, 6, 6}, 0, false},
		{"it misses its turn", []float64{1, 1, 1, 1, 1}, 21 * time.Millisecond, false},
	} {
		f := fairOf(t, hourly)
		f.n = 2
		d, left, now := &f.bucket.drought, 3600.5, mono.Time(0)
		answer := func(at mono.Time, others float64) {
			now, left = at, left-1-others
			f.seq++
			f.sum++
			f.last = now.Add(100 * time.Millisecond)
			d.look(f, &sighting{sent: sent{seq: f.seq, at: now, cost: 1, sum: f.sum, alone: true}, mid: now.Add(50 * time.Millisecond), left: left})
		}
		answer(0, 0)
		for !d.holds() && left > 3000 {
			answer(f.last, 9)
		}
		var held []time.Duration
		next := func(others float64, late time.Duration) {
			held = append(held, d.next.Sub(now))
			answer(d.next.Add(late), others)
		}
		next(3, 0)
		for i, others := range c.others {
			next(others, c.late*time.Duration(i))
		}
		if want := ms(530, 600, 2040, 600, 600, 600); !slices.Equal(held, want) || d.found != c.found || !d.holds() {
			t.Errorf("%s: its requests are %v apart, want %v, and nothing comes: %v, want %v", c.name, held, want, d.found, c.found)
		}
		if next(0, 0); d.holds() {
			t.Errorf("%s: it listens for ever", c.name)
		}
		if answer(now.Add(time.Second), -2); d.found {
			t.Errorf("%s: something comes, and it is not seen", c.name)
		}
	}
}

// The beat is a time at any rate, and an excessive amount is no turn.
func TestListeningAtAnyRate(t *testing.T) {
	for _, limit := range []int64{1, 3600, 1 << 40, 1 << 44} {
		c := hourly
		c.Limit = limit
		f, s := fairOf(t, c), &sighting{left: -1e20}
		l := &f.bucket.drought.listening
		l.trip = time.Second
		if l.begin(f, s, 1e20); l.beat <= 0 || l.turn < 0 || l.turn > beatsTurns*l.beat {
			t.Errorf("at %d an hour the beat is %v and the turn %v", limit, l.beat, l.turn)
		}
	}
}

// The default unit of cost: one request, or a 1500th of the quota.
func TestFairMeanCost(t *testing.T) {
	for unit, want := range map[limit.Unit]float64{limit.Requests: 1, limit.Tokens: 1000} {
		if f := fairOf(t, FairConfig{Limit: 1_500_000, Window: time.Minute, Unit: unit}); f.config.MeanCost != want {
			t.Errorf("a unit of %v is %v", unit, f.config.MeanCost)
		}
	}
	if f := fairOf(t, FairConfig{Limit: 100, Window: time.Minute, Unit: limit.Tokens}); f.config.MeanCost != 1 {
		t.Errorf("a unit of a small quota is %v", f.config.MeanCost)
	}
}

// A request that only missing answers hold back waits for one, or for the pace. That is the pace of
// its cost, or of one unit if it costs more.
func TestAccountWaitsForAnAnswer(t *testing.T) {
	for _, c := range []struct {
		cost float64
		open int
		want time.Duration
	}{{10, 1, 5 * time.Second}, {5, 1, 2500 * time.Millisecond}, {100, 1, 5 * time.Second}, {100, 0, 0}} {
		a := newAccount(time.Hour, 10)
		a.pay(0, 10)
		a.step = 0
		if got := max(0, a.due(c.cost, c.open, 5*time.Second)); got != mono.Time(c.want) {
			t.Errorf("a cost of %v with %d in flight goes at %v, want %v", c.cost, c.open, got, c.want)
		}
	}
}

// The least n is a sixteenth, since the quota may be larger than assumed. A process of a larger
// weight may have more of it alone.
func TestFairLeast(t *testing.T) {
	for weight, want := range map[float64]float64{0.5: 1.0 / 16, 1: 1.0 / 16, 4: 1.0 / 64} {
		c := hourly
		c.Weight = weight
		if f := fairOf(t, c); f.clamp(0) != want {
			t.Errorf("of weight %v the least n is %v", weight, f.clamp(0))
		}
	}
}

// A process that began with a known pace and is refused, and again, goes half again as slowly.
func TestFairStartsTooFast(t *testing.T) {
	c := hourly
	c.Kind, c.Start = TokenBucket, 10*time.Second
	f := fairOf(t, c)
	for i, want := range []float64{10, 15, 22.5} {
		now := f.Ready(second(float64(i)), limit.One)
		f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Limited, Known: 1})
		if f.n < want-1e-9 || f.n > 2*want {
			t.Errorf("refused %d times, n is %v, want %v", i+1, f.n, want)
		}
		if wait := f.Ready(now, limit.One).Sub(now).Seconds(); wait < f.n || wait > 1.2*f.n {
			t.Errorf("refused %d times, it waits for %v s, and its turn is each %v", i+1, wait, f.n)
		}
	}
}
