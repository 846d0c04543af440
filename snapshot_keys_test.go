package paceline_test

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

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// Keys that stay away are told of in the order of their names, each with when it is back and why; a limit with how many wait for it; and
// Stats, Keys and the sums of a Snapshot agree.
func TestPoolSnapshotOfPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var keys []dispatch.Key
		for _, name := range []string{"c", "a", "b"} {
			keys = append(keys, dispatch.Key{Name: name, Limiter: limit.Named("of "+name, limit.MustRolling(100, time.Minute))})
		}
		p := must(paceline.NewPool(paceline.PoolConfig{
			Keys: keys,
			Send: func(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
				time.Sleep(time.Second)
				return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Duration(100-10*a.Key) * time.Second}, Reason: "429"}
			},
		}))
		if len(p.Snapshot().Waits) != 0 || p.Snapshot().Waiting != 0 {
			t.Errorf("before anything came: %+v", p.Snapshot())
		}
		for i := range 5 {
			try(t, p.Submit(t.Context(), queue.Request{ID: fmt.Sprint(i), Cost: limit.One}))
		}
		if s := p.Snapshot(); s.Waiting != 5 || s.LongestWait != 0 || len(s.Paused) != 0 || slices.ContainsFunc(s.Limits, func(l paceline.LimitState) bool { return l.Waiting != 0 }) {
			t.Errorf("before it runs, where nothing stands in the way: %+v", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		s, stats := p.Snapshot(), p.Stats()
		var paused []string
		for _, b := range s.Paused {
			k := s.Keys[slices.IndexFunc(s.Keys, func(k paceline.KeyState) bool { return k.Name == b.Key })]
			paused = append(paused, b.Key)
			// All were refused at 1 s, and asked to stay away for 100, 90 or 80 s.
			if want := began.Add(time.Duration(101-10*slices.Index([]string{"c", "a", "b"}, b.Key)) * time.Second); k.State != paceline.KeyPaused || !b.Until.Equal(want) || !k.Until.Equal(want) || b.Why != "refused, 1 in a row" && b.Why != "refused, 2 in a row" || k.Why != b.Why || b.Next.Before(began) || b.Next.After(want) {
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

// Requests in flight are in flight in all that is told of a Pool; and a host that is down is told with when it is looked at again.
func TestPoolSnapshotOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := must(paceline.NewPool(paceline.PoolConfig{
			Keys:  []dispatch.Key{{Name: "a"}, {Name: "b"}},
			Queue: queue.Config{Host: func(r *queue.Request) string { return r.ID[:1] }},
			Send: func(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
				if a.Request.ID[0] == 'x' {
					time.Sleep(time.Second)
					return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Sight: limit.Unreachable}, Reason: (&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}).Error()}
				}
				time.Sleep(time.Hour)
				return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
			},
		}))
		for _, id := range []string{"x1", "x2", "y1", "y2", "y3"} {
			try(t, p.Submit(t.Context(), queue.Request{ID: id, Cost: limit.One}))
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
