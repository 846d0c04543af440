package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// perMinute allows so many requests of a resource in any minute, each resource by itself.
func perMinute(n int64) func(string) limit.Limiter {
	return func(string) limit.Limiter {
		l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Margin: -1})
		if err != nil {
			panic(err)
		}
		return l
	}
}

func (r *rig) submitTo(now time.Duration, resource string, ids ...string) {
	r.Helper()
	for _, id := range ids {
		if _, err := r.queue.Submit(at(now), queue.Request{ID: id, Resource: resource}); err != nil {
			r.Fatal(err)
		}
	}
}

// A request whose resource has no room holds up no others, and those of its resource keep their order.
func TestAResourceWaitsAlone(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(5), Resource: perMinute(1)})
	r.submitTo(0, "search", "s1", "s2", "s3")
	r.submit(0, "a", "b")
	r.submitTo(0, "books", "k1", "k2")
	open := r.sends(0, limit.AfterSettle, "s1/1 on 0", "a/1 on 0", "b/1 on 0", "k1/1 on 0")
	r.submitTo(0, "search", "s0")
	for _, a := range open {
		r.done(0, a, accepted)
	}
	r.submit(ms, "c", "d")
	for _, a := range r.sends(ms, at(time.Second), "c/1 on 0") { // the fifth of a second
		r.done(ms, a, accepted)
	}
	for _, a := range r.sends(time.Minute, limit.AfterSettle, "s2/1 on 0", "k2/1 on 0", "d/1 on 0") {
		r.done(time.Minute, a, accepted)
	}
	r.sends(2*time.Minute, limit.AfterSettle, "s3/1 on 0")
}

// What an answer says of a resource is that resource's. A refusal there leaves the key in use, and what
// is left there is no remainder of the key.
func TestAnswersOfAResource(t *testing.T) {
	spent := limit.Outcome{Result: limit.Accepted, Known: 1, Reset: [len(limit.Cost{})]time.Duration{time.Minute}}
	for name, resource := range map[string]limit.Outcome{
		"refused": {Result: limit.Limited, RetryAfter: time.Minute}, "spent": spent,
	} {
		r := newRig(t, queue.Config{}, dispatch.Key{})
		r.submitTo(0, "search", "s1", "s2")
		r.submit(0, "a", "b")
		open := r.sends(0, limit.AfterSettle, "s1/1 on 0", "s2/1 on 0", "a/1 on 0", "b/1 on 0")
		key := limit.Outcome{Result: resource.Result, Elsewhere: resource.Result == limit.Limited}
		r.done(ms, open[0], dispatch.Answer{Outcome: key, Resource: &resource})
		if info := r.KeyInfo(at(ms), 0); info.State != dispatch.OK || info.Refusals != 0 {
			t.Errorf("%s: the key is %v, with %d refusals", name, info.State, info.Refusals)
		}
		r.submitTo(ms, "search", "s3")
		r.submit(ms, "c")
		if a, _, ok := r.Next(at(ms)); !ok || a.Request.ID != "c" {
			t.Errorf("%s: %q goes, %v, want c", name, a.Request.ID, ok)
		}
		if a, _, ok := r.Next(at(ms)); ok {
			t.Errorf("%s: %q goes", name, a.Request.ID)
		}
		if at, _ := r.ExplainRequest(at(ms), 0, &queue.Request{Resource: "search", Cost: limit.One}); at < mono.Time(time.Minute) {
			t.Errorf("%s: a search may go at %v, want in a minute", name, at)
		}
		for _, a := range open[1:] {
			r.done(2*ms, a, accepted)
		}
		if a, _, ok := r.Next(at(time.Minute + 3*time.Second)); !ok || a.Request.Resource != "search" {
			t.Errorf("%s: after a minute %q goes, %v", name, a.Request.ID, ok)
		}
	}
}

