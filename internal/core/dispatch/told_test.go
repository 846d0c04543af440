package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// desk is a Dispatcher in a bad world, with all that it and its queue say. Keys are refused, denied, banned and lifted, hosts go away and
// come back, requests are late, invalid, cancelled, of several parts.
type desk struct {
	rng        *rand.Rand
	now        mono.Time
	queue      *queue.Queue
	dispatcher *dispatch.Dispatcher
	keys       int
	shared     []*dispatch.Shared // limits that keys have together, and change
	flying     []dispatch.Attempt
	away       map[string]mono.Time // hosts where nothing arrives, until then
	said       strings.Builder
	came       int
}

func (d *desk) say(format string, args ...any) { fmt.Fprintf(&d.said, format+"\n", args...) }

func newDesk(seed uint64, c queue.Config, keys func() []dispatch.Key) *desk {
	d := &desk{rng: rand.New(rand.NewPCG(seed, 13)), away: map[string]mono.Time{}}
	c.Host = func(r *queue.Request) string { return r.Value.(string) }
	var err error
	if d.queue, err = queue.New(c); err != nil {
		panic(err)
	}
	all := keys()
	d.keys = len(all)
	for _, k := range all {
		for _, s := range k.Shared {
			if !slices.Contains(d.shared, s) {
				d.shared = append(d.shared, s)
			}
		}
	}
	if d.dispatcher, err = dispatch.New(dispatch.Config{
		Queue: d.queue, Keys: all, Epoch: time.Unix(1e9, 0), Backoff: backoff.Policy{Base: 300 * time.Millisecond}, Rand: rand.New(rand.NewPCG(seed, 14)),
		Ended:   func(e queue.Ended) { d.say("ended: %s %v %d %s", e.Request.ID, e.State, e.Attempts, e.Reason) },
		Outage:  func(h dispatch.HostInfo) { d.say("outage: %+v", h) },
		Learned: func(key int) { d.say("%d learned", key) },
	}); err != nil {
		panic(err)
	}
	return d
}

func (d *desk) submit() {
	if d.queue.Counts().Waiting >= 15 {
		return
	}
	d.came++
	r := queue.Request{ID: fmt.Sprint(d.came), Priority: d.rng.IntN(3) - 1, Value: []string{"a", "b", "c"}[d.rng.IntN(3)], Cost: limit.Cost{limit.Requests: int64(1 + d.rng.IntN(3))}}
	switch d.rng.IntN(12) {
	case 0:
		r.ID = fmt.Sprint(1 + d.rng.IntN(d.came))
	case 1:
		r.Cost = limit.Cost{}
		r.Free = true
	case 2:
		r.Cost[limit.Requests] = 100 // more than any key allows
	case 3, 4:
		r.TTL = time.Duration(d.rng.IntN(8000)) * time.Millisecond
		r.Renewal = time.Duration(d.rng.IntN(3)-1) * time.Second
	}
	_, err := d.queue.Submit(d.now, r)
	d.say("%s comes: %v", r.ID, err)
}

// answer has an attempt end, as the world is.
func (d *desk) answer() {
	if len(d.flying) == 0 {
		return
	}
	i := d.rng.IntN(len(d.flying))
	a := d.flying[i]
	d.flying = slices.Delete(d.flying, i, i+1)
	ans := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted, RTT: d.now.Sub(a.At), Link: limit.Implied}}
	if until := d.away[a.Host()]; until > d.now {
		ans.Result, ans.Link, ans.Reason = limit.Unsent, []limit.Link{limit.Unreachable, limit.Silent, limit.NoFiles}[d.rng.IntN(3)], "nothing there"
		d.done(a, ans)
		return
	}
	switch d.rng.IntN(16) {
	case 0, 1:
		ans.Result, ans.RetryAfter = limit.Limited, time.Duration(d.rng.IntN(4))*time.Second
	case 2:
		ans.Result, ans.Reason = limit.Failed, "500"
	case 3:
		ans.Result = limit.Unknown
	case 4:
		ans.Invalid, ans.Reason = true, "400"
	case 5:
		ans.Denied, ans.Invalid, ans.Reason = true, true, "403"
	case 6:
		ans.Denied, ans.Result = true, limit.Failed
	case 7:
		ans.Returned, ans.Result = true, limit.Unsent
	case 8:
		ans.More = true
	case 9:
		ans.Misordered, ans.Result = true, limit.Failed
	case 10:
		ans.Known, ans.Remaining, ans.Reset[limit.Requests] = 1<<limit.Requests, limit.Cost{limit.Requests: int64(d.rng.IntN(4))}, time.Duration(d.rng.IntN(5))*time.Second
	case 11:
		if d.rng.IntN(4) == 0 {
			ans.Banned, ans.Result, ans.Reason = true, limit.Failed, "401"
		}
	}
	d.done(a, ans)
}

