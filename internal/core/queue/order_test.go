package queue_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// TestNobodyIsPassedOverForEver checks the bound in the package's documentation on every Take of an
// overloaded queue. Its requests have all priorities, most of them fail, and there are more than
// can be served.
func TestNobodyIsPassedOverForEver(t *testing.T) {
	const (
		headStart   = 300 * time.Millisecond
		priorityMax = 3
		attemptsMax = 4
		step        = 10 * time.Millisecond
	)
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 0))
		last := seed%2 == 1
		q := newQueue(t, queue.Config{HeadStart: headStart, MaxAttempts: attemptsMax, RetriesLast: last, KeepDead: -1})
		type waiting struct {
			ticket queue.Ticket
			since  mono.Time // as the line counts it
			prio   int
			passed map[queue.Ticket]int // how often, by whom
		}
		var line []*waiting // those that have not ended
		now := mono.Time(0)
		passes := 0
		for range 500 {
			now = now.Add(step)
			for range 1 + rng.IntN(2) {
				prio := rng.IntN(2*priorityMax+1) - priorityMax
				ticket, err := q.Submit(now, queue.Request{Cost: limit.One, Priority: prio})
				if err != nil {
					t.Fatal(err)
				}
				line = append(line, &waiting{ticket, now, prio, map[queue.Ticket]int{}})
			}
			head, _, ok := q.Head(now)
			if !ok {
				t.Fatal("nothing is ready")
			}
			by := line[slices.IndexFunc(line, func(w *waiting) bool { return w.ticket == head })]
			for _, w := range line {
				if info := q.Info(w.ticket); w == by || info.State != queue.Waiting || info.NotBefore > now {
					continue
				}
				w.passed[head]++
				passes++
				bound := w.since.Add(time.Duration(priorityMax-w.prio) * headStart)
				if by.since > bound {
					t.Fatalf("seed %d, %v: one of %v, priority %d, was passed over by one of %v, which is after %v", seed, now, w.since, w.prio, by.since, bound)
				}
				if w.passed[head] > attemptsMax {
					t.Fatalf("seed %d, %v: passed over %d times by the same request", seed, now, w.passed[head])
				}
			}
			q.Take(now, head)
			until, ended := now.Add(time.Duration(rng.IntN(200))*time.Millisecond), false
			if rng.IntN(3) == 0 {
				ended = q.Done(now, head).State.Ended()
			} else {
				ended = q.Retry(now, head, until, "refused").State.Ended()
			}
			switch {
			case ended:
				line = slices.DeleteFunc(line, func(w *waiting) bool { return w == by })
			case last:
				by.since, by.passed = until, map[queue.Ticket]int{}
			}
		}
		if passes < 1000 {
			t.Errorf("seed %d: only %d were passed over: not much of a test", seed, passes)
		}
	}
}

// An old request of low priority is behind ten that fail every time. It is also behind a stream of
// high priority that alone is twice what can be served. Its turn comes exactly when the failing
// ones are dead and the stream's head start is used up.
func TestTheLeastOfAllHasItsTurn(t *testing.T) {
	const (
		step    = 10 * time.Millisecond // one is served per step, and two of the stream come
		failing = 10
	)
	for _, c := range []struct{ headStart, want time.Duration }{
		// 10 × 5 failing attempts, and the stream of the first 2 × headStart, which takes twice as long.
		{time.Second, 10*5*step + 2*2*time.Second},
		{100 * time.Millisecond, 10*5*step + 2*2*100*time.Millisecond},
		{-1, 10 * 5 * step},
	} {
		q := newQueue(t, queue.Config{HeadStart: c.headStart})
		fails := map[queue.Ticket]bool{}
		for range failing {
			ticket, _ := q.Submit(0, queue.Request{Priority: 2})
			fails[ticket] = true
		}
		least, _ := q.Submit(0, queue.Request{})
		now := mono.Time(0)
		for ; now < mono.Time(time.Minute); now = now.Add(step) {
			for range 2 {
				if _, err := q.Submit(now.Add(1), queue.Request{Priority: 2}); err != nil {
					t.Fatal(err)
				}
			}
			ticket, _, _ := q.Head(now)
			q.Take(now, ticket)
			if ticket == least {
				break
			}
			if fails[ticket] {
				q.Retry(now, ticket, now, "refused")
			} else {
				q.Done(now, ticket)
			}
		}
		if now != mono.Time(c.want) {
			t.Errorf("head start %v: its turn was at %v, want %v", c.headStart, now, c.want)
		}
	}
}

