package backlog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/limit"
)

// A worker whose context has a deadline sends until then, and does not try in vain for what would come later.
func TestWorkerDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, 10)
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, Gate: paceline.NewGate(limit.MustRolling(1, time.Second)),
			Do: func(context.Context, *backlog.Attempt) backlog.Reply {
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if c, err := b.Count(t.Context()); err != nil || c.Done != 3 || c.Held != 0 {
			t.Errorf("then there are %+v, %v", c, err)
		}
	})
}

// slow is a store whose turns last a while.
type slow struct{ backlog.Store }

func (s slow) Turn(ctx context.Context, id int64, t *backlog.Turn) (backlog.Outcome, error) {
	time.Sleep(8 * time.Millisecond)
	return s.Store.Turn(ctx, id, t)
}

// inMemory puts files into memory, if there is a folder for that. A disk takes half a minute for the turns.
func inMemory(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// Ten workers send as much as the same program does with the limit alone: no permit waits for its request. Time is
// virtual, so the load of the machine has no part in it.
func TestWorkerRate(t *testing.T) {
	const limited, workers, from, until = 200, 10, 3 * time.Second, 11 * time.Second
	type program func(t *testing.T, ctx context.Context, gate *paceline.Gate, send func(n int))
	rate := func(t *testing.T, run program) (sent int) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(until, cancel)
			var mu sync.Mutex
			run(t, ctx, paceline.NewGate(limit.MustRolling(limited, time.Second)), func(n int) {
				if time.Since(began) >= from {
					mu.Lock()
					sent++
					mu.Unlock()
				}
				time.Sleep(time.Duration(5+n*7%50) * time.Millisecond)
			})
		})
		return sent
	}
	alone := rate(t, func(t *testing.T, ctx context.Context, gate *paceline.Gate, send func(int)) {
		var all sync.WaitGroup
		var n atomic.Int64
		for range workers * 64 {
			all.Go(func() {
				for {
					permit, err := gate.Wait(ctx, limit.One)
					if err != nil {
						return
					}
					send(int(n.Add(1)))
					permit.Settle(limit.Outcome{Result: limit.Accepted})
				}
			})
		}
		all.Wait()
	})
	with := rate(t, func(t *testing.T, ctx context.Context, gate *paceline.Gate, send func(int)) {
		inMemory(t)
		b := openAs(t, limited*20, func(s backlog.Store) backlog.Store { return slow{s} })
		var all sync.WaitGroup
		for range workers {
			w, err := backlog.NewWorker(backlog.WorkerConfig{
				Backlog: b, Gate: gate,
				Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
					send(int(a.Seq))
					return backlog.Finished(backlog.Answer{State: backlog.Done})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	t.Logf("%d requests with a backlog, %d without: %.1f %%", with, alone, 100*float64(with)/float64(alone))
	if 1000*with < 995*alone {
		t.Error("the backlog slows it down")
	}
}

// away is a store that cannot be reached for a while.
type away struct {
	backlog.Store
	mu    sync.Mutex
	until time.Time
	lost  bool // what is done is done, and nobody learns of it
}

func (s *away) Turn(ctx context.Context, id int64, t *backlog.Turn) (backlog.Outcome, error) {
	s.mu.Lock()
	is, lost := time.Now().Before(s.until), s.lost
	s.lost = false
	s.mu.Unlock()
	if is {
		return backlog.Outcome{}, errAway
	}
	o, err := s.Store.Turn(ctx, id, t)
	if lost {
		return backlog.Outcome{}, errAway
	}
	return o, err
}

func (s *away) is() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until)
}

func (s *away) Read(ctx context.Context, worker int64) (backlog.Row, error) {
	if s.is() {
		return backlog.Row{}, errAway
	}
	return s.Store.Read(ctx, worker)
}

func (s *away) Look(ctx context.Context, id int64) ([]backlog.Beat, error) {
	if s.is() {
		return nil, errAway
	}
	return s.Store.Look(ctx, id)
}

// Without its store a worker sends only what was marked. When the store answers again,
// it goes on, and nothing is repeated. The same holds for a turn that is done and has no answer.
func TestWorkerWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		file := filepath.Join(t.TempDir(), "jobs.db")
		inner, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		s := &away{Store: inner}
		b, err := backlog.Open(t.Context(), s, "jobs", backlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if _, err := b.Enqueue(t.Context(), backlog.Job{ID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		var notices []error
		w, err := backlog.NewWorker(backlog.WorkerConfig{
			Backlog: b, UntilEmpty: true, Gate: paceline.NewGate(limit.MustRolling(10, time.Second)),
			Do: func(_ context.Context, a *backlog.Attempt) backlog.Reply {
				if !a.Fresh() {
					return backlog.NotSent()
				}
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Since(began))
				return backlog.Finished(backlog.Answer{State: backlog.Done})
			},
			Notice: func(err error) { notices = append(notices, err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		marked := int64(0)
		time.AfterFunc(5*time.Second, func() {
			all, err := b.Workers(t.Context())
			if err != nil || len(all) != 1 {
				t.Errorf("the workers are %v, %v", all, err)
				return
			}
			marked = all[0].Sending
			s.mu.Lock()
			defer s.mu.Unlock()
			s.until = time.Now().Add(30 * time.Second)
		})
		time.AfterFunc(40*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lost = true
		})
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		without := int64(0)
		for _, d := range sent {
			if d > 5*time.Second && d < 35*time.Second {
				without++
			}
		}
		if without > marked || marked > 10 { // what goes at once
			t.Errorf("%d went without the store, expected at most the %d that were marked", without, marked)
		}
		if len(sent) != n {
			t.Errorf("%d went", len(sent))
		}
		if fmt.Sprint(notices) != fmt.Sprint([]error{errAway, nil, errAway, nil}) {
			t.Errorf("it says %v", notices)
		}
		if c, err := b.Count(t.Context()); err != nil || c.Done != n || c.Repeats != 0 {
			t.Errorf("there are %+v, %v", c, err)
		}
	})
}