func (d *desk) done(a dispatch.Attempt, ans dispatch.Answer) {
	e := d.dispatcher.Done(d.now, a, ans)
	d.say("%s was %v: %v %d %s", a.Request.ID, ans.Result, e.State, e.Attempts, e.Reason)
}

// change is what people and servers do.
func (d *desk) change() {
	key := d.rng.IntN(d.keys)
	switch d.rng.IntN(9) {
	case 0:
		d.away[[]string{"a", "b", "c"}[d.rng.IntN(3)]] = d.now + mono.Time(d.rng.IntN(5000))*mono.Time(time.Millisecond)
	case 2:
		d.dispatcher.Hold(d.now, key, d.now+mono.Time(d.rng.IntN(3000))*mono.Time(time.Millisecond))
	case 3:
		d.dispatcher.Lift(d.now, key)
	case 4:
		d.dispatcher.Ban(key, "by hand")
	case 1, 5, 6:
		for key := range d.keys {
			d.dispatcher.Resume(key)
		}
	case 7:
		if all := d.queue.Waiting(); len(all) > 0 {
			t := all[d.rng.IntN(len(all))]
			if d.rng.IntN(2) == 0 {
				d.say("cancelled: %t", d.queue.Cancel(d.now, t))
			} else {
				d.say("killed: %v", d.queue.Kill(d.now, t, "by hand").State)
			}
		}
	default:
		if dead := d.queue.DeadLetters(); len(dead) > 0 {
			l := dead[d.rng.IntN(len(dead))]
			if d.rng.IntN(3) > 0 {
				d.say("requeued %s, dead at %v: %v", l.Request.ID, l.Died, d.queue.Requeue(d.now, l.Ticket))
			} else {
				d.say("dropped %s, %d attempts, %s: %t", l.Request.ID, l.Attempts, l.Reason, d.queue.Drop(d.now, l.Ticket))
			}
		}
	}
}

// share has a key have other limits with others, one of them perhaps a new one.
func (d *desk) share() {
	key := d.rng.IntN(d.keys)
	var with []*dispatch.Shared
	for _, i := range d.rng.Perm(len(d.shared))[:1+d.rng.IntN(len(d.shared))] {
		with = append(with, d.shared[i])
	}
	if d.rng.IntN(6) == 0 && len(with) < dispatch.MaxShared {
		with = append(with, &dispatch.Shared{Name: "new", Limiter: rolling(5, time.Second)})
		d.shared[d.rng.IntN(len(d.shared))] = with[len(with)-1]
	}
	d.say("%d shares %d: %v", key, len(with), d.dispatcher.Share(d.now, key, with...))
	for _, s := range d.shared {
		d.say("%s: %s", s.Name, uses(s.AppendUsage(nil, d.now)))
	}
}

// next has all go that may, and returns when to ask again.
func (d *desk) next() mono.Time {
	for {
		a, wake, ok := d.dispatcher.Next(d.now)
		if !ok {
			d.say("again at %v", wake)
			return wake
		}
		d.say("%s goes to %s, the %d. time, by %d, nonce %d, submitted %v, fresh %t", a.Request.ID, a.Host(), a.Number, a.Key, a.Nonce, a.Submitted, d.dispatcher.Fresh(&a))
		d.flying = append(d.flying, a)
	}
}