// The limits of the usual resource, as Shared, hold for its requests alone.
func TestTheUsualResourceIsApart(t *testing.T) {
	for apart, want := range map[bool][]string{true: {"a/1 on 0", "s1/1 on 0", "s2/1 on 0"}, false: {"a/1 on 0"}} {
		core := &dispatch.Shared{Limiter: limit.MustRolling(1, time.Minute)}
		r := newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{core}, Apart: apart, Resource: perMinute(2)})
		r.submit(0, "a", "b")
		r.submitTo(0, "search", "s1", "s2", "s3")
		var got []string
		for {
			a, _, ok := r.Next(at(0))
			if !ok {
				break
			}
			got = append(got, fmt.Sprintf("%s/%d on %d", a.Request.ID, a.Number, a.Key))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("apart %v: %q go, want %q", apart, got, want)
		}
	}
}

// Keys that share limits share those of a resource, too: what counts there, a refusal, and what is left. A key
// that moves takes its requests in flight to the limits of its new owner.
func TestAResourceIsShared(t *testing.T) {
	acme, other := &dispatch.Shared{Name: "acme", Resource: perMinute(2)}, &dispatch.Shared{Name: "other", Resource: perMinute(2)}
	for _, apart := range []bool{false, true} {
		acme, other := *acme, *other
		r := newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{&acme}, Apart: apart},
			dispatch.Key{Shared: []*dispatch.Shared{&acme}, Apart: apart})
		r.submitTo(0, "search", "1", "2", "3", "4", "5", "6")
		open := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1")
		if err := r.Share(at(ms), 1, &other); err != nil {
			t.Fatal(err)
		}
		open = append(open, r.sends(ms, limit.AfterSettle, "3/1 on 1")...)
		for _, a := range open {
			r.done(2*ms, a, accepted)
		}
		r.submit(3*ms, "a", "b")
		open = r.sends(3*ms, at(2*ms+time.Minute), "4/1 on 0", "a/1 on 0", "b/1 on 1") // key 1 has left room with its first
		if err := r.Share(at(4*ms), 1, &acme); err != nil {
			t.Fatal(err)
		}
		if at, b := r.ExplainRequest(at(4*ms), 1, &queue.Request{Resource: "search", Cost: limit.One}); at <= mono.Time(time.Second) {
			t.Errorf("apart %v: back with two searches of acme, key 1 waits for %q until %v", apart, b.Name, at)
		}
		refused := limit.Outcome{Result: limit.Limited, RetryAfter: time.Hour}
		r.done(5*ms, open[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, Elsewhere: true}, Resource: &refused})
		r.submit(6*ms, "c", "d")
		r.sends(6*ms, at(1005*ms), "c/1 on 0", "d/1 on 1")
		if wait, _ := r.ExplainRequest(at(6*ms), 1, &queue.Request{Resource: "search", Cost: limit.One}); wait < at(time.Hour) {
			t.Errorf("apart %v: after a refusal of key 0, key 1 may search at %v", apart, wait)
		}
	}
	many := make([]*dispatch.Shared, dispatch.MaxShared/2+1)
	for i := range many {
		many[i] = &dispatch.Shared{Resource: perMinute(1)}
	}
	r := newRig(t, queue.Config{}, dispatch.Key{Shared: many[1:]})
	r.submitTo(0, "search", "1")
	r.sends(0, limit.AfterSettle, "1/1 on 0") // the widest way
	if err := r.Share(0, 0, many...); err == nil || err.Error() != "dispatch: key : 6 Shared, expected at most 5" {
		t.Error(err)
	}
}

// More resources than are kept at once all get their turn, and memory is bounded.
func TestTooManyResources(t *testing.T) {
	const n = 400
	r := newRig(t, queue.Config{}, dispatch.Key{Resource: func(string) limit.Limiter { return limit.MustRolling(1, time.Second) }})
	for i := range n {
		r.submitTo(0, fmt.Sprint("book ", i), fmt.Sprint(i))
	}
	sent, now := 0, time.Duration(0)
	for sent < n && now < time.Hour {
		a, wake, ok := r.Next(at(now))
		if r.Parts() > 256 {
			t.Fatalf("%d resources are kept", r.Parts())
		}
		if !ok {
			if now = time.Duration(wake); wake >= limit.AfterSettle {
				t.Fatalf("%d are sent, and none goes ever", sent)
			}
			continue
		}
		sent++
		r.done(now, a, accepted)
	}
	if sent != n || now > 3*time.Second {
		t.Errorf("%d of %d are sent, the last at %v", sent, n, now)
	}
}

