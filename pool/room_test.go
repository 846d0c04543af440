package pool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

func TestPoolBackpressureIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxLen: 1}})
		var running sync.WaitGroup
		running.Go(func() {
			if err := p.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		submit(t, p, "a", "b") // one in flight, one waiting
		if err := p.TrySubmit(pool.Request{ID: "x"}); !errors.Is(err, pool.ErrFull) {
			t.Errorf("TrySubmit to a full queue: %v", err)
		}
		var in []string
		var wg sync.WaitGroup
		for _, id := range []string{"c", "d", "e"} {
			wg.Go(func() {
				submit(t, p, id)
				l.mu.Lock()
				defer l.mu.Unlock()
				in = append(in, fmt.Sprintf("%v %s", time.Duration(p.Now()), id))
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := p.Submit(ctx, pool.Request{ID: "impatient"}); err != context.DeadlineExceeded {
			t.Errorf("who gave up got %v", err)
		}
		cancel()
		wg.Wait()
		wantLines(t, "let in", in, "1.0112s c", "2.0224s d", "3.0336s e")
		p.Close()
		running.Wait()
		wantLines(t, "ends", l.ends, "a done", "b done", "c done", "d done", "e done")
	})
}

func TestPoolInFlightBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{InFlight: 2, Keys: []pool.Key{{}}})
		submit(t, p, "a", "b", "c", "d", "e")
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		last := l.sends[len(l.sends)-1]
		if !strings.HasPrefix(last, "20ms ") || len(l.sends) != 5 {
			t.Errorf("sends %v, want two at a time", l.sends)
		}
	})
}

func TestPoolLetsNobodyOvertakeWhoWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxLen: 1}})
		submit(t, p, "a")
		var wg sync.WaitGroup
		wg.Go(func() { submit(t, p, "first") })
		synctest.Wait()
		p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			ticket, _, _ := q.Lookup("a")
			q.Cancel(now, ticket)
		})
		if err := p.TrySubmit(pool.Request{ID: "overtaker"}); !errors.Is(err, pool.ErrFull) {
			t.Errorf("TrySubmit past one who waits: %v", err)
		}
		time.AfterFunc(time.Second, p.Close)
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		wantLines(t, "ends", l.ends, "first done")
	})
}

// At its own bound the Pool sends nothing, but time goes on.
func TestPoolAtItsBoundNoticesDeadlinesAndRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: time.Hour}
		p := newPool(t, &l, pool.Config{InFlight: 1, Keys: []pool.Key{{}}, Queue: pool.QueueConfig{MaxLen: 1}})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		submit(t, p, "a")
		if err := p.Submit(context.Background(), pool.Request{ID: "b", TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		submit(t, p, "c") // waits for the room that b leaves
		if at := time.Duration(p.Now()); at != time.Second {
			t.Errorf("c was let in at %v, want 1s", at)
		}
		synctest.Wait()
		wantLines(t, "ends", l.ends, "b expired")
		wg.Go(func() { submit(t, p, "d") })
		synctest.Wait()
		p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			ticket, _, _ := q.Lookup("c")
			q.Cancel(now, ticket)
		})
		synctest.Wait()
		wantCounts(t, p, pool.Counts{Submitted: 4, InFlight: 1, Waiting: 1, Expired: 1, Cancelled: 1})
		p.Drain()
		wg.Wait()
	})
}

func TestPoolRoomBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxLen: 1}})
		submit(t, p, "a")
		time.AfterFunc(time.Second, func() {
			p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
				ticket, _, _ := q.Lookup("a")
				q.Cancel(now, ticket)
			})
		})
		submit(t, p, "b")
		if at := time.Duration(p.Now()); at != time.Second {
			t.Errorf("there was room at 1s, Submit returned at %v", at)
		}
	})
}

// An expired request makes room, and the request that takes it goes at once if a key is free.
func TestPoolRoomOnAnIdleKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Keys: []pool.Key{{}}, Queue: pool.QueueConfig{MaxLen: 1}})
		p.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
			d.Hold(now, 0, now.Add(500*time.Millisecond))
		})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		if err := p.Submit(context.Background(), pool.Request{ID: "a", TTL: 500 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		submit(t, p, "b")
		time.Sleep(time.Second)
		p.Close()
		wg.Wait()
		wantLines(t, "ends", l.ends, "a expired", "b done")
		wantLines(t, "sends", l.sends, "500ms b/1")
	})
}

// Room comes while a caller of Submit gives up, in real time: the lock is held when its context ends.
func TestPoolGivesUpAsRoomComes(t *testing.T) {
	in := 0
	for range 100 {
		var l poolLog
		p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxLen: 1}})
		submit(t, p, "a")
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- p.Submit(ctx, pool.Request{}) }()
		for waits := false; !waits; waits = pool.Submitters(p) == 1 {
			runtime.Gosched()
		}
		p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			cancel()
			for range 50 {
				runtime.Gosched()
			}
			ticket, _, _ := q.Lookup("a")
			q.Cancel(now, ticket)
		})
		err := <-result
		if err == nil {
			in++
		}
		if c := p.Counts(); err != nil || c.Submitted != 2 {
			t.Errorf("Submit returned %v, counts %+v", err, c)
		}
	}
	t.Logf("%d of 100 came in", in)
}

// A submission whose context has ended is not taken, though there is room.
func TestSubmitOfWhoHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &poolLog{}, pool.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := p.Submit(ctx, pool.Request{ID: "a"}); !errors.Is(err, context.Canceled) || p.Counts().Waiting != 0 {
			t.Errorf("%v, %d wait", err, p.Counts().Waiting)
		}
	})
}
