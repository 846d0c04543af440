package strategy_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

var peerSpecs = map[string]limittest.Spec{
	"AIMD": {
		New: func() limit.Limiter {
			return must(strategy.NewAIMD(strategy.Params{Rate: 5, Burst: 5, Increase: 10}, source(1)))
		},
		Costs:      []limit.Cost{limit.One, {limit.Requests: 5}, {limit.Input: 7}, {}},
		ClosedLoop: true,
		Burst:      1,
	},
	"Cubic": {
		New:        func() limit.Limiter { return must(strategy.NewCubic(strategy.Params{Rate: 5, Burst: 5})) },
		Costs:      []limit.Cost{limit.One, {limit.Requests: 5}, {limit.Input: 7}, {}},
		ClosedLoop: true,
		Burst:      1 << 20, // until the first limit as many as are answered at that instant
	},
	"Cubic/begins with a rate": {
		New: func() limit.Limiter {
			return must(strategy.NewCubic(strategy.Params{Rate: 5, Burst: 5, Start: 10 * ms, Scale: 1e-9}))
		},
		ClosedLoop: true,
		Burst:      101, // a second's worth, and one in the same nanosecond
	},
}

func TestPeersLaws(t *testing.T) {
	for name, spec := range peerSpecs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limittest.Laws(t, spec)
		})
	}
}

var _, _ strategy.Sleeper = (*strategy.AIMD)(nil), (*strategy.Cubic)(nil)

func FuzzAIMD(f *testing.F)  { limittest.Fuzz(f, peerSpecs["AIMD"]) }
func FuzzCubic(f *testing.F) { limittest.Fuzz(f, peerSpecs["Cubic"]) }

func closeTo(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want) }

// 10 requests per second, +1 per second each second, halved at a limit.
func TestAIMD(t *testing.T) {
	a := must(strategy.NewAIMD(strategy.Params{Rate: 10, Burst: 100, Increase: 1, Jitter: -1}, nil))
	leases := map[string]*limit.Sent{}
	for i, x := range []struct {
		at     time.Duration
		send   string // or
		settle string
		result limit.Result
		rate   float64       // afterwards
		ready  time.Duration // afterwards
	}{
		{at: 0, send: "a", rate: 10, ready: 100 * ms},
		{at: 100 * ms, send: "b", rate: 10, ready: 200 * ms},
		{at: 150 * ms, settle: "a", result: limit.Accepted, rate: 10, ready: 200 * ms}, // no gap before it
		{at: 160 * ms, settle: "b", result: limit.Accepted, rate: 10.1, ready: 200 * ms},
		{at: 250 * ms, send: "c", rate: 10.1, ready: 349009901},                             // half a gap late
		{at: 260 * ms, settle: "c", result: limit.Failed, rate: 10.2, ready: 349009901},     // arrived: but for the 0.1 planned
		{at: 1 * s, send: "d", rate: 10.2, ready: 1098039216},                               // after an idle time
		{at: 1010 * ms, settle: "d", result: limit.Accepted, rate: 10.2, ready: 1098039216}, // which earns nothing
		{at: 1100 * ms, send: "e", rate: 10.2, ready: 1198039216},
		{at: 1200 * ms, send: "f", rate: 10.2, ready: 1298039216},
		{at: 1210 * ms, settle: "e", result: limit.Limited, rate: 5.1, ready: 1298039216},
		{at: 1300 * ms, send: "g", rate: 5.1, ready: 1496078432},
		{at: 1310 * ms, settle: "f", result: limit.Limited, rate: 5.1, ready: 1496078432}, // the same shortage as e's
		{at: 1400 * ms, settle: "g", result: limit.Limited, rate: 2.55, ready: 1496078432},
		{at: 1500 * ms, send: "h", rate: 2.55, ready: 1892156863},
		{at: 1900 * ms, send: "i", rate: 2.55, ready: 2292156863},
		{at: 2000 * ms, settle: "h", result: limit.Unknown, rate: 2.55, ready: 2292156863},
		{at: 2000 * ms, settle: "i", result: limit.Unsent, rate: 2.55, ready: 2292156863},
	} {
		now := at(x.at)
		if x.send != "" {
			leases[x.send] = limittest.Admit(a, now, limit.One)
		} else {
			a.Settle(now, leases[x.settle], &limit.Outcome{Result: x.result})
		}
		if !closeTo(a.Rate(), x.rate) || a.Ready(now, limit.One) != at(x.ready) || !near(a.Sleep(), time.Duration(1e9/x.rate)) {
			t.Errorf("step %d, %s%s: rate %v (want %v), sleep %v, ready at %v (want %v)", i, x.send, x.settle, a.Rate(), x.rate,
				a.Sleep(), a.Ready(now, limit.One), x.ready)
		}
	}
}

