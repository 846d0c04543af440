package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
)

const ms = time.Millisecond

var (
	bg       = context.Background()
	accepted = limit.Outcome{Result: limit.Accepted}
)

var served = pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func try(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Error(err)
	}
}

// poolLog is what a pool did, on its own scale.
type poolLog struct {
	mu     sync.Mutex
	pool   *pool.Pool
	sends  []string
	ends   []string
	asleep time.Duration // what an attempt takes; 0: 10 ms
}

func (l *poolLog) send(ctx context.Context, a pool.Attempt) pool.Answer {
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
		return pool.Answer{Reason: ctx.Err().Error()}
	}
}

func (l *poolLog) ended(e pool.Ended) {
	l.ends = append(l.ends, e.Request.ID+" "+e.State.String())
}

func newPool(t *testing.T, l *poolLog, c pool.Config) *pool.Pool {
	t.Helper()
	if c.Send == nil {
		c.Send = l.send
	}
	if c.Keys == nil {
		c.Keys = []pool.Key{{Name: "k", Limiter: limit.MustRolling(1, time.Second)}}
	}
	c.Ended = l.ended
	c.Backoff = pool.Backoff{Base: time.Second, Jitter: -1}
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l.pool = p
	return p
}

func submit(t *testing.T, p *pool.Pool, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := p.Submit(context.Background(), pool.Request{ID: id, Cost: limit.One}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantCounts(t *testing.T, p *pool.Pool, want pool.Counts) {
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
		p := newPool(t, &l, pool.Config{})
		submit(t, p, "a", "b", "c") // before Run: they wait
		p.Close()
		if err := p.Submit(context.Background(), pool.Request{}); !errors.Is(err, pool.ErrClosed) {
			t.Errorf("submit after Close: %v", err)
		}
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		// A window, a tick, drift and 0.1 ms after each answer.
		wantLines(t, "sends", l.sends, "0s a/1", "1.0112s b/1", "2.0224s c/1")
		wantLines(t, "ends", l.ends, "a done", "b done", "c done")
		wantCounts(t, p, pool.Counts{Submitted: 3, Done: 3})
		if n := p.WakeUps(); n != 2 {
			t.Errorf("%d wake-ups for two waits", n)
		}
		if err := p.Run(context.Background()); err == nil {
			t.Error("Run twice")
		}
	})
}

func TestPoolTimeoutThenRetryThenDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := poolLog{asleep: time.Hour}
		p := newPool(t, &l, pool.Config{
			Timeout: 500 * time.Millisecond,
			Keys:    []pool.Key{{Limiter: limit.MustRolling(100, time.Second)}},
			Queue:   pool.QueueConfig{MaxAttempts: 2},
		})
		submit(t, p, "a")
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantLines(t, "sends", l.sends, "0s a/1", "1.5s a/2")
		wantLines(t, "ends", l.ends, "a dead")
		p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			if dead := q.DeadLetters(); len(dead) != 1 || dead[0].Reason != "context deadline exceeded" {
				t.Errorf("dead letters %+v", dead)
			}
		})
	})
}

func TestPoolWhenEveryKeyIsBanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{
			Keys:  []pool.Key{{Name: "a", InFlight: 1}, {Name: "b", InFlight: 1}},
			Queue: pool.QueueConfig{MaxLen: 2},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				time.Sleep(10 * time.Millisecond)
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "418"}
			},
		})
		submit(t, p, "1", "2")
		var blocked error
		var wg sync.WaitGroup
		wg.Go(func() {
			for blocked == nil {
				blocked = p.Submit(context.Background(), pool.Request{})
			}
		})
		err := p.Run(context.Background())
		wg.Wait()
		if !errors.Is(err, pool.ErrExhausted) || !strings.Contains(err.Error(), "key a: 418") {
			t.Errorf("Run returned %v", err)
		}
		if !errors.Is(blocked, pool.ErrClosed) || !errors.Is(blocked, pool.ErrExhausted) {
			t.Errorf("who waited for room got %v", blocked)
		}
		if c := p.Counts(); c.Waiting != c.Submitted {
			t.Errorf("%+v, want all to wait", c)
		}
		for _, k := range p.Keys() {
			if !k.Banned() || k.Reason != "418" {
				t.Errorf("%+v", k)
			}
		}
	})
}