// timed is a request with all that happens to it.
type timed struct {
	id, resource string
	at, takes    time.Duration
	cost         int64
}

// play drives a Dispatcher through requests, and returns when each was sent, and with which key.
func play(t *testing.T, seed uint64, keys []dispatch.Key, all []timed) map[string]string {
	r := newRig(t, queue.Config{}, keys...)
	sent := map[string]string{}
	type flying struct {
		dispatch.Attempt
		ends time.Duration
	}
	var open []flying
	now := time.Duration(0)
	takes := map[string]time.Duration{}
	for rest := all; ; {
		for len(rest) > 0 && rest[0].at <= now {
			q := rest[0]
			rest = rest[1:]
			takes[q.id] = q.takes
			if _, err := r.queue.Submit(at(now), queue.Request{ID: q.id, Resource: q.resource, Cost: limit.Cost{limit.Requests: q.cost}}); err != nil {
				t.Fatal(err)
			}
		}
		open = slices.DeleteFunc(open, func(f flying) bool {
			if f.ends > now {
				return false
			}
			r.done(now, f.Attempt, accepted)
			return true
		})
		wake := mono.Time(0)
		for {
			var a dispatch.Attempt
			var ok bool
			if a, wake, ok = r.Next(at(now)); !ok {
				break
			}
			sent[a.Request.ID] = fmt.Sprintf("%v on %d", now, a.Key)
			open = append(open, flying{a, now + takes[a.Request.ID]})
		}
		next := wake
		for _, f := range open {
			next = min(next, at(f.ends))
		}
		if len(rest) > 0 {
			next = min(next, at(rest[0].at))
		}
		if next >= limit.AfterSettle {
			break
		}
		now = max(time.Duration(next), now+1)
	}
	if len(sent) != len(all) {
		t.Fatalf("seed %d: %d of %d are sent: %+v", seed, len(sent), len(all), r.queue.Counts())
	}
	return sent
}

// parts plays random requests of several resources, each of which has limits of its own for each key.
func parts(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	var all []timed
	clock := time.Duration(0)
	for i := range 100 {
		clock += time.Duration(rng.IntN(3)/2*rng.IntN(500)) * ms
		all = append(all, timed{id: fmt.Sprint(i), resource: []string{"", "search", "books"}[rng.IntN(3)], at: clock,
			takes: time.Duration(rng.IntN(400)) * ms, cost: 1 + rng.Int64N(2)})
	}
	n := 1 + rng.IntN(3)
	most := make([]int64, n)
	for i := range most {
		most[i] = 2 + rng.Int64N(4)
	}
	keys := func(of string, both bool) (keys []dispatch.Key) {
		for i := range n {
			k := dispatch.Key{Resource: func(string) limit.Limiter { return perSecond(most[i]) }}
			if both {
				k.Limiter = perSecond(most[i] + 1)
			} else {
				k.Shared, k.Apart = []*dispatch.Shared{{Limiter: perSecond(most[i])}}, true
			}
			keys = append(keys, k)
		}
		return keys
	}
	m := n
	n = 1 // which of several keys goes depends on when they were asked
	together := play(t, seed, keys("", false), all)
	for _, of := range []string{"", "search", "books"} {
		only := slices.DeleteFunc(slices.Clone(all), func(q timed) bool { return q.resource != of })
		for id, want := range play(t, seed, keys(of, false), only) {
			if together[id] != want {
				t.Fatalf("seed %d, %d keys: %s of %q is sent at %s, and without other resources at %s", seed, n, id, of, together[id], want)
			}
		}
	}
	n = m
	// With a limit of the key as well, no limit is exceeded, and each resource keeps its order.
	sent := play(t, seed, keys("", true), all)
	arrivals, latest := map[string][]limittest.Arrival{}, map[string]time.Duration{}
	for _, q := range all {
		var when time.Duration
		at, key := "", 0
		if _, err := fmt.Sscanf(sent[q.id], "%s on %d", &at, &key); err != nil {
			t.Fatal(err)
		}
		when, _ = time.ParseDuration(at)
		if when < latest[q.resource] {
			t.Fatalf("seed %d: %s of %q is sent at %v, after a later one", seed, q.id, q.resource, when)
		}
		latest[q.resource] = when
		for _, of := range []string{fmt.Sprint("key ", key), fmt.Sprint("key ", key, " ", q.resource)} {
			arrivals[of] = append(arrivals[of], limittest.Arrival{At: mono.Time(when), Cost: limit.Cost{limit.Requests: q.cost}})
		}
	}
	for of, all := range arrivals {
		slices.SortFunc(all, func(a, b limittest.Arrival) int { return int(a.At - b.At) })
		var key int
		var resource string
		fmt.Sscanf(of, "key %d %s", &key, &resource)
		allows := most[key] + 1
		if resource != "" {
			allows = most[key]
		}
		if err := limittest.Rolling(allows, time.Second, limit.Requests)(all); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, of, err)
		}
	}
}

