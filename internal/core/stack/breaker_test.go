package stack_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// steady has no jitter: 250 ms, 500 ms … 15 s.
func steadyBreaker() *stack.Breaker {
	return must(stack.NewBreaker(stack.BreakerConfig{Backoff: backoff.Policy{Jitter: -1}}))
}

// world is a host under a steady load. A new request waits in line. An unsent request stands in
// line again at once. A failed one is tried up to five times, with a second between.
type world struct {
	h     *stack.Breaker
	every time.Duration                                             // between two that come
	most  int                                                       // in flight, for want of workers; 0: any number
	host  func(now mono.Time, open int) (limit.Link, time.Duration) // what an attempt meets, and how long it takes

	tries    []int // for each request in line: how often it was tried
	open     int
	widest   int // in flight at once, since the load began after an outage
	attempts []mono.Time
	charged  int
	served   int
	dead     int
	downs    int
	ups      []mono.Time
}

type happening struct {
	at mono.Time
	do func()
}

type agenda []happening

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
}

// run lets the world go on until the end.
func (w *world) run(end time.Duration) {
	now := mono.Time(0)
	var a agenda
	in := func(d time.Duration, do func()) { heap.Push(&a, happening{now.Add(d), do}) }
	var come func()
	come = func() {
		w.tries = append(w.tries, 0)
		in(w.every, come)
	}
	in(0, come)
	for {
		ready := limit.AfterSettle
		if len(w.tries) > 0 && (w.most == 0 || w.open < w.most) {
			ready = w.h.Ready(now, limit.One)
		}
		if ready <= now {
			w.send(now, in, &now)
			continue
		}
		next := min(ready, a[0].at)
		if next > at(end) {
			return
		}
		now = next
		if a[0].at <= now {
			heap.Pop(&a).(happening).do()
		}
	}
}

func (w *world) send(now mono.Time, in func(time.Duration, func()), clock *mono.Time) {
	tried := w.tries[0]
	w.tries = w.tries[1:]
	lease := limittest.Admit(w.h, now, limit.One)
	saw, took := w.host(now, w.open)
	w.open++
	w.widest = max(w.widest, w.open)
	w.attempts = append(w.attempts, now)
	in(took, func() {
		w.open--
		o := limit.Outcome{Link: saw}
		switch saw {
		case limit.Working:
			o.Result = limit.Accepted
			w.served++
		case limit.Broken:
			o.Result = limit.Failed
			tried++
		case limit.Silent:
			tried++
		default:
			o.Result = limit.Unsent
			w.tries = append([]int{tried}, w.tries...)
		}
		w.h.Settle(*clock, lease, &o)
		if saw == limit.Broken || saw == limit.Silent {
			w.charged++
			if tried == 5 {
				w.dead++
			} else {
				in(time.Second, func() { w.tries = append([]int{tried}, w.tries...) })
			}
		}
		if s, ok := w.h.News(*clock); ok {
			if s.Down {
				w.downs++
			} else {
				w.ups = append(w.ups, *clock)
				w.widest = 0
			}
		}
	})
}

// between counts attempts in a span.
func (w *world) between(from, to time.Duration) (n int) {
	for _, t := range w.attempts {
		if t >= at(from) && t < at(to) {
			n++
		}
	}
	return n
}

// away is a host that is not there from one instant to another.
func away(from, to time.Duration, saw limit.Link) func(mono.Time, int) (limit.Link, time.Duration) {
	return func(now mono.Time, _ int) (limit.Link, time.Duration) {
		if now >= at(from) && now < at(to) {
			return saw, ms
		}
		return limit.Working, 50 * ms
	}
}

// Five seconds without a server, with a hundred requests a second: no request is charged, a few
// connects find out, and all are served.
func TestAwayForFiveSeconds(t *testing.T) {
	for _, saw := range []limit.Link{limit.Unreachable, limit.NoName, limit.BadCertificate} {
		w := &world{h: steadyBreaker(), every: 10 * ms, host: away(10*time.Second, 15*time.Second, saw)}
		w.run(60 * time.Second)
		n := w.between(10*time.Second, 15*time.Second)
		if n > 20 {
			t.Errorf("%v: %d connects while it was away", saw, n)
		}
		if w.charged > 0 || w.downs != 1 || len(w.ups) != 1 || w.served < 5990 {
			t.Errorf("%v: %d charged, down %d times, up at %v, %d served", saw, w.charged, w.downs, w.ups, w.served)
		}
		if up := w.ups[0]; up > at(18*time.Second) {
			t.Errorf("%v: up at %v", saw, up)
		}
	}
}

