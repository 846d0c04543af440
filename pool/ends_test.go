package pool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// A slow Ended delays Submit. The unreported ends stay within a thousand or so, and all are
// reported in the end.
func TestPoolSlowEndedHoldsSubmitBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 5000
		told, most := 0, 0
		var submitted atomic.Int64
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, InFlight: 10,
			Send: func(context.Context, pool.Attempt) pool.Answer {
				time.Sleep(10 * time.Microsecond)
				return served
			},
			Ended: func(pool.Ended) {
				time.Sleep(ms)
				told++
				most = max(most, int(submitted.Load())-told)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range all {
				if err := p.Submit(bg, pool.Request{}); err != nil {
					t.Error(err)
				}
				submitted.Add(1)
				time.Sleep(time.Microsecond)
			}
			p.Close()
		}()
		start := time.Now()
		if err := p.Run(bg); err != nil {
			t.Error(err)
		}
		if told != all || time.Since(start).Round(ms) != all*ms {
			t.Errorf("told of %d after %v", told, time.Since(start))
		}
		if most > 1001+64 || most < 900 {
			t.Errorf("%d were untold at most, want about a thousand", most)
		}
	})
}

// Once Ended has caught up the Pool takes as many as ever.
func TestPoolThatCaughtUpIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, InFlight: 10,
			Send: func(context.Context, pool.Attempt) pool.Answer {
				time.Sleep(10 * time.Microsecond)
				return served
			},
			Ended: func(pool.Ended) { time.Sleep(ms); told++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 2000 {
				if err := p.Submit(bg, pool.Request{}); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Microsecond)
			}
			time.Sleep(time.Minute)
			for n := range 5000 {
				if err := p.TrySubmit(pool.Request{}); err != nil {
					t.Errorf("at %d: %v", n, err)
					break
				}
			}
			p.Close()
		}()
		if err := p.Run(bg); err != nil || told != 7000 {
			t.Errorf("told of %d: %v", told, err)
		}
	})
}

// Its context ends: the ends so far are reported, which are no more than a thousand.
func TestPoolSlowEndedDoesNotOutliveRunForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, InFlight: 10,
			Send: func(context.Context, pool.Attempt) pool.Answer {
				time.Sleep(10 * time.Microsecond)
				return served
			},
			Ended: func(pool.Ended) { time.Sleep(ms) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(bg)
		go func() {
			for p.Submit(ctx, pool.Request{}) == nil {
				time.Sleep(2 * time.Microsecond)
			}
		}()
		time.AfterFunc(5*time.Second, cancel)
		start := time.Now()
		p.Run(ctx)
		if took := time.Since(start); took > 6100*ms {
			t.Errorf("Run returned after %v, want a second after its context ended", took)
		}
	})
}

// Earlier submissions are held back too: all requests of a file, say. All of them are sent in the
// end.
func TestPoolSlowEndedHoldsSendingBack(t *testing.T) {
	for _, broken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const all, atOnce = 20_000, 10
			sent, told, most := 0, 0, 0
			var mu sync.Mutex
			p, err := pool.New(pool.Config{
				Keys: []pool.Key{{}}, InFlight: atOnce,
				Send: func(context.Context, pool.Attempt) pool.Answer {
					mu.Lock()
					defer mu.Unlock()
					sent++
					most = max(most, sent-told)
					return served
				},
				Ended: func(pool.Ended) {
					time.Sleep(ms)
					mu.Lock()
					defer mu.Unlock()
					told++
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for range all {
				if err := p.Submit(bg, pool.Request{}); err != nil {
					t.Fatal(err)
				}
			}
			p.Close()
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			if broken {
				time.AfterFunc(5*time.Second, cancel)
			}
			start := time.Now()
			err = p.Run(ctx)
			took := time.Since(start)
			switch {
			case most < 1000 || most > 1000+64+2*atOnce || sent != told:
				t.Errorf("%d were untold at most, and of %d sent %d are told; want about a thousand, and all", most, sent, told)
			case broken && (!errors.Is(err, context.Canceled) || took > 6200*ms):
				t.Errorf("Run returned after %v: %v; want a second after its context ended", took, err)
			case !broken && (err != nil || told != all || took != all*ms):
				t.Errorf("told of %d after %v: %v", told, took, err)
			}
		})
	}
}

// Many requests expire at once. Their reports delay no request that is in time.
func TestPoolExpiryHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		start := time.Now()
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{Limiter: limit.MustRolling(1, 100*ms)}},
			Send: func(context.Context, pool.Attempt) pool.Answer {
				sent = append(sent, time.Since(start).Truncate(100*ms))
				return served
			},
			Ended: func(pool.Ended) { time.Sleep(ms) },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 5000 {
			if err := p.Submit(bg, pool.Request{TTL: ms}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := p.Submit(bg, pool.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
		time.Sleep(10 * ms)
		if err := p.Run(bg); err != nil || !slices.Equal(sent, []time.Duration{0, 100 * ms}) || time.Since(start) != 10*ms+5002*ms {
			t.Errorf("sent after %v, and all told after %v: %v", sent, time.Since(start), err)
		}
	})
}

