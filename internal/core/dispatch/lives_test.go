package dispatch_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

// requeues puts the one dead letter back into the queue: it has the same ticket in its next life.
func (r *rig) requeues(now time.Duration) {
	r.Helper()
	dead := r.queue.DeadLetters()
	if len(dead) != 1 {
		r.Fatalf("at %v there are %d dead letters", now, len(dead))
	}
	if err := r.queue.Requeue(at(now), dead[0].Ticket); err != nil {
		r.Fatal(err)
	}
}

// A denial in one life of a request is no denial of the next, even if it is the only remembered
// one: a key alone cannot make it die then.
func TestDenialOfTheLifeBefore(t *testing.T) {
	invalid := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: true, Reason: "400"}
	r := newRig(t, queue.Config{}, dispatch.Key{InFlight: 1}, dispatch.Key{InFlight: 1})
	r.submit(0, "x")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], denied)
	now := time.Second
	r.done(now, r.sends(now, limit.AfterSettle, "x/1 on 1")[0], invalid)
	r.has("x dead")
	if n := r.Denied(); n != 0 {
		t.Errorf("%d denials are kept in mind", n)
	}
	r.requeues(now)
	r.Hold(at(now), 0, at(time.Minute))
	r.done(now, r.sends(now, limit.AfterSettle, "x/1 on 1")[0], denied)
	r.has()
}

// An answer to the earlier life shows nothing of the present one. A denial in the present life is
// remembered, and the second key agrees.
func TestDenialOutlivesALateAnswer(t *testing.T) {
	invalid := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: true, Reason: "400"}
	r := newRig(t, queue.Config{}, dispatch.Key{}, dispatch.Key{})
	r.submit(0, "x")
	before := r.sends(0, limit.AfterSettle, "x/1 on 0")[0]
	r.queue.Kill(0, before.Ticket, "not any more")
	r.requeues(0)
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 1")[0], denied)
	r.done(0, before, invalid)
	if n := r.Denied(); n != 1 {
		t.Errorf("%d denials are kept in mind", n)
	}
	now := time.Second
	r.Hold(at(now), 1, at(time.Minute))
	r.done(now, r.sends(now, limit.AfterSettle, "x/1 on 0")[0], denied)
	r.has("x dead")
}

// A request that was given back five times waits, though another key is there that serves: it may not go round for ever.
func TestReturnedTimeAndAgain(t *testing.T) {
	for times, atOnce := range map[int]bool{4: true, 5: false} {
		r := newRig(t, queue.Config{}, dispatch.Key{InFlight: 1}, dispatch.Key{InFlight: 1})
		r.submit(0, "a", "b")
		for _, a := range r.sends(0, limit.AfterSettle, "a/1 on 0", "b/1 on 1") {
			ans := accepted
			if a.Key == 0 {
				ans = limited
			}
			r.done(0, a, ans)
			r.queue.Cancel(0, a.Ticket)
		}
		now := time.Minute
		r.Hold(at(now), 1, at(now+ms))
		r.submit(now, "x")
		for range times {
			r.done(now, r.sends(now, limit.AfterSettle, "x/1 on 0")[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true})
		}
		x := r.sends(now, limit.AfterSettle, "x/1 on 0")[0]
		r.done(now+ms, x, limited)
		if wait := time.Duration(r.queue.Info(x.Ticket).NotBefore) - now - ms; (wait <= 0) != atOnce {
			t.Errorf("given back %d times, it waits for %v", times, wait)
		}
	}
}
