package pool_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// organization is a server that counts all keys together, and refuses what is more than its limit in any window.
type organization struct {
	mu       sync.Mutex
	arrivals []time.Time
	refused  int
	by       map[int]int // how many were served of each key
}

const inAnySecond = 10

func (o *organization) serve(key int) pool.Answer {
	time.Sleep(20 * time.Millisecond)
	o.mu.Lock()
	now, within := time.Now(), 0
	for _, at := range o.arrivals {
		if now.Sub(at) < time.Second {
			within++
		}
	}
	if within >= inAnySecond {
		o.refused++
		o.mu.Unlock()
		return pool.Answer{Outcome: limit.Outcome{Result: limit.Limited}}
	}
	o.arrivals = append(o.arrivals, now)
	o.by[key]++
	o.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	return served
}

// Two keys of one organization are never refused and have all that it allows; if one is banned, the other has.
func TestKeysOfOneOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organization{by: map[int]int{}}
		together := []*pool.Shared{{Name: "acme", Limiter: limit.MustRolling(inAnySecond, time.Second)}}
		p := newPool(t, &poolLog{}, pool.Config{
			Keys: []pool.Key{{Name: "a", Shared: together}, {Name: "b", Shared: together}},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				if a.Key == 1 && time.Since(start()) > 5*time.Second {
					return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "401"}
				}
				return o.serve(a.Key)
			},
		})
		began := time.Now()
		for i := range 100 {
			submit(t, p, fmt.Sprint(i))
		}
		p.Close()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The ideal is 10 at once, and 10 more each second and round trip.
		if took := time.Since(began); o.refused > 0 || len(o.arrivals) != 100 || took > 11*time.Second {
			t.Errorf("%d refused, %d served in %v, want 0 and 100 in at most 11 s", o.refused, len(o.arrivals), took)
		}
		if keys := p.Keys(); !keys[1].Banned() || o.by[1] == 0 || o.by[0] < 50 {
			t.Errorf("served %v by key, and key b is %v", o.by, keys[1].State)
		}
		s := p.Snapshot()
		if len(s.Limits) != 1 || s.Limits[0].Key != "acme" {
			t.Errorf("limits %+v, want the one that both share", s.Limits)
		}
	})
}

// start is when time begins in a bubble of synctest.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// Keys that count together until it is known that they need not are each as fast as their limit then.
func TestPoolShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := map[int]*organization{0: {by: map[int]int{}}, 1: {by: map[int]int{}}}
		var p *pool.Pool
		var once sync.Once
		both := []*pool.Shared{{Name: "both", Limiter: limit.MustRolling(inAnySecond, time.Second)}}
		p = newPool(t, &poolLog{}, pool.Config{
			Keys: []pool.Key{{Name: "a", Shared: both}, {Name: "b", Shared: both}},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				ans := all[a.Key].serve(a.Key)
				if a.Key == 1 {
					once.Do(func() {
						if err := p.Share(1, &pool.Shared{Name: "b alone", Limiter: limit.MustRolling(inAnySecond, time.Second)}); err != nil {
							t.Error(err)
						}
					})
				}
				return ans
			},
		})
		began := time.Now()
		for i := range 200 {
			submit(t, p, fmt.Sprint(i))
		}
		p.Close()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); all[0].refused+all[1].refused > 0 || took > 11*time.Second {
			t.Errorf("%d and %d refused in %v, want 0 in at most 11 s", all[0].refused, all[1].refused, took)
		}
		if err := p.Share(0); err == nil {
			t.Error("a key shares nothing")
		}
	})
}

// Two keys of one organization have one limit together: a request of one counts for both.
func ExamplePool_keysOfOneOrganization() {
	acme := &pool.Shared{Name: "acme", Limiter: limit.MustRolling(3, time.Hour)}
	sent := make(chan string, 10)
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{
			{Name: "research", Shared: []*pool.Shared{acme}},
			{Name: "batch", Shared: []*pool.Shared{acme}},
		},
		Send: func(_ context.Context, a pool.Attempt) pool.Answer {
			sent <- a.Request.ID
			return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for i := range 4 {
		if err := p.Submit(ctx, pool.Request{ID: fmt.Sprint(i), Cost: limit.One}); err != nil {
			panic(err)
		}
	}
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	for range 3 {
		<-sent
	}
	fmt.Println("waiting:", p.Counts().Waiting)
	cancel()
	<-done
	// Output: waiting: 1
}