// An Ended that has another follow each never waits for itself, however many others submit.
func TestPoolSlowEndedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follows := 0
		var p *pool.Pool
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}},
			Send: func(context.Context, pool.Attempt) pool.Answer { return served },
			Ended: func(e pool.Ended) {
				time.Sleep(ms)
				if e.Request.Value == nil {
					if err := p.TrySubmit(pool.Request{Value: "follows"}); err != nil {
						t.Error(err)
					}
					return
				}
				follows++
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 1500 {
					if err := p.Submit(bg, pool.Request{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		go func() { wg.Wait(); time.Sleep(10 * time.Second); p.Close() }()
		if err := p.Run(bg); err != nil {
			t.Error(err)
		}
		if follows != 4500 {
			t.Errorf("%d followed", follows)
		}
	})
}

func TestPoolTellsOfAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{})
		submit(t, p, "first", "waits", "last")
		p.Close()
		time.AfterFunc(5*ms, func() { // "first" is in flight for 10 ms
			p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
				for _, id := range []string{"waits", "first"} {
					ticket, _, _ := q.Lookup(id)
					q.Kill(now, ticket, "not wanted")
				}
			})
		})
		if err := p.Run(bg); err != nil {
			t.Error(err)
		}
		wantLines(t, "ends", l.ends, "waits dead", "first dead", "last done")
		wantCounts(t, p, pool.Counts{Submitted: 3, Done: 1, Dead: 2})
		if s := p.Stats(); s.Admitted != 2 || s.Accepted != 2 {
			t.Errorf("%+v: the key has had two answers", s)
		}
	})
}

// The TTL runs while Submit waits for room.
func TestPoolTTLRunsFromSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{Queue: pool.QueueConfig{MaxLen: 1}})
		go func() {
			submit(t, p, "a", "b")
			// One a second. "c" has room at 1.01 s, and goes at 2.02 s; "d" has room then, and is too late since 1.5 s.
			for id, ttl := range map[string]time.Duration{"c": 2100 * ms} {
				if err := p.Submit(bg, pool.Request{ID: id, TTL: ttl}); err != nil {
					t.Error(err)
				}
			}
			if err := p.Submit(bg, pool.Request{ID: "d", TTL: 500 * ms}); err != nil {
				t.Error(err)
			}
			p.Close()
		}()
		if err := p.Run(bg); err != nil {
			t.Error(err)
		}
		wantLines(t, "ends", l.ends, "a done", "b done", "d expired", "c done")
	})
}

// A panic of Send is Run's panic, once the others have returned and are reported; nothing is lost.
func TestPoolSendThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var ends []string
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, InFlight: 2, Queue: pool.QueueConfig{MaxAttempts: 1},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				if a.Request.ID == "bad" {
					panic(boom)
				}
				time.Sleep(time.Second)
				return served
			},
			Ended: func(e pool.Ended) { ends = append(ends, fmt.Sprint(e.Request.ID, " ", e.State)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "slow", "bad", "waits")
		p.Close()
		func() {
			defer func() {
				e, ok := recover().(*pool.SendPanic)
				if !ok || !errors.Is(e, boom) || e.Request.ID != "bad" || len(e.Stack) == 0 {
					t.Errorf("Run panicked with %v", e)
				}
			}()
			t.Error("Run returned", p.Run(bg))
		}()
		wantLines(t, "ends", ends, "bad dead", "slow done")
		wantCounts(t, p, pool.Counts{Submitted: 3, Waiting: 1, Dead: 1, Done: 1})
		if s := p.Stats(); s.Unknown != 1 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A key's lessons about a wrong limit are reported, with no lock held. A Pool that replaces the
// earlier one begins with them.
func TestPoolTellsWhatItLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lessons []limit.Lesson
		run := func() (refused int) {
			began, n := time.Now(), 0
			f := limit.NewFitted(limit.MustRolling(25, time.Second))
			for _, l := range lessons {
				if !f.Recall(0, l) {
					t.Errorf("not recalled: %+v", l)
				}
			}
			var p *pool.Pool
			p, err := pool.New(pool.Config{
				Keys: []pool.Key{{Name: "a"}, {Name: "b", Limiter: f}}, InFlight: 1,
				Send: func(_ context.Context, a pool.Attempt) pool.Answer {
					if time.Since(began) > time.Second {
						began, n = time.Now(), 0
					}
					if n++; n <= 20 || a.Key == 0 {
						return served
					}
					refused++
					return pool.Answer{Outcome: limit.Outcome{Result: limit.Limited}}
				},
				Learned: func(key int, all []limit.Lesson) {
					if lessons = all; key != 1 || p.Keys()[1].Name != "b" {
						t.Errorf("key %d has learned %+v", key, all)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			p.Update(func(_ mono.Time, _ *pool.Queue, d *pool.Dispatcher) { d.Ban(0, "for this test") })
			for i := range 200 {
				if err := p.TrySubmit(pool.Request{ID: fmt.Sprint(i), Cost: limit.One}); err != nil {
					t.Fatal(err)
				}
			}
			p.Close()
			if err := p.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			return refused
		}
		if n := run(); n == 0 || len(lessons) != 1 || lessons[0].Fits != 20 {
			t.Fatalf("%d refused, learned %+v", n, lessons)
		}
		for i := range lessons {
			lessons[i] = lessons[i].Moved(-time.Hour)
		}
		time.Sleep(time.Second)
		if n := run(); n != 0 {
			t.Errorf("%d refused by the second", n)
		}
	})
}

// Several ends at once are reported in their order, each once, and to EndedAll alone.
func TestPoolTellsSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends, want []string
		calls, alone := 0, 0
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, InFlight: 1, Send: func(context.Context, pool.Attempt) pool.Answer { return served },
			Ended: func(pool.Ended) { alone++ },
			EndedAll: func(all []pool.Ended) {
				for _, e := range all {
					ends = append(ends, e.Request.ID)
				}
				if calls++; len(all) > 64 {
					t.Errorf("%d at once", len(all))
				}
				time.Sleep(time.Millisecond) // meanwhile others end
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			want = append(want, fmt.Sprint(i))
			submit(t, p, fmt.Sprint(i))
		}
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ends, want) || alone > 0 || calls > 10 {
			t.Errorf("told in %d calls: %v, and %d alone", calls, ends, alone)
		}
	})
}

