package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

var (
	refused = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}, Reason: "connection refused"}
	broken  = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Link: limit.Broken}, Reason: "500"}
)

// town is servers, by the first letter of a request's id, and a driver that asks at each wake.
type town struct {
	*rig
	meets func(id string, now time.Duration) (dispatch.Answer, time.Duration) // what an attempt comes to, and when

	now    time.Duration
	coming []happening
	sent   map[string][]time.Duration
	news   []string
	asked  int // times that there was nothing to send
	open   int
}

type happening struct {
	at time.Duration
	do func()
}

func initial(r *queue.Request) string { return r.ID[:1] }

func newTown(t *testing.T, q queue.Config, perSec int, meets func(string, time.Duration) (dispatch.Answer, time.Duration)) *town {
	t.Helper()
	w := &town{rig: &rig{T: t}, meets: meets, sent: map[string][]time.Duration{}}
	q.Host = initial
	var err error
	if w.queue, err = queue.New(q); err != nil {
		t.Fatal(err)
	}
	w.Dispatcher, err = dispatch.New(dispatch.Config{
		Queue: w.queue, Keys: []dispatch.Key{{Gap: time.Second / time.Duration(perSec)}}, Backoff: backoff.Policy{Jitter: -1},
		Ended: func(e queue.Ended) { w.ended = append(w.ended, e.Request.ID+" "+e.State.String()) },
		Outage: func(h dispatch.HostInfo) {
			what := fmt.Sprintf("is back after %v", h.Lasted)
			if h.Down {
				what = fmt.Sprintf("is down (%v: %s)", h.Kind, h.Reason)
			}
			w.news = append(w.news, fmt.Sprintf("%v %s %s", w.now.Round(ms), h.Host, what))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *town) in(d time.Duration, do func()) { w.coming = append(w.coming, happening{w.now + d, do}) }

// until lets the town live, first what comes first.
func (w *town) until(end time.Duration) {
	for {
		a, wake, ok := w.Next(at(w.now))
		if ok {
			ans, took := w.meets(a.Request.ID, w.now)
			w.sent[a.Request.ID[:1]] = append(w.sent[a.Request.ID[:1]], w.now)
			w.open++
			w.in(took, func() { w.open--; w.Done(at(w.now), a, ans) })
			continue
		}
		w.asked++
		if wake <= at(w.now) {
			w.Fatalf("at %v: nothing to send, but wake %v", w.now, wake)
		}
		next := time.Duration(wake)
		i := -1
		for j, c := range w.coming {
			if c.at < next || c.at == next && i < 0 {
				next, i = c.at, j
			}
		}
		if next > end {
			w.now = end
			return
		}
		w.now = next
		if i >= 0 {
			do := w.coming[i].do
			w.coming = slices.Delete(w.coming, i, i+1)
			do()
		}
	}
}

// between counts what was sent to a host in a span.
func (w *town) between(host string, from, to time.Duration) (n int) {
	for _, t := range w.sent[host] {
		if t >= from && t < to {
			n++
		}
	}
	return n
}

func (w *town) many(n int, host string) {
	for i := range n {
		w.submit(w.now, fmt.Sprint(host, i))
	}
}

// away is a host that is not there from one instant to another.
func away(host string, from, to time.Duration, ans dispatch.Answer) func(string, time.Duration) (dispatch.Answer, time.Duration) {
	return func(id string, now time.Duration) (dispatch.Answer, time.Duration) {
		if id[:1] == host && now >= from && now < to {
			return ans, ms
		}
		return accepted, 50 * ms
	}
}

// Five seconds without a server, at a hundred requests a second. A few attempts find out, none is
// counted, all are done, and load begins slowly. The other host has the line for itself.
func TestAwayForFiveSeconds(t *testing.T) {
	w := newTown(t, queue.Config{}, 100, away("a", 2*time.Second, 7*time.Second, refused))
	w.many(2000, "a")
	w.until(2500 * ms)
	if down := w.Down(at(w.now)); len(down) != 1 || down[0].Host != "a" || down[0].Kind != limit.Unreachable || down[0].Waiting < 1500 || down[0].Next <= at(w.now) {
		t.Errorf("down: %+v", down)
	}
	w.many(500, "b")
	w.until(7 * time.Second)
	if n := w.between("a", 2*time.Second, 7*time.Second); n > 20 {
		t.Errorf("%d tries while it was away", n)
	}
	if n := w.between("b", 2500*ms, 7*time.Second); n < 400 {
		t.Errorf("%d of the other host in 4.5 s", n)
	}
	w.until(40 * time.Second)
	if c := w.queue.Counts(); c.Done != 2500 || c.Submitted != 2500 {
		t.Errorf("%+v", c)
	}
	if len(w.news) != 2 || !strings.HasSuffix(w.news[0], "a is down (unreachable: connection refused)") || !strings.Contains(w.news[1], "a is back after ") {
		t.Errorf("said %q", w.news)
	}
	up := w.sent["a"][slices.IndexFunc(w.sent["a"], func(t time.Duration) bool { return t >= 7*time.Second })]
	for round, want := range []int{1, 1, 2, 4, 5, 5} { // 50 ms each: the probe, one more for each that is served, and the limit
		if n := w.between("a", up+time.Duration(round)*50*ms, up+time.Duration(round+1)*50*ms); n != want {
			t.Errorf("round %d after it came back: %d sent, want %d", round, n, want)
		}
	}
	if down := w.Down(at(w.now)); len(down) != 0 {
		t.Errorf("down: %+v", down)
	}
}

// The line of a held host is as it was: first by priority. An attempt puts no request further back,
// and deadlines run.
func TestWhatIsHeldKeepsItsPlace(t *testing.T) {
	w := newTown(t, queue.Config{}, 100, away("a", 0, 7*time.Second, refused))
	w.many(30, "a")
	w.until(time.Second)
	for id, r := range map[string]queue.Request{"a short": {TTL: time.Second}, "a dear": {Priority: 1}} {
		r.ID = id
		if _, err := w.queue.Submit(at(w.now), r); err != nil {
			t.Fatal(err)
		}
	}
	w.until(6 * time.Second)
	w.has("a short expired")
	w.until(time.Minute)
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("a", i, " done"))
	}
	// The probe that found it back was the first in line that was not waiting after a probe of its
	// own.
	got := slices.DeleteFunc(slices.Clone(w.ended), func(e string) bool { return e == "a dear done" || e == w.ended[0] })
	if dear := slices.Index(w.ended, "a dear done"); dear < 0 || dear > 1 {
		t.Errorf("the one with priority is number %d of %v", dear, w.ended)
	}
	if want = slices.DeleteFunc(want, func(e string) bool { return e == w.ended[0] }); !slices.Equal(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
}

// A server that answers 500 for good ends in dead letters, each after all its attempts, by probes and not in a burst.
func TestBrokenForGood(t *testing.T) {
	w := newTown(t, queue.Config{MaxAttempts: 3}, 100, away("a", 0, 1<<62, broken))
	w.many(40, "a")
	w.until(10 * time.Second)
	if n := w.between("a", time.Second, 10*time.Second); n > 10 {
		t.Errorf("%d sent in 9 s to a server that is broken", n)
	}
	w.until(time.Hour)
	if c := w.queue.Counts(); c.Dead != 40 || len(w.sent["a"]) != 120 {
		t.Errorf("%+v, %d sent", c, len(w.sent["a"]))
	}
	for _, l := range w.queue.DeadLetters() {
		if l.Attempts != 3 || l.Reason != "500" {
			t.Fatalf("%+v", l)
		}
	}
}

// A hundred thousand wait for a host that is away for an hour: no request is tried oftener than
// there are probes.
func TestWhatWaitsForAHostCostsNothing(t *testing.T) {
	w := newTown(t, queue.Config{}, 100, away("a", 0, time.Hour, refused))
	w.many(100_000, "a")
	w.until(time.Hour)
	if probes := len(w.sent["a"]); probes > 300 || w.asked > 4*probes {
		t.Errorf("%d probes, and %d times nothing to send", probes, w.asked)
	}
	if c := w.queue.Counts(); c.Waiting != 100_000 {
		t.Errorf("%+v", c)
	}
}

// One request cannot be sent, while all others are served. It spins no faster than its backoff, and
// delays none.
func TestOneThatIsNeverSent(t *testing.T) {
	tries := 0
	w := newTown(t, queue.Config{}, 100, func(id string, _ time.Duration) (dispatch.Answer, time.Duration) {
		if id == "a0" {
			tries++
			return refused, ms
		}
		return accepted, 50 * ms
	})
	w.many(2000, "a")
	w.until(30 * time.Second)
	if c := w.queue.Counts(); c.Done != 1999 || tries < 5 || tries > 15 || len(w.news) > 0 {
		t.Errorf("%+v, %d tries, said %q", c, tries, w.news)
	}
}

func TestStuck(t *testing.T) {
	w := newTown(t, queue.Config{}, 100, away("a", 0, 1<<62, refused))
	if h, wake, ok := w.Stuck(0, 0); ok || wake != limit.Never {
		t.Errorf("nothing waits: %+v %v %v", h, wake, ok)
	}
	w.many(5, "a")
	w.many(1, "b")
	w.until(time.Second)
	since := w.Down(at(w.now))[0].Since
	if h, wake, ok := w.Stuck(at(w.now), time.Minute); ok || wake != since.Add(time.Minute) {
		t.Errorf("it is not down for so long: %+v %v %v", h, wake, ok)
	}
	w.until(59 * time.Second)
	now := since.Add(time.Minute)
	if h, _, ok := w.Stuck(now, time.Minute); !ok || h.Host != "a" || h.Waiting != 5 || h.Since != since {
		t.Errorf("%+v %v", h, ok)
	}
	w.submit(59*time.Second, "b again")
	if _, wake, ok := w.Stuck(now, time.Minute); ok || wake != limit.Never {
		t.Errorf("something waits for another host: %v %v", wake, ok)
	}
	a, _, _ := w.Next(now)
	if a.Request.ID != "b again" {
		t.Fatalf("%+v", a)
	}
	if _, _, ok := w.Stuck(now, time.Minute); ok {
		t.Error("something is in flight")
	}
	w.Done(now, a, accepted)
	if _, _, ok := w.Stuck(now, time.Minute); !ok {
		t.Error("it was answered")
	}
}

// An attempt that this side broke off shows nothing of the host.
func TestReturnedIsNoNews(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	r.submit(0, "x")
	for i := range 100 {
		now := time.Duration(i) * 100 * ms
		r.done(now, r.sends(now, limit.AfterSettle, "x/1 on 0")[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true})
	}
	if down := r.Down(0); len(down) > 0 {
		t.Errorf("%+v", down)
	}
}

// Hosts that nothing is known of are forgotten; those that are in use are not.
func TestHostsAreForgotten(t *testing.T) {
	r := &rig{T: t}
	var err error
	if r.queue, err = queue.New(queue.Config{Host: func(r *queue.Request) string { return r.ID }}); err != nil {
		t.Fatal(err)
	}
	if r.Dispatcher, err = dispatch.New(dispatch.Config{Queue: r.queue, Keys: []dispatch.Key{{}}, Backoff: backoff.Policy{Base: -1}}); err != nil {
		t.Fatal(err)
	}
	next := func(now time.Duration) dispatch.Attempt {
		a, _, ok := r.Next(at(now))
		if !ok {
			t.Fatal("nothing to send")
		}
		return a
	}
	// down has a host fail until it is known to be.
	down := func(id string, from time.Duration) {
		r.submit(from, id)
		for now := from; !slices.ContainsFunc(r.Down(0), func(h dispatch.HostInfo) bool { return h.Host == id }); now += 50 * ms {
			r.done(now, next(now), refused)
		}
	}
	r.submit(0, "in flight")
	flying := next(0)
	down("down", 0)
	down("gone", 200*ms)
	r.sends(310*ms, at(350*ms)) // both are held
	if ticket, _, _ := r.queue.Lookup("gone"); !r.queue.Cancel(at(310*ms), ticket) {
		t.Fatal("it does not wait")
	}
	was := r.Down(at(310 * ms))[0]
	for i := range 5000 {
		r.submit(310*ms, fmt.Sprint(i))
		r.done(310*ms, next(310*ms), accepted)
	}
	hosts := r.Hosts(at(310 * ms))
	has := func(name string) bool {
		return slices.ContainsFunc(hosts, func(h dispatch.HostInfo) bool { return h.Host == name })
	}
	if len(hosts) > 1024 || !has("in flight") || !has("4999") || has("0") || has("gone") {
		t.Errorf("%d hosts are known, in flight %v, the last %v, the first %v, gone %v", len(hosts), has("in flight"), has("4999"), has("0"), has("gone"))
	}
	if d := r.Down(at(310 * ms)); len(d) != 1 || d[0] != was || was.Host != "down" {
		t.Errorf("down are %+v, want %+v", d, was)
	}
	r.submit(310*ms, "gone")
	r.done(310*ms, next(310*ms), accepted)
	r.done(310*ms, flying, accepted)
}

// FuzzHosts has one key without a limit, so that only hosts decide. The next is always the first in
// line whose host is open, by the model's own breakers. The wake is no later than the next change
// of that.
func FuzzHosts(f *testing.F) {
	for i := range 60 {
		program := make([]byte, 400)
		x := uint32(i)*2654435761 + 99
		for j := range program {
			x = x*1664525 + 1013904223
			program[j] = byte(x >> 24)
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		w := &hostModel{T: t, watches: map[string]*stack.Breaker{}, attempts: map[int]int{}}
		q, err := queue.New(queue.Config{MaxAttempts: 1000, Host: func(r *queue.Request) string { return w.to[r.Value.(int)] }})
		if err != nil {
			t.Fatal(err)
		}
		w.q = q
		if w.d, err = dispatch.New(dispatch.Config{Queue: q, Keys: []dispatch.Key{{Pause: -1}}, Backoff: backoff.Policy{Jitter: -1}, AnswerTime: -1}); err != nil {
			t.Fatal(err)
		}
		for i := 0; i+2 < min(len(program), 900); i += 3 {
			w.step(program[i], program[i+1], program[i+2])
			w.drain()
			if err := q.Counts().Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

type hostModel struct {
	*testing.T
	q        *queue.Queue
	d        *dispatch.Dispatcher
	now      mono.Time
	to       []string // where each request goes
	attempts map[int]int
	watches  map[string]*stack.Breaker
	open     []modelled
}

type modelled struct {
	dispatch.Attempt
	host  string
	lease *limit.Sent
}

var hostNames = []string{"x", "y", "z"}

func (w *hostModel) watch(host string) *stack.Breaker {
	if w.watches[host] == nil {
		w.watches[host], _ = stack.NewBreaker(stack.BreakerConfig{})
	}
	return w.watches[host]
}

func (w *hostModel) step(op, b, c byte) {
	switch op % 8 {
	case 0:
		w.now = w.now.Add(time.Duration(b) * 10 * ms)
	case 1:
		w.now = w.now.Add(time.Duration(b) * ms / 4)
	case 2, 3:
		r := queue.Request{Value: len(w.to), Priority: int(b % 3)}
		if b > 200 {
			r.TTL = time.Duration(b) * ms
		}
		w.to = append(w.to, hostNames[c%3])
		if _, err := w.q.Submit(w.now, r); err != nil {
			w.Fatal(err)
		}
	default:
		if len(w.open) == 0 {
			return
		}
		i := int(b) % len(w.open)
		a := w.open[i]
		w.open = slices.Delete(w.open, i, i+1)
		id := a.Request.Value.(int)
		ans := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Result(c % 5), Link: limit.Link(c / 5 % 9)}, Returned: op > 250}
		if a.host == "x" { // mostly away
			ans.Result, ans.Link = limit.Unsent, []limit.Link{limit.Implied, limit.Unreachable, limit.Silent, limit.Working}[c%16%3+c/250]
		}
		if ans.Returned {
			w.to[id] = hostNames[c%3] // redirected
		}
		o := ans.Outcome
		if o.Result == limit.Unsent && o.Link == limit.Implied && !ans.Returned {
			o.Link = limit.Unreachable
		}
		watch := w.watch(a.host)
		watch.Settle(w.now, a.lease, &o)
		counts := o.Result != limit.Unsent
		if o.Result == limit.Unsent {
			switch o.Link {
			case limit.Implied, limit.Working, limit.Broken, limit.Away:
				counts = true
			case limit.Silent:
				counts = !watch.State(w.now).Down
			}
		}
		if ans.Returned {
			counts = false
		}
		if !counts {
			w.attempts[id]--
		}
		w.d.Done(w.now, a.Attempt, ans)
		for _, h := range w.d.Hosts(w.now) {
			if s := w.watch(h.Host).State(w.now); s.Down != h.Down || s.Since != h.Since || s.Next != h.Next || s.Probes != h.Probes {
				w.Fatalf("at %v: %+v, want %+v", w.now, h, s)
			}
		}
	}
}

// drain sends all that may go, and compares.
func (w *hostModel) drain() {
	for {
		want, wake := -1, limit.Never
		for _, t := range w.q.Waiting() {
			info := w.q.Info(t)
			if info.Deadline <= w.now {
				continue
			}
			wake = min(wake, info.Deadline)
			ready := info.NotBefore
			if ready <= w.now {
				ready = w.watch(w.to[info.Request.Value.(int)]).Ready(w.now, limit.One)
			}
			if ready <= w.now {
				want = info.Request.Value.(int)
				break
			}
			wake = min(wake, ready)
		}
		if wake == limit.Never && len(w.open) > 0 {
			wake = limit.AfterSettle
		}
		a, at, ok := w.d.Next(w.now)
		if ok != (want >= 0) {
			w.Fatalf("at %v: sent %v, want request %d", w.now, ok, want)
		}
		if !ok {
			if at <= w.now || at > wake {
				w.Fatalf("at %v: wake %v, want %v", w.now, at, wake)
			}
			return
		}
		id := a.Request.Value.(int)
		w.attempts[id]++
		if id != want || a.Number != w.attempts[id] {
			w.Fatalf("at %v: sent %d, attempt %d, want %d, attempt %d", w.now, id, a.Number, want, w.attempts[want])
		}
		w.open = append(w.open, modelled{a, w.to[id], limittest.Admit(w.watch(w.to[id]), w.now, limit.One)})
	}
}

// When all are done with, all are forgotten, those that were held for a while as well.
func TestAllHostsAreForgotten(t *testing.T) {
	r := &rig{T: t}
	var err error
	if r.queue, err = queue.New(queue.Config{Host: func(r *queue.Request) string { return r.ID }}); err != nil {
		t.Fatal(err)
	}
	if r.Dispatcher, err = dispatch.New(dispatch.Config{Queue: r.queue, Keys: []dispatch.Key{{}}, Backoff: backoff.Policy{Base: -1}}); err != nil {
		t.Fatal(err)
	}
	now := mono.Time(0)
	for i := range 2500 {
		r.submit(now.Sub(0), fmt.Sprint(i))
		away := i%500 == 1
		for a, wake, ok := r.Next(now); r.queue.Counts().Done <= i; a, wake, ok = r.Next(now) {
			switch {
			case !ok && (!away || wake >= limit.AfterSettle):
				t.Fatalf("host %d waits until %v", i, wake)
			case !ok: // it is held
				now, away = wake, false
			case away:
				r.done(now.Sub(0), a, refused)
				now = now.Add(50 * ms)
			default:
				r.done(now.Sub(0), a, accepted)
			}
		}
		if n := r.Kept(); n > 1024 {
			t.Fatalf("%d hosts are kept", n)
		}
	}
}
