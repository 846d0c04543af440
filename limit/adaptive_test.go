package limit_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// workers is a server with a number of workers and a queue before them. Each request takes the same
// time. If refuses is not 0, the server refuses more than that many requests at once with an
// overload.
type workers struct {
	free    []mono.Time // when each is free, soonest first
	service time.Duration
	most    int
	rng     *rand.Rand
}

func (w *workers) serve(now mono.Time) (end mono.Time) {
	start := max(now, w.free[0])
	end = start.Add(time.Duration(float64(w.service) * (0.8 + 0.4*w.rng.Float64())))
	w.free[0] = end
	slices.Sort(w.free)
	return end
}

func (w *workers) resize(now mono.Time, n int) {
	for len(w.free) < n {
		w.free = append(w.free, now)
	}
	w.free = w.free[:n]
	slices.Sort(w.free)
}

// departure is a request in flight.
type departure struct {
	back    mono.Time
	lease   *limit.Sent
	outcome limit.Outcome
}

type departures []departure

func (f departures) Len() int           { return len(f) }
func (f departures) Less(i, j int) bool { return f[i].back < f[j].back }
func (f departures) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *departures) Push(x any)        { *f = append(*f, x.(departure)) }
func (f *departures) Pop() any {
	x := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return x
}

// pressed is a client that always has more to send, and its server.
type pressed struct {
	l    *limit.Adaptive
	w    workers
	now  mono.Time
	out  departures
	want int // the most requests to send at once; 0: any number
}

func press(c limit.AdaptiveConfig, n int, service time.Duration, most int) *pressed {
	p := &pressed{l: must(limit.NewAdaptive(c)), w: workers{service: service, most: most, rng: rand.New(rand.NewPCG(1, 2))}}
	p.w.resize(0, n)
	return p
}

// run goes on for d. It returns the requests that the server served and refused, and the mean
// latency.
func (p *pressed) run(d time.Duration) (done, refused int, took time.Duration) {
	const way = 10 * time.Millisecond // there and back
	until := p.now.Add(d)
	var sum time.Duration
	for {
		for p.l.Ready(p.now, limit.One) <= p.now && (p.want == 0 || len(p.out) < p.want) {
			f := departure{lease: limittest.Admit(p.l, p.now, limit.One), outcome: limit.Outcome{Result: limit.Accepted}}
			if p.w.most > 0 && len(p.out) >= p.w.most {
				f.back, f.outcome = p.now.Add(way), limit.Outcome{Result: limit.Failed, Overloaded: true}
			} else {
				f.back = p.w.serve(p.now).Add(way)
			}
			f.outcome.RTT = f.back.Sub(p.now)
			heap.Push(&p.out, f)
		}
		if p.out[0].back > until {
			p.now = until
			return done, refused, sum / time.Duration(max(done, 1))
		}
		f := heap.Pop(&p.out).(departure)
		p.now = f.back
		p.l.Settle(p.now, f.lease, &f.outcome)
		if f.outcome.Overloaded {
			refused++
		} else {
			done++
			sum += f.outcome.RTT
		}
	}
}

// Clients that press as hard as they can find the capacity of a server, and a queue of at most that
// size again. They follow when three quarters of the workers fail, and when these come back.
func TestAdaptiveFinds(t *testing.T) {
	for _, n := range []int{1, 4, 50, 200} {
		p := press(limit.AdaptiveConfig{}, n, 100*time.Millisecond, 0)
		check := func(when string, workers int) {
			t.Helper()
			p.run(40 * time.Second)
			done, _, took := p.run(20 * time.Second)
			if share := float64(done) / float64(200*workers); share < 0.97 || p.l.Most() > int64(2*workers+6) {
				t.Errorf("%d workers %s: %.1f%% of what they can do, bound %d, answers took %v", workers, when, 100*share, p.l.Most(), took)
			}
		}
		check("at first", n)
		p.w.resize(p.now, max(n/4, 1))
		check("of which most failed", max(n/4, 1))
		p.w.resize(p.now, n)
		check("that came back", n)
	}
}

// A server refuses more than a number of requests at once. Most of its capacity is used, and few
// requests are refused.
func TestAdaptiveHeedsOverload(t *testing.T) {
	for _, c := range []struct {
		most           int
		share, refused float64
	}{{4, 0.88, 0.06}, {10, 0.85, 0.045}, {50, 0.8, 0.02}, {200, 0.8, 0.015}} {
		for _, tolerance := range []float64{0, -1} {
			p := press(limit.AdaptiveConfig{Tolerance: tolerance}, c.most, 100*time.Millisecond, c.most)
			p.run(20 * time.Second)
			done, refused, _ := p.run(40 * time.Second)
			share, lost := float64(done)/float64(400*c.most), float64(refused)/float64(done+refused)
			if share < c.share || lost > c.refused || lost == 0 {
				t.Errorf("%d at most, tolerance %v: %.1f%% of what it can do, %.2f%% refused", c.most, tolerance, 100*share, 100*lost)
			}
		}
	}
}