func (d *desk) look() {
	if d.rng.IntN(4) > 0 {
		return
	}
	for i := range d.keys {
		k := d.dispatcher.KeyInfo(d.now, i)
		for _, s := range k.Shared {
			d.say("with %s", s.Name)
		}
		k.Shared = nil // pointers
		at, rule := d.dispatcher.Explain(d.now, i, limit.One)
		d.say("%+v; %v for %s; 5 by %v; %s; %v", k, at, binds(rule), d.dispatcher.Expect(d.now, i, 5, limit.One), uses(d.dispatcher.AppendUsage(nil, d.now, i)), d.dispatcher.Lessons(i))
	}
	d.say("%+v; down %+v", d.dispatcher.Hosts(d.now), d.dispatcher.Down(d.now))
	h, at, stuck := d.dispatcher.Stuck(d.now, 3*time.Second)
	d.say("stuck %t at %v, %v; %v", stuck, at, h, d.dispatcher.Exhausted())
	if t, r, ok := d.queue.Head(d.now); ok {
		info := d.queue.Info(t)
		info.Request = nil
		d.say("first is %s: %+v", r.ID, info)
	}
	wake, any := d.queue.Wake(d.now)
	d.say("%+v, %d to a, wake %v %t", d.queue.Counts(), d.queue.WaitFor("a"), wake, any)
	for _, t := range d.queue.Waiting() {
		i := d.queue.Info(t)
		d.say("%s %v %v %v %d %d %s %s", i.Request.ID, i.Submitted, i.Deadline, i.NotBefore, i.Attempts, i.Returned, i.Reason, i.Host)
	}
}

// deskKind is what a desk has.
type deskKind struct {
	name  string
	queue queue.Config
	keys  func() []dispatch.Key
}

func rolling(n int64, window time.Duration) limit.Limiter { return limit.MustRolling(n, window) }

func bare() []dispatch.Key {
	return []dispatch.Key{{Name: "x", Limiter: rolling(8, 2*time.Second)}, {Name: "y", Limiter: rolling(5, time.Second), InFlight: 3}}
}

var desks = []deskKind{
	{"two keys", queue.Config{}, bare},
	{"retries last", queue.Config{RetriesLast: true, HeadStart: -1, MaxAttempts: 3, KeepDead: 4}, bare},
	{"deadlines anew", queue.Config{OnExpiry: queue.Retry, MaxLen: 12, MaxAttempts: 4, HeadStart: 2 * time.Second, KeepDead: -1}, bare},
	{"nonces", queue.Config{}, func() []dispatch.Key {
		return []dispatch.Key{
			{Name: "x", Limiter: rolling(20, time.Second), Nonce: &dispatch.NonceConfig{}},
			{Name: "y", Limiter: rolling(20, time.Second), Nonce: &dispatch.NonceConfig{Unit: time.Microsecond, After: 5e17}, Gap: 20 * time.Millisecond},
			{Name: "z", Nonce: &dispatch.NonceConfig{}, LearnGap: true},
		}
	}},
	{"slow keys on trial", queue.Config{}, func() []dispatch.Key {
		return []dispatch.Key{{Name: "x", Slow: true, Trial: 2 * time.Second, Pause: 500 * time.Millisecond}, {Name: "y", Slow: true, Late: -1}, {Name: "z", Trial: time.Second, Pause: -1, InFlight: 2, Late: time.Second}}
	}},
	{"one key", queue.Config{}, func() []dispatch.Key { return []dispatch.Key{{Name: "x", Limiter: rolling(12, time.Second)}} }},
}

