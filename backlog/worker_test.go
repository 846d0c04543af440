package backlog_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// open opens a new backlog with n requests, "1" to n, in a file.
func open(t testing.TB, n int) *backlog.Backlog {
	t.Helper()
	return openAs(t, n, func(s backlog.Store) backlog.Store { return s })
}

// openAs is open for what as makes of the store.
func openAs(t testing.TB, n int, as func(backlog.Store) backlog.Store) *backlog.Backlog {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b, err := backlog.Open(t.Context(), as(s), "jobs", backlog.Options{Format: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var jobs []backlog.Job
	for i := range n {
		jobs = append(jobs, backlog.Job{ID: fmt.Sprint(i + 1), Data: []byte{byte(i)}})
	}
	if added, err := b.Enqueue(t.Context(), jobs...); err != nil || added != n {
		t.Fatalf("%d of %d are added, %v", added, n, err)
	}
	return b
}

// results returns the results in their order.
func results(t testing.TB, b *backlog.Backlog) (all []backlog.Result) {
	t.Helper()
	for r, err := range b.Results(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// A Worker sends all within its limit, and ends when nothing is left.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		b := open(t, n)
		var mu sync.Mutex
		var sent []time.Time
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Gate: paceline.NewGate(limit.MustRolling(20, time.Second)), UntilEmpty: true,
			Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
				if !a.Fresh() {
					return backlog.NotSent()
				}
				mu.Lock()
				sent = append(sent, time.Now())
				mu.Unlock()
				time.Sleep(30 * time.Millisecond)
				return backlog.Finished(backlog.Answer{State: backlog.Done, Line: append([]byte("of "), a.Data...)})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if len(sent) != n {
			t.Errorf("%d of %d were sent", len(sent), n)
		}
		// 20 at once, and 20 more each 1.03 s.
		if d := sent[len(sent)-1].Sub(began); d > 16*time.Second {
			t.Errorf("the last one went after %v", d)
		}
		for i, r := range results(t, b) {
			if r.ID != fmt.Sprint(i+1) || r.State != backlog.Done || r.Repeat || r.Attempts != 1 || string(r.Line) != "of "+string([]byte{byte(i)}) {
				t.Errorf("result %d is %+v", i, r)
			}
		}
		if all, err := b.Workers(t.Context()); err != nil || len(all) != 1 || !all[0].Dead || all[0].Results != n {
			t.Errorf("the workers are %+v, %v", all, err)
		}
	})
}

// A Worker whose context is done gives back what it holds, and waits for what is in flight.
func TestWorkerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 50)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		calls := 0
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Concurrency: 3,
			Do: func(ctx context.Context, a *backlog.Attempt) backlog.Reply {
				mu.Lock()
				calls++
				mu.Unlock()
				select {
				case <-time.After(10 * time.Second):
					return backlog.Finished(backlog.Answer{State: backlog.Done})
				case <-ctx.Done():
					t.Error("the call was cut off within the grace")
					return backlog.Retry(0, true, backlog.Answer{})
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Second, cancel)
		began := time.Now()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("it ended after %v", d)
		}
		c, err := b.Count(t.Context())
		if want := (backlog.Counts{Total: 50, Ready: 47, Done: 3}); err != nil || c != want || calls != 3 {
			t.Errorf("%d calls, and then %+v, expected %+v: %v", calls, c, want, err)
		}
	})
}

