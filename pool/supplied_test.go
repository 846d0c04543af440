package pool_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/testkit/frontend"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// A Pool is supplied too. It reports for how many requests a key may come to be needed, and sends
// when there is more.
func TestPoolIsSupplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feds := []*frontend.Fed{{}, {}}
		var sent []string
		var fresh []bool
		var p *pool.Pool
		p = must(pool.New(pool.Config{
			Keys: []pool.Key{{Name: "a", Limiter: feds[0]}, {Name: "b", Limiter: feds[1]}},
			Send: func(_ context.Context, a pool.Attempt) pool.Answer {
				sent, fresh = append(sent, a.Request.ID), append(fresh, p.Fresh(&a))
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
			},
		}))
		for _, id := range []string{"1", "2", "3"} {
			try(t, p.Submit(t.Context(), pool.Request{ID: id, Cost: limit.One}))
		}
		if n := feds[0].Waiting(); n != 2 {
			t.Errorf("3 requests for 2 keys: each may be needed for %d, want 2", n)
		}
		done := make(chan error)
		go func() { done <- p.Run(t.Context()) }()
		synctest.Wait()
		for i, f := range feds {
			f.Room, f.Stale = 1, i == 1
			f.Again()
			synctest.Wait()
			if len(sent) != i+1 || fresh[i] == f.Stale {
				t.Errorf("sent %v, fresh %v", sent, fresh)
			}
		}
		if n := feds[0].Waiting(); n != 1 {
			t.Errorf("a request for 2 keys: each may be needed for %d, want 1", n)
		}
		feds[0].Room = 1
		feds[0].Again()
		p.Close()
		try(t, <-done)
		if !slices.Equal(sent, []string{"1", "2", "3"}) {
			t.Errorf("sent %v", sent)
		}
	})
}

// A limit that some of a Pool's keys share gets the number of requests that may come to them: their
// part of the waiting ones, rounded up.
func TestWaitingIsDividedAmongKeys(t *testing.T) {
	limiter := &frontend.Fed{}
	s := &pool.Shared{Limiter: limiter}
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{{Shared: []*pool.Shared{s}}, {Shared: []*pool.Shared{s}}, {Limiter: &frontend.Fed{}}},
		Send: func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{} },
	})
	try(t, err)
	for n, want := range []int{0, 1, 2, 2, 3, 4, 4} {
		if n > 0 {
			try(t, p.Submit(bg, pool.Request{Cost: limit.One}))
		}
		if got := limiter.Waiting(); got != want {
			t.Errorf("of %d that wait for any of three keys, %d may come to the two that share", n, got)
		}
	}
}
