package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A limiter of each kind has one driver, wherever it stands in others. A refused Bind changes nothing.
func TestBind(t *testing.T) {
	one, other := new(int), new(int)
	for name, l := range map[string]limit.Limiter{
		"Rolling":     limit.MustRolling(5, time.Second),
		"Calendar":    must(limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: time.Second})),
		"Anchored":    must(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second})),
		"Bucket":      must(limit.NewBucket(limit.BucketConfig{Limit: 2, Window: time.Second})),
		"Weighted":    must(limit.NewWeighted(limit.WeightedConfig{Limit: 2, Window: time.Second})),
		"Produced":    must(limit.NewProduced(limit.ProducedConfig{Limit: 2, Window: time.Minute})),
		"Concurrency": must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2})),
		"Adaptive":    must(limit.NewAdaptive(limit.AdaptiveConfig{})),
		"Spacing":     must(limit.NewSpacing(time.Second)),
		"Sequence":    must(limit.NewSequence(limit.SequenceConfig{})),
		"Cooldown":    must(limit.NewCooldown(0)),
	} {
		t.Run(name, func(t *testing.T) {
			free := limit.MustRolling(5, time.Second)
			if err := limit.Bind(limit.Named("inner", l), one); err != nil {
				t.Fatal(err)
			}
			if err := limit.Bind(l, one); err != nil {
				t.Errorf("again to the same: %v", err)
			}
			if err := limit.Bind(limit.NewAll(free, limit.NewFitted(l)), other); err == nil || !strings.Contains(err.Error(), "belongs to another Gate") {
				t.Errorf("to another: %v", err)
			}
			if err := limit.Bind(free, one); err != nil {
				t.Errorf("a refused Bind has bound a part: %v", err)
			}
		})
	}
	named := limit.Named("per account", limit.MustRolling(5, time.Second))
	if err := limit.Bind(named, one); err != nil {
		t.Fatal(err)
	}
	if err := limit.Bind(named, other); err == nil || !strings.Contains(err.Error(), `*limit.Rolling named "per account"`) {
		t.Errorf("it has no name: %v", err)
	}
}