// A limiter with the history of a process that died, on the Pool's scale.
func TestPoolGoesOnWhereAnotherDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		l := limit.MustRolling(1, time.Second)
		sent := mono.Of(epoch, epoch.Add(-400*time.Millisecond))
		l.Settle(sent, limittest.Admit(l, sent, limit.One), &served.Outcome)
		var log poolLog
		p := newPool(t, &log, pool.Config{Epoch: epoch, Keys: []pool.Key{{Limiter: l}}})
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
		p := newPool(t, &log, pool.Config{Keys: []pool.Key{{Limiter: l}}})
		submit(t, p, "a", "b", "c", "d")
		p.Close()
		set := func(after time.Duration, n int64) {
			time.AfterFunc(after, func() {
				p.Update(func(now mono.Time, _ *pool.Queue, _ *pool.Dispatcher) {
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

func TestPoolSendsWhatUpdateSubmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l poolLog
		p := newPool(t, &l, pool.Config{})
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(context.Background()) })
		time.Sleep(time.Second)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of Update's function was lost")
				}
			}()
			p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
				if _, err := q.Submit(now, pool.Request{ID: "x", Cost: limit.One}); err != nil {
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

// A caller that holds a lock during Submit may take it in Ended and in the log's handler.
func TestPoolCallsBackWithNoLockHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *pool.Pool
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
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{Limiter: limit.MustRolling(1, time.Second)}}, Log: slog.New(handler),
			Send: func(context.Context, pool.Attempt) pool.Answer { return served },
			Ended: func(e pool.Ended) {
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
		if err := p.Submit(context.Background(), pool.Request{Cost: limit.Cost{limit.Requests: 2}}); err != nil { // dead at once
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

func TestPoolEpochFollowsNoWallClock(t *testing.T) {
	epoch := time.Now().Round(0).Add(-time.Minute) // no monotonic reading
	var l poolLog
	p := newPool(t, &l, pool.Config{Epoch: epoch})
	if s := pool.Epoch(p).String(); !strings.Contains(s, "m=") {
		t.Errorf("epoch %s has no monotonic reading", s)
	}
	if at := time.Duration(p.Now()); at < time.Minute || at > 2*time.Minute {
		t.Errorf("now is %v after an epoch a minute ago", at)
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
		p := newPool(t, &poolLog{}, pool.Config{
			Keys: []pool.Key{{Name: "a", InFlight: 1}, {Name: "b", InFlight: 1}}, Queue: pool.QueueConfig{MaxAttempts: 3},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				o := answers[a.Request.ID][0]
				answers[a.Request.ID] = answers[a.Request.ID][1:]
				return pool.Answer{Outcome: o}
			},
		})
		submit(t, p, "1", "2", "3")
		if got, want := p.Stats(), (observe.Stats{At: epoch, Waiting: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		go func() { _ = p.Run(t.Context()) }()
		synctest.Wait()
		if got, want := p.Stats(), (observe.Stats{At: epoch, Waiting: 1, InFlight: 2, Admitted: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(time.Minute)
		p.Close()
		got := p.Stats()
		want := observe.Stats{At: epoch.Add(time.Minute), Admitted: 7, Accepted: 2, Limited: 1, Failed: 1, Unknown: 2, Unsent: 1}
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

func TestPoolBadConfig(t *testing.T) {
	send := func(context.Context, pool.Attempt) pool.Answer { return served }
	keys := []pool.Key{{}}
	for want, c := range map[string]pool.Config{
		"paceline: Pool: Send is nil":              {Keys: keys},
		"paceline: Pool: Timeout -1ns is negative": {Keys: keys, Send: send, Timeout: -1},
		"paceline: Pool: InFlight -1 is negative":  {Keys: keys, Send: send, InFlight: -1},
		"dispatch: Keys is empty":                  {Send: send},
	} {
		if _, err := pool.New(c); err == nil || err.Error() != want {
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
			p, err := pool.New(pool.Config{
				Keys:    []pool.Key{{Limiter: limit.MustRolling(5, time.Second)}, {InFlight: 1, Nonce: &pool.NonceConfig{}}},
				Queue:   pool.QueueConfig{MaxLen: 4, MaxAttempts: 3},
				Timeout: 200 * time.Millisecond,
				Ended:   func(pool.Ended) { ended++ },
				Send: func(ctx context.Context, _ pool.Attempt) pool.Answer {
					time.Sleep(time.Duration(draw(50)) * time.Millisecond)
					select {
					case <-ctx.Done():
					case <-time.After(time.Duration(draw(300)) * time.Millisecond):
					}
					return pool.Answer{Outcome: limit.Outcome{Result: limit.Result(draw(5))}}
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
					r := pool.Request{Cost: limit.One}
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

// The Pool tells its limiters when its scale begins, also those that keys share.
func TestPoolOfAZone(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	days := func(n int64) limit.Limiter {
		l, err := limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: 24 * time.Hour, Zone: pacific})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, key := range []pool.Key{
		{Limiter: days(1)},
		{Shared: []*pool.Shared{{Name: "account", Limiter: days(1)}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log poolLog
			p := newPool(t, &log, pool.Config{Keys: []pool.Key{key}})
			submit(t, p, "a", "b", "c")
			p.Close()
			if err := p.Run(context.Background()); err != nil {
				t.Error(err)
			}
			wantLines(t, "sends", log.sends, "0s a/1", "8h0m0.05s b/1", "32h0m0.05s c/1")
		})
	}
}