// Load begins slowly: one, then two, then four, with any number waiting.
func TestItBeginsSlowly(t *testing.T) {
	w := &world{h: steadyBreaker(), every: ms, host: away(time.Second, 3*time.Second, limit.Unreachable)}
	w.run(20 * time.Second)
	up := time.Duration(w.ups[0])
	for round, want := range []int{1, 2, 4, 8, 16} { // 50 ms each
		if n := w.between(up+time.Duration(round)*50*ms, up+time.Duration(round+1)*50*ms); n != want {
			t.Errorf("round %d after it came back: %d sent, want %d", round, n, want)
		}
	}
	if w.served < 19900 {
		t.Errorf("%d served", w.served)
	}
}

// A server that answers 500 for good ends in dead letters, by probes and not in a burst.
func TestBrokenForGood(t *testing.T) {
	w := &world{h: steadyBreaker(), every: 10 * ms, host: func(mono.Time, int) (limit.Link, time.Duration) { return limit.Broken, 20 * ms }}
	w.run(10 * time.Minute)
	if n := w.between(0, time.Second); n > 60 {
		t.Errorf("%d attempts before it was found out", n)
	}
	if n := w.between(time.Second, 10*time.Minute); n < 40 || n > 60 {
		t.Errorf("%d probes in ten minutes", n)
	}
	if w.charged != len(w.attempts) || w.dead < 1 || w.dead > len(w.attempts)/5 {
		t.Errorf("%d attempts, of which %d count; %d dead", len(w.attempts), w.charged, w.dead)
	}
	burst := &world{h: steadyBreaker(), every: ms / 10, host: w.host}
	burst.run(time.Second)
	if n := len(burst.attempts); n > 300 { // 32 answers, and the requests that went out before the last of them
		t.Errorf("%d attempts at 10,000 a second", n)
	}
	if s := w.h.State(at(10 * time.Minute)); !s.Down || s.Kind != limit.Broken || s.Since > at(50*ms) || s.Probes < 40 {
		t.Errorf("%+v", s)
	}
}

// A certificate that is wrong for good costs a handshake now and then.
func TestBadCertificateForGood(t *testing.T) {
	w := &world{h: steadyBreaker(), every: 50 * ms, most: 100, host: func(mono.Time, int) (limit.Link, time.Duration) { return limit.BadCertificate, 5 * ms }}
	w.run(24 * time.Second)
	if n := len(w.attempts); n > 40 {
		t.Errorf("%d handshakes", n)
	}
	if w.charged > 0 || w.downs != 1 {
		t.Errorf("%d charged, down %d times", w.charged, w.downs)
	}
}

// A few failures stop nothing. Of a hundred connects three are refused, at random or all at once,
// and the others are answered soon or late. Neither do a few answers of 500.
func TestAnUnluckyFew(t *testing.T) {
	for name, tc := range map[string]struct {
		took    time.Duration
		unlucky func(n int, rng *rand.Rand) bool
		saw     limit.Link
	}{
		"at random":           {50 * ms, func(_ int, rng *rand.Rand) bool { return rng.IntN(100) < 3 }, limit.Unreachable},
		"at random, slow":     {3 * time.Second, func(_ int, rng *rand.Rand) bool { return rng.IntN(100) < 3 }, limit.Unreachable},
		"three in a row":      {50 * ms, func(n int, _ *rand.Rand) bool { return n%100 < 3 }, limit.Unreachable},
		"three in a row slow": {3 * time.Second, func(n int, _ *rand.Rand) bool { return n%100 < 3 }, limit.Unreachable},
		"a third 500":         {50 * ms, func(_ int, rng *rand.Rand) bool { return rng.IntN(3) == 0 }, limit.Broken},
		"timeouts":            {50 * ms, func(_ int, rng *rand.Rand) bool { return rng.IntN(10) == 0 }, limit.Silent},
	} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 0))
			n := 0
			w := &world{h: steadyBreaker(), every: 5 * ms, host: func(mono.Time, int) (limit.Link, time.Duration) {
				n++
				switch {
				case !tc.unlucky(n, rng):
					return limit.Working, tc.took
				case tc.saw == limit.Silent:
					return limit.Silent, 5 * time.Second
				}
				return tc.saw, ms
			}}
			w.run(2 * time.Minute)
			if w.downs > 0 {
				t.Errorf("%s, seed %d: down %d times", name, seed, w.downs)
			}
		}
	}
}

