package pool_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
)

// A Pool of two keys, of which one is banned and the other used up and then refused: its visible
// state.
func TestPoolSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, refused := time.Now(), false
		p := must(pool.New(pool.Config{
			Keys:  []pool.Key{{Name: "a", Limiter: limit.MustRolling(3, time.Minute)}, {Name: "b", Limiter: limit.MustRolling(3, time.Minute)}},
			Queue: pool.QueueConfig{Host: func(r *pool.Request) string { return "h" }},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				time.Sleep(100 * time.Millisecond)
				switch {
				case a.Key == 1:
					return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "401"}
				case a.Request.ID == "5" && !refused:
					refused = true
					return pool.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 90 * time.Second}, Reason: "429"}
				}
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Money: 5}}}
			},
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		for _, id := range []string{"1", "2", "3", "4", "5", "6", "7"} {
			if err := p.Submit(t.Context(), pool.Request{ID: id, Cost: limit.One}); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(10 * time.Second)
		s := p.Snapshot()
		if len(s.Keys) != 2 || s.Keys[1].State != observe.KeyBanned || s.Keys[1].Why != "401" || s.Keys[0].State != observe.KeyPaused || s.Keys[0].Until.Sub(began).Round(time.Second) != 90*time.Second {
			t.Errorf("keys: %+v", s.Keys)
		}
		if s.Waiting+int(s.Accepted) != 7 || s.Waiting == 0 || s.Limited != 1 || s.Failed != 3 || s.Sent != s.Accepted+s.Limited+s.Failed || s.Used.Money != 5*s.Accepted {
			t.Errorf("%+v", s)
		}
		if len(s.Limits) != 2 || s.Limits[0].Key != "a" || s.Limits[0].Used != 3 || s.Limits[0].PausedUntil.IsZero() || s.Limits[0].Next.IsZero() || s.LongestWait != 10*time.Second {
			t.Errorf("limits: %+v, longest wait %v", s.Limits, s.LongestWait)
		}
		if len(s.Upstream) != 1 || s.Upstream[0].Host != "h" || s.Upstream[0].Count != s.Sent || s.Upstream[0].P50 < 99*time.Millisecond || s.Upstream[0].P50 > 101*time.Millisecond {
			t.Errorf("%+v", s.Upstream)
		}
		kinds := map[string]string{}
		for _, e := range s.Events {
			kinds[e.Kind] = e.Text
		}
		if kinds[observe.EventBanned] != "the key is out of use: 401" || kinds[observe.EventRefused] != "the server refused a request: 429; it asks to stay away for 1 min 30 s" {
			t.Errorf("%+v", s.Events)
		}
		time.Sleep(3 * time.Minute)
		s = p.Snapshot()
		var waited, count int64
		for _, w := range s.Waits {
			count += w.Count
			if w.Limit != "" {
				waited += w.Count
			}
		}
		if count != s.Sent-s.Resent || waited == 0 || s.Accepted != 7 || s.Waiting != 0 || s.Keys[0].State != observe.KeyOK || s.Resent == 0 {
			t.Errorf("%d waits, %d of them longer: %+v", count, waited, s)
		}
		cancel()
		<-done
	})
}

// The instant of the last request of a Pool, by two keys of which one lets through twice as much as
// the other. It is shown as long as a request waits.
func TestPoolLastGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var last time.Time
		p := must(pool.New(pool.Config{
			Keys: []pool.Key{{Name: "a", Limiter: limit.MustRolling(10, time.Minute)}, {Name: "b", Limiter: limit.MustRolling(20, time.Minute)}, {Name: "c", Limiter: limit.MustRolling(1, time.Hour)}},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				mu.Lock()
				defer mu.Unlock()
				last = time.Now()
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
			},
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		for range 300 {
			if err := p.Submit(t.Context(), pool.Request{Cost: limit.One}); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		first := p.Snapshot()
		time.Sleep(4*time.Minute + 30*time.Second)
		later := p.Snapshot()
		time.Sleep(time.Hour)
		mu.Lock()
		for _, s := range []observe.Snapshot{first, later} {
			if off := s.Clients[0].LastGoes.Sub(last); s.Waiting == 0 || off < -time.Second || off > time.Second {
				t.Errorf("with %d waiting the last goes at %v, %v was told", s.Waiting, last.Sub(first.At), s.Clients[0].LastGoes.Sub(first.At))
			}
		}
		mu.Unlock()
		if s := p.Snapshot(); s.Waiting != 0 || !s.Clients[0].LastGoes.IsZero() {
			t.Errorf("when all have gone: %+v", s.Clients)
		}
		cancel()
		<-done
	})
}

// Keys that share a limit are together as fast as that limit. A waiting request is in its line, and
// the last goes when the limit lets all through. If only answers decide, no instant is shown.
func TestPoolSnapshotOfWhatKeysShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acme := []*pool.Shared{{Name: "acme", Limiter: must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Minute, Margin: -1}))}}
		one := limit.Named("one", must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})))
		for _, c := range []struct {
			keys    []pool.Key
			whose   string
			waiting int
			last    time.Duration // since the beginning; 0: not known
		}{
			{[]pool.Key{{Name: "a", Shared: acme}, {Name: "b", Shared: acme}}, "acme", 4, 4 * time.Minute},
			{[]pool.Key{{Name: "c", Limiter: one}}, "c", 4, 0},
		} {
			began := time.Now()
			p := must(pool.New(pool.Config{Keys: c.keys, Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
				if c.whose == "c" {
					<-ctx.Done()
				}
				return served
			}}))
			for i := range 5 {
				submit(t, p, fmt.Sprint(i))
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- p.Run(ctx) }()
			time.Sleep(time.Second)
			s := p.Snapshot()
			if len(s.Limits) != 1 || s.Limits[0].Key != c.whose || s.Limits[0].Waiting != c.waiting || s.Waiting != 4 {
				t.Errorf("%d wait, at %+v", s.Waiting, s.Limits)
			}
			last := s.Clients[0].LastGoes
			if off := last.Sub(began) - c.last; last.IsZero() != (c.last == 0) || c.last > 0 && (off < -time.Second || off > time.Second) {
				t.Errorf("the last of %s goes at %v, want %v after the beginning", c.whose, last.Sub(began), c.last)
			}
			cancel()
			<-done
		}
	})
}

// A waiting request is in one line, though two limits that its key shares have one name.
func TestPoolSnapshotHasWhoWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &poolLog{}, pool.Config{
			Keys: []pool.Key{{Name: "a", Shared: []*pool.Shared{
				{Name: "acme", Limiter: limit.MustRolling(1, time.Minute)}, {Name: "its team", Limiter: limit.MustRolling(1, time.Minute)},
			}}},
		})
		for i := range 5 {
			submit(t, p, fmt.Sprint(i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Second)
		s, waiting := p.Snapshot(), 0
		for _, l := range s.Limits {
			waiting += l.Waiting
		}
		if len(s.Limits) != 2 || s.Waiting != 4 || waiting != 4 {
			t.Errorf("%d wait, %d of them in the lines of %+v", s.Waiting, waiting, s.Limits)
		}
		cancel()
		<-done
	})
}