// 16 requests are in flight, and all are refused together: the bound falls once. Requests sent
// since make it fall again.
func TestAdaptiveFallsOnce(t *testing.T) {
	a := must(limit.NewAdaptive(limit.AdaptiveConfig{Initial: 20}))
	send := func(n int) (leases []*limit.Sent) {
		for range n {
			leases = append(leases, limittest.Admit(a, 0, limit.One))
		}
		return leases
	}
	settle := func(leases []*limit.Sent, o limit.Outcome) {
		for _, l := range leases {
			a.Settle(0, l, &o)
		}
	}
	want := func(n int64, what string) {
		t.Helper()
		if a.Most() != n {
			t.Errorf("%s: bound %d, want %d", what, a.Most(), n)
		}
	}
	overloaded := limit.Outcome{Result: limit.Failed, Overloaded: true}
	settle(send(16), overloaded)
	want(13, "of 20, 16 were in flight") // 16 × 0.85
	settle(send(13), limit.Outcome{Result: limit.Limited})
	want(11, "refused by a limit")
	settle(send(5), limit.Outcome{Result: limit.Limited, Elsewhere: true})
	want(11, "refused by another limit")
	settle(send(5), limit.Outcome{Result: limit.Failed})
	settle(send(5), limit.Outcome{Result: limit.Unsent})
	settle(send(5), limit.Outcome{})
	want(11, "failed, unsent, unknown")
	for range 100 {
		settle(send(1), overloaded)
	}
	want(1, "refused whenever it sends")
}

// A server becomes three times slower by itself. A client with few requests in flight keeps its
// bound, and learns the new latency as usual. A client that presses shrinks the bound, and learns
// the latency at the least bound.
func TestAdaptiveSlowServer(t *testing.T) {
	p := press(limit.AdaptiveConfig{}, 50, 100*time.Millisecond, 0)
	p.run(30 * time.Second)
	was := p.l.Most()
	p.want, p.w.service = 10, 300*time.Millisecond
	p.run(60 * time.Second)
	if p.l.Most() < was-1 {
		t.Errorf("few in flight: the bound went from %d to %d", was, p.l.Most())
	}
	p.want = 0
	p.run(40 * time.Second)
	if done, _, _ := p.run(20 * time.Second); float64(done) < 0.97*20*50/0.3 {
		t.Errorf("50 workers that take 300 ms did %d in 20 s, bound %d", done, p.l.Most())
	}

	p.w.service = 100 * time.Millisecond
	p.run(60 * time.Second)
	if _, _, took := p.run(20 * time.Second); took > 400*time.Millisecond {
		t.Errorf("50 workers that are quick again take %v, bound %d", took, p.l.Most())
	}

	p = press(limit.AdaptiveConfig{}, 50, 100*time.Millisecond, 0)
	p.want = 3
	if p.run(60 * time.Second); p.l.Most() > 8 {
		t.Errorf("three in flight: bound %d", p.l.Most())
	}

	p = press(limit.AdaptiveConfig{Min: 2}, 50, 100*time.Millisecond, 0)
	p.run(30 * time.Second)
	p.w.service = time.Second
	p.run(200 * time.Second)
	if done, _, _ := p.run(60 * time.Second); float64(done) < 0.9*60*50 {
		t.Errorf("50 workers that take 1 s did %d in a minute, bound %d", done, p.l.Most())
	}
}

