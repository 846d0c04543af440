package dispatch_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

// The first request of each key goes alone. After a denial another goes alone; after a served one,
// all may go.
func TestTrialOfAKey(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a", Trial: 3 * time.Second}, dispatch.Key{Name: "b", Trial: 3 * time.Second})
	r.submit(0, "1", "2", "3", "4", "5", "6")
	all := r.sends(0, at(3*time.Second), "1/1 on 0", "2/1 on 1")
	if wait, b := r.Explain(0, 0, limit.One); wait != at(3*time.Second) || b.Name != "trial" {
		t.Errorf("key a waits for %q until %v", b.Name, wait)
	}
	r.done(time.Second, all[0], accepted)
	denied := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: true, Denied: true}
	r.done(time.Second, all[1], denied)
	n := map[int]int{}
	for {
		a, _, ok := r.Next(at(time.Second))
		if !ok {
			break
		}
		n[a.Key]++
	}
	if n[0] < 3 || n[1] > 1 {
		t.Errorf("then went, of each key: %v", n)
	}
}

// For a server of unknown limits, one goes first after the first refusal; otherwise all that may.
func TestSlowKey(t *testing.T) {
	for _, slow := range []bool{true, false} {
		r := newRig(t, queue.Config{}, dispatch.Key{Slow: slow})
		r.submit(0, "1", "2", "3")
		a, _, _ := r.Next(0)
		r.done(time.Second, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Second}})
		n := 0
		for {
			if _, _, ok := r.Next(at(3 * time.Second)); !ok {
				break
			}
			n++
		}
		if want := map[bool]int{true: 1, false: 3}[slow]; n != want {
			t.Errorf("slow %v: %d go after the refusal, want %d", slow, n, want)
		}
	}
}
