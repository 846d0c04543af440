package limit_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func costing(n int64) limit.Cost { return limit.Cost{limit.Requests: 1, limit.Output: n} }

// production is a server that pays for output as it produces it, and a client that sends as early
// as it may. Arrivals and speeds are random, within the configuration of the server.
type production struct {
	config  limit.ProducedConfig // the limiter's configuration
	speed   int64                // the true speed; below 0: all of an answer may come at once
	within  time.Duration        // below 0: until the answer
	late    time.Duration
	outputs func(rng *rand.Rand, i int) (most, output int64)
	latency time.Duration // of the answers, at most
	n       int           // requests

	limiter *limit.Produced
	server  rule.Amendable
	rng     *rand.Rand
	events  []produces
	refused []string
	sent    int
	last    mono.Time // arrival
	passed  []arrived
}

type arrived struct {
	at     mono.Time
	output int64
}

type produces struct {
	at   mono.Time
	do   func(now mono.Time)
	rank int // at one instant: first output, then arrivals, then answers
}

func (x *production) on(at mono.Time, rank int, do func(mono.Time)) {
	e := produces{at, do, rank}
	i, _ := slices.BinarySearchFunc(x.events, e, func(a, b produces) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), -1) // after equal ones
	})
	x.events = slices.Insert(x.events, i, e)
}

func (x *production) run(seed uint64) error {
	x.limiter = must(limit.NewProduced(x.config))
	x.server = must(rule.NewBucket(rule.BucketConfig{Limit: x.config.Limit, Window: x.config.Window, Capacity: x.config.Burst}))
	x.rng = rand.New(rand.NewPCG(seed, 27))
	x.events, x.refused, x.sent, x.last, x.passed = nil, nil, 0, 0, nil
	now := mono.Time(0)
	most, output := x.outputs(x.rng, 0)
	for x.sent < x.n || len(x.events) > 0 {
		at := limit.Never
		if x.sent < x.n {
			if at = x.limiter.Ready(now, costing(most)); at <= now {
				x.send(now, most, output)
				most, output = x.outputs(x.rng, x.sent)
				continue
			}
		}
		if at == limit.Never && x.sent < x.n {
			return fmt.Errorf("%d of %d never goes", most, x.config.Limit)
		}
		if len(x.events) > 0 && x.events[0].at <= at {
			e := x.events[0]
			x.events = x.events[1:]
			now = e.at
			e.do(now)
			continue
		}
		if at >= limit.AfterSettle {
			return fmt.Errorf("%d waits for an answer at %v, and none is due", most, now)
		}
		now = at
	}
	if len(x.refused) > 0 {
		return fmt.Errorf("%d of %d refused: %s", len(x.refused), x.sent, x.refused[0])
	}
	return nil
}

func (x *production) span(d time.Duration) time.Duration {
	switch {
	case d <= 0 || x.rng.IntN(8) == 0:
		return 0
	case x.rng.IntN(4) == 0:
		return d
	}
	return time.Duration(x.rng.Int64N(int64(d) + 1))
}

func (x *production) send(now mono.Time, most, output int64) {
	x.sent++
	lease := limittest.Admit(x.limiter, now, costing(most))
	way := x.within
	if way < 0 {
		way = time.Minute / 4
	}
	lost := x.late > 0 && x.rng.IntN(20) == 0
	settled := false
	x.on(now.Add(x.span(way)), 1, func(at mono.Time) {
		ok := x.server.Fits(at, 1)
		x.server.Count(at, 1, ok)
		if !ok {
			x.refused = append(x.refused, fmt.Sprintf("sent at %v, arrived at %v", now, at))
			x.on(at.Add(x.span(x.latency)), 2, func(at mono.Time) {
				x.limiter.Settle(at, lease, &limit.Outcome{Result: limit.Limited})
			})
			return
		}
		x.last = max(x.last, at)
		x.passed = append(x.passed, arrived{at, output})
		end := x.produce(at, output-1)
		if lost {
			x.on(max(now, end.Add(-x.span(x.late))), 2, func(at mono.Time) { x.limiter.Settle(at, lease, &limit.Outcome{}) })
			return
		}
		x.on(end.Add(x.span(x.latency)), 2, func(at mono.Time) {
			if settled {
				return
			}
			settled = true
			o := limit.Outcome{Result: limit.Accepted, Metered: true, Actual: costing(output)}
			if x.rng.IntN(30) == 0 {
				o.Metered = false
			}
			x.limiter.Settle(at, lease, &o)
		})
	})
}