// moreDesks have keys that learn their limits, share them, or keep a distance.
var moreDesks = append(slices.Clone(desks),
	deskKind{"keys that share", queue.Config{MaxAttempts: 5}, func() []dispatch.Key {
		acme := &dispatch.Shared{Name: "acme", Limiter: rolling(6, time.Second)}
		slow := &dispatch.Shared{Name: "slow", Limiter: rolling(30, 10*time.Second)}
		return []dispatch.Key{{Name: "x", Shared: []*dispatch.Shared{acme}}, {Name: "y", Shared: []*dispatch.Shared{acme, slow}}, {Name: "z", Shared: []*dispatch.Shared{slow}}}
	}},
	deskKind{"limits that may be wrong", queue.Config{RetriesLast: true}, func() []dispatch.Key {
		return []dispatch.Key{{Name: "x", Limiter: limit.NewFitted(limit.MustRolling(9, time.Second))}, {Name: "y", Limiter: limit.NewFitted(limit.MustRolling(90, 10*time.Second)), Trial: time.Second}}
	}},
	deskKind{"distances", queue.Config{HeadStart: time.Second}, func() []dispatch.Key {
		spacing, err := limit.NewSpacing(150 * time.Millisecond)
		if err != nil {
			panic(err)
		}
		return []dispatch.Key{{Name: "x", Limiter: spacing}, {Name: "y", Limiter: rolling(5, time.Second), Pause: time.Second}}
	}},
)

// step is what may come next.
func (d *desk) step() {
	switch k := d.rng.IntN(20); {
	case k < 6:
		d.submit()
	case k < 14:
		d.answer()
	case k < 15:
		d.change()
	default:
		d.now += mono.Time(d.rng.IntN(1<<d.rng.IntN(11))) * mono.Time(time.Millisecond)
	}
	if len(d.shared) > 0 && d.rng.IntN(15) == 0 {
		d.share()
	}
	if wake := d.next(); wake < limit.AfterSettle && d.rng.IntN(4) == 0 {
		d.now = max(d.now, wake)
		d.next()
	}
	d.look()
}

// summary is of what was said since the last one.
func (d *desk) summary(t *testing.T) string {
	defer d.said.Reset()
	n := d.queue.Counts()
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("at %v: %d came, %d wait, %d in flight, %d done, %d expired, %d dead; all it says: %s", d.now, n.Submitted, n.Waiting, n.InFlight, n.Done, n.Expired, n.Dead,
		golden.Sum(d.said.String()))
}

// Whatever becomes of keys, hosts and requests, a Dispatcher and its queue say and do as before.
func TestWhatADispatcherSays(t *testing.T) {
	var b strings.Builder
	for _, c := range desks {
		for seed := range uint64(2) {
			fmt.Fprintf(&b, "\n%s, %d\n", c.name, seed)
			d := newDesk(seed, c.queue, c.keys)
			for step := 1; step <= 400; step++ {
				d.step()
				if step%40 == 0 {
					fmt.Fprintf(&b, "  %s\n", d.summary(t))
				}
			}
		}
	}
	golden.CompareFloats(t, "told.golden", b.String())
}

// The same of others, a line for all that is said.
func TestWhatMoreDispatchersSay(t *testing.T) {
	var b strings.Builder
	for _, c := range moreDesks {
		fmt.Fprintf(&b, "\n%s\n", c.name)
		for seed := range uint64(2) {
			d := newDesk(100+seed, c.queue, c.keys)
			for range 200 {
				d.step()
			}
			fmt.Fprintf(&b, "  %s\n", d.summary(t))
		}
	}
	golden.CompareFloats(t, "more.golden", b.String())
}

// If all go with one key that keeps a distance, the last of three goes after two distances.
func TestExpectCountsThoseBefore(t *testing.T) {
	spacing, err := limit.NewSpacing(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: spacing})
	for n := 1; n < 4; n++ {
		want := at(time.Second + time.Duration(n-1)*100*time.Millisecond)
		if goes := r.Expect(at(time.Second), 0, n, limit.One); goes != want {
			t.Errorf("the last of %d is expected to go at %v, want %v", n, goes, want)
		}
	}
}

// binds writes the rule that something waits for.
func binds(r limit.Rule) string { return fmt.Sprint(r.Name, ", ", r.Most(), " ", r.Unit) }

// uses writes how much is used of each limit.
func uses(all []limit.Usage) string {
	var b strings.Builder
	for _, u := range all {
		fmt.Fprint(&b, u.Limit, ": ", u.Used, " of ", u.Allowed, " ", u.Unit, ", ", u.Open, " open, ", u.PerWindow, " per ", u.Window,
			", ", u.Total, " in all, ", u.Recent, " lately, ", u.Fits, " fit; ")
	}
	return b.String()
}
