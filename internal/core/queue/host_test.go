package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// first is the host whose name is the first letter of the request's.
func first(r *queue.Request) string { return r.Value.(string)[:1] }

// A held host delays no other; its waiting requests keep their places and their deadlines.
func TestHold(t *testing.T) {
	timeline(t, queue.Config{Host: first, MaxLen: 6}, `
		0s  submit a1          -> ok
		0s  submit b1          -> ok
		0s  submit a2 ttl=5s   -> ok
		0s  hold a             -> ok
		0s  hold a             -> ok
		0s  take               -> b1 1
		1s  submit a3 prio=9   -> ok
		1s  submit b2          -> ok
		1s  waiting            -> a3 a1 a2 b2
		1s  take               -> b2 1
		1s  head               -> none
		1s  wake               -> 5s
		1s  return b1          -> waiting
		1s  head               -> b1
		5s  expire             -> a2 expired
		5s  take a1            -> a1 1
		5s  retry a1 until=7s  -> waiting
		7s  head               -> b1
		7s  release a          -> ok
		7s  release a          -> ok
		7s  take               -> a3 1
		7s  take               -> a1 2
		7s  take               -> b1 1
		7s  head               -> none
		7s  release never      -> ok
		7s  hold c             -> ok
		8s  submit c1          -> ok
		8s  head               -> none
		8s  cancel c1          -> true
		8s  submit c2          -> ok
		8s  head               -> none
		8s  release c          -> ok
		8s  take               -> c2 1
		8s  counts             -> 7: 5 in flight 1 expired 1 cancelled`)
	timeline(t, queue.Config{}, `
		0s submit a  -> ok
		0s hold other -> ok
		0s head      -> a
		0s release other -> ok
		0s submit b  -> ok
		0s waiting   -> a b`)
}

// Hold, Release and Head cost the same with 100,000 waiting, and nothing is allocated for a host
// that comes and goes.
func TestHoldingCostsNothing(t *testing.T) {
	names := make([]string, 64)
	for i := range names {
		names[i] = fmt.Sprint("host ", i)
	}
	q := filled(t, queue.Config{Host: func(r *queue.Request) string { return names[r.Priority] }}, 100_000,
		func(int) queue.Request { return queue.Request{} })
	now, n := mono.Time(0), 0
	if got := testing.AllocsPerRun(1000, func() {
		n++
		now = now.Add(time.Millisecond)
		q.Hold(names[0])
		if _, _, ok := q.Head(now); ok {
			t.Fatal("what is held is the head")
		}
		if _, err := q.Submit(now, queue.Request{Cost: limit.One, Priority: 1 + n%63}); err != nil {
			t.Fatal(err)
		}
		ticket, _, _ := q.Head(now)
		q.Take(now, ticket)
		q.Done(now, ticket)
		q.Release(names[0])
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
	if n := q.WaitFor(names[0]); n != 100_000 {
		t.Errorf("%d wait", n)
	}
	if err := q.Verify(); err != nil {
		t.Error(err)
	}
}
