package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

var served = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}

// poolLog is what a pool did, on its own scale.
type poolLog struct {
	mu     sync.Mutex
	pool   *paceline.Pool
	sends  []string
	ends   []string
	asleep time.Duration // what an attempt takes; 0: 10 ms
}

func (l *poolLog) send(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
	l.mu.Lock()
	l.sends = append(l.sends, fmt.Sprintf("%v %s/%d", time.Duration(l.pool.Now()), a.Request.ID, a.Number))
	l.mu.Unlock()
	took := l.asleep
	if took == 0 {
		took = 10 * time.Millisecond
	}
	select {
	case <-time.After(took):
		return served
	case <-ctx.Done():
		return dispatch.Answer{Reason: ctx.Err().Error()}
	}
}

func (l *poolLog) ended(e queue.Ended) {
	l.ends = append(l.ends, e.Request.ID+" "+e.State.String())
}

func newPool(t *testing.T, l *poolLog, c paceline.PoolConfig) *paceline.Pool {
	t.Helper()
	if c.Send == nil {
		c.Send = l.send
	}
	if c.Keys == nil {
		c.Keys = []dispatch.Key{{Name: "k", Limiter: limit.MustRolling(1, time.Second)}}
	}
	c.Ended = l.ended
	c.Backoff = backoff.Policy{Base: time.Second, Jitter: -1}
	p, err := paceline.NewPool(c)
	if err != nil {
		t.Fatal(err)
	}
	l.pool = p
	return p
}

func submit(t *testing.T, p *paceline.Pool, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := p.Submit(context.Background(), queue.Request{ID: id, Cost: limit.One}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantCounts(t *testing.T, p *paceline.Pool, want queue.Counts) {
	t.Helper()
	got := p.Counts()
	if got != want || got.Check() != nil {
		t.Errorf("counts %+v, want %+v (%v)", got, want, got.Check())
	}
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestPoolSendsAllAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{})
		submit(t, p, "a", "b", "c") // before Run: they wait
		p.Close()
		if err := p.Submit(context.Background(), queue.Request{}); !errors.Is(err, paceline.ErrClosed) {
			t.Errorf("submit after Close: %v", err)
		}
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		// A window, a tick, drift and 0.1 ms after each answer.
		wantLines(t, "sends", l.sends, "0s a/1", "1.0112s b/1", "2.0224s c/1")
		wantLines(t, "ends", l.ends, "a done", "b done", "c done")
		wantCounts(t, p, queue.Counts{Submitted: 3, Done: 3})
		if n := p.WakeUps(); n != 2 {
			t.Errorf("%d wake-ups for two waits", n)
		}
		if err := p.Run(context.Background()); err == nil {
			t.Error("Run twice")
		}
	})
}

func TestPoolDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: 300 * time.Millisecond}
		p := newPool(t, &l, paceline.PoolConfig{})
		submit(t, p, "a", "b")
		time.AfterFunc(100*time.Millisecond, p.Drain)
		began := time.Now()
		if err := p.Run(context.Background()); err != nil || time.Since(began) != 300*time.Millisecond {
			t.Errorf("Run returned %v after %v, want nil at the answer, 300ms", err, time.Since(began))
		}
		wantLines(t, "ends", l.ends, "a done")
		wantCounts(t, p, queue.Counts{Submitted: 2, Waiting: 1, Done: 1})
	})
}

func TestPoolAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: time.Hour}
		p := newPool(t, &l, paceline.PoolConfig{})
		submit(t, p, "a", "b")
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		if err := p.Run(ctx); err != why {
			t.Errorf("Run returned %v, want the cause", err)
		}
		// What was broken off waits again, and its attempt does not count.
		wantLines(t, "ends", l.ends)
		wantCounts(t, p, queue.Counts{Submitted: 2, Waiting: 2})
		p.Update(func(_ mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
			for _, ticket := range q.Waiting() {
				if info := q.Info(ticket); info.Attempts != 0 {
					t.Errorf("%s has %d attempts", info.Request.ID, info.Attempts)
				}
			}
		})
	})
}

func TestPoolTimeoutThenRetryThenDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: time.Hour}
		p := newPool(t, &l, paceline.PoolConfig{
			Timeout: 500 * time.Millisecond,
			Keys:    []dispatch.Key{{Limiter: limit.MustRolling(100, time.Second)}},
			Queue:   queue.Config{MaxAttempts: 2},
		})
		submit(t, p, "a")
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "sends", l.sends, "0s a/1", "1.5s a/2")
		wantLines(t, "ends", l.ends, "a dead")
		p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
			if dead := q.DeadLetters(); len(dead) != 1 || dead[0].Reason != "context deadline exceeded" {
				t.Errorf("dead letters %+v", dead)
			}
		})
	})
}

func TestPoolBackpressureIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Queue: queue.Config{MaxLen: 1}})
		var running sync.WaitGroup
		running.Go(func() {
			if err := p.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		submit(t, p, "a", "b") // one in flight, one waiting
		if err := p.TrySubmit(queue.Request{ID: "x"}); !errors.Is(err, queue.ErrFull) {
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
		if err := p.Submit(ctx, queue.Request{ID: "impatient"}); err != context.DeadlineExceeded {
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

func TestPoolWhenEveryKeyIsBanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{
			Keys:  []dispatch.Key{{Name: "a", InFlight: 1}, {Name: "b", InFlight: 1}},
			Queue: queue.Config{MaxLen: 2},
			Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
				time.Sleep(10 * time.Millisecond)
				return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "418"}
			},
		})
		submit(t, p, "1", "2")
		var blocked error
		var wg sync.WaitGroup
		wg.Go(func() {
			for blocked == nil {
				blocked = p.Submit(context.Background(), queue.Request{})
			}
		})
		err := p.Run(context.Background())
		wg.Wait()
		if !errors.Is(err, dispatch.ErrExhausted) || !strings.Contains(err.Error(), "key a: 418") {
			t.Errorf("Run returned %v", err)
		}
		if !errors.Is(blocked, paceline.ErrClosed) || !errors.Is(blocked, dispatch.ErrExhausted) {
			t.Errorf("who waited for room got %v", blocked)
		}
		if c := p.Counts(); c.Waiting != c.Submitted {
			t.Errorf("%+v, want all to wait", c)
		}
		for _, k := range p.Keys() {
			if k.State != dispatch.Banned || k.Reason != "418" {
				t.Errorf("%+v", k)
			}
		}
	})
}

func TestPoolInFlightBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{InFlight: 2, Keys: []dispatch.Key{{}}})
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

// Ended may call the Pool, and is called once at a time, in order.
func TestPoolEndedMaySubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []string
		var p *paceline.Pool
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{}},
			Send: func(context.Context, dispatch.Attempt) dispatch.Answer { return served },
			Ended: func(e queue.Ended) {
				ends = append(ends, e.Request.ID)
				if len(ends) < 5 {
					if err := p.TrySubmit(queue.Request{ID: fmt.Sprint(len(ends))}); err != nil {
						t.Error(err)
					}
				} else {
					p.Close()
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "0")
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "ends", ends, "0", "1", "2", "3", "4")
	})
}

func TestPoolEndedIsCalledOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, inside := 0, false
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{}},
			Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
				time.Sleep(time.Duration(a.Request.Priority) * time.Millisecond)
				return served
			},
			Ended: func(queue.Ended) {
				if inside {
					t.Error("called while it was called")
				}
				inside = true
				time.Sleep(10 * time.Millisecond)
				inside = false
				calls++
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			if err := p.Submit(context.Background(), queue.Request{Priority: n}); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
		if err := p.Run(context.Background()); err != nil || calls != 5 {
			t.Errorf("Run returned %v after %d calls, want all 5 before", err, calls)
		}
	})
}

func TestPoolLetsNobodyOvertakeWhoWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Queue: queue.Config{MaxLen: 1}})
		submit(t, p, "a")
		var wg sync.WaitGroup
		wg.Go(func() { submit(t, p, "first") })
		synctest.Wait()
		p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
			ticket, _, _ := q.Lookup("a")
			q.Cancel(now, ticket)
		})
		if err := p.TrySubmit(queue.Request{ID: "overtaker"}); !errors.Is(err, queue.ErrFull) {
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

func TestPoolDrainsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Queue: queue.Config{MaxLen: 1}})
		submit(t, p, "a")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Submit(context.Background(), queue.Request{}); !errors.Is(err, paceline.ErrClosed) {
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
		wantCounts(t, p, queue.Counts{Submitted: 1, Waiting: 1})
	})
}

