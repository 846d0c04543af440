package paceline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/queue"
)

// Run returns when its context is over, at once: whether nothing is there, or what is there waits for an hour.
func TestPoolEndsWithItsContext(t *testing.T) {
	for _, waiting := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			p, err := paceline.NewPool(paceline.PoolConfig{
				Keys: []dispatch.Key{{Limiter: limit.MustRolling(1, time.Hour)}},
				Send: func(context.Context, dispatch.Attempt) dispatch.Answer { return served },
			})
			if err != nil {
				t.Fatal(err)
			}
			for range waiting {
				if err := p.Submit(bg, queue.Request{}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(bg)
			start := time.Now()
			time.AfterFunc(time.Second, cancel)
			if err := p.Run(ctx); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("with %d: %v after %v", waiting, err, time.Since(start))
			}
		})
	}
}
