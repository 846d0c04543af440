package pool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/frontend"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
)

// Paused keys are shown in the order of their names, each with its end and its reason. A limit is
// shown with the number that wait for it. Stats, Keys and the sums of a Snapshot agree.
func TestPoolSnapshotOfPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var keys []pool.Key
		for _, name := range []string{"c", "a", "b"} {
			keys = append(keys, pool.Key{Name: name, Limiter: limit.Named("of "+name, limit.MustRolling(100, time.Minute))})
		}
		p := must(pool.New(pool.Config{
			Keys: keys,
			Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
				time.Sleep(time.Second)
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Duration(100-10*a.Key) * time.Second}, Reason: "429"}
			},
		}))
		if len(p.Snapshot().Waits) != 0 || p.Snapshot().Waiting != 0 {
			t.Errorf("before anything came: %+v", p.Snapshot())
		}
		for i := range 5 {
			try(t, p.Submit(t.Context(), pool.Request{ID: fmt.Sprint(i), Cost: limit.One}))
		}
		if s := p.Snapshot(); s.Waiting != 5 || s.LongestWait != 0 || len(s.Paused) != 0 || slices.ContainsFunc(s.Limits, func(l observe.LimitState) bool { return l.Waiting != 0 }) {
			t.Errorf("before it runs, where nothing stands in the way: %+v", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		s, stats := p.Snapshot(), p.Stats()
		var paused []string
		for _, b := range s.Paused {
			k := s.Keys[slices.IndexFunc(s.Keys, func(k observe.KeyState) bool { return k.Name == b.Key })]
			paused = append(paused, b.Key)
			// All were refused at 1 s, and asked to stay away for 100, 90 or 80 s.
			if want := began.Add(time.Duration(101-10*slices.Index([]string{"c", "a", "b"}, b.Key)) * time.Second); k.State != observe.KeyPaused || !b.Until.Equal(want) || !k.Until.Equal(want) || b.Why != "refused, 1 in a row" && b.Why != "refused, 2 in a row" || k.Why != b.Why || b.Next.Before(began) || b.Next.After(want) {
				t.Errorf("%+v, %+v", b, k)
			}
		}
		if !slices.Equal(paused, []string{"a", "b", "c"}) {
			t.Errorf("paused are %v", paused)
		}
		if len(s.Clients) != 1 || s.Clients[0].Name != "" || s.Clients[0].Weight != 1 || s.Clients[0].LongestWait != s.LongestWait || s.Clients[0].Counts != s.Counts {
			t.Errorf("it has one client, who is all of it: %+v", s.Clients)
		}
		var limits []string
		waiting := 0
		for _, l := range s.Limits {
			limits = append(limits, l.Name)
			if waiting += l.Waiting; l.PausedUntil.IsZero() || l.Why == "" || l.Waiting > 0 && l.Waiting != s.Waiting {
				t.Errorf("%+v", l)
			}
		}
		if !slices.Equal(limits, []string{"of a", "of b", "of c"}) {
			t.Errorf("limits are %v", limits)
		}
		if s.Waiting != 5 || s.Sent != s.Limited || stats.Waiting != 5 || stats.Limited != s.Limited || stats.Admitted != s.Sent || stats.InFlight != 0 || !stats.At.Equal(s.At) {
			t.Errorf("%+v, %+v", s, stats)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Every view of a Pool shows requests in flight as in flight. A host that is down is shown with the
// instant of the next probe.
func TestPoolSnapshotOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := must(pool.New(pool.Config{
			Keys:  []pool.Key{{Name: "a"}, {Name: "b"}},
			Queue: pool.QueueConfig{Host: func(r *pool.Request) string { return r.ID[:1] }},
			Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
				if a.Request.ID[0] == 'x' {
					time.Sleep(time.Second)
					return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}, Reason: (&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}).Error()}
				}
				time.Sleep(time.Hour)
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
			},
		}))
		for _, id := range []string{"x1", "x2", "y1", "y2", "y3"} {
			try(t, p.Submit(t.Context(), pool.Request{ID: id, Cost: limit.One}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(30*time.Second + time.Millisecond)
		s, stats := p.Snapshot(), p.Stats()
		inFlight := 0
		for _, k := range s.Keys {
			inFlight += k.InFlight
		}
		if n := s.InFlight; n < 3 || n > 4 || inFlight != n || stats.InFlight != n || s.Clients[0].InFlight != n || s.Waiting != 5-n || s.Clients[0].Waiting != 5-n || stats.Waiting != 5-n {
			t.Errorf("%+v, %+v", s, stats)
		}
		if len(s.Paused) != 1 || s.Paused[0].Host != "x" || !s.Paused[0].Down || s.Paused[0].Since.Before(began) || s.Paused[0].Since.After(began.Add(10*time.Second)) || !s.Paused[0].Next.After(s.Paused[0].Since) || s.Paused[0].Why == "" {
			t.Errorf("%+v", s.Paused)
		}
		cancel()
		<-done
	})
}

