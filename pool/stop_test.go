package pool_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// Run returns when its context is over, at once: whether nothing is there, or what is there waits for an hour.
func TestPoolEndsWithItsContext(t *testing.T) {
	for _, waiting := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			p, err := pool.New(pool.Config{
				Keys: []pool.Key{{Limiter: limit.MustRolling(1, time.Hour)}},
				Send: func(context.Context, pool.Attempt) pool.Answer { return served },
			})
			if err != nil {
				t.Fatal(err)
			}
			for range waiting {
				if err := p.Submit(bg, pool.Request{}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(bg)
			start := time.Now()
			time.AfterFunc(time.Second, cancel)
			if err := p.Run(ctx); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("with %d: %v after %v", waiting, err, time.Since(start))
			}
		})
	}
}

func TestPoolDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: 300 * time.Millisecond}
		p := newPool(t, &l, pool.Config{})
		submit(t, p, "a", "b")
		time.AfterFunc(100*time.Millisecond, p.Drain)
		began := time.Now()
		if err := p.Run(context.Background()); err != nil || time.Since(began) != 300*time.Millisecond {
			t.Errorf("Run returned %v after %v, want nil at the answer, 300ms", err, time.Since(began))
		}
		wantLines(t, "ends", l.ends, "a done")
		wantCounts(t, p, pool.Counts{Submitted: 2, Waiting: 1, Done: 1})
	})
}

func TestPoolAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: time.Hour}
		p := newPool(t, &l, pool.Config{})
		submit(t, p, "a", "b")
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		if err := p.Run(ctx); err != why {
			t.Errorf("Run returned %v, want the cause", err)
		}
		// A broken-off request waits again, and its attempt does not count.
		wantLines(t, "ends", l.ends)
		wantCounts(t, p, pool.Counts{Submitted: 2, Waiting: 2})
		p.Update(func(_ mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			for _, ticket := range q.Waiting() {
				if info := q.Info(ticket); info.Attempts != 0 {
					t.Errorf("%s has %d attempts", info.Request.ID, info.Attempts)
				}
			}
		})
	})
}

func TestPoolDrainsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxLen: 1}})
		submit(t, p, "a")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Submit(context.Background(), pool.Request{}); !errors.Is(err, pool.ErrClosed) {
				t.Errorf("who waited for room got %v", err)
			}
		})
		synctest.Wait()
		p.Drain()
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		wantLines(t, "sends", l.sends)
		wantCounts(t, p, pool.Counts{Submitted: 1, Waiting: 1})
	})
}

// The value of an answer that comes while Run's context ends.
func TestPoolAnswersWhileAborting(t *testing.T) {
	for result, want := range map[limit.Result]pool.Counts{
		limit.Unknown:  {Submitted: 1, Waiting: 1},
		limit.Unsent:   {Submitted: 1, Waiting: 1},
		limit.Accepted: {Submitted: 1, Done: 1},
		limit.Failed:   {Submitted: 1, Dead: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l poolLog
			p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxAttempts: 1}, Send: func(ctx context.Context, _ pool.Attempt) pool.Answer {
				<-ctx.Done()
				return pool.Answer{Outcome: limit.Outcome{Result: result}}
			}})
			submit(t, p, "a")
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := p.Run(ctx); err != context.DeadlineExceeded {
				t.Error(err)
			}
			wantCounts(t, p, want)
		})
	}
}

func TestPoolSendThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Keys: []pool.Key{{}}, Queue: pool.QueueConfig{MaxAttempts: 2},
			Send: func(context.Context, pool.Attempt) pool.Answer { runtime.Goexit(); return served }})
		submit(t, p, "a")
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "ends", l.ends, "a dead")
	})
}

// A request that may go at the end of an attempt goes in its goroutine, unless that is about to
// end.
func TestPoolSendThatNeverReturnsTakesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Keys: []pool.Key{{}}, InFlight: 1, Queue: pool.QueueConfig{MaxAttempts: 1},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				switch a.Request.ID {
				case "a":
					runtime.Goexit()
				case "c":
					panic("c")
				}
				return served
			}})
		submit(t, p, "a", "b", "c", "d")
		p.Close()
		defer func() {
			if _, ok := recover().(*pool.SendPanic); !ok {
				t.Error("no panic")
			}
			wantLines(t, "ends", l.ends, "a dead", "b done", "c dead")
			wantCounts(t, p, pool.Counts{Submitted: 4, Done: 1, Dead: 2, Waiting: 1})
		}()
		t.Error(p.Run(context.Background()))
	})
}

// The first goroutine that can notices the end of Run's context: here Run is busy with reports.
func TestPoolAbortsWhileTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}},
			Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
				if a.Request.ID == "quick" {
					return served
				}
				<-ctx.Done()
				return pool.Answer{}
			},
			Ended: func(pool.Ended) { time.Sleep(2 * time.Second) },
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "quick")
		time.AfterFunc(100*time.Millisecond, func() { _ = p.TrySubmit(pool.Request{ID: "slow"}) })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if err := p.Run(ctx); err != context.DeadlineExceeded || time.Since(began) != 2*time.Second {
			t.Errorf("Run returned %v after %v, want after it told of the last", err, time.Since(began))
		}
		p.Update(func(_ mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			for _, ticket := range q.Waiting() {
				attempts = append(attempts, q.Info(ticket).Attempts)
			}
		})
		if len(attempts) != 1 || attempts[0] != 0 {
			t.Errorf("attempts of what waits: %v, want one request with none", attempts)
		}
	})
}

func TestPoolRunOutlivesItsLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		slow := slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.MessageKey {
				time.Sleep(time.Second)
			}
			return a
		}})
		p := newPool(t, &l, pool.Config{Log: slog.New(slow)})
		submit(t, p, "a")
		p.Close()
		began := time.Now()
		if err := p.Run(context.Background()); err != nil || time.Since(began) != 1010*time.Millisecond {
			t.Errorf("Run returned %v after %v, want after the line was written", err, time.Since(began))
		}
	})
}

// A closed pool that leaves one request behind says why.
func TestPoolClosedWithOneWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{Name: "a"}},
			Send: func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{Banned: true, Reason: "418"} },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Submit(bg, pool.Request{}); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if err := p.Run(bg); !errors.Is(err, pool.ErrExhausted) || p.Counts().Waiting != 1 {
			t.Errorf("%v, and %+v", err, p.Counts())
		}
	})
}
