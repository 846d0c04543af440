package strategy_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit/mono"
)

const (
	gradual               = "exponential-increase-gradual-decrease"
	proportional          = "exponential-increase-proportional-decrease"
	proportionalRemaining = "exponential-increase-proportional-remaining-decrease"
)

// A call of the gem, step by step: what each try slept, jitter aside, and what is slept before the next call.
func TestGemSteps(t *testing.T) {
	still := hourly
	still.Jitter = -1
	tenSeconds := still
	tenSeconds.Start = 10 * s
	other := still
	other.Multiplier, other.MinSleep, other.Divisor = 3, s, 10
	for _, c := range []struct {
		name   string
		p      strategy.Params
		limits int             // before the call is served
		left   float64         // Remaining of the last answer
		sleeps []time.Duration // before each try
		next   time.Duration
	}{
		// min_sleep is 0.8 s.
		{"fixed-backoff", still, 3, 0, []time.Duration{0, 800 * ms, 800 * ms, 800 * ms}, 0},
		{"fixed-backoff", other, 2, 0, []time.Duration{0, s, s}, 0},
		{"exponential-backoff", still, 3, 0, []time.Duration{0, 800 * ms, 960 * ms, 1152 * ms}, 0},
		{"exponential-backoff", other, 3, 0, []time.Duration{0, s, 3 * s, 9 * s}, 0},
		{"exponential-backoff", tenSeconds, 1, 0, []time.Duration{0, 800 * ms}, 0},
		{gradual, still, 0, 0, []time.Duration{0}, 0},
		// 0 + 0.8; 0.8·1.2 + 0.8 = 1.76; 1.76·1.2 − 0.8
		{gradual, still, 2, 0, []time.Duration{0, 800 * ms, 1760 * ms}, 1312 * ms},
		{gradual, tenSeconds, 0, 0, []time.Duration{10 * s}, 9200 * ms},
		{gradual, other, 1, 0, []time.Duration{0, s}, 2 * s},
		// 10 + 0.8; (10.8·1.2)·(1 − 1/4500)
		{proportional, tenSeconds, 1, 0, []time.Duration{10 * s, 10800 * ms}, 12957120 * time.Microsecond},
		{proportional, other, 1, 0, []time.Duration{0, s}, 2700 * ms},
		// 10·(1 − 450/4500), 10·(1 − 0), nothing left of it; 12.96·(1 − 100/4500)
		{proportionalRemaining, tenSeconds, 0, 450, []time.Duration{10 * s}, 9 * s},
		{proportionalRemaining, tenSeconds, 0, 0, []time.Duration{10 * s}, 10 * s},
		{proportionalRemaining, tenSeconds, 0, 9000, []time.Duration{10 * s}, 0},
		{proportionalRemaining, tenSeconds, 1, 100, []time.Duration{10 * s, 10800 * ms}, 12672 * ms},
	} {
		for _, sharing := range []strategy.Sharing{strategy.Racing, strategy.Shared, strategy.Local} {
			c.p.Sharing = sharing
			th := process(t, c.name, c.p).Thread(source(1))
			now := at(time.Hour)
			for i, want := range c.sleeps {
				if got := th.Send(now).Sub(now); !near(got, want) || !near(th.Sleep(), want) {
					t.Errorf("%s %v: try %d sleeps %v and shows %v, want %v", c.name, sharing, i, got, th.Sleep(), want)
				}
				now = now.Add(want + 60*ms)
				if i < c.limits {
					th.Answer(now, limited())
				}
			}
			th.Answer(now, served(c.left))
			if !near(th.Sleep(), c.next) {
				t.Errorf("%s %v: served, shows %v, want %v", c.name, sharing, th.Sleep(), c.next)
			}
			if got := th.Send(now).Sub(now); !near(got, c.next) {
				t.Errorf("%s %v: the next call sleeps %v, want %v", c.name, sharing, got, c.next)
			}
		}
	}
}

