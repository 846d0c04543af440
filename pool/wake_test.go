package pool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// Two requests wait for one instant, and the first leaves before the second comes. In between the
// timer is stopped, and then it is set to the same instant. A Pool that took it for set never sent
// the second.
func TestPoolWaitsAgainForTheSameInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{})
		done := make(chan error, 1)
		go func() { done <- p.Run(context.Background()) }()
		submit(t, p, "a")
		time.Sleep(100 * time.Millisecond)
		submit(t, p, "b") // both for 1.0112 s
		p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			if b, _, ok := q.Lookup("b"); !ok || !q.Cancel(now, b) {
				t.Error("b does not wait")
			}
		})
		time.Sleep(100 * time.Millisecond)
		submit(t, p, "c")
		p.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Error("an hour later c has not been sent")
			p.Drain()
			<-done
		}
		wantLines(t, "sends", l.sends, "0s a/1", "1.0112s c/1")
		wantCounts(t, p, pool.Counts{Submitted: 3, Done: 2, Cancelled: 1})
	})
}

// The timer is armed for what the head of the queue waits for now, not for what it waited for.
func TestPoolWakesOnlyForTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		submit(t, p, "a", "b")
		time.Sleep(500 * time.Millisecond)
		p.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) { d.Hold(now, 0, now.Add(5*time.Second)) })
		time.Sleep(2 * time.Second)
		if n := p.WakeUps(); n != 0 {
			t.Errorf("%d wake-ups for a request that is held back", n)
		}
		p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			ticket, _, _ := q.Lookup("b")
			q.Cancel(now, ticket)
		})
		time.Sleep(time.Hour)
		if n := p.WakeUps(); n != 0 {
			t.Errorf("%d wake-ups for a request that was cancelled", n)
		}
		p.Close()
		wg.Wait()
	})
}

// slowly is a limiter that takes a second to admit, and notes how old each now is that it gets.
type slowly struct {
	limit.Limiter
	epoch  time.Time
	behind time.Duration // the most
}

func (s *slowly) Ready(now mono.Time, cost limit.Cost) mono.Time {
	s.behind = max(s.behind, time.Since(s.epoch)-time.Duration(now))
	return s.Limiter.Ready(now, cost)
}

func (s *slowly) Admit(sent *limit.Sent) {
	defer time.Sleep(time.Second)
	s.Limiter.Admit(sent)
}

// If beginning an attempt takes time, the next begins at the instant after that, not at the earlier
// one.
func TestPoolAsksOfTheTimeThatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{Limiter: limit.MustRolling(10, time.Hour)}
		p := must(pool.New(pool.Config{
			Keys: []pool.Key{{Limiter: s}},
			// While the clock of a bubble is to go on nobody may want the Pool's lock: attempts last until the end.
			Send: func(ctx context.Context, _ pool.Attempt) pool.Answer { <-ctx.Done(); return pool.Answer{} },
		}))
		s.epoch = pool.Epoch(p)
		for i := range 3 {
			submit(t, p, fmt.Sprint(i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if s.behind != 0 {
			t.Errorf("asked %v too late of an instant", s.behind)
		}
	})
}

// A Pool in which nothing waits is not woken, however long that is.
func TestPoolThatIsIdleSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &poolLog{}, pool.Config{})
		done := make(chan error, 1)
		go func() { done <- p.Run(context.Background()) }()
		time.Sleep(24 * time.Hour)
		if n := p.WakeUps(); n != 0 {
			t.Errorf("it was woken %d times", n)
		}
		p.Close()
		try(t, <-done)
	})
}