// Requests that fail rest and go again, and are dead after their attempts. RetryDead lets them go again.
func TestWorkerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 3)
		if _, err := b.Enqueue(t.Context(), backlog.Job{ID: "expired", Deadline: time.Now().Add(-time.Second)},
			backlog.Job{ID: "due", Due: time.Now().Add(20 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		tries := map[string]int{}
		heals := false
		run := func() {
			w, err := backlog.NewWorker(backlog.WorkerConfig{
				Backlog: b, UntilEmpty: true, Attempts: 3,
				Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
					mu.Lock()
					defer mu.Unlock()
					tries[a.ID]++
					switch {
					case a.ID == "2" && !heals:
						return backlog.Retry(time.Duration(a.Attempts*15)*time.Second, false, backlog.Answer{Class: "status 500", Line: []byte("no")})
					case a.ID == "3" && a.Attempts == 0:
						return backlog.Retry(time.Second, true, backlog.Answer{})
					}
					return backlog.Finished(backlog.Answer{State: backlog.Done})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}
		began := time.Now()
		run()
		if d := time.Since(began); d < 20*time.Second || d > 25*time.Second {
			t.Errorf("it ended after %v", d)
		}
		check := func(i int, want backlog.Result) {
			t.Helper()
			r := results(t, b)[i]
			r.Seq, r.Worker, r.At = 0, 0, time.Time{}
			if fmt.Sprint(r) != fmt.Sprint(want) {
				t.Errorf("%s is %+v, expected %+v", want.ID, r, want)
			}
		}
		check(0, backlog.Result{ID: "1", State: backlog.Done, Attempts: 1})
		check(1, backlog.Result{ID: "2", State: backlog.Dead, Class: "status 500", Attempts: 3, Line: []byte("no")})
		check(2, backlog.Result{ID: "3", State: backlog.Done, Attempts: 2, Repeat: true})
		check(3, backlog.Result{ID: "expired", State: backlog.Expired})
		check(4, backlog.Result{ID: "due", State: backlog.Done, Attempts: 1})
		if fmt.Sprint(tries) != "map[1:1 2:3 3:2 due:1]" {
			t.Errorf("the attempts are %v", tries)
		}
		heals = true
		if n, err := b.RetryDead(t.Context(), "status 500"); n != 1 || err != nil {
			t.Errorf("%d go again, %v", n, err)
		}
		run()
		check(1, backlog.Result{ID: "2", State: backlog.Done, Attempts: 1})
	})
}

// What a worker had that died goes on after 15 s, and what may have been sent twice is named.
func TestWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 10)
		s, err := backlog.NewSession(backlog.SessionConfig{Backlog: b})
		if err != nil {
			t.Fatal(err)
		}
		dying, err := s.Take(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Stop(ctx); err == nil || !errors.Is(err, context.Canceled) {
			t.Errorf("a session that is cut off ends with %v", err)
		}
		if dying.Fresh() {
			time.Sleep(backlogFresh)
		}
		if dying.Fresh() {
			t.Error("it is fresh without turns")
		}
		w, err := backlog.NewWorker(backlog.WorkerConfig{Backlog: b, UntilEmpty: true,
			Do: func(context.Context, *backlog.Attempt) backlog.Reply {
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d < 14*time.Second || d > 17*time.Second {
			t.Errorf("it ended after %v", d)
		}
		named := 0
		all := results(t, b)
		for _, r := range all {
			if r.Repeat {
				named++
			}
			if r.ID == dying.ID && (!r.Repeat || r.Attempts != 2) {
				t.Errorf("what was in flight is %+v", r)
			}
		}
		if len(all) != 10 || named == 0 || named > 4 {
			t.Errorf("of %d %d are named", len(all), named)
		}
	})
}

// What a program of its own retries keeps its attempts and its doubt, also if another worker goes on.
func TestSessionTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 2)
		s, err := backlog.NewSession(backlog.SessionConfig{Backlog: b, UntilEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		one, err1 := s.Take(t.Context(), 0)
		two, err2 := s.Take(t.Context(), 0)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		one.Tried(false)
		one.Tried(true)
		two.Tried(true)
		one.End(backlog.Answer{State: backlog.Done})
		one.End(backlog.Answer{State: backlog.Dead})
		two.Unsent()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Take(t.Context(), 0); !errors.Is(err, backlog.ErrStopped) {
			t.Errorf("after Stop: %v", err)
		}
		if s, err = backlog.NewSession(backlog.SessionConfig{Backlog: b, UntilEmpty: true}); err != nil {
			t.Fatal(err)
		}
		if two, err = s.Take(t.Context(), 0); err != nil || two.ID != "2" || two.Attempts != 1 || !two.Doubt {
			t.Errorf("another session takes %+v, %v", two, err)
		}
		two.End(backlog.Answer{State: backlog.Done})
		if _, err := s.Take(t.Context(), 0); !errors.Is(err, backlog.ErrEmpty) {
			t.Errorf("at the end: %v", err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		for i, r := range results(t, b) {
			if r.State != backlog.Done || !r.Repeat || r.Attempts != 3-i {
				t.Errorf("result %d is %+v", i, r)
			}
		}
	})
}

const backlogFresh = 10 * time.Second

// Of a backlog that is removed nothing goes any more.
func TestWorkerRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 500)
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Gate: paceline.NewGate(limit.MustRolling(2, time.Second)),
			Do: func(context.Context, *backlog.Attempt) backlog.Reply {
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, func() {
			if err := b.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if err := w.Run(t.Context()); !errors.Is(err, backlog.ErrNoBacklog) {
			t.Errorf("it ended with %v", err)
		}
		if d := time.Since(began); d > 6*time.Second {
			t.Errorf("it ended after %v", d)
		}
	})
}

// While a backlog is paused nothing goes.
func TestWorkerPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 100)
		var mu sync.Mutex
		var sent []time.Duration
		began := time.Now()
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Gate: paceline.NewGate(limit.MustRolling(10, time.Second)), UntilEmpty: true,
			Do: func(context.Context, *backlog.Attempt) backlog.Reply {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Since(began))
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Second, func() { b.Pause(context.Background()) })
		time.AfterFunc(30*time.Second, func() { b.Resume(context.Background()) })
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		for _, d := range sent {
			if d > 3100*time.Millisecond && d < 30*time.Second {
				t.Errorf("one went after %v", d)
			}
		}
		if len(sent) != 100 {
			t.Errorf("%d were sent", len(sent))
		}
	})
}