// One thread is limited while another, whose call began before, is still served.
//
//	A begins   reads 10
//	B begins   reads 10
//	A limited  10 + 0.8, sleeps that, then × 1.2
//	A served   12.96 − 12.96/4500 = 12.957
//	B served   10 − 10/4500 = 9.998, and A's 12.957 is lost
func TestLostUpdate(t *testing.T) {
	for _, c := range []struct {
		sharing strategy.Sharing
		nextA   time.Duration // begun when both are served
		nextB   time.Duration
		nextC   time.Duration // of a thread that had no call before
	}{
		{strategy.Racing, 9997777778, 9997777778, 9997777778},
		{strategy.Shared, 12954240640, 12954240640, 12954240640}, // both decreases: 12.96·(1 − 1/4500)²
		{strategy.Local, 12957120000, 9997777778, 10 * s},
	} {
		p := hourly
		p.Jitter, p.Start, p.Sharing = -1, 10*s, c.sharing
		proc := process(t, proportional, p)
		a, b, other := proc.Thread(source(1)), proc.Thread(source(1)), proc.Thread(source(1))
		a.Send(at(0))
		b.Send(at(1 * s))
		a.Answer(at(10*s), limited())
		if got := a.Send(at(10 * s)); !near(got.Sub(at(10*s)), 10800*ms) {
			t.Errorf("%v: A retries at %v", c.sharing, got)
		}
		a.Answer(at(21*s), served(0))
		b.Answer(at(22*s), served(0))
		for _, x := range []struct {
			name   string
			thread strategy.Thread
			want   time.Duration
		}{{"A", a, c.nextA}, {"B", b, c.nextB}, {"C", other, c.nextC}} {
			if got := x.thread.Send(at(30 * s)).Sub(at(30 * s)); !near(got, x.want) {
				t.Errorf("%v: %s sleeps %v, want %v", c.sharing, x.name, got, x.want)
			}
		}
	}
}

// What one thread writes another sees only when its next call begins.
func TestRacingReadsWhenACallBegins(t *testing.T) {
	p := hourly
	p.Jitter = -1
	proc := process(t, gradual, p)
	a, b := proc.Thread(source(1)), proc.Thread(source(1))
	a.Send(0)
	a.Answer(at(1*s), limited())
	a.Send(at(1 * s))
	if got := b.Send(at(1500 * ms)); got != at(1500*ms) {
		t.Errorf("B sends at %v: it saw a sleep that A has not written yet", got)
	}
	a.Answer(at(2*s), served(0)) // writes 0.8·1.2 − 0.8 = 0.16
	b.Answer(at(2*s), limited())
	if got := b.Send(at(2 * s)).Sub(at(2 * s)); !near(got, 800*ms) {
		t.Errorf("B, in a call that began before, sleeps %v", got)
	}
	if got := proc.Thread(source(1)).Send(at(2 * s)).Sub(at(2 * s)); !near(got, 160*ms) {
		t.Errorf("a call that begins after A's sleeps %v", got)
	}
}

// Jitter is added, evenly, up to a tenth of the sleep; the sleep itself does not change by it.
func TestGemJitter(t *testing.T) {
	for _, c := range []struct {
		name   string
		jitter float64
		max    time.Duration
	}{{proportionalRemaining, 0, 11 * s}, {proportionalRemaining, 0.5, 15 * s}, {"demo", 0, 11 * s}, {"demo", -1, 10 * s}} {
		p := hourly
		p.Start, p.Jitter = 10*s, c.jitter
		th := process(t, c.name, p).Thread(source(7))
		least, most, sum := time.Hour, time.Duration(0), time.Duration(0)
		const n = 2000
		for range n {
			d := th.Send(0).Sub(0)
			least, most, sum = min(least, d), max(most, d), sum+d
			th.Answer(0, served(0))
		}
		span := c.max - 10*s
		if mean := 10*s + span/2; least < 10*s || least > 10*s+span/100 || most > c.max || most < c.max-span/100 ||
			(sum/n-mean).Abs() > span/50 || th.Sleep() != 10*s {
			t.Errorf("%s with jitter %v: sleeps from %v to %v, mean %v, shows %v", c.name, c.jitter, least, most, sum/n, th.Sleep())
		}
	}
}

func TestSameSourceSameSends(t *testing.T) {
	for _, st := range strategy.All() {
		if st.New == nil {
			continue
		}
		run := func() (sends []mono.Time) {
			rng := source(3)
			proc := must(st.New(hourly))
			ths := []strategy.Thread{proc.Thread(rng), proc.Thread(rng)}
			now := mono.Time(0)
			for i := range 50 {
				now = ths[i%2].Send(now)
				sends = append(sends, now)
				a := served(float64(i))
				if i%7 < 4 {
					a = limited()
				}
				ths[i%2].Answer(now, a)
			}
			return sends
		}
		a, b := run(), run()
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("%s: send %d at %v, and again at %v", st.Name, i, a[i], b[i])
				break
			}
		}
	}
}
