package rule_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
)

// A request refused by another rule counts at its cost if refusals count, and not at all otherwise.
func TestRefusedByAnother(t *testing.T) {
	const n, s = 10, time.Second
	for name, c := range map[string]struct {
		rule rule.Rule
		left int64
	}{
		"rolling":                 {must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s})), 9},
		"rolling that counts it":  {must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s, RefusedCount: true})), 7},
		"calendar":                {must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: s})), 9},
		"calendar that counts it": {must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: s, RefusedCount: true})), 7},
		"anchored":                {must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: s})), 9},
		"bucket":                  {must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: s})), 9},
		"weighted":                {must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: s})), 9},
		"weighted that counts it": {must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: s, RefusedCount: true})), 7},
	} {
		both := rule.All(c.rule, must(rule.NewRolling(rule.RollingConfig{Limit: 1, Window: s})))
		if !both.Arrive(0, 1) || both.Arrive(0, 2) {
			t.Fatalf("%s: the first passes, and the second does not", name)
		}
		if got := rule.Left(c.rule, 0, n, 0); got != c.left {
			t.Errorf("%s: %d are left, want %d", name, got, c.left)
		}
	}
}