// A host that swallows everything is found out by the timeouts.
func TestSilent(t *testing.T) {
	w := &world{h: steadyBreaker(), every: 100 * ms, host: func(now mono.Time, _ int) (limit.Link, time.Duration) {
		if now > at(10*time.Second) {
			return limit.Silent, 2 * time.Second
		}
		return limit.Working, 20 * ms
	}}
	w.run(60 * time.Second)
	if w.downs != 1 || w.charged > 50 {
		t.Errorf("down %d times, %d charged", w.downs, w.charged)
	}
}

// Answers to requests that were sent before the outage prove nothing: a server that is shut down
// still answers those.
func TestDrains(t *testing.T) {
	h := steadyBreaker()
	var slow []*limit.Sent
	for range 20 {
		slow = append(slow, limittest.Admit(h, 0, limit.One))
	}
	for i := range 30 { // every 10 ms one is refused and one of before is served
		now := at(time.Duration(i) * 10 * ms)
		if h.Ready(now, limit.One) > now {
			break
		}
		h.Settle(now, limittest.Admit(h, now, limit.One), &limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable})
		if i < len(slow) {
			h.Settle(now, slow[i], &limit.Outcome{Result: limit.Accepted})
		}
	}
	s, ok := h.News(at(300 * ms))
	if !ok || !s.Down || s.Kind != limit.Unreachable || s.Since != 0 {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := h.News(at(300 * ms)); ok {
		t.Error("said twice")
	}
}

// A host that goes away as soon as it is back is asked ever more seldom.
func TestFlapping(t *testing.T) {
	w := &world{h: steadyBreaker(), every: 10 * ms, host: func(now mono.Time, _ int) (limit.Link, time.Duration) {
		if now/mono.Time(time.Second)%2 == 0 {
			return limit.Unreachable, ms
		}
		return limit.Working, 50 * ms
	}}
	w.run(5 * time.Minute)
	if lost := len(w.attempts) - w.served; lost > 700 || w.charged > 0 {
		t.Errorf("%d connects for nothing in five minutes, %d charged", lost, w.charged)
	}
	if w.served < 3000 {
		t.Errorf("%d served", w.served)
	}
}

// With files for ten, more than those are tried now and then, and cost nothing.
func TestNoFiles(t *testing.T) {
	w := &world{h: steadyBreaker(), every: 5 * ms, host: func(_ mono.Time, open int) (limit.Link, time.Duration) {
		if open >= 10 {
			return limit.NoFiles, 0
		}
		return limit.Working, 100 * ms
	}}
	w.run(100 * time.Second)
	if w.downs > 0 || w.charged > 0 || w.served < 9900 {
		t.Errorf("down %d times, %d charged, %d served", w.downs, w.charged, w.served)
	}
	if n := len(w.attempts) - w.served; n > 40 {
		t.Errorf("%d tries for nothing", n)
	}
	s := w.h.State(at(100 * time.Second))
	if s.Down || s.Most < 10 || s.Most > 11 {
		t.Errorf("%+v", s)
	}

	// With files for none it is an outage like another.
	w = &world{h: steadyBreaker(), every: 5 * ms, host: func(now mono.Time, _ int) (limit.Link, time.Duration) {
		if now < at(10*time.Second) {
			return limit.NoFiles, 0
		}
		return limit.Working, 100 * ms
	}}
	w.run(30 * time.Second)
	if w.downs != 1 || len(w.ups) != 1 || w.between(0, 10*time.Second) > 25 {
		t.Errorf("down %d times, up at %v, %d tries", w.downs, w.ups, w.between(0, 10*time.Second))
	}
}