// A lane whose limit has no room holds up no other, and a lane that no worker names waits.
func TestWorkerLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 100)
		var jobs []backlog.Job
		for lane := range int32(3) {
			for i := range 50 {
				jobs = append(jobs, backlog.Job{ID: fmt.Sprint("lane ", lane+1, " ", i), Lane: lane + 1})
			}
		}
		if _, err := b.Enqueue(t.Context(), jobs...); err != nil {
			t.Fatal(err)
		}
		gate := func(perSecond int64) *paceline.Gate {
			return paceline.NewGate(limit.MustRolling(perSecond, time.Second))
		}
		closed, err := limit.NewCooldown(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		closed.Extend(mono.Time(time.Hour))
		var mu sync.Mutex
		sent := map[int32]int{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Gate: gate(20), Lanes: map[int32]*paceline.Gate{1: gate(2), 2: paceline.NewGate(closed)},
			Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
				mu.Lock()
				defer mu.Unlock()
				sent[a.Lane]++
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if sent[0] != 100 || sent[1] < 18 || sent[1] > 22 || sent[2] != 0 || sent[3] != 0 {
			t.Errorf("in 10 s the lanes sent %v", sent)
		}
		if c, err := b.Count(t.Context()); err != nil || c.Held != 0 || c.Ready != int64(150-sent[1]) || c.Repeats != 0 {
			t.Errorf("then there are %+v, %v", c, err)
		}
	})
}

// Of 1,000 lanes with a limit each, one is paused for 60 s. The others send as much as the same program does with the
// limits alone.
func TestWorkerThousandLanes(t *testing.T) {
	need.WholeOnly(t, "a thousand lanes take 4 s")
	const (
		lanes, paused       = 1000, 0
		from, pause, ending = 10 * time.Second, 60 * time.Second, 70 * time.Second
	)
	type program func(t *testing.T, ctx context.Context, gates map[int32]*paceline.Gate, send func(lane int32))
	// rate counts what the other lanes send between from and the end of the pause, and what the paused lane sends
	// before and after that.
	rate := func(t *testing.T, run program) (others, early, late int) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(ending, cancel)
			gates := map[int32]*paceline.Gate{}
			for lane := range int32(lanes) {
				gates[lane] = paceline.NewGate(limit.MustRolling(1, 4*time.Second))
			}
			hold, err := limit.NewCooldown(pause)
			if err != nil {
				t.Fatal(err)
			}
			gates[paused] = paceline.NewGate(limit.NewAll(limit.MustRolling(1, 4*time.Second), hold))
			gates[paused].Update(func(now mono.Time) { hold.Extend(now.Add(pause)) })
			var mu sync.Mutex
			run(t, ctx, gates, func(lane int32) {
				mu.Lock()
				switch at := time.Since(began); {
				case lane == paused && at < pause:
					early++
				case lane == paused:
					late++
				case at >= from && at < pause:
					others++
				}
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			})
		})
		return others, early, late
	}
	alone, _, _ := rate(t, func(_ *testing.T, ctx context.Context, gates map[int32]*paceline.Gate, send func(int32)) {
		var all sync.WaitGroup
		for lane, gate := range gates {
			all.Go(func() {
				for {
					permit, err := gate.Wait(ctx, limit.One)
					if err != nil {
						return
					}
					send(lane)
					permit.Settle(limit.Outcome{Result: limit.Accepted})
				}
			})
		}
		all.Wait()
	})
	with, early, late := rate(t, func(t *testing.T, ctx context.Context, gates map[int32]*paceline.Gate, send func(int32)) {
		inMemory(t)
		b := openAs(t, 0, func(s backlog.Store) backlog.Store { return slow{s} })
		jobs := make([]backlog.Job, 0, 25*lanes)
		for i := range cap(jobs) {
			lane := int32(paused) // its requests stand before all others
			if i >= 5*lanes {
				lane = int32(i % lanes)
			}
			jobs = append(jobs, backlog.Job{ID: fmt.Sprint(i), Lane: lane})
		}
		if _, err := b.Enqueue(t.Context(), jobs...); err != nil {
			t.Fatal(err)
		}
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Lanes: gates,
			Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
				send(a.Lane)
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d requests with a backlog, %d without: %.1f %%", with, alone, 100*float64(with)/float64(alone))
	if 100*with < 95*alone || early > 0 || late == 0 {
		t.Errorf("the paused lane sent %d before its pause was over, and %d then", early, late)
	}
}

var errAway = errors.New("the store is away")
