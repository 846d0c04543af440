package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A limiter that may say AfterSettle knows the open requests: as many as a list has.
func TestUnsettledAgainstAList(t *testing.T) {
	made := func(l limit.Limiter, err error) limit.Limiter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	second := limit.Arrivals{OneWayMax: 50 * ms}
	for name, l := range map[string]limit.Limiter{
		"rolling":     limit.MustRolling(5, time.Second),
		"pair":        made(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: time.Second, Arrivals: second})),
		"calendar":    made(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: time.Second})),
		"anchored":    made(limit.NewAnchored(limit.AnchoredConfig{Limit: 5, Window: time.Second})),
		"weighted":    made(limit.NewWeighted(limit.WeightedConfig{Limit: 5, Window: time.Second})),
		"bucket":      made(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: time.Second})),
		"concurrency": made(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 5})),
		"adaptive":    made(limit.NewAdaptive(limit.AdaptiveConfig{Initial: 3})),
		"sequence":    made(limit.NewSequence(limit.SequenceConfig{Gap: ms})),
		"fitted":      limit.NewFitted(limit.MustRolling(5, time.Second)),
		"named":       limit.Named("mine", limit.MustRolling(5, time.Second)),
		"in part":     limit.NewAll(limit.MustRolling(5, time.Second), unknowing{limit.MustRolling(5, time.Second)}),
		"all":         limit.NewAll(made(limit.NewCooldown(time.Second)), limit.MustRolling(5, time.Second)),
	} {
		var all []*limit.Sent
		rng, now := rand.New(rand.NewPCG(1, 2)), mono.Time(0)
		for range 300 {
			now = now.Add(time.Duration(rng.IntN(700)) * ms)
			if l.Ready(now, limit.One) <= now {
				all = append(all, limittest.Admit(l, now, limit.One))
			} else if len(all) > 0 {
				i := rng.IntN(len(all))
				l.Settle(now, all[i], &limit.Outcome{Result: limit.Accepted})
				all = slices.Delete(all, i, i+1)
			}
			if n := limit.Unsettled(l); n != len(all) {
				t.Fatalf("%s at %v: %d, want %d", name, now, n, len(all))
			}
		}
	}
	if n := limit.Unsettled(made(limit.NewCooldown(time.Second))); n != 0 {
		t.Errorf("a Cooldown owes %d", n)
	}
}

// unknowing is a Describer that does not know how many requests are open.
type unknowing struct{ *limit.Rolling }

func (u unknowing) AppendUsage(to []limit.Usage, _ mono.Time) []limit.Usage {
	return append(to, limit.Usage{Limit: "it", Allowed: 5})
}
