package dispatch_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// The shared limit of two keys is used once, by whichever of them is in use.
func TestKeysThatShare(t *testing.T) {
	s := &dispatch.Shared{Name: "acme", Limiter: perSecond(4)}
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a", Shared: []*dispatch.Shared{s}}, dispatch.Key{Name: "b", Shared: []*dispatch.Shared{s}})
	r.submit(0, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12")
	all := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 0", "4/1 on 1")
	for _, a := range all {
		r.done(10*ms, a, accepted)
	}
	if wait, b := r.Explain(at(10*ms), 1, limit.One); wait != at(1010*ms) || b.Name != "requests" {
		t.Errorf("key b waits for %q until %v", b.Name, wait)
	}
	if goes := r.Expect(at(10*ms), 0, 8, limit.One); goes <= at(1010*ms) {
		t.Errorf("8 more are expected to have gone at %v, in the window of the first 4", goes)
	}
	if own, all := r.AppendUsage(nil, at(10*ms), 0), s.AppendUsage(nil, at(10*ms)); len(own) != 0 || len(all) != 1 || all[0].Used != 4 {
		t.Errorf("used are %+v by key a itself, and %+v together", own, all)
	}
	r.Ban(0, "403")
	r.sends(1010*ms, limit.AfterSettle, "5/1 on 1", "6/1 on 1", "7/1 on 1", "8/1 on 1")
}

// A refusal is of all who share the limit, and so is what is left; a pause of one key is not.
func TestWhatAnAnswerSaysToThoseWhoShare(t *testing.T) {
	rig := func() *rig {
		s := &dispatch.Shared{Limiter: perSecond(100)}
		r := newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{s}}, dispatch.Key{Shared: []*dispatch.Shared{s}}, dispatch.Key{Limiter: perSecond(1)})
		r.submit(0, "1", "2", "3", "4", "5", "6", "7", "8")
		return r
	}
	r := rig()
	a, _, _ := r.Next(0)
	r.done(0, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 5 * time.Second}})
	for i, want := range []dispatch.KeyState{dispatch.Cooling, dispatch.Cooling, dispatch.OK} {
		if k := r.KeyInfo(at(ms), i); k.State != want || want == dispatch.Cooling && (k.Until != at(5*time.Second) || k.Next != at(5*time.Second)) {
			t.Errorf("after a refusal of key 0, key %d: %+v", i, k)
		}
	}
	r.Lift(at(ms), 1)
	r.Lift(at(ms), 0)
	for i := range 3 {
		if k := r.KeyInfo(at(2*ms), i); k.State != dispatch.OK {
			t.Errorf("lifted, key %d: %+v", i, k)
		}
	}
	r = rig()
	a, _, _ = r.Next(0)
	r.done(0, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Reset: resets(5 * time.Second).Reset}})
	for i, want := range []mono.Time{at(5 * time.Second), at(5 * time.Second), at(ms)} {
		if wait, b := r.Explain(at(ms), i, limit.One); wait < want || wait > want+at(time.Second) {
			t.Errorf("with nothing left for key 0, key %d waits for %q until %v", i, b.Name, wait)
		}
	}
	r.Lift(at(ms), 1) // whoever lifts it knows better, for all who share it
	if wait, b := r.Explain(at(ms), 0, limit.One); wait > at(ms) {
		t.Errorf("what is left was lifted, and key 0 waits for %q until %v", b.Name, wait)
	}
	r = rig()
	r.Hold(0, 0, at(time.Hour))
	for range 7 {
		if a, _, ok := r.Next(0); !ok || a.Key == 0 {
			t.Fatalf("key 0 is held, and a request went: %v, on %d", ok, a.Key)
		}
	}
}

// A reset that only says when a bucket is full again, which strangers share too, pauses no key. The
// bucket may be its own or shared with others.
func TestRefills(t *testing.T) {
	fair := func() limit.Limiter {
		l, err := fairshare.NewFair(fairshare.FairConfig{Limit: 4500, Window: time.Hour, Rng: rand.New(rand.NewPCG(1, 2))})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s := &dispatch.Shared{Limiter: fair()}
	for i, k := range []dispatch.Key{{Limiter: fair()}, {Shared: []*dispatch.Shared{s}}} {
		r := newRig(t, queue.Config{}, k)
		r.submit(0, "1", "2")
		a, _, _ := r.Next(0)
		ans := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Hour, Known: 1 << limit.Requests, Reset: resets(time.Hour).Reset}}
		if units := r.Refills(0, &ans); units != 1<<limit.Requests {
			t.Errorf("key %d: these refill: %b", i, units)
		}
		r.done(60*ms, a, ans)
		if k := r.KeyInfo(at(60*ms), 0); k.Until > at(time.Minute) {
			t.Errorf("key %d is away: %+v", i, k)
		}
		if wait, b := r.Explain(at(60*ms), 0, limit.One); wait > at(time.Minute) {
			t.Errorf("key %d waits for %q until %v", i, b.Name, wait)
		}
	}
}

