package pool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// street is servers, by the first letter of a request's id: a is away from one instant to another.
type street struct {
	poolLog
	from, to time.Duration
	answer   pool.Answer // of a while it is away
	away     int         // tries meanwhile
	log      bytes.Buffer
}

func (s *street) send(_ context.Context, a pool.Attempt) pool.Answer {
	s.mu.Lock()
	now := time.Duration(s.pool.Now())
	gone := a.Request.ID[0] == 'a' && now >= s.from && now < s.to
	if gone {
		s.away++
	}
	s.mu.Unlock()
	if gone {
		time.Sleep(time.Millisecond)
		return s.answer
	}
	time.Sleep(20 * time.Millisecond)
	return served
}

var noServer = pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}, Reason: "connection refused"}

func (s *street) open(t *testing.T, c pool.Config) *pool.Pool {
	t.Helper()
	if s.answer.Result == 0 {
		s.answer = noServer
	}
	c.Send, c.Rand = s.send, rand.New(rand.NewPCG(1, 2))
	c.Keys = []pool.Key{{Gap: 10 * time.Millisecond}}
	c.Queue.Host = func(r *pool.Request) string { return r.ID[:1] }
	c.Log = slog.New(slog.NewTextHandler(&s.log, nil))
	return newPool(t, &s.poolLog, c)
}

func (s *street) said(what string) int { return strings.Count(s.log.String(), what) }

// Five seconds without a server at a hundred requests a second: a few tries, no dead letter, all done, and said once.
func TestPoolWithoutAServerForFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{from: time.Second, to: 6 * time.Second}
		p := s.open(t, pool.Config{})
		for i := range 1000 {
			submit(t, p, fmt.Sprint("a", i))
		}
		for i := range 100 {
			submit(t, p, fmt.Sprint("b", i))
		}
		p.Close()
		time.AfterFunc(3*time.Second, func() {
			hosts := p.Hosts()
			if len(hosts) == 0 || !slices.IsSortedFunc(hosts, func(a, b pool.HostInfo) int { return strings.Compare(a.Host, b.Host) }) {
				t.Errorf("after 3 s: %+v", hosts)
			}
			for _, h := range hosts {
				if want := h.Host == "a"; h.Down != want || want && (h.Kind != limit.Unreachable || h.Since < 0 || h.Waiting < 800) || !want && h.Waiting > 0 {
					t.Errorf("after 3 s: %+v", h)
				}
			}
		})
		began := time.Now()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantCounts(t, p, pool.Counts{Submitted: 1100, Done: 1100})
		if took := time.Since(began); s.away > 20 || took > 25*time.Second {
			t.Errorf("%d tries while it was away, %v in all", s.away, took)
		}
		if s.said("level=WARN msg=\"host is down\" host=a kind=unreachable reason=\"connection refused\"") != 1 || s.said("level=INFO msg=\"host is back\" host=a after=") != 1 {
			t.Errorf("said:\n%s", s.log.String())
		}
	})
}

func TestPoolGivesUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		max   time.Duration
		after time.Duration // of the error, at most
	}{{"after a minute", time.Minute, 61 * time.Second}, {"at once", -1, time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &street{to: 1 << 62}
				p := s.open(t, pool.Config{MaxOutage: c.max, Queue: pool.QueueConfig{MaxLen: 20}})
				submit(t, p, "b1", "a1", "a2", "b2", "a3")
				var blocked error
				go func() {
					for i := 0; blocked == nil; i++ {
						blocked = p.Submit(context.Background(), pool.Request{ID: fmt.Sprint("a more ", i)})
					}
				}()
				began := time.Now()
				err := p.Run(context.Background())
				synctest.Wait()
				var e *pool.OutageError
				if !errors.Is(err, pool.ErrOutage) || !errors.As(err, &e) || e.Host != "a" || e.Kind != limit.Unreachable || e.For < c.max || time.Since(began) > c.after {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if !errors.Is(blocked, pool.ErrClosed) || !errors.Is(blocked, pool.ErrOutage) {
					t.Errorf("who waited for room got %v", blocked)
				}
				if c := p.Counts(); c.Done != 2 || c.Waiting != c.Submitted-2 || c.Waiting < 20 {
					t.Errorf("%+v, want those of a to wait", c)
				}
			})
		})
	}
}