// Resources with limits of their own do as if each had all keys for itself.
func TestResourcesAreApart(t *testing.T) {
	for seed := range uint64(150) {
		parts(t, seed)
	}
}

func FuzzResourcesAreApart(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { parts(t, seed) })
}

// A refusal of the usual resource keeps no other away, and its request waits for that alone.
func TestTheUsualResourceIsRefused(t *testing.T) {
	core := &dispatch.Shared{}
	r := newRig(t, queue.Config{}, dispatch.Key{Shared: []*dispatch.Shared{core}, Apart: true})
	r.submit(0, "a", "b")
	r.submitTo(0, "search", "s1", "s2")
	open := r.sends(0, at(3*time.Second), "a/1 on 0", "b/1 on 0", "s1/1 on 0") // s2 waits for what the first answer states
	refused := limit.Outcome{Result: limit.Limited, RetryAfter: time.Minute}
	r.done(ms, open[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, Elsewhere: true}, Resource: &refused})
	for _, a := range open[1:] {
		r.done(ms, a, accepted)
	}
	r.submitTo(ms, "search", "s3")
	r.submit(ms, "c")
	for _, want := range []string{"s2", "s3"} {
		if a, _, ok := r.Next(at(ms)); !ok || a.Request.ID != want {
			t.Errorf("%q goes, %v, want %s", a.Request.ID, ok, want)
		}
	}
	if a, _, ok := r.Next(at(30 * time.Second)); ok {
		t.Errorf("%q goes", a.Request.ID)
	}
	if a, _, ok := r.Next(at(time.Minute + ms)); !ok || a.Request.Resource != "" {
		t.Errorf("%q goes after a minute, %v", a.Request.ID, ok)
	}
}

// goes is the id of the request that goes now; empty: none.
func (r *rig) goes(now time.Duration) string {
	a, _, ok := r.Next(at(now))
	if !ok {
		return ""
	}
	return a.Request.ID
}