// After an unsent probe the next one goes in its place. After a probe without evidence the next one
// goes after the same pause, and after a failed one after a longer pause. Any answer of a working
// server ends the outage.
func TestOneProbe(t *testing.T) {
	h := down(t)
	first := h.State(at(time.Second)).Next
	one := limittest.Admit(h, first, limit.One)
	if r := h.Ready(first, limit.One); r != limit.AfterSettle {
		t.Fatalf("while a probe is out the next may go at %v", r)
	}
	h.Settle(first, one, &limit.Outcome{Result: limit.Unsent}) // another limit stood in its way
	if r := h.Ready(first, limit.One); r != first {
		t.Errorf("after a probe that never was the next may go at %v", r)
	}
	one = limittest.Admit(h, first, limit.One)
	h.Settle(first, one, &limit.Outcome{}) // its caller gave up
	if r := h.Ready(first, limit.One); r != first.Add(250*ms) {
		t.Errorf("after a probe that shows nothing the next may go at %v", r)
	}
	one = limittest.Admit(h, first.Add(250*ms), limit.One)
	h.Settle(first.Add(250*ms), one, &limit.Outcome{Result: limit.Limited, Link: limit.Broken}) // 529
	if r := h.Ready(first, limit.One); r != first.Add(750*ms) {
		t.Errorf("after a probe that failed the next may go at %v", r)
	}
	if s := h.State(first.Add(250 * ms)); !s.Down || s.Kind != limit.Broken || s.Probes != 1 {
		t.Errorf("%+v", s)
	}
	if _, b := h.Explain(first.Add(250*ms), limit.One); b.Name != "outage" {
		t.Errorf("the bound is %+v", b)
	}
	one = limittest.Admit(h, first.Add(750*ms), limit.One)
	h.Settle(first.Add(800*ms), one, &limit.Outcome{Result: limit.Limited}) // it refuses: it works
	if s, ok := h.News(first.Add(800 * ms)); !ok || s.Down || s.Since != first.Add(800*ms) || s.Lasted <= 0 {
		t.Errorf("%+v", s)
	}
	limittest.Admit(h, first.Add(800*ms), limit.One)
	if at, b := h.Explain(first.Add(800*ms), limit.One); at != limit.AfterSettle || b.Name != "beginning" {
		t.Errorf("%v, %+v", at, b)
	}
}

// down returns a host that was just found to be.
func down(t *testing.T) *stack.Breaker {
	h := steadyBreaker()
	for i := range 3 {
		now := at(time.Duration(i) * 100 * ms)
		h.Settle(now, limittest.Admit(h, now, limit.One), &limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable})
	}
	if s, ok := h.News(at(200 * ms)); !ok || !s.Down || s.Next != at(450*ms) || s.Lasted != 0 {
		t.Fatalf("%+v, %v", s, ok)
	}
	return h
}

// A request that was sent after the outage began and is served ends it too, though it is no probe.
func TestServedByTheWay(t *testing.T) {
	h := steadyBreaker()
	early := limittest.Admit(h, 0, limit.One)
	var leases []*limit.Sent
	for range 4 {
		leases = append(leases, limittest.Admit(h, 0, limit.One))
	}
	for i, l := range leases[:3] {
		h.Settle(at(time.Duration(i)*100*ms), l, &limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable})
	}
	if !h.State(at(300 * ms)).Down {
		t.Fatal("it is up")
	}
	h.Settle(at(300*ms), early, &limit.Outcome{Result: limit.Accepted})
	if !h.State(at(300 * ms)).Down {
		t.Error("an answer to what was sent before ends it")
	}
	h.Settle(at(300*ms), leases[3], &limit.Outcome{Result: limit.Accepted})
	if h.State(at(300 * ms)).Down {
		t.Error("an answer to what was sent after does not")
	}
}

