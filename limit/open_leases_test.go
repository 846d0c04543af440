package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A limiter that may say AfterSettle knows the open leases: as many as a list has, and the first of
// them.
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
		"all":         limit.NewAll(made(limit.NewCooldown(time.Second)), limit.MustRolling(5, time.Second)),
	} {
		type open struct {
			lease limit.Lease
			at    mono.Time
		}
		var all []open
		rng, now := rand.New(rand.NewPCG(1, 2)), mono.Time(0)
		for range 300 {
			now = now.Add(time.Duration(rng.IntN(700)) * ms)
			if l.Ready(now, limit.One) <= now {
				all = append(all, open{l.Admit(now, limit.One), now})
			} else if len(all) > 0 {
				i := rng.IntN(len(all))
				l.Settle(now, all[i].lease, limit.Outcome{Result: limit.Accepted})
				all = slices.Delete(all, i, i+1)
			}
			n, since := limit.Unsettled(l)
			want := limit.Never
			if len(all) > 0 {
				want = all[0].at
			}
			if n != len(all) || since != want {
				t.Fatalf("%s at %v: %d since %v, want %d since %v", name, now, n, since, len(all), want)
			}
		}
	}
	if n, _ := limit.Unsettled(made(limit.NewCooldown(time.Second))); n != 0 {
		t.Errorf("a Cooldown owes %d", n)
	}
}