// An outage that has not lasted so long, or beside which there is something to do, ends no Run; nor does one that is drained.
func TestPoolDoesNotGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{to: 1 << 62}
		var news []string
		p := s.open(t, pool.Config{MaxOutage: 40 * time.Second, Outage: func(h pool.HostInfo) { news = append(news, fmt.Sprint(h.Host, " ", h.Down)) }})
		submit(t, p, "a1")
		// b1 waits out a backoff.
		p.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
			other, err := q.Submit(now, pool.Request{ID: "b1"})
			if err != nil {
				t.Fatal(err)
			}
			q.Take(now, other)
			q.Return(now, other, now.Add(time.Minute))
		})
		ran := make(chan error)
		go func() { ran <- p.Run(context.Background()) }()
		time.Sleep(59 * time.Second)
		wantCounts(t, p, pool.Counts{Submitted: 2, Waiting: 2})
		time.Sleep(2 * time.Second)
		if err := <-ran; !errors.Is(err, pool.ErrOutage) {
			t.Errorf("with nothing else to do Run returned %v", err)
		}
		wantCounts(t, p, pool.Counts{Submitted: 2, Waiting: 1, Done: 1})
		wantLines(t, "news", news, "a true")
	})
	synctest.Test(t, func(t *testing.T) {
		s := &street{to: 1 << 62}
		var p *pool.Pool
		p = s.open(t, pool.Config{MaxOutage: -1, Outage: func(pool.HostInfo) { p.Drain() }})
		submit(t, p, "a1")
		if err := p.Run(context.Background()); err != nil {
			t.Errorf("Run returned %v for a Drain", err)
		}
	})
}

// A deadline ends what is held, and with it the outage that nothing waits for.
func TestPoolExpiresWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{to: 1 << 62}
		p := s.open(t, pool.Config{MaxOutage: time.Hour})
		for i := range 10 {
			if err := p.Submit(context.Background(), pool.Request{ID: fmt.Sprint("a", i), TTL: 5 * time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
		began := time.Now()
		if err := p.Run(context.Background()); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("Run returned %v after %v", err, time.Since(began))
		}
		wantCounts(t, p, pool.Counts{Submitted: 10, Expired: 10})
	})
}

// A server that answers 500 for good: dead letters after all their attempts, by probes.
func TestPoolWithABrokenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{to: 1 << 62, answer: pool.Answer{Outcome: limit.Outcome{Result: limit.Failed, Link: limit.Broken}, Reason: "500"}}
		p := s.open(t, pool.Config{Queue: pool.QueueConfig{MaxAttempts: 3}})
		for i := range 50 {
			submit(t, p, fmt.Sprint("a", i))
		}
		p.Close()
		time.AfterFunc(10*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.away > 70 {
				t.Errorf("%d sent in 10 s", s.away)
			}
		})
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		wantCounts(t, p, pool.Counts{Submitted: 50, Dead: 50})
		if s.away != 150 {
			t.Errorf("%d attempts of 50 requests", s.away)
		}
	})
}

// Run is broken off while a host is down. Waiting requests still wait, with no attempt counted, and
// nothing is left running.
func TestPoolAbortsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{to: 1 << 62}
		p := s.open(t, pool.Config{})
		submit(t, p, "a1", "a2", "a3")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wantCounts(t, p, pool.Counts{Submitted: 3, Waiting: 3})
		if s.said("host is down") != 1 {
			t.Errorf("said:\n%s", s.log.String())
		}
		if p.WakeUps() > 40 {
			t.Errorf("%d wake-ups in a minute", p.WakeUps())
		}
	})
}