func TestNewBreakerRefuses(t *testing.T) {
	for want, c := range map[string]stack.BreakerConfig{
		"breaker: After -1 is negative":                   {After: -1},
		"breaker: Answers -2 is negative":                 {Answers: -2},
		"breaker: Backoff: backoff: Max -1ns is negative": {Backoff: backoff.Policy{Max: -1}},
	} {
		if _, err := stack.NewBreaker(c); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

// seer shows a Breaker sights that go with the results of limittest's programs.
type seer struct{ *stack.Breaker }

func (s seer) Settle(now mono.Time, sent *limit.Sent, given *limit.Outcome) {
	o := *given
	switch o.Result {
	case limit.Unsent:
		o.Link = limit.Unreachable
	case limit.Unknown:
		o.Link = limit.Silent
	case limit.Failed:
		o.Link = limit.NoFiles
	}
	s.Breaker.Settle(now, sent, &o)
}

var breakerSpec = limittest.Spec{
	New: func() limit.Limiter {
		return seer{must(stack.NewBreaker(stack.BreakerConfig{After: 1, Answers: 2, Rand: rand.New(rand.NewPCG(3, 3))}))}
	},
	ClosedLoop: true,
	Burst:      1 << 20, // while it is up it bounds nothing
}

func TestBreakerLaws(t *testing.T) { limittest.Laws(t, breakerSpec) }

func FuzzBreakerLaws(f *testing.F) { limittest.Fuzz(f, breakerSpec) }

func BenchmarkBreaker(b *testing.B) {
	h := steadyBreaker()
	now := mono.Time(0)
	o, sent := limit.Outcome{Result: limit.Accepted}, limit.Sent{Cost: limit.One}
	b.ReportAllocs()
	for b.Loop() {
		now++
		if h.Ready(now, limit.One) <= now {
			limittest.Again(h, now, &sent)
			h.Settle(now, &sent, &o)
		}
	}
}

func TestBreakerAllocatesNothing(t *testing.T) {
	h, now, sent := steadyBreaker(), mono.Time(0), limit.Sent{Cost: limit.One}
	if n := testing.AllocsPerRun(1000, func() {
		now++
		h.Ready(now, limit.One)
		limittest.Again(h, now, &sent)
		h.Settle(now, &sent, &limit.Outcome{Result: limit.Accepted})
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// How long a row of failures has to be, of so many that are sent together, with or without time
// between.
func TestHowLongARowIs(t *testing.T) {
	for name, c := range map[string]struct {
		saw   limit.Link
		apart time.Duration
		want  int // failures until it is down
	}{
		"refused at one instant":       {limit.Unreachable, 0, 12},
		"refused for a tenth second":   {limit.Unreachable, 50 * ms, 3},
		"refused just not so long":     {limit.Unreachable, 50*ms - 1, 4},
		"broken at one instant":        {limit.Broken, 0, 32},
		"broken for half a second":     {limit.Broken, 500 * ms / 7, 9}, // a nanosecond is missing at the eighth
		"broken just for half of it":   {limit.Broken, 72 * ms, 8},
		"broken a little at a time":    {limit.Broken, 20 * ms, 26},
		"broken for a moment, and yet": {limit.Broken, 16 * ms, 32},
	} {
		h := steadyBreaker()
		var open []*limit.Sent
		for range 40 {
			open = append(open, limittest.Admit(h, 0, limit.One))
		}
		for i := range open { // no request is on its way: the row decides
			if i >= c.want {
				h.Settle(0, open[i], &limit.Outcome{Result: limit.Unsent})
			}
		}
		now, n := mono.Time(0), 0
		for ; n < c.want && !h.State(now).Down; n++ {
			if n > 0 {
				now = now.Add(c.apart)
			}
			h.Settle(now, open[n], &limit.Outcome{Result: limit.Failed, Link: c.saw})
		}
		if down := h.State(now).Down; !down || n != c.want {
			t.Errorf("%s: down %v after %d failures, want %d", name, down, n, c.want)
		}
	}
}

// While no request is on its way, the next probe goes when the pause ends, and none before. A
// request on its way may be served at any time.
func TestForecastOfAnOutage(t *testing.T) {
	h := steadyBreaker()
	for range 12 {
		h.Settle(0, limittest.Admit(h, 0, limit.One), &limit.Outcome{Result: limit.Failed, Link: limit.Unreachable})
	}
	next := h.State(0).Next
	if got := h.NotBefore(0, 3, limit.Cost{3}, limit.One); !h.State(0).Down || next <= 0 || got != next {
		t.Errorf("%+v: not before %v", h.State(0), got)
	}
	limittest.Admit(h, next, limit.One)
	if got := h.NotBefore(next, 3, limit.Cost{3}, limit.One); got != next {
		t.Errorf("while one goes to see: not before %v, want %v", got, next)
	}
	if got := h.NotBefore(next.Add(-time.Second), 0, limit.Cost{}, limit.One); got != next {
		t.Errorf("in the past: not before %v, want %v", got, next)
	}
}
