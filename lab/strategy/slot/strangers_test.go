package slot_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/lab/strategy/slot"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// world is clients that share a token bucket in virtual time, each with a limiter of its own and so many threads.
type world struct {
	rate, burst float64 // as the clients know them
	refill      func(at float64) float64
	says        func(level float64, k int) (remaining int64, ok bool) // if nil, the truth
	level, at   float64
	length      float64
	clients     []*client
	every       func(at float64) // each second

	events  events
	now     mono.Time
	seq     int
	rejects []float64
	served  int
	lost    float64
	answers int
}

type client struct {
	l        limit.Limiter
	rtt      float64
	threads  int
	backlog  int // negative: endless
	until    float64
	inFlight int
	version  int
	requests int
	free     []float64 // since when threads are
	sent     []float64
	maxSleep float64
	done     float64
}

type event struct {
	at      mono.Time
	seq     int
	c       *client
	version int // of a wake; an answer or an arrival has a lease
	lease   limit.Lease
	outcome *limit.Outcome
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any     { n := len(*h) - 1; e := (*h)[n]; *h = (*h)[:n]; return e }

func seconds(t mono.Time) float64 { return float64(t) / 1e9 }

type maker func(slot.Config) (limit.Limiter, error)

func newSlot(c slot.Config) (limit.Limiter, error)       { return slot.New(c) }
func newHeaderless(c slot.Config) (limit.Limiter, error) { return slot.NewHeaderless(c) }

// strangers returns a world of n clients of 4500 requests an hour, made by make from a configuration that set may change.
func strangers(t testing.TB, seed uint64, n int, rtt time.Duration, threads int, make maker, set func(i int, c *slot.Config)) *world {
	t.Helper()
	w := &world{rate: 1.25, burst: 4500, length: 1800}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		c := slot.Config{Rate: w.rate, Burst: w.burst, Rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		if set != nil {
			set(i, &c)
		}
		l, err := make(c)
		if err != nil {
			t.Fatal(err)
		}
		cl := &client{l: l, rtt: rtt.Seconds(), threads: threads, backlog: -1, until: math.Inf(1)}
		w.clients = append(w.clients, cl)
		w.push(event{at: mono.Time(rng.Int64N(1e8)), c: cl})
	}
	return w
}

func (w *world) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.events, e)
}

func (w *world) fill(at float64) {
	rate := w.rate
	if w.refill != nil {
		rate = w.refill(at)
	}
	w.level += (at - w.at) * rate
	w.lost += max(0, w.level-w.burst)
	w.level, w.at = min(w.level, w.burst), at
}

func (w *world) run() *world {
	next := 1.0
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		at := seconds(e.at)
		for ; w.every != nil && next <= min(at, w.length); next++ {
			w.every(next)
		}
		if at > w.length {
			break
		}
		w.now = e.at
		switch {
		case e.lease == limit.Lease{}:
			if e.version == e.c.version {
				w.send(e.c)
			}
		case e.outcome == nil:
			e.outcome = w.arrive(at, e.c)
			e.at = e.at.Add(time.Duration(e.c.rtt / 2 * 1e9))
			w.push(e)
		default:
			e.c.inFlight--
			e.c.done = at
			e.c.free = append(e.c.free, at)
			e.c.l.Settle(w.now, e.lease, *e.outcome)
			w.send(e.c)
		}
	}
	w.fill(w.length)
	for _, c := range w.clients { // sleepers are cut off at the end
		for _, at := range c.free {
			if c.backlog != 0 && c.until > w.length {
				c.maxSleep = max(c.maxSleep, w.length-at)
			}
		}
	}
	return w
}

func (w *world) send(c *client) {
	for c.inFlight < c.threads && c.backlog != 0 && seconds(w.now) < c.until {
		at := c.l.Ready(w.now, limit.One)
		if at > w.now {
			c.version++
			w.push(event{at: at, c: c, version: c.version})
			return
		}
		if len(c.free) > 0 {
			c.maxSleep = max(c.maxSleep, seconds(w.now)-c.free[0])
			c.free = c.free[1:]
		}
		c.inFlight++
		c.requests++
		c.backlog--
		c.sent = append(c.sent, seconds(w.now))
		w.push(event{at: w.now.Add(time.Duration(c.rtt / 2 * 1e9)), c: c, lease: c.l.Admit(w.now, limit.One)})
	}
}

func (w *world) arrive(at float64, c *client) *limit.Outcome {
	w.fill(at)
	w.answers++
	o := &limit.Outcome{Result: limit.Accepted, RTT: time.Duration(c.rtt * 1e9), Known: 1 << limit.Requests}
	if w.level >= 1 {
		w.level--
		w.served++
	} else {
		o.Result = limit.Limited
		w.rejects = append(w.rejects, at)
		c.backlog++
	}
	o.Remaining[limit.Requests] = int64(w.level)
	if w.says != nil {
		remaining, ok := w.says(w.level, w.answers)
		o.Remaining[limit.Requests] = remaining
		if !ok {
			o.Known = 0
		}
	}
	return o
}

func mute(float64, int) (int64, bool) { return 0, false }

func (w *world) rejectsAfter(at float64) int {
	n := 0
	for _, r := range w.rejects {
		if r > at {
			n++
		}
	}
	return n
}

func (w *world) requests() (sum int, deviation, variation float64) {
	for _, c := range w.clients {
		sum += c.requests
	}
	mean := float64(sum) / float64(len(w.clients))
	for _, c := range w.clients {
		deviation += (float64(c.requests) - mean) * (float64(c.requests) - mean)
	}
	deviation = math.Sqrt(deviation / max(1, float64(len(w.clients)-1)))
	return sum, deviation, deviation / mean
}

func (w *world) maxSleep() float64 {
	return slices.MaxFunc(w.clients, func(a, b *client) int { return int(math.Copysign(1, a.maxSleep-b.maxSleep)) }).maxSleep
}

func sleep(c *client) float64 { return c.l.(fairshare.Sleeper).Sleep().Seconds() }
