package dispatch_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

// A key that refuses a nonce which was in order is asked again at once. After the third in a row it
// is asked after a second, then after twice as long each time. Its clock may be at fault, or
// another user of the key.
func TestKeyThatRefusesNonces(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{}})
	bad := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Misordered: true}}
	wake := limit.AfterSettle
	for _, c := range []struct {
		id  string
		ans dispatch.Answer
	}{{"a", bad}, {"b", bad}, {"c", accepted}, {"d", bad}, {"e", bad}, {"f", bad}} {
		r.submit(0, c.id)
		r.done(0, r.sends(0, wake, c.id+"/1 on 0")[0], c.ans)
		wake = at(time.Second) // which is when a goes again
	}
	r.submit(0, "g")
	r.sends(0, at(time.Second))
	for now, pause := time.Second, 2*time.Second; pause < 10*time.Minute; pause *= 2 { // one at a time, after twice as long each time
		a, _, ok := r.Next(at(now))
		if !ok {
			t.Fatalf("nothing goes at %v", now)
		}
		r.done(now, a, bad)
		if _, _, ok := r.Next(at(now + pause - 1)); ok {
			t.Fatalf("at %v one goes, and the next sooner than after %v", now, pause)
		}
		now += pause
	}
}

// Done returns the new state of the request, so that its caller need not look it up.
func TestDoneSaysWhatBecameOfIt(t *testing.T) {
	r := newRig(t, queue.Config{MaxAttempts: 2}, dispatch.Key{})
	r.submit(0, "a", "b")
	for _, a := range r.sends(0, limit.AfterSettle, "a/1 on 0", "b/1 on 0") {
		ans, want := accepted, queue.Done
		if a.Request.ID == "b" {
			ans, want = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}}, queue.Waiting
		}
		if e := r.Done(0, a, ans); e.State != want || e.Request.ID != a.Request.ID {
			t.Errorf("%s: %+v, want %v", a.Request.ID, e, want)
		}
	}
}

// A key that denies what another serves is asked three times at one instant, and not a fourth.
func TestKeyThatDeniesThree(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "good"}, dispatch.Key{Name: "bad"})
	asked := 0
	for range 20 {
		r.submit(0, "")
		for a, _, ok := r.Next(0); ok; a, _, ok = r.Next(0) {
			if a.Key == 1 {
				asked++
				r.done(0, a, denied)
			} else {
				r.done(0, a, accepted)
			}
		}
	}
	if asked != 3 {
		t.Errorf("it was asked %d times", asked)
	}
}