// produce lets a request produce n more from now on, in one of several ways. It returns the instant
// of the last.
func (x *production) produce(now mono.Time, n int64) mono.Time {
	take := func(at mono.Time, n int64) {
		if n > 0 {
			x.on(at, 0, func(at mono.Time) { x.server.Amend(at, at, n) })
		}
	}
	if x.speed < 0 {
		at := now.Add(x.span(30 * time.Second))
		take(at, n)
		return at
	}
	each := time.Duration(int64(time.Second)/x.speed) + 1
	pause, chunk := time.Duration(0), int64(1)
	switch x.rng.IntN(5) {
	case 0:
		chunk = min(8, max(n, 1))
	case 1:
		now = now.Add(x.span(20 * time.Second))
	case 2:
		each *= 1 + time.Duration(x.rng.IntN(8))
	case 3:
		pause = x.span(time.Second)
	}
	if n > 400 {
		chunk = 8
	}
	for n > 0 {
		k := min(chunk, n)
		n -= k
		now = now.Add(time.Duration(k) * each)
		take(now, k)
		if pause > 0 && x.rng.IntN(20) == 0 {
			now = now.Add(pause)
		}
	}
	return now
}

// The sizes of answers, which no client knows.
var outputs = map[string]func(rng *rand.Rand, i int) (most, output int64){
	"300 of 4096": func(*rand.Rand, int) (int64, int64) { return 4096, 300 },
	"all of it":   func(*rand.Rand, int) (int64, int64) { return 4096, 4096 },
	"bimodal": func(rng *rand.Rand, _ int) (int64, int64) {
		if rng.IntN(2) == 0 {
			return 4096, 4096
		}
		return 4096, 20
	},
	"growing": func(_ *rand.Rand, i int) (int64, int64) { return 4096, min(4096, 20+int64(i)*40) },
	"mixed": func(rng *rand.Rand, _ int) (int64, int64) {
		most := []int64{1, 7, 100, 1024, 4096, 20_000}[rng.IntN(6)]
		return most, 1 + rng.Int64N(most)
	},
}

func produced(promised bool, perMinute int64, n int) production {
	x := production{config: limit.ProducedConfig{Limit: perMinute, Window: time.Minute}, speed: 500, within: time.Second, late: 5 * time.Second, latency: time.Second, n: n}
	if !promised {
		x.config.PerSecond, x.speed, x.within = -1, -1, -1
		x.config.Late, x.late = time.Minute, time.Minute
	}
	return x
}

// No request is refused, whatever the output and its time: with both promises, and without any.
func TestProducedRefusesNobody(t *testing.T) {
	seeds := uint64(1)
	if need.Long() {
		seeds = 20
	}
	for name, law := range outputs {
		for _, promised := range []bool{true, false} {
			for _, perMinute := range []int64{8000, 29_000, 31_000, 400_000}[:need.Fewer(3, 4)] { // 500 a second are 30,000 a minute
				x := produced(promised, perMinute, 60)
				x.outputs = law
				if perMinute == 8000 {
					x.config.Burst = 3000
				}
				for seed := range seeds {
					if err := x.run(seed); err != nil {
						t.Errorf("%s, promised %v, %d a minute, seed %d: %v", name, promised, perMinute, seed, err)
					}
				}
			}
		}
	}
}

// The test above finds a server that breaks the promises.
func TestProducedIsNoMoreThanPromised(t *testing.T) {
	for name, breaks := range map[string]func(x *production){
		"quicker": func(x *production) { x.speed = 1500 },
		"late":    func(x *production) { x.within = 12 * time.Second },
		"larger":  func(x *production) { x.config.Burst, x.config.Limit = 8000, 8000; x.config.PerSecond = 20 },
	} {
		x := produced(true, 8000, 120)
		x.outputs = outputs["all of it"]
		breaks(&x)
		found := false
		for seed := range uint64(10) {
			found = found || x.run(seed) != nil
		}
		if !found {
			t.Errorf("%s: nobody is refused", name)
		}
	}
}

