package paceline_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// A goroutine waits for the first way until the spare one opens. That is counted as a wait for the limit
// of the first. A head start does not open a way earlier, and a deadline before the first way's turn
// opens it at once.
func TestLaneAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := must(paceline.NewGroup(paceline.GroupConfig{}))
		limits := func() (first, spare *paceline.Limit) {
			return j.Limit(paceline.LimitConfig{Limiter: limit.Named("first", limit.MustRolling(1, time.Minute))}),
				j.Limit(paceline.LimitConfig{Limiter: limit.Named("spare", limit.MustRolling(9, time.Minute))})
		}
		lane := func(after time.Duration) *paceline.Lane {
			first, spare := limits()
			return j.Lane(paceline.LaneConfig{After: []time.Duration{0, after}, HeadStart: time.Hour}, []*paceline.Limit{first},
				[]*paceline.Limit{spare})
		}
		ctx := context.Background()
		a := lane(10 * time.Second)
		way := func(ctx context.Context, a *paceline.Lane, t0 paceline.Turn) (int, paceline.WaitStats) {
			t.Helper()
			p, s, err := a.WaitTurn(ctx, limit.One, t0)
			try(t, err)
			defer p.Settle(limit.Outcome{Result: limit.Accepted})
			return p.Way(), s
		}
		if w, _ := way(ctx, a, paceline.Turn{}); w != 0 {
			t.Errorf("the first went by way %d", w)
		}
		if w, s := way(ctx, a, paceline.Turn{}); w != 1 || s.Waited != 10*time.Second || s.Reason() != "first" || len(s.Limits) != 1 {
			t.Errorf("by way %d, %+v; want the spare way, after 10 s of waiting for the first", w, s)
		}
		if w, s := way(ctx, a, paceline.Turn{Came: time.Now().Add(-9 * time.Second)}); w != 1 || s.Waited != time.Second {
			t.Errorf("by way %d after %v; want the spare way at its arrival and 10 s", w, s.Waited)
		}
		if w, s := way(ctx, a, paceline.Turn{MaxWait: 30 * time.Second}); w != 1 || s.Waited != 0 {
			t.Errorf("by way %d after %v; want the spare way at once, since the first has no turn in 30 s", w, s.Waited)
		}
		if w, s := way(ctx, a, paceline.Turn{MaxWait: 50 * time.Second}); w != 1 || s.Waited != 10*time.Second {
			t.Errorf("by way %d after %v; want the spare way after 10 s, since the first has a turn in 49 s", w, s.Waited)
		}

		b := lane(math.MaxInt64)
		way(ctx, b, paceline.Turn{})
		if w, s := way(ctx, b, paceline.Turn{}); w != 0 || s.Waited < time.Minute {
			t.Errorf("by way %d after %v; want the first way after its minute", w, s.Waited)
		}
	})
}