// A key that proves to have its own limits takes its requests in flight there. The others get that
// usage back with the answers.
func TestKeyIsMoved(t *testing.T) {
	first, second := &dispatch.Shared{Limiter: perSecond(4)}, &dispatch.Shared{Limiter: perSecond(3)}
	r := newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{first}}, dispatch.Key{Shared: []*dispatch.Shared{first}})
	r.submit(0, "1", "2", "3", "4", "5", "6", "7", "8", "9")
	all := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 0", "4/1 on 1")
	if err := r.Share(at(ms), 1, second); err != nil {
		t.Fatal(err)
	}
	all = append(all, r.sends(ms, limit.AfterSettle, "5/1 on 1")...)
	// That nothing is left is said of the second; of the first, two of four were sent.
	r.done(2*ms, all[1], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Reset: resets(time.Minute).Reset}})
	r.done(2*ms, all[3], accepted)
	r.sends(2*ms, limit.AfterSettle, "6/1 on 0", "7/1 on 0")
	for i, want := range []int64{4, 3} {
		if u := []*dispatch.Shared{first, second}[i].AppendUsage(nil, at(2*ms)); u[0].Used != want {
			t.Errorf("of limit %d %d are used, want %d", i, u[0].Used, want)
		}
	}
}

// A key that is moved to and fro counts its requests in flight once in each of those limits. With
// their answers they count where the key was last.
func TestKeyIsMovedToAndFro(t *testing.T) {
	here, there := &dispatch.Shared{Limiter: perSecond(5)}, &dispatch.Shared{Limiter: perSecond(5)}
	r := newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{here}})
	r.submit(0, "1", "2")
	all := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 0")
	used := func(when string, want ...int64) {
		t.Helper()
		for i, n := range want {
			if u := []*dispatch.Shared{here, there}[i].AppendUsage(nil, at(ms)); u[0].Used != n {
				t.Errorf("%s: of limit %d %d are used, want %d", when, i, u[0].Used, n)
			}
		}
	}
	for range 2 {
		for _, s := range []*dispatch.Shared{there, here} {
			if err := r.Share(at(ms), 0, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	used("moved", 2, 2)
	for _, a := range all {
		r.done(ms, a, accepted)
	}
	used("answered", 2, 0)
}

func TestBadShared(t *testing.T) {
	s, other := &dispatch.Shared{Name: "s", Limiter: perSecond(1)}, &dispatch.Shared{Name: "other"}
	newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{other}})
	own, fresh := perSecond(1), perSecond(1)
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a", Shared: []*dispatch.Shared{s}}, dispatch.Key{Name: "b", Limiter: own})
	many := make([]*dispatch.Shared, dispatch.MaxShared+1)
	for i := range many {
		many[i] = new(dispatch.Shared)
	}
	for want, with := range map[string][]*dispatch.Shared{
		`dispatch: key a: Share without limits`:                                   nil,
		`dispatch: key a: 12 Shared, expected at most 11`:                         many,
		`dispatch: key a: limits Shared[1] is nil`:                                {s, nil},
		`dispatch: key a: limits Shared[1] "s" is there twice`:                    {s, s},
		`dispatch: key a: limits Shared[0] "other" belongs to another Dispatcher`: {other},
		`dispatch: key a: limits Shared[0] "x": Limiter is that of Keys[1] "b"`:   {{Name: "x", Limiter: own}},
		`dispatch: key a: limits Shared[0] "x": Limiter is that of Keys[0] "a"`:   {{Name: "x", Limiter: s.Limiter}},
		`dispatch: key a: limits Shared[1] "y": Limiter is that of Shared[0] "x"`: {{Name: "x", Limiter: fresh}, {Name: "y", Limiter: fresh}},
	} {
		if err := r.Share(0, 0, with...); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := r.Share(0, 1, s); err == nil || err.Error() != "dispatch: key b: both Limiter and Shared: the limits of a key are its own, or shared" {
		t.Error(err)
	}
	q, _ := queue.New(queue.Config{})
	if _, err := dispatch.New(dispatch.Config{Queue: q, Keys: []dispatch.Key{{Name: "k", Limiter: perSecond(1), Shared: []*dispatch.Shared{{}}}}}); err == nil || !strings.HasPrefix(err.Error(), `dispatch: Keys[0] "k": both Limiter and Shared`) {
		t.Error(err)
	}
}

// world is keys whose organizations are unknown at first.
type world struct {
	*testing.T
	*dispatch.Dispatcher
	queue    *queue.Queue
	rng      *rand.Rand
	now      mono.Time
	whose    []int // of each key, its organization
	shared   []*dispatch.Shared
	known    []bool         // of each key
	past     [][]limit.Past // of each key, what was answered before it was known
	open     []dispatch.Attempt
	arrivals [][]limittest.Arrival
}

func resets(in time.Duration) (r limit.Outcome) {
	r.Reset[limit.Requests] = in
	return r
}

const ofEach = 4 // per second

// tell makes a key count with its owner, as an answer says, and unknown keys where they may belong.
func (w *world) tell(key int) {
	if w.known[key] {
		return
	}
	w.known[key] = true
	org := w.whose[key]
	if w.shared[org] == nil {
		l := perSecond(ofEach)
		var all []limit.Past // of whoever may be of this organization
		for i, known := range w.known {
			if i == key || !known {
				all = append(all, w.past[i]...)
			}
		}
		slices.SortFunc(all, func(a, b limit.Past) int { return cmp.Compare(a.At, b.At) })
		limit.Replay(l, w.now, mono.Min, all)
		w.shared[org] = &dispatch.Shared{Limiter: l}
	}
	for i, known := range w.known {
		var with []*dispatch.Shared
		switch {
		case i == key:
			with = []*dispatch.Shared{w.shared[org]}
		case !known:
			for _, s := range w.shared {
				if s != nil {
					with = append(with, s)
				}
			}
		default:
			continue
		}
		if err := w.Share(w.now, i, with...); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(3)/2*w.rng.IntN(300)) * ms)
	switch {
	case w.rng.IntN(2) == 0:
		if _, err := w.queue.Submit(w.now, queue.Request{Cost: limit.Cost{limit.Requests: int64(1 + w.rng.IntN(3))}}); err != nil {
			w.Fatal(err)
		}
	case len(w.open) > 0:
		j := w.rng.IntN(len(w.open))
		a := w.open[j]
		w.open = append(w.open[:j], w.open[j+1:]...)
		ans := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Result(w.rng.IntN(5))}}
		if ans.Result != limit.Unsent {
			org := w.whose[a.Key]
			w.arrivals[org] = append(w.arrivals[org], limittest.Arrival{At: w.now, Cost: a.Request.Cost}) // as late as can be
		}
		switch {
		case ans.Result == limit.Accepted:
			w.tell(a.Key)
		case ans.Result != limit.Unsent && !w.known[a.Key]:
			w.past[a.Key] = append(w.past[a.Key], limit.Past{At: w.now, Cost: a.Request.Cost, Result: ans.Result})
		}
		w.Done(w.now, a, ans)
	}
	for {
		a, wake, ok := w.Next(w.now)
		if !ok {
			if wake <= w.now {
				w.Fatalf("at %v: nothing to send, but wake %v", w.now, wake)
			}
			return
		}
		w.open = append(w.open, a)
	}
}