// A request that is cancelled leaves its place in the line, and the room that it just got, to others.
func TestACancelledHeadLeavesTheLine(t *testing.T) {
	for n, sent := range []string{"", "b"} { // cancelled before, or after, the line has let both go
		r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(2)})
		r.submit(0, "x", "y")
		for range 2 {
			a, _, _ := r.Next(at(0))
			r.done(0, a, accepted)
		}
		r.submit(ms, "b", "c")
		r.submitTo(2*ms, "search", "s1", "s2")
		if id := r.goes(3 * ms); id != "" {
			t.Fatalf("%q goes", id)
		}
		if sent != "" {
			if id := r.goes(2 * time.Second); id != sent {
				t.Fatalf("%q goes, want %q", id, sent)
			}
		}
		for _, ticket := range r.queue.Waiting() {
			if resource := r.queue.Info(ticket).Request.Resource; resource == "" == (n == 0) {
				r.queue.Cancel(at(2*time.Second), ticket)
			}
		}
		want := []string{"s1", "s2"}
		if n == 1 {
			want = []string{"c", ""}
		}
		if got := []string{r.goes(2 * time.Second), r.goes(2 * time.Second)}; !slices.Equal(got, want) {
			t.Errorf("%d: %q go, want %q", n, got, want)
		}
	}
}

// An urgent request of one resource goes before earlier ones of another.
func TestPriorityAmongResources(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(1)})
	r.submit(0, "x")
	a, _, _ := r.Next(at(0))
	r.done(0, a, accepted)
	r.submit(ms, "a")
	r.submitTo(2*ms, "search", "s1")
	r.goes(3 * ms)
	if _, err := r.queue.Submit(at(4*ms), queue.Request{ID: "s0", Resource: "search", Priority: 1}); err != nil {
		t.Fatal(err)
	}
	r.goes(5 * ms)
	if id := r.goes(time.Second + ms); id != "s0" {
		t.Errorf("%q goes, want s0", id)
	}
}

// Refusals by a resource are no attempts from the second in a row on, and their request comes back when
// the resource lets it, whatever pause the usual resource has.
func TestRefusalsByAResource(t *testing.T) {
	for _, resource := range []string{"", "search"} {
		r := newRig(t, queue.Config{MaxAttempts: 2}, dispatch.Key{Shared: []*dispatch.Shared{{}}, Apart: true})
		refuse := func(now time.Duration, a dispatch.Attempt, stay time.Duration) {
			r.done(now, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, Elsewhere: true},
				Resource: &limit.Outcome{Result: limit.Limited, RetryAfter: stay}})
		}
		if resource != "" {
			r.submit(0, "usual")
			a, _, _ := r.Next(at(0))
			refuse(0, a, time.Hour)
		}
		r.submitTo(0, resource, "x")
		now, n := time.Duration(0), 0
		for ; n < 4 && now < 5*time.Minute; now += 100 * ms {
			if a, _, ok := r.Next(at(now)); ok {
				n++
				refuse(now, a, time.Second)
			}
		}
		if n != 4 || len(r.ended) > 0 {
			t.Errorf("%q: %d attempts until %v, ended %q", resource, n, now, r.ended)
		}
	}
}

// A refusal that says nothing of the resource is the key's alone.
func TestARefusalOfTheKey(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Pause: time.Minute})
	r.submitTo(0, "search", "s1", "s2")
	a, _, _ := r.Next(at(0))
	r.Next(at(0))
	r.done(ms, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 5 * time.Second}})
	if ready, b := r.ExplainRequest(at(6*time.Second), 0, &queue.Request{Resource: "search", Cost: limit.One}); ready > at(6*time.Second) {
		t.Errorf("after the key's pause a search waits until %v, for %v", ready, b)
	}
}

// Beside another resource, too, a request is looked at when it can no longer be answered in time.
func TestDeadlinesOfResources(t *testing.T) {
	q, err := queue.New(queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.New(dispatch.Config{Queue: q, AnswerTime: 100 * ms, Keys: []dispatch.Key{{Limiter: limit.MustRolling(1, time.Hour)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []queue.Request{{}, {}, {Resource: "search", TTL: time.Second}} {
		if _, err := q.Submit(0, r); err != nil {
			t.Fatal(err)
		}
	}
	a, _, _ := d.Next(0)
	d.Done(0, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}})
	if _, wake, ok := d.Next(0); ok || wake != at(900*ms) {
		t.Errorf("wake %v, %v, want 900ms", wake, ok)
	}
}
