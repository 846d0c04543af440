package queue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// filled returns a queue in which n requests wait.
func filled(tb testing.TB, c queue.Config, n int, r func(int) queue.Request) *queue.Queue {
	q := newQueue(tb, c)
	for i := range n {
		if _, err := q.Submit(0, r(i)); err != nil {
			tb.Fatal(err)
		}
	}
	return q
}

func simple(int) queue.Request { return queue.Request{Cost: limit.One, TTL: time.Second} }

func TestNoAllocationsOnceWarm(t *testing.T) {
	q := filled(t, queue.Config{MaxLen: 100, KeepDead: 2, MaxAttempts: 2}, 100, simple)
	now, n := mono.Time(0), 0
	got := testing.AllocsPerRun(5000, func() {
		n++
		now = now.Add(time.Millisecond)
		for {
			if _, ok := q.Expire(now); !ok {
				break
			}
		}
		for q.Counts().Waiting < 100 {
			if _, err := q.Submit(now, simple(0)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := q.Submit(now, simple(0)); err == nil {
			t.Fatal("MaxLen does not hold")
		}
		q.Wake(now)
		ticket, _, _ := q.Head(now)
		q.Take(now, ticket)
		switch n % 6 {
		case 0, 1:
			q.Done(now, ticket)
		case 2, 3:
			q.Retry(now, ticket, now.Add(5*time.Millisecond), "limited")
		case 4:
			q.Kill(now, ticket, "refused")
		case 5:
			q.Return(now, ticket, now)
			q.Cancel(now, ticket)
		}
	})
	c := q.Counts()
	if c.Done == 0 || c.Dead == 0 || c.Cancelled == 0 {
		t.Fatalf("not all that should happen did: %+v", c)
	}
	if got != 0 {
		t.Errorf("%v allocations per request", got)
	}
}

func BenchmarkSubmitTakeDone(b *testing.B) {
	for _, c := range []struct {
		name    string
		waiting int
		request func(int) queue.Request
	}{
		{"100 waiting", 100, simple},
		{"100 waiting, no deadline", 100, func(int) queue.Request { return queue.Request{Cost: limit.One} }},
		{"100 waiting, priorities", 100, func(i int) queue.Request {
			return queue.Request{Cost: limit.One, TTL: time.Second, Priority: i * 7 % 5}
		}},
		{"100 waiting, ids", 100, func(i int) queue.Request {
			return queue.Request{ID: ids[i%len(ids)], Cost: limit.One, TTL: time.Second}
		}},
		{"100000 waiting", 100_000, simple},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := filled(b, queue.Config{}, c.waiting, c.request)
			now, n := mono.Time(0), c.waiting
			b.ReportAllocs()
			for b.Loop() {
				now++
				if _, err := q.Submit(now, c.request(n)); err != nil {
					b.Fatal(err)
				}
				n++
				ticket, _, _ := q.Head(now)
				q.Take(now, ticket)
				q.Done(now, ticket)
			}
		})
	}
}

// The work of the dispatcher per request, refusals and a retry for every tenth included.
func BenchmarkDispatched(b *testing.B) {
	q := filled(b, queue.Config{KeepDead: -1}, 100, simple)
	rng := rand.New(rand.NewPCG(1, 2))
	now := mono.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		if q.Counts().Waiting < 100 {
			if _, err := q.Submit(now, simple(0)); err != nil {
				b.Fatal(err)
			}
		}
		q.Expire(now)
		q.Wake(now)
		ticket, _, ok := q.Head(now)
		if !ok {
			continue
		}
		_ = q.Info(ticket).Submitted
		q.Take(now, ticket)
		if rng.IntN(10) == 0 {
			q.Retry(now, ticket, now.Add(50*time.Millisecond), "limited")
		} else {
			q.Done(now, ticket)
		}
	}
}

var ids = func() (ids [1000]string) {
	for i := range ids {
		ids[i] = fmt.Sprintf("request-%d", i)
	}
	return ids
}()

func newQueue(tb testing.TB, c queue.Config) *queue.Queue {
	tb.Helper()
	q, err := queue.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}