// Of a Pool, those who wait are at the limit of the key that is free first; each key says when one more would go.
func TestPoolSnapshotOfWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, none := time.Now(), time.Time{}
		p := must(pool.New(pool.Config{
			Keys: []pool.Key{{Name: "a", Limiter: frontend.Several(1, time.Minute, 2)}, {Name: "b", Limiter: frontend.Several(1, 30*time.Second, 1)}},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				if a.Key == 1 {
					time.Sleep(20 * time.Second)
				}
				return pool.Answer{Outcome: accepted}
			},
		}))
		for i := range 5 {
			try(t, p.Submit(t.Context(), pool.Request{ID: fmt.Sprint(i), Cost: limit.Cost{limit.Requests: 1, limit.Tokens: 4}}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(5 * time.Second)
		s := p.Snapshot()
		frontend.Shows(t, &s, "a", "few", 3, 1, began.Add(time.Minute), false) // nobody knows of the other when
		frontend.Shows(t, &s, "b", "few", 0, 0, none, true)                    // it counts from the answer on
		frontend.Shows(t, &s, "b", "open", 0, 1, none, true)
		time.Sleep(20 * time.Second)
		s = p.Snapshot()
		frontend.Shows(t, &s, "a", "day", 0, 1./100, began.Add(time.Minute), false)
		frontend.Shows(t, &s, "a", "few", 0, 1, began.Add(time.Minute), false)
		frontend.Shows(t, &s, "a", "words", 0, 4./5, began.Add(time.Minute), false)
		frontend.Shows(t, &s, "a", "open", 0, 0, began.Add(time.Minute), false)
		frontend.Shows(t, &s, "b", "few", 3, 1, began.Add(50*time.Second), false)
		frontend.Shows(t, &s, "b", "open", 0, 0, began.Add(50*time.Second), false)
		cancel()
		<-done
	})
}

// Each of a Pool's limits shows when a request of cost 1 in its unit would go: of words one more
// goes where two do not.
func TestPoolSnapshotOfOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, none := time.Now(), time.Time{}
		p := must(pool.New(pool.Config{
			Keys: []pool.Key{{Name: "a", Limiter: frontend.Several(9, time.Minute, 9)}},
			Send: func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{Outcome: accepted} },
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		for i, words := range []int64{4, 1} {
			try(t, p.Submit(t.Context(), pool.Request{ID: fmt.Sprint(i), Cost: limit.Cost{limit.Requests: 1, limit.Tokens: words}}))
			synctest.Wait()
			s, next := p.Snapshot(), []time.Time{none, began.Add(time.Minute)}[i]
			frontend.Shows(t, &s, "a", "words", 0, []float64{4. / 5, 1}[i], next, false)
			frontend.Shows(t, &s, "a", "few", 0, float64(i+1)/9, none, false)
		}
		cancel()
		<-done
	})
}