func TestAIMDBounds(t *testing.T) {
	for _, c := range []struct {
		p     strategy.Params
		start float64 // rate
		least float64
	}{
		{hourly, 1.25, 1. / 3600},
		{strategy.Params{Rate: 1.25, Burst: 4500, Start: 10 * s, MinRate: 0.01, Decrease: 0.9}, 0.1, 0.01},
		{strategy.Params{Rate: 1.25, Burst: 4500, Start: 10 * s, MinRate: 0.5}, 0.5, 0.5},
		{strategy.Params{Rate: 1e-300, Burst: 1e12}, 1 / (365 * 86400.), 1 / (365 * 86400.)},
	} {
		a := must(strategy.NewAIMD(c.p, source(1)))
		if !closeTo(a.Rate(), c.start) {
			t.Errorf("%+v begins at %v per second, want %v", c.p, a.Rate(), c.start)
		}
		for range 200 {
			now := a.Ready(0, limit.One)
			a.Settle(now, limittest.Admit(a, now, limit.One), &limit.Outcome{Result: limit.Limited})
		}
		if !closeTo(a.Rate(), c.least) {
			t.Errorf("%+v: after 200 limits %v per second, want %v", c.p, a.Rate(), c.least)
		}
	}
}

// limiterRun has a number of clients under a limiter each, and without end of work, share the quota of 4500 an hour: 60 ms
// per request, of which half to the server. It returns the share of limited tries in percent, Jain's index of what the
// clients were served, and the part of the quota that was used, all of the time after warm.
func limiterRun(t *testing.T, name string, seed uint64, clients int, left float64, warm, duration time.Duration, p strategy.Params) (retry, jain, used float64) {
	type flight struct {
		lease *limit.Sent
		at    mono.Time
		limit bool
	}
	type client struct {
		limiter limit.Limiter
		flights []flight // in order
		arrived int      // of them
		served  float64
	}
	var cs []*client
	for i := range clients {
		l, err := must(strategy.Named(name)).NewLimiter(p, source(seed<<8+uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		cs = append(cs, &client{limiter: l})
	}
	now, counted, tries, limited := mono.Time(0), mono.Time(0), 0., 0.
	for now <= mono.Time(duration) {
		next := limit.Never
		for _, c := range cs {
			if len(c.flights) > 0 && c.flights[0].at.Add(60*ms) <= now {
				o := limit.Outcome{Result: limit.Accepted, RTT: 60 * ms}
				if c.flights[0].limit {
					o.Result = limit.Limited
				}
				c.limiter.Settle(now, c.flights[0].lease, &o)
				c.flights = c.flights[1:]
				c.arrived--
			}
			for c.arrived < len(c.flights) && c.flights[c.arrived].at.Add(30*ms) <= now {
				left = min(left+now.Sub(counted).Seconds()*p.Rate, p.Burst)
				counted = now
				ok := left >= 1
				if ok {
					left--
				}
				c.flights[c.arrived].limit = !ok
				c.arrived++
				if now > mono.Time(warm) {
					tries++
					if ok {
						c.served++
					} else {
						limited++
					}
				}
			}
			r := c.limiter.Ready(now, limit.One)
			if r <= now {
				c.flights = append(c.flights, flight{lease: limittest.Admit(c.limiter, now, limit.One), at: now})
				r = max(c.limiter.Ready(now, limit.One), now+1)
			}
			next = min(next, r)
			if len(c.flights) > 0 {
				next = min(next, c.flights[0].at.Add(60*ms))
			}
			if c.arrived < len(c.flights) {
				next = min(next, c.flights[c.arrived].at.Add(30*ms))
			}
		}
		now = max(next, now+1)
	}
	sum, squares := 0., 0.
	for _, c := range cs {
		sum += c.served
		squares += c.served * c.served
	}
	return 100 * limited / tries, sum * sum / (squares * float64(clients)), sum / ((duration - warm).Seconds() * p.Rate)
}

// Each peer's promise, in the second of two hours: what is refused, how fairly the rest is shared, and that nothing is left
// unused. Cubic's least rate is four times the share of each of ten here, whence its refusals: 10 · 0.5 for 1.25 a second.
func TestPeersShare(t *testing.T) {
	for _, c := range []struct {
		name               string
		clients            int
		retryMin, retryMax float64 // percent
		jain, used         float64
	}{
		{"aimd", 1, 0.02, 0.5, 1, 0.98},
		{"aimd", 10, 5, 13, 0.97, 0.99},
		{"cubic", 1, 20, 40, 1, 0.99},
		{"cubic", 10, 75, 85, 0.9, 0.99},
	} {
		retry, jain, used := limiterRun(t, c.name, 1, c.clients, 0, time.Hour, 2*time.Hour, hourly)
		t.Logf("%d × %s: retry %.2f %%, fairness %.3f, used %.3f", c.clients, c.name, retry, jain, used)
		if retry < c.retryMin || retry > c.retryMax || jain < c.jain-1e-9 || used < c.used || used > 1.03 {
			t.Errorf("want %v–%v %%, %v and %v", c.retryMin, c.retryMax, c.jain, c.used)
		}
	}
}