// Ended may call the Pool, and is called once at a time, in order.
func TestPoolEndedMaySubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []string
		var p *pool.Pool
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}},
			Send: func(context.Context, pool.Attempt) pool.Answer { return served },
			Ended: func(e pool.Ended) {
				ends = append(ends, e.Request.ID)
				if len(ends) < 5 {
					if err := p.TrySubmit(pool.Request{ID: fmt.Sprint(len(ends))}); err != nil {
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
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				time.Sleep(time.Duration(a.Request.Priority) * time.Millisecond)
				return served
			},
			Ended: func(pool.Ended) {
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
			if err := p.Submit(context.Background(), pool.Request{Priority: n}); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
		if err := p.Run(context.Background()); err != nil || calls != 5 {
			t.Errorf("Run returned %v after %d calls, want all 5 before", err, calls)
		}
	})
}

// A requeue by Ended still counts, though no other request is left.
func TestPoolEndedMayRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		var p *pool.Pool
		sends := 0
		var attempt context.Context
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, Timeout: time.Hour,
			Send: func(ctx context.Context, _ pool.Attempt) pool.Answer {
				attempt = ctx
				if sends++; sends == 1 {
					return pool.Answer{Invalid: true}
				}
				return served
			},
			Ended: func(e pool.Ended) {
				l.ended(e)
				if e.State == pool.Dead {
					time.Sleep(time.Second)
					p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
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

// In real time and, in ./check, under the race detector. Whatever other goroutines do at the end,
// nothing is sent or reported after Run.
func TestPoolEndsOnce(t *testing.T) {
	for range 300 {
		var returned atomic.Bool
		var after atomic.Int32
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{Name: "k"}},
			Send: func(context.Context, pool.Attempt) pool.Answer {
				if returned.Load() {
					after.Add(1)
				}
				return pool.Answer{Banned: true}
			},
			Ended: func(pool.Ended) {
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
			p.Update(func(_ mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
				if resumes++; resumes < 50 && d.Exhausted() != nil {
					d.Resume(0)
				}
			})
		})
		meddle(func() { _ = p.TrySubmit(pool.Request{TTL: -1}) })
		if err := p.Run(context.Background()); !errors.Is(err, pool.ErrExhausted) {
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

// SetInFlight lets the next requests go at once, and breaks none off.
func TestPoolSetInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var sent []string
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{}}, InFlight: 1,
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				mu.Lock()
				sent = append(sent, fmt.Sprint(a.Request.ID, " ", time.Since(began)))
				mu.Unlock()
				time.Sleep(10 * time.Second)
				return served
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, "a", "b", "c", "d")
		p.Close()
		time.AfterFunc(3*time.Second, func() { p.SetInFlight(2) })
		time.AfterFunc(5*time.Second, func() { p.SetInFlight(1) })
		if err := p.Run(bg); err != nil {
			t.Fatal(err)
		}
		wantLines(t, "sent", sent, "a 0s", "b 3s", "c 13s", "d 23s")
		defer func() {
			if recover() == nil {
				t.Error("a negative number was taken")
			}
		}()
		p.SetInFlight(-1)
	})
}