// 60 a minute: one a second, 20 at most. An answer grows by 2 a second, and a request arrives
// within 3 s.
func TestProducedTimeline(t *testing.T) {
	p := must(limit.NewProduced(limit.ProducedConfig{Limit: 60, Window: time.Minute, Burst: 20, Unit: limit.Input, PerSecond: 2, Within: 3 * time.Second, Margin: -1}))
	per := time.Second + 200_001 // 2e-4 for the drift
	of := func(n int64) limit.Cost { return limit.Cost{limit.Input: n} }
	ready := func(now time.Duration, n int64, want mono.Time) {
		t.Helper()
		if got := p.Ready(at(now), of(n)); got != want {
			t.Errorf("at %v: %d ready at %v, want %v", now, n, got, want)
		}
	}
	ready(0, 1000, 0) // more than the full bucket
	a := limittest.Admit(p, 0, of(10))
	ready(0, 1000, 0) // the other has 7 at most by its arrival
	ready(1500*ms, 1000, at(1500*ms))
	ready(time.Hour, 1000, at(time.Hour)) // and 10 in the end
	b := limittest.Admit(p, at(500*ms), of(100))
	ready(1500*ms, 1000, at(1500*ms))       // 10 and 9
	ready(1501*ms, 1000, limit.AfterSettle) // they grow older
	ready(1500*ms, 3, at(1500*ms))
	p.Settle(at(2*time.Second), a, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: of(4)})
	ready(2*time.Second, 1000, at(2*time.Second)) // 4 and 10
	p.Settle(at(2*time.Second), b, &limit.Outcome{Result: limit.Unsent})
	full := 2*time.Second + 4*per
	c := limittest.Admit(p, at(2*time.Second), of(50))
	p.Settle(at(2*time.Second), c, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: of(25)}) // 29 of 20
	full += 25 * per
	ready(2*time.Second, 1, at(full-19*per))
	if err := p.SetLimit(at(2*time.Second), 30); err != nil { // they take twice as long to come back
		t.Fatal(err)
	}
	slow := 2*time.Second + 400_001
	ready(2*time.Second, 1, at(2*time.Second+29*slow-19*slow))
	if err := p.SetBurst(at(2*time.Second), 30); err != nil { // 10 more have to come in
		t.Fatal(err)
	}
	ready(2*time.Second, 1, at(2*time.Second+39*slow-29*slow))
}

// The refill is quicker than one answer. Output then may all be of just now, so none of it counts
// as refilled.
func TestProducedFoldsWhatOneAloneDoesNotDrainAtItsEnd(t *testing.T) {
	p := must(limit.NewProduced(limit.ProducedConfig{Limit: 6000, Window: time.Minute, Unit: limit.Input, PerSecond: 50, Margin: -1}))
	l := limittest.Admit(p, 0, limit.Cost{limit.Input: 6000})
	p.Settle(at(time.Minute), l, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Input: 6000}})
	if got, want := p.Ready(at(time.Minute), limit.Cost{limit.Input: 1}), at(time.Minute+10*ms+2001); got != want {
		t.Errorf("ready at %v, want %v: when the first of 6000 is refilled", got, want)
	}
}

// A change that makes no sense is an error, and changes nothing.
func TestProducedRefusesChanges(t *testing.T) {
	p := must(limit.NewProduced(limit.ProducedConfig{Limit: 1000, Window: time.Minute}))
	before := p.Rules()
	for want, change := range map[string]func() error{
		"Limit 0":      func() error { return p.SetLimit(0, 0) },
		"Window 0s":    func() error { return p.SetWindow(0, 0) },
		"Burst 0":      func() error { return p.SetBurst(0, 0) },
		"Burst 1000 ":  func() error { return p.SetLimit(0, limit.MaxCost) }, // refilled within a tick
		"Burst 1000  ": func() error { return p.SetWindow(0, time.Microsecond) },
	} {
		if err := change(); err == nil || !strings.Contains(err.Error(), "limit: Produced: "+strings.TrimSpace(want)) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if after := p.Rules(); len(after) != 1 || after[0].N != 1000 || after[0].Per != time.Minute || after[0].Unit != limit.Output || !slices.Equal(before, after) {
		t.Errorf("%+v was %+v", after, before)
	}
}