// A limiter with the history of a process that died, on the Pool's scale.
func TestPoolGoesOnWhereAnotherDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		l := limit.MustRolling(1, time.Second)
		sent := mono.Of(epoch, epoch.Add(-400*time.Millisecond))
		l.Settle(sent, l.Admit(sent, limit.One), served.Outcome)
		var log poolLog
		p := newPool(t, &log, paceline.PoolConfig{Epoch: epoch, Keys: []dispatch.Key{{Limiter: l}}})
		submit(t, p, "a")
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "sends", log.sends, "601.2ms a/1")
	})
}

func TestPoolHearsOfAnotherLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.MustRolling(1, time.Second)
		var log poolLog
		p := newPool(t, &log, paceline.PoolConfig{Keys: []dispatch.Key{{Limiter: l}}})
		submit(t, p, "a", "b", "c", "d")
		p.Close()
		set := func(after time.Duration, n int64) {
			time.AfterFunc(after, func() {
				p.Update(func(now mono.Time, _ *queue.Queue, _ *dispatch.Dispatcher) {
					if err := l.SetLimit(now, n); err != nil {
						t.Error(err)
					}
				})
			})
		}
		set(100*time.Millisecond, 3) // b and c go at once; d would at 1.0112s
		set(200*time.Millisecond, 1) // but now waits for b and c as well
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		last := len(log.sends) - 1
		if len(log.sends) != 4 || !strings.HasPrefix(log.sends[1], "100ms ") || !strings.HasPrefix(log.sends[2], "100ms ") || log.sends[last] != "1.1112s d/1" {
			t.Errorf("sends %v", log.sends)
		}
	})
}

// At its own bound the Pool sends nothing, but time goes on.
func TestPoolAtItsBoundNoticesDeadlinesAndRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: time.Hour}
		p := newPool(t, &l, paceline.PoolConfig{InFlight: 1, Keys: []dispatch.Key{{}}, Queue: queue.Config{MaxLen: 1}})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		submit(t, p, "a")
		if err := p.Submit(context.Background(), queue.Request{ID: "b", TTL: time.Second}); err != nil {
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
		p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
			ticket, _, _ := q.Lookup("c")
			q.Cancel(now, ticket)
		})
		synctest.Wait()
		wantCounts(t, p, queue.Counts{Submitted: 4, InFlight: 1, Waiting: 1, Expired: 1, Cancelled: 1})
		p.Drain()
		wg.Wait()
	})
}

func TestPoolRoomBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Queue: queue.Config{MaxLen: 1}})
		submit(t, p, "a")
		time.AfterFunc(time.Second, func() {
			p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
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

func TestPoolSendsWhatUpdateSubmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		time.Sleep(time.Second)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of Update's function was lost")
				}
			}()
			p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
				if _, err := q.Submit(now, queue.Request{ID: "x", Cost: limit.One}); err != nil {
					t.Error(err)
				}
				panic("after a change")
			})
		}()
		synctest.Wait()
		wantLines(t, "sends", l.sends, "1s x/1")
		p.Drain()
		wg.Wait()
	})
}

// What an answer is worth that comes while Run's context ends.
func TestPoolAnswersWhileAborting(t *testing.T) {
	for result, want := range map[limit.Result]queue.Counts{
		limit.Unknown:  {Submitted: 1, Waiting: 1},
		limit.Unsent:   {Submitted: 1, Waiting: 1},
		limit.Accepted: {Submitted: 1, Done: 1},
		limit.Failed:   {Submitted: 1, Dead: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l poolLog
			p := newPool(t, &l, paceline.PoolConfig{Queue: queue.Config{MaxAttempts: 1}, Send: func(ctx context.Context, _ dispatch.Attempt) dispatch.Answer {
				<-ctx.Done()
				return dispatch.Answer{Outcome: limit.Outcome{Result: result}}
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
		p := newPool(t, &l, paceline.PoolConfig{Keys: []dispatch.Key{{}}, Queue: queue.Config{MaxAttempts: 2},
			Send: func(context.Context, dispatch.Attempt) dispatch.Answer { runtime.Goexit(); return served }})
		submit(t, p, "a")
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "ends", l.ends, "a dead")
	})
}

// What may go at the end of an attempt goes in its goroutine, unless that is about to be gone.
func TestPoolSendThatNeverReturnsTakesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Keys: []dispatch.Key{{}}, InFlight: 1, Queue: queue.Config{MaxAttempts: 1},
			Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
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
			if _, ok := recover().(*paceline.SendPanic); !ok {
				t.Error("no panic")
			}
			wantLines(t, "ends", l.ends, "a dead", "b done", "c dead")
			wantCounts(t, p, queue.Counts{Submitted: 4, Done: 1, Dead: 2, Waiting: 1})
		}()
		t.Error(p.Run(context.Background()))
	})
}

func TestPoolSaysThatEveryKeyIsBanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *paceline.Pool
		var ends []string
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{Name: "k"}},
			Send: func(context.Context, dispatch.Attempt) dispatch.Answer {
				time.Sleep(2 * time.Second)
				return dispatch.Answer{Banned: true, Reason: "418"}
			},
			Ended: func(e queue.Ended) {
				ends = append(ends, e.Request.ID+" "+e.State.String())
				if err := p.TrySubmit(queue.Request{}); !errors.Is(err, paceline.ErrClosed) || !errors.Is(err, dispatch.ErrExhausted) {
					t.Errorf("TrySubmit when it is over: %v", err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Submit(context.Background(), queue.Request{ID: "a", TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		// Nothing waits, a has expired; but more might have come.
		if err := p.Run(context.Background()); !errors.Is(err, dispatch.ErrExhausted) {
			t.Errorf("Run returned %v", err)
		}
		wantLines(t, "ends", ends, "a expired")
	})
}

// Whoever holds a lock while they submit may take it in Ended and in the log's handler.
func TestPoolCallsBackWithNoLockHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *paceline.Pool
		var callers, mu sync.Mutex
		var lines []string
		told := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}
		handler := slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.MessageKey {
				p.Counts()
				told(a.Value.String())
			}
			return a
		}})
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{Limiter: limit.MustRolling(1, time.Second)}}, Log: slog.New(handler),
			Send: func(context.Context, dispatch.Attempt) dispatch.Answer { return served },
			Ended: func(e queue.Ended) {
				callers.Lock()
				defer callers.Unlock()
				told(e.State.String())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		synctest.Wait()
		callers.Lock()
		if err := p.Submit(context.Background(), queue.Request{Cost: limit.Cost{limit.Requests: 2}}); err != nil { // dead at once
			t.Error(err)
		}
		callers.Unlock()
		submit(t, p, "a")
		p.Close()
		wg.Wait()
		slices.Sort(lines)
		wantLines(t, "told", lines, "answer", "dead", "done")
	})
}

// What expires makes room, and who comes in for it goes at once where a key is free.
func TestPoolRoomOnAnIdleKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Keys: []dispatch.Key{{}}, Queue: queue.Config{MaxLen: 1}})
		p.Update(func(now mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) {
			d.Hold(now, 0, now.Add(500*time.Millisecond))
		})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		if err := p.Submit(context.Background(), queue.Request{ID: "a", TTL: 500 * time.Millisecond}); err != nil {
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

// The timer is armed for what the head of the queue waits for now, not for what it waited for.
func TestPoolWakesOnlyForTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		submit(t, p, "a", "b")
		time.Sleep(500 * time.Millisecond)
		p.Update(func(now mono.Time, q *queue.Queue, d *dispatch.Dispatcher) { d.Hold(now, 0, now.Add(5*time.Second)) })
		time.Sleep(2 * time.Second)
		if n := p.WakeUps(); n != 0 {
			t.Errorf("%d wake-ups for a request that is held back", n)
		}
		p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
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

// The end of Run's context is noticed by whoever comes first: here Run is busy telling.
func TestPoolAbortsWhileTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{}},
			Send: func(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
				if a.Request.ID == "quick" {
					return served
				}
				<-ctx.Done()
				return dispatch.Answer{}
			},
			Ended: func(queue.Ended) { time.Sleep(2 * time.Second) },
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "quick")
		time.AfterFunc(100*time.Millisecond, func() { _ = p.TrySubmit(queue.Request{ID: "slow"}) })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if err := p.Run(ctx); err != context.DeadlineExceeded || time.Since(began) != 2*time.Second {
			t.Errorf("Run returned %v after %v, want after it told of the last", err, time.Since(began))
		}
		p.Update(func(_ mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
			for _, ticket := range q.Waiting() {
				attempts = append(attempts, q.Info(ticket).Attempts)
			}
		})
		if len(attempts) != 1 || attempts[0] != 0 {
			t.Errorf("attempts of what waits: %v, want one request with none", attempts)
		}
	})
}

