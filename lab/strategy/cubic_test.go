package strategy_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// The vector that the SDKs publish for their adaptive mode (in aws-sdk-go-v2 it is the "base" case of the update of the
// rate): an answer each 200 ms, the tenth and the sixteenth limited.
func TestCubicVector(t *testing.T) {
	c := must(strategy.NewCubic(strategy.Params{Rate: 100, Burst: 100}))
	var leases []*limit.Sent
	for range 17 {
		leases = append(leases, limittest.Admit(c, 0, limit.One))
	}
	unsent := limittest.Admit(c, 0, limit.One)
	for i, want := range []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.6912, 1.0976, 1.6384, 2.3328, 3.02848, 3.4866391734702598,
		3.8218744160402554, 4.053385727709987, 4.200373108479455, 4.282036558348658, 2.99742559084406, 3.4522263943863463} {
		o := limit.Outcome{Result: limit.Accepted}
		if i == 9 || i == 15 {
			o.Result = limit.Limited
		}
		now := at(time.Duration(i+1) * 200 * ms)
		if i == 2 {
			c.Settle(now-1, unsent, &limit.Outcome{Result: limit.Unsent}) // no answer, so not measured
		}
		c.Settle(now, leases[i], &o)
		if !closeTo(c.Rate(), want) {
			t.Errorf("at %v the rate is %v, want %v", now, c.Rate(), want)
		}
		if sleep := c.Sleep(); (sleep == 0) != (i < 9) {
			t.Errorf("at %v it shows a sleep of %v", now, sleep)
		}
	}

	// Now at most 3.452 tokens: three go at once, the next when one more is whole.
	for range 3 {
		if r := c.Ready(at(10*s), limit.One); r != at(10*s) {
			t.Fatalf("ready at %v", r)
		}
		limittest.Admit(c, at(10*s), limit.One)
	}
	if r := c.Ready(at(10*s), limit.One); !near(r.Sub(0), 10158672562) {
		t.Errorf("the fourth is ready at %v", r)
	}
}

// The vector for the curve: limited at 10 requests per second, the rate after each second. So that twice the measured rate is
// no bound, many answers come.
func TestCubicCurve(t *testing.T) {
	// 7 per second: what a limit at 10 makes it.
	c := must(strategy.NewCubic(strategy.Params{Rate: 100, Burst: 100, Start: s / 7}))
	if !near(c.Sleep(), s/7) {
		t.Errorf("begins with a sleep of %v", c.Sleep())
	}
	const second = 500
	var leases []*limit.Sent
	for range 6 * second {
		leases = append(leases, limittest.Admit(c, at(5*s), limit.One))
	}
	for i, want := range []float64{9.64893600966, 10.000030849917364, 10.453284520772092, 13.408697022224185, 21.26626835427364, 36.425998516920465} {
		now := at(time.Duration(6+i) * s)
		for j, l := range leases[i*second : (i+1)*second] {
			t := now
			if j < second-1 {
				t = now.Add(-600 * ms) // measured with the answer at the second, the first of another half second
			}
			c.Settle(t, l, &limit.Outcome{Result: limit.Accepted})
		}
		if math.Abs(c.Rate()-want) > 1e-6 {
			t.Errorf("at %v the rate is %v, want %v", now, c.Rate(), want)
		}
	}
}

// Until the first limit nothing is held back but what the quota cannot take; then there is a token each two seconds at
// least.
func TestCubicBegins(t *testing.T) {
	c := must(strategy.NewCubic(strategy.Params{Rate: 1.25, Burst: 3.7}))
	var leases []*limit.Sent
	for range 3 {
		if r := c.Ready(0, limit.One); r != 0 {
			t.Fatalf("ready at %v", r)
		}
		leases = append(leases, limittest.Admit(c, 0, limit.One))
	}
	if r := c.Ready(0, limit.One); r != limit.AfterSettle {
		t.Errorf("with as many in flight as the bucket holds, ready at %v", r)
	}
	c.Settle(at(60*ms), leases[0], &limit.Outcome{Result: limit.Accepted})
	if r := c.Ready(at(60*ms), limit.One); r != at(60*ms) {
		t.Errorf("answered, ready at %v", r)
	}
	c.Settle(at(80*ms), leases[2], &limit.Outcome{Result: limit.Unsent})
	for i, x := range []struct {
		at     time.Duration
		settle bool // limited; else sent
		ready  time.Duration
	}{
		{100 * ms, true, 1940 * ms}, // had 0.06 of a token at 1 per second, 0.02 more at 0.5; 1.84 s for the rest
		{1940 * ms, false, 3940 * ms},
		{time.Minute, false, time.Minute + 2*s}, // one token is the most
	} {
		now := at(x.at)
		if x.settle {
			c.Settle(now, leases[1], &limit.Outcome{Result: limit.Limited})
		} else {
			limittest.Admit(c, now, limit.One)
		}
		if r := c.Ready(now, limit.One); !near(r.Sub(0), x.ready) || c.Sleep() != 2*s {
			t.Errorf("step %d: ready at %v, want %v; shows a sleep of %v", i, r, x.ready, c.Sleep())
		}
	}
}

// Its clock's half seconds are those of the driver's scale, before the epoch too.
func TestCubicBeforeTheEpoch(t *testing.T) {
	rates := func(epoch time.Duration) (rates []float64) {
		c := must(strategy.NewCubic(strategy.Params{Rate: 100, Burst: 100}))
		for i := range 40 {
			now := at(epoch + time.Duration(i)*110*ms)
			o := limit.Outcome{Result: limit.Accepted}
			if i == 20 {
				o.Result = limit.Limited
			}
			c.Settle(now, limittest.Admit(c, now, limit.One), &o)
			rates = append(rates, c.Rate())
		}
		return rates
	}
	a, b := rates(300*ms), rates(-2700*ms)
	for i := range a {
		if !closeTo(a[i], b[i]) {
			t.Fatalf("answer %d makes the rate %v, 3 s earlier %v", i, a[i], b[i])
		}
	}
}

// The measured rate bounds the new one: one answer in 10 s is 0.8 · 0.1 per second, whatever the curve says.
func TestCubicFollowsWhatItMeasures(t *testing.T) {
	for _, c := range []struct {
		name   string
		start  time.Duration // 0: no rate yet
		sent   time.Duration
		at     time.Duration
		result limit.Result
		rate   float64
	}{
		{"served: at most twice as much", s / 7, 0, 10 * s, limit.Accepted, 0.16},
		{"unknown counts as served", s / 7, 0, 10 * s, limit.Unknown, 0.16},
		{"limited: 0.7 of it", s / 7, 0, 10 * s, limit.Limited, 0.056},
		{"limited for the first time", 0, 0, 10 * s, limit.Limited, 0.056},
		{"limited at less than is measured: 0.7 of the rate", 100 * s, 0, 10 * s, limit.Limited, 0.007},
		{"measured from a whole second", 0, 700 * ms, 1 * s, limit.Limited, 0.56},
	} {
		l := must(strategy.NewCubic(strategy.Params{Rate: 100, Burst: 100, MinRate: 0.001, Start: c.start}))
		l.Settle(at(c.at), limittest.Admit(l, at(c.sent), limit.One), &limit.Outcome{Result: c.result})
		if !closeTo(l.Rate(), c.rate) {
			t.Errorf("%s: the rate is %v, want %v", c.name, l.Rate(), c.rate)
		}
	}
}