func runWorld(t *testing.T, seed uint64, keys, orgs int) {
	t.Helper()
	w := &world{T: t, rng: rand.New(rand.NewPCG(seed, 0)), known: make([]bool, keys), past: make([][]limit.Past, keys), shared: make([]*dispatch.Shared, orgs), arrivals: make([][]limittest.Arrival, orgs)}
	for range keys {
		w.whose = append(w.whose, w.rng.IntN(orgs))
	}
	w.shared[w.whose[0]] = &dispatch.Shared{Limiter: perSecond(ofEach)}
	all := make([]dispatch.Key, keys)
	for i := range all {
		all[i].Shared = []*dispatch.Shared{w.shared[w.whose[0]]}
	}
	w.known[0] = true
	var err error
	if w.queue, err = queue.New(queue.Config{MaxAttempts: 3}); err != nil {
		t.Fatal(err)
	}
	if w.Dispatcher, err = dispatch.New(dispatch.Config{Queue: w.queue, Keys: all, Backoff: backoff.Policy{Jitter: -1}}); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		w.step()
	}
	for org, all := range w.arrivals {
		if err := limittest.Rolling(ofEach, time.Second-1, limit.Requests)(all); err != nil {
			t.Fatalf("%d keys of %v, seed %d: organization %d: %v", keys, w.whose, seed, org, err)
		}
	}
}

// Keys begin together, and their answers show their owners. No organization ever gets more than it
// allows. It does not matter which requests are in flight then, or were answered before.
func TestOrganizationsGetWhatTheyAllow(t *testing.T) {
	for seed := range uint64(200) {
		runWorld(t, seed, 2+int(seed%5), 1+int(seed%3))
	}
}

func FuzzOrganizations(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, keys, orgs uint8) {
		runWorld(t, seed, 1+int(keys%12), 1+int(orgs)%dispatch.MaxShared)
	})
}
