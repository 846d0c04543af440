package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A pause can be looked at and lifted; after an hour of one that is longer a request finds out whether it still holds.
func TestLongPause(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"})
	r.submit(0, "1", "2", "3")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 0", "3/1 on 0")
	tenYears := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 87600 * time.Hour}}
	r.done(0, as[0], tenYears)
	r.done(0, as[1], tenYears)
	r.done(0, as[2], accepted)
	if info := r.KeyInfo(0, 0); info.State != dispatch.Cooling || info.Until != at(87600*time.Hour) || info.Next != at(time.Hour) {
		t.Errorf("%+v", info)
	}
	r.sends(time.Minute, at(time.Hour))
	probe := r.sends(time.Hour, at(87600*time.Hour), "1/2 on 0")[0]
	r.done(time.Hour, probe, tenYears)
	r.sends(time.Hour, at(time.Hour+2*time.Second)) // for the one that backs off
	r.sends(time.Hour+2*time.Second, at(3*time.Hour))
	r.Lift(at(2*time.Hour), 0)
	if info := r.KeyInfo(at(2*time.Hour), 0); info.State != dispatch.OK {
		t.Errorf("%+v", info)
	}
	again := r.sends(2*time.Hour, limit.AfterSettle, "1/3 on 0", "2/2 on 0")
	r.done(2*time.Hour, again[0], tenYears)
	probe = r.sends(3*time.Hour, limit.AfterSettle, "1/4 on 0")[0]
	r.done(3*time.Hour, probe, accepted) // it no longer holds
	if info := r.KeyInfo(at(3*time.Hour), 0); info.State != dispatch.OK {
		t.Errorf("%+v", info)
	}
}

// A key that its user stopped sends nothing until then, and others go on. A request does not end for it.
func TestRest(t *testing.T) {
	slow := dispatch.Key{Name: "b", Limiter: limit.MustRolling(1, time.Minute)}
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, slow)
	r.Rest(at(0), 0, limit.Never)
	r.submit(0, "1", "2")
	r.sends(0, limit.AfterSettle, "1/1 on 1")
	if info := r.KeyInfo(0, 0); !info.Rests || info.State != dispatch.Cooling || info.Until != limit.AfterSettle {
		t.Errorf("%+v", info)
	}
	r.Rest(at(time.Second), 0, at(10*time.Second))
	r.sends(time.Second, at(10*time.Second))
	if at, rule := r.Explain(at(time.Second), 0, limit.One); at != mono.Time(10*time.Second) || rule.Name != "rest" {
		t.Errorf("%v waits for %v", at, rule)
	}
	r.Rest(at(2*time.Second), 0, mono.Min)
	if info := r.KeyInfo(at(2*time.Second), 0); info.Rests || info.State != dispatch.OK {
		t.Errorf("%+v", info)
	}
	r.sends(2*time.Second, limit.AfterSettle, "2/1 on 0")
}

// Requests that were in flight together are refused together; pauses in a row grow, and one request goes after them, until one is
// served.
func TestPausesOfAKey(t *testing.T) {
	r := newRig(t, queue.Config{KeepDead: -1}, dispatch.Key{Pause: 2 * time.Second})
	limited := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}, Invalid: true}
	now := time.Duration(0)
	refuse := func(want time.Duration, as ...dispatch.Attempt) {
		t.Helper()
		for i, a := range as {
			r.done(now+time.Duration(i)*time.Second, a, limited)
		}
		if info := r.KeyInfo(at(now+time.Second), 0); info.Until != at(now+want) {
			t.Errorf("at %v: %+v, want until %v", now, info, now+want)
		}
		now += want
	}
	r.submit(0, "x", "y")
	refuse(2*time.Second, r.sends(0, limit.AfterSettle, "x/1 on 0", "y/1 on 0")...)
	r.submit(now, "x", "y")
	refuse(4*time.Second, r.sends(now, limit.AfterSettle, "x/1 on 0", "y/1 on 0")...)
	r.submit(now, "z", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9", "z10")
	for i, want := range []time.Duration{8, 16, 32, 64, 128, 256, 512, 600, 600} {
		name := fmt.Sprint("z", i)
		if i == 0 {
			name = "z"
		}
		refuse(want*time.Second, r.sends(now, limit.AfterSettle, name+"/1 on 0")...)
	}
	if info := r.KeyInfo(at(now), 0); info.Refusals != 11 {
		t.Errorf("%d refusals in a row, want 11", info.Refusals)
	}
	r.done(now, r.sends(now, limit.AfterSettle, "z9/1 on 0")[0], accepted)
	r.submit(now, "v")
	refuse(2*time.Second, r.sends(now, limit.AfterSettle, "z10/1 on 0", "v/1 on 0")...)
}

// An answer's statement of what is left counts for its own key.
func TestWhatIsLeftOfAKey(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
	r.submit(0, "1", "2", "3", "4")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 0", "4/1 on 1")
	said := accepted
	said.Known, said.Remaining[limit.Requests], said.Reset[limit.Requests] = 1<<limit.Requests, 0, 10*time.Second
	r.done(0, as[0], said)
	r.done(0, as[2], accepted)
	r.submit(0, "5", "6")
	for _, a := range r.sends(0, limit.AfterSettle, "5/1 on 1", "6/1 on 1") {
		r.done(0, a, accepted)
	}
	r.Ban(1, "for the test")
	r.submit(0, "7")
	r.sends(0, at(10*time.Second))
}

// A bucket that says when it will be full again has more before that.
func TestWhatABucketHolds(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	r.submit(0, "1", "2", "3")
	said := accepted
	said.Known, said.Remaining[limit.Requests], said.Reset[limit.Requests] = 1<<limit.Requests, 0, time.Minute
	said.Capacity = limit.Cost{60}
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 0", "3/1 on 0")
	for _, a := range as {
		r.done(0, a, said)
	}
	r.submit(0, "4")
	r.sends(0, at(time.Second))
}

// The capacity in an answer to a search is also that of its key, unless the limits of searches are apart.
func TestTheBucketOfAResource(t *testing.T) {
	for apart, want := range map[bool]mono.Time{false: at(time.Second), true: at(time.Minute)} {
		r := newRig(t, queue.Config{}, dispatch.Key{Resource: perMinute(10), Apart: apart})
		r.submitTo(0, "search", "s")
		said := accepted
		said.Known, said.Reset[limit.Requests], said.Capacity = 1<<limit.Requests, time.Minute, limit.Cost{60}
		for _, a := range r.sends(0, limit.AfterSettle, "s/1 on 0") {
			r.done(0, a, said)
		}
		r.submit(0, "a")
		r.sends(0, want)
	}
}