// Many wait, and leave from anywhere in the line.
func TestOrderOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	q := newQueue(t, queue.Config{HeadStart: time.Second})
	type submitted struct {
		ticket   queue.Ticket
		place    mono.Time
		deadline mono.Time
	}
	var all []submitted
	for n := range 3000 {
		now := mono.Time(n) * mono.Time(time.Millisecond)
		r := queue.Request{Priority: rng.IntN(7) - 3, TTL: 10*time.Second + time.Duration(rng.IntN(1000))*time.Millisecond}
		ticket, err := q.Submit(now, r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, submitted{ticket, now.Add(-time.Duration(r.Priority) * time.Second), now.Add(r.TTL)})
		if n%3 == 2 {
			gone := rng.IntN(len(all))
			if !q.Cancel(now, all[gone].ticket) {
				t.Fatal("not cancelled")
			}
			all = slices.Delete(all, gone, gone+1)
		}
		if n%50 == 0 {
			if err := q.Verify(); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := mono.Time(3 * time.Second)
	slices.SortStableFunc(all, func(a, b submitted) int { return cmp.Compare(a.place, b.place) })
	for n, want := range all[:1000] {
		ticket, _, _ := q.Head(now)
		if ticket != want.ticket {
			t.Fatalf("%d: %+v, want %+v", n, ticket, want)
		}
		q.Take(now, ticket)
		q.Done(now, ticket)
		if err := q.Verify(); err != nil {
			t.Fatal(err)
		}
	}
	all = all[1000:]
	slices.SortFunc(all, func(a, b submitted) int { return cmp.Compare(a.deadline, b.deadline) })
	for n, want := range all {
		at, ok := q.Wake(now)
		if !ok || at != want.deadline {
			t.Fatalf("%d: wakes at %v, %v, want %v", n, at, ok, want.deadline)
		}
		if at > now {
			if e, ok := q.Expire(at - 1); ok {
				t.Fatalf("%d: %v expired early", n, e.Ticket)
			}
		}
		now = at
		if e, ok := q.Expire(now); !ok || e.State != queue.Expired {
			t.Fatalf("%d: %+v, %v", n, e, ok)
		}
	}
	if c := q.Counts(); c != (queue.Counts{Submitted: 3000, Done: 1000, Expired: 1000, Cancelled: 1000}) {
		t.Errorf("%+v", c)
	}
}

// A place in the slab whose generations are used up starts again, and not with that of the zero Ticket.
func TestGenerationsStartAgain(t *testing.T) {
	q := newQueue(t, queue.Config{})
	ticket, _ := q.Submit(0, queue.Request{})
	ticket = q.LastGeneration(ticket)
	q.Cancel(0, ticket)
	again, _ := q.Submit(0, queue.Request{})
	if again == ticket || again == (queue.Ticket{}) || q.Info(queue.Ticket{}).State != queue.None {
		t.Errorf("%v after %v", again, ticket)
	}
}

// However many have ended, a queue has places for as many requests and hosts as it ever had at once.
func TestPlacesAreUsedAgain(t *testing.T) {
	q := newQueue(t, queue.Config{Host: func(r *queue.Request) string { return r.Value.(string) }})
	for i := range 60 {
		var few []queue.Ticket
		for k := range 1 + i%3 {
			ticket, err := q.Submit(0, queue.Request{Value: fmt.Sprint(i, k)})
			if err != nil {
				t.Fatal(err)
			}
			few = append(few, ticket)
		}
		for _, ticket := range few {
			q.Cancel(0, ticket)
		}
	}
	if requests, hosts := q.Places(); requests != 3 || hosts != 3 {
		t.Errorf("there are places for %d requests and %d hosts, want 3 of each", requests, hosts)
	}
}
