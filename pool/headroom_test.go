package pool_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// A Pool uses a part of the limits, of a key's own and of those that keys share, and begins slowly.
func TestUseAndRampOfKeys(t *testing.T) {
	hundred := func() limit.Limiter { return limit.MustRolling(100, time.Second) }
	shared := []*pool.Shared{{Name: "acme", Limiter: hundred(), Use: 0.5}}
	for name, c := range map[string]struct {
		keys        []pool.Key
		least, most time.Duration // for 500 requests
	}{
		"all":  {[]pool.Key{{Name: "a", Limiter: hundred()}}, 4 * time.Second, 4100 * time.Millisecond},
		"half": {[]pool.Key{{Name: "a", Limiter: hundred(), Use: 0.5}}, 9 * time.Second, 9100 * time.Millisecond},
		"shared": {
			[]pool.Key{{Name: "a", Shared: shared}, {Name: "b", Shared: shared}}, 9 * time.Second, 9100 * time.Millisecond,
		},
		"a ramp": {
			[]pool.Key{{Name: "a", Limiter: hundred(), Ramp: 8 * time.Second}}, 8 * time.Second, 10 * time.Second,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := pool.New(pool.Config{Keys: c.keys, Send: func(context.Context, pool.Attempt) pool.Answer {
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
			}})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for i := range 500 {
				r := pool.Request{ID: fmt.Sprint(i), Cost: limit.One, TTL: time.Hour}
				if err := p.Submit(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			p.Close()
			if err := p.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("%s: 500 took %v, want %v to %v", name, took, c.least, c.most)
			}
		})
	}
	if _, err := pool.New(pool.Config{Keys: []pool.Key{{Name: "a", Use: 2}}}); err == nil {
		t.Error("a part of 2 is no error")
	}
}
