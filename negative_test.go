package paceline_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// A negative cost is refused by Gate and Pool, and uses nothing: it would pass each limit as a cost of
// 0 does.
func TestNegativeCosts(t *testing.T) {
	ctx := context.Background()
	for _, cost := range []limit.Cost{{limit.Requests: -1}, {limit.Requests: 1, limit.Tokens: -5}, {limit.Other: -1 << 63}} {
		g := paceline.NewGate(limit.MustRolling(1, time.Hour))
		_, err := g.Wait(ctx, cost)
		var e *paceline.WaitError
		if !errors.Is(err, paceline.ErrNever) || !errors.As(err, &e) || e.Cost != cost || !strings.HasSuffix(err.Error(), " is negative") {
			t.Errorf("Wait: %v", err)
		}
		if _, _, err := g.WaitWithStats(ctx, cost); !errors.Is(err, paceline.ErrNever) {
			t.Errorf("WaitWithStats: %v", err)
		}
		if _, retry, ok := g.TryWait(cost); ok || retry != paceline.RetryNever {
			t.Errorf("TryWait: %v, %v", retry, ok)
		}
		if _, _, err := g.Ask(cost); !errors.Is(err, paceline.ErrNever) {
			t.Errorf("Ask: %v", err)
		}
		if err := g.Do(ctx, cost, func() error { t.Error("Do ran"); return nil }); !errors.Is(err, paceline.ErrNever) {
			t.Errorf("Do: %v", err)
		}
		if _, _, ok := g.TryWait(limit.One); !ok || g.Stats().Never != 3 {
			t.Errorf("it used something: %+v", g.Stats())
		}

		p, err := pool.New(pool.Config{Keys: []pool.Key{{}}, Send: func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{} }})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Submit(ctx, pool.Request{ID: "a", Cost: cost}); err == nil || !strings.Contains(err.Error(), "is negative") {
			t.Errorf("Submit: %v", err)
		}
		if err := p.TrySubmit(pool.Request{Cost: cost}); err == nil || p.Counts().Submitted != 0 {
			t.Errorf("TrySubmit: %v, %+v", err, p.Counts())
		}
	}
}

// A Do within a Do that took the last permit waits for itself. After a minute that is logged, and
// the error of a deadline has it.
func TestDoWithinDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		one, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: one, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		err = g.Do(ctx, limit.One, func() error {
			return g.Do(ctx, limit.One, func() error { t.Error("it ran"); return nil })
		})
		var e *paceline.WaitError
		if !errors.Is(err, paceline.ErrDeadline) || !errors.As(err, &e) || e.Unsettled != 1 {
			t.Errorf("%v", err)
		}
		synctest.Wait() // the line is written
		if !strings.Contains(log.String(), "1 waiting, 1 permit unsettled") {
			t.Errorf("logged %s", &log)
		}
	})
}
