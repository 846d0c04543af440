package queue_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit/mono"
)

// A clock that is set back takes nothing back: after each verb, an event of an earlier instant
// counts as one of the verb's.
func TestClockThatIsSetBack(t *testing.T) {
	const then, back = mono.Time(10 * time.Second), mono.Time(time.Second)
	type made struct {
		*queue.Queue
		waiting, flying, dead queue.Ticket
	}
	for name, do := range map[string]func(q made){
		"Submit":  func(q made) { q.Submit(then, queue.Request{ID: "x"}) },
		"Head":    func(q made) { q.Head(then) },
		"Take":    func(q made) { q.Take(then, q.waiting) },
		"Wake":    func(q made) { q.Wake(then) },
		"Expire":  func(q made) { q.Expire(then) },
		"Done":    func(q made) { q.Done(then, q.flying) },
		"Retry":   func(q made) { q.Retry(then, q.flying, then, "") },
		"Return":  func(q made) { q.Return(then, q.flying, then) },
		"More":    func(q made) { q.More(then, q.flying) },
		"Kill":    func(q made) { q.Kill(then, q.waiting, "") },
		"Cancel":  func(q made) { q.Cancel(then, q.waiting) },
		"Requeue": func(q made) { q.Requeue(then, q.dead) },
		"Drop":    func(q made) { q.Drop(then, q.dead) },
	} {
		q, err := queue.New(queue.Config{KeepDead: 9})
		if err != nil {
			t.Fatal(err)
		}
		m := made{Queue: q}
		for i, ticket := range []*queue.Ticket{&m.waiting, &m.flying, &m.dead} {
			if *ticket, err = q.Submit(0, queue.Request{Priority: -i}); err != nil {
				t.Fatal(err)
			}
		}
		q.Take(0, m.flying)
		q.Kill(0, m.dead, "")
		do(m)
		late, err := q.Submit(back, queue.Request{ID: "late"})
		if err != nil {
			t.Fatal(err)
		}
		if came := q.Info(late).Submitted; came != then {
			t.Errorf("after %s at %v what is submitted at %v counts from %v", name, then, back, came)
		}
	}
}
