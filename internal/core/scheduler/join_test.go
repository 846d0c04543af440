package scheduler_test

import (
	"slices"
	"testing"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
)

// A request that turns out to concern other limits counts once in each, until it is settled there with
// an outcome of its own. Who waits for such a limit goes then.
func TestJoin(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	passed, other := new(shy), new(shy)
	one, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := l.Limit(passed, scheduler.Sharing{}), l.Limit(other, scheduler.Sharing{}), l.Limit(one, scheduler.Sharing{})
	pass, _ := l.Try(0, l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a}), &limit.One, &limit.One)
	for _, m := range []*scheduler.Limit{a, b, b, c} {
		l.Join(1, l.Sent(pass), m)
	}
	waiting := ticket("waits", 1)
	want(t, l.Enter(1, l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{c}), waiting), scheduler.Waiting)
	var settled []*scheduler.Limit
	l.SettleEach(2, pass, func(m *scheduler.Limit) *limit.Outcome {
		settled = append(settled, m)
		return &limit.Outcome{Result: limit.Accepted}
	})
	if !slices.Equal(settled, []*scheduler.Limit{a, b, c}) {
		t.Errorf("outcomes for %d limits, want a, b and c once each", len(settled))
	}
	want(t, next(l, 2), "waits")
	if got := []string{"ready", "admit 1", "settle 1"}; !slices.Equal(passed.calls, got) {
		t.Errorf("where it passed: %q, want %q", passed.calls, got)
	}
	if got := []string{"admit 2", "settle 2"}; !slices.Equal(other.calls, got) {
		t.Errorf("where it joined: %q, want %q", other.calls, got)
	}

	// Of the next one, nothing is left there.
	again, _ := l.Try(3, l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a}), &limit.One, &limit.One)
	l.Settle(3, again, &limit.Outcome{Result: limit.Accepted})
	if len(other.calls) != 2 {
		t.Errorf("where it does not count: %q", other.calls)
	}

	// One outcome holds for all, too.
	again, _ = l.Try(4, l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a}), &limit.One, &limit.One)
	l.Join(4, l.Sent(again), b)
	l.Settle(5, again, &limit.Outcome{Result: limit.Accepted})
	if n := len(other.calls); n != 4 || other.calls[3][:6] != "settle" {
		t.Errorf("where it joined: %q", other.calls)
	}
}