// What Ended does still counts, though nothing else is left.
func TestPoolEndedMayRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		var p *paceline.Pool
		sends := 0
		var attempt context.Context
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{}}, Timeout: time.Hour,
			Send: func(ctx context.Context, _ dispatch.Attempt) dispatch.Answer {
				attempt = ctx
				if sends++; sends == 1 {
					return dispatch.Answer{Invalid: true}
				}
				return served
			},
			Ended: func(e queue.Ended) {
				l.ended(e)
				if e.State == queue.Dead {
					time.Sleep(time.Second)
					p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
						if err := q.Requeue(now, e.Ticket); err != nil {
							t.Error(err)
						}
					})
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "a")
		p.Close()
		time.AfterFunc(500*time.Millisecond, p.Close) // comes by while Ended is busy
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "ends", l.ends, "a dead", "a done")
		if attempt.Err() != context.Canceled {
			t.Errorf("the context of an attempt that is over: %v", attempt.Err())
		}
	})
}

// Room comes while a caller of Submit gives up, in real time: the lock is held when its context ends.
func TestPoolGivesUpAsRoomComes(t *testing.T) {
	in := 0
	for range 100 {
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{Queue: queue.Config{MaxLen: 1}})
		submit(t, p, "a")
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- p.Submit(ctx, queue.Request{}) }()
		for waits := false; !waits; waits = paceline.Submitters(p) == 1 {
			runtime.Gosched()
		}
		p.Update(func(now mono.Time, q *queue.Queue, _ *dispatch.Dispatcher) {
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

func TestPoolRunOutlivesItsLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		slow := slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.MessageKey {
				time.Sleep(time.Second)
			}
			return a
		}})
		p := newPool(t, &l, paceline.PoolConfig{Log: slog.New(slow)})
		submit(t, p, "a")
		p.Close()
		began := time.Now()
		if err := p.Run(context.Background()); err != nil || time.Since(began) != 1010*time.Millisecond {
			t.Errorf("Run returned %v after %v, want after the line was written", err, time.Since(began))
		}
	})
}

func TestPoolEpochFollowsNoWallClock(t *testing.T) {
	epoch := time.Now().Round(0).Add(-time.Minute) // no monotonic reading
	var l poolLog
	p := newPool(t, &l, paceline.PoolConfig{Epoch: epoch})
	if s := paceline.Epoch(p).String(); !strings.Contains(s, "m=") {
		t.Errorf("epoch %s has no monotonic reading", s)
	}
	if at := time.Duration(p.Now()); at < time.Minute || at > 2*time.Minute {
		t.Errorf("now is %v after an epoch a minute ago", at)
	}
}

// In real time and, in ./check, under the race detector: whatever others do when the end comes, nothing is sent or told
// after Run.
func TestPoolEndsOnce(t *testing.T) {
	for range 300 {
		var returned atomic.Bool
		var after atomic.Int32
		p, err := paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{Name: "k"}},
			Send: func(context.Context, dispatch.Attempt) dispatch.Answer {
				if returned.Load() {
					after.Add(1)
				}
				return dispatch.Answer{Banned: true}
			},
			Ended: func(queue.Ended) {
				if returned.Load() {
					after.Add(1)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "a")
		var wg sync.WaitGroup
		stop := make(chan struct{})
		meddle := func(f func()) {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						f()
						runtime.Gosched() // two that never yield are all cores of a small machine
					}
				}
			})
		}
		resumes := 0
		meddle(func() {
			p.Update(func(_ mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) {
				if resumes++; resumes < 50 && d.Exhausted() != nil {
					d.Resume(0)
				}
			})
		})
		meddle(func() { _ = p.TrySubmit(queue.Request{TTL: -1}) })
		if err := p.Run(context.Background()); !errors.Is(err, dispatch.ErrExhausted) {
			t.Fatal(err)
		}
		returned.Store(true)
		if n := p.Counts().InFlight; n > 0 {
			t.Fatalf("%d in flight after Run", n)
		}
		close(stop)
		wg.Wait()
		if n := after.Load(); n > 0 {
			t.Fatalf("%d sent or told after Run", n)
		}
	}
}

func TestPoolStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		answers := map[string][]limit.Outcome{
			"1": {{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: 30}}},
			"2": {{Result: limit.Limited}, {Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: 12}}},
			"3": {{Result: limit.Failed}, {Result: limit.Unsent}, {}, {}},
		}
		var mu sync.Mutex
		p := newPool(t, &poolLog{}, paceline.PoolConfig{
			Keys: []dispatch.Key{{Name: "a", InFlight: 1}, {Name: "b", InFlight: 1}}, Queue: queue.Config{MaxAttempts: 3},
			Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				o := answers[a.Request.ID][0]
				answers[a.Request.ID] = answers[a.Request.ID][1:]
				return dispatch.Answer{Outcome: o}
			},
		})
		submit(t, p, "1", "2", "3")
		if got, want := p.Stats(), (paceline.Stats{At: epoch, Waiting: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		go func() { _ = p.Run(t.Context()) }()
		synctest.Wait()
		if got, want := p.Stats(), (paceline.Stats{At: epoch, Waiting: 1, InFlight: 2, Admitted: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(time.Minute)
		p.Close()
		got := p.Stats()
		want := paceline.Stats{At: epoch.Add(time.Minute), Admitted: 7, Accepted: 2, Limited: 1, Failed: 1, Unknown: 2, Unsent: 1}
		want.Used = limit.Cost{limit.Requests: 2, limit.Tokens: 42}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		a, b := p.Keys()[0], p.Keys()[1]
		if a.Sent+b.Sent != 7 || a.Sum() != int64(a.Sent) || b.Sum() != int64(b.Sent) || a.Limited != 0 || b.Limited != 1 {
			t.Errorf("keys %+v and %+v", a, b)
		}
	})
}

func TestPoolLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var l poolLog
		p := newPool(t, &l, paceline.PoolConfig{
			Log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		submit(t, p, "a")
		if err := p.Submit(context.Background(), queue.Request{ID: "late", Cost: limit.One, TTL: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"msg=answer id=a attempt=1 key=k result=accepted", "took=10ms", "msg=expired id=late attempts=0"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("log has no %q:\n%s", want, &text)
			}
		}
	})
}

func TestPoolBadConfig(t *testing.T) {
	send := func(context.Context, dispatch.Attempt) dispatch.Answer { return served }
	keys := []dispatch.Key{{}}
	for want, c := range map[string]paceline.PoolConfig{
		"paceline: Pool: Send is nil":              {Keys: keys},
		"paceline: Pool: Timeout -1ns is negative": {Keys: keys, Send: send, Timeout: -1},
		"paceline: Pool: InFlight -1 is negative":  {Keys: keys, Send: send, InFlight: -1},
		"dispatch: Keys is empty":                  {Send: send},
	} {
		if _, err := paceline.NewPool(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// However submits, answers, drains and aborts fall, every request is accounted for and Run returns.
func FuzzPool(f *testing.F) {
	f.Add(uint64(1), uint8(20), uint8(0))
	f.Add(uint64(2), uint8(100), uint8(1))
	f.Add(uint64(3), uint8(100), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, n, stop uint8) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rng.IntN(n)
			}
			ended := 0
			p, err := paceline.NewPool(paceline.PoolConfig{
				Keys:    []dispatch.Key{{Limiter: limit.MustRolling(5, time.Second)}, {InFlight: 1, Nonce: &dispatch.NonceConfig{}}},
				Queue:   queue.Config{MaxLen: 4, MaxAttempts: 3},
				Timeout: 200 * time.Millisecond,
				Ended:   func(queue.Ended) { ended++ },
				Send: func(ctx context.Context, _ dispatch.Attempt) dispatch.Answer {
					time.Sleep(time.Duration(draw(50)) * time.Millisecond)
					select {
					case <-ctx.Done():
					case <-time.After(time.Duration(draw(300)) * time.Millisecond):
					}
					return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Result(draw(5))}}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var wg sync.WaitGroup
			accepted := 0
			wg.Go(func() {
				for range n {
					r := queue.Request{Cost: limit.One}
					if draw(3) == 0 {
						r.TTL = time.Duration(draw(2000)) * time.Millisecond
					}
					if p.Submit(ctx, r) == nil {
						accepted++
					}
					time.Sleep(time.Duration(draw(100)) * time.Millisecond)
				}
				switch stop % 3 {
				case 0:
					p.Close()
				case 1:
					p.Drain()
				case 2:
					cancel()
				}
			})
			err = p.Run(ctx)
			wg.Wait()
			if (err != nil) != (stop%3 == 2) {
				t.Fatalf("Run returned %v", err)
			}
			c := p.Counts()
			if c.Check() != nil || c.InFlight != 0 || c.Submitted != accepted || ended != accepted-c.Waiting || stop%3 == 0 && c.Waiting != 0 {
				t.Fatalf("%+v, %d submitted, %d ended", c, accepted, ended)
			}
		})
	})
}