// Requests without an answer count as slow after the longest acceptable wait, and not before.
func TestAdaptiveUnanswered(t *testing.T) {
	for _, c := range []struct {
		after   time.Duration
		outcome limit.Outcome
		falls   bool
	}{
		{100 * time.Millisecond, limit.Outcome{}, false},
		{10 * time.Second, limit.Outcome{}, true},
		{10 * time.Second, limit.Outcome{Result: limit.Accepted}, true},
		{10 * time.Second, limit.Outcome{Result: limit.Accepted, RTT: 150 * time.Millisecond}, false}, // the rest was its body
	} {
		a, now := must(limit.NewAdaptive(limit.AdaptiveConfig{Initial: 50, Max: 100})), mono.Time(0)
		batch := func(after time.Duration, o limit.Outcome) {
			var leases []*limit.Sent
			for range 50 {
				leases = append(leases, limittest.Admit(a, now, limit.One))
			}
			now = now.Add(after)
			for _, l := range leases {
				a.Settle(now, l, &o)
			}
		}
		batch(100*time.Millisecond, limit.Outcome{Result: limit.Accepted})
		for range 3 {
			batch(c.after, c.outcome)
		}
		if falls := a.Most() < 100; falls != c.falls {
			t.Errorf("%+v after %v: bound %d", c.outcome, c.after, a.Most())
		}
	}
	a := must(limit.NewAdaptive(limit.AdaptiveConfig{Initial: 8}))
	for i := range 100 {
		now := at(time.Duration(i) * time.Second)
		var leases []*limit.Sent
		for range 8 {
			leases = append(leases, limittest.Admit(a, now, limit.One))
		}
		for _, l := range leases {
			a.Settle(now.Add(100*ms), l, &limit.Outcome{})
		}
	}
	if a.Most() != 8 {
		t.Errorf("nothing was ever answered, and the bound is %d", a.Most())
	}
}

// In every history four things hold. The bound stays within Min and Max. The requests in flight
// never pass it. It falls only after a slow answer or a refusal. With nothing in flight a request
// may go.
func FuzzAdaptiveBound(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0, 0, 0, 0, 1, 1, 1, 1, 40, 200, 13}, uint8(3), uint8(40))
	f.Fuzz(func(t *testing.T, program []byte, least, most uint8) {
		c := limit.AdaptiveConfig{Min: 1 + int64(least)%8, Max: 8 + int64(most)}
		a, now := must(limit.NewAdaptive(c)), mono.Time(0)
		var open []*limit.Sent
		slowest := false // of the requests in flight and settled lately, some took longer than 100 ms
		for _, b := range program[:min(len(program), 4000)] {
			was := a.Most()
			for a.Ready(now, limit.One) <= now {
				open = append(open, limittest.Admit(a, now, limit.One))
				if int64(len(open)) > was {
					t.Fatalf("%d in flight, bound %d", len(open), was)
				}
			}
			if len(open) == 0 {
				t.Fatal("nothing is in flight, and nobody may go")
			}
			i := int(b>>4) % len(open)
			o := limit.Outcome{Result: limit.Accepted, RTT: 100 * time.Millisecond}
			refused := false
			switch b & 7 {
			case 0:
				o.RTT, slowest = time.Duration(1+b>>3)*time.Second, true
			case 1:
				o, refused = limit.Outcome{Result: limit.Limited}, true
			case 2:
				o, refused = limit.Outcome{Result: limit.Failed, Overloaded: true}, true
			case 3:
				o = limit.Outcome{Result: limit.Failed}
			}
			a.Settle(now, open[i], &o)
			open = slices.Delete(open, i, i+1)
			got := a.Most()
			if got < c.Min || got > c.Max {
				t.Fatalf("bound %d is not within %d and %d", got, c.Min, c.Max)
			}
			if refused && got > was || !refused && !slowest && got < was {
				t.Fatalf("the bound went from %d to %d, refused %v, ever slow %v", was, got, refused, slowest)
			}
		}
	})
}

func TestAdaptiveConfig(t *testing.T) {
	for _, c := range []struct {
		c    limit.AdaptiveConfig
		want string
	}{
		{limit.AdaptiveConfig{Min: -1}, "Limit -1"}, {limit.AdaptiveConfig{Min: 5, Max: 4}, "Min 5 is above Max 4"},
		{limit.AdaptiveConfig{Initial: 5, Max: 4}, "Initial 5 is not between"}, {limit.AdaptiveConfig{Tolerance: 0.5}, "Tolerance 0.5"},
		{limit.AdaptiveConfig{Min: 3, Initial: 2}, "Initial 2 is not between"}, {limit.AdaptiveConfig{Tolerance: 1e6 + 1}, "Tolerance"}, {limit.AdaptiveConfig{Tolerance: math.NaN()}, "Tolerance NaN"},
	} {
		if _, err := limit.NewAdaptive(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
	// Refused values begin right behind these.
	for _, c := range []limit.AdaptiveConfig{{Min: 5, Max: 5}, {Min: 2, Initial: 2}, {Max: 9, Initial: 9}, {Tolerance: 1}, {Tolerance: 1e6}, {Min: 2000}, {Tolerance: -1}} {
		if _, err := limit.NewAdaptive(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
