package rule_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestClockReading(t *testing.T) {
	const s = 1000 * ms
	steps := []rule.Step{{At: 5 * s, By: -2 * time.Second}, {At: 3 * s, By: 10 * time.Second}}
	for _, c := range []struct {
		clock rule.Clock
		at    mono.Time
		want  mono.Time
	}{
		{rule.Clock{}, 7, 7},
		{rule.Clock{}, -7, -7},
		{rule.Clock{Offset: -time.Second}, 7, 7 - s},
		{rule.Clock{DriftPPM: 100}, 10 * s, 10*s + ms},
		{rule.Clock{DriftPPM: -100}, 10 * s, 10*s - ms},
		{rule.Clock{DriftPPM: -100}, -10 * s, -10*s + ms},
		{rule.Clock{DriftPPM: 1}, 999_999, 999_999},
		{rule.Clock{DriftPPM: 1}, 1_000_000, 1_000_001},
		{rule.Clock{DriftPPM: -1}, 1, 0}, // down
		{rule.Clock{DriftPPM: 1_000_000}, 1 << 61, 1 << 62},
		{rule.Clock{Steps: steps}, 3*s - 1, 3*s - 1},
		{rule.Clock{Steps: steps}, 3 * s, 13 * s},
		{rule.Clock{Steps: steps}, 5*s - 1, 15*s - 1},
		{rule.Clock{Steps: steps}, 5 * s, 13 * s},
	} {
		if got := c.clock.Reading(c.at); got != c.want {
			t.Errorf("%+v at %v: %d, want %d", c.clock, c.at, got, c.want)
		}
	}
	drifting := rule.Clock{DriftPPM: -999_999}
	for at := mono.Time(-3_000_000); at < 3_000_000; at += 7 {
		if drifting.Reading(at+7) < drifting.Reading(at) {
			t.Fatalf("%+v goes back at %d", drifting, at)
		}
	}
}

// TestClockSetBack: instant by true time, cost, answer, with a clock that is set back by 1.5 s at
// 2 s.
func TestClockSetBack(t *testing.T) {
	const s = 1000 * ms
	steps := []rule.Step{{At: 2 * s, By: -1500 * time.Millisecond}}
	for _, c := range []struct {
		name  string
		rule  rule.Rule
		steps []knock
	}{
		{"calendar: the interval before again", must(rule.NewCalendar(rule.CalendarConfig{Limit: 2, Window: time.Second})), []knock{
			{0, 1, true}, {1 * s, 2, true}, {2 * s, 1, true}, {2 * s, 1, false}, // 0.5
			{2500 * ms, 1, false}, // 1.0
			{3500 * ms, 1, true},  // 2.0
		}},
		{"rolling: time stands still", must(rule.NewRolling(rule.RollingConfig{Limit: 2, Window: time.Second})), []knock{
			{0, 1, true}, {1900 * ms, 2, true}, {2 * s, 1, false}, {4400 * ms, 1, false}, {4401 * ms, 1, true},
		}},
		{"bucket: time stands still", must(rule.NewBucket(rule.BucketConfig{Limit: 2, Window: time.Second})), []knock{
			{1900 * ms, 2, true}, {2 * s, 1, false}, {3899 * ms, 1, false}, {3900 * ms, 1, true},
		}},
		{"both", rule.All(must(rule.NewGCRA(rule.GCRAConfig{Limit: 2, Window: time.Second})), must(rule.NewWeighted(rule.WeightedConfig{Limit: 9, Window: time.Second}))), []knock{
			{1900 * ms, 2, true}, {2 * s, 1, false}, {3899 * ms, 1, false}, {3900 * ms, 1, true},
		}},
	} {
		server := must(rule.NewClocked(c.rule, rule.Clock{Steps: steps}))
		for i, k := range c.steps {
			if fits := server.Fits(k.at, k.cost); fits != k.want {
				t.Errorf("%s: step %d, %v cost %d fits: %v, want %v", c.name, i, k.at, k.cost, fits, k.want)
			}
			if got := server.Arrive(k.at, k.cost); got != k.want {
				t.Errorf("%s: step %d, %v cost %d: %v, want %v", c.name, i, k.at, k.cost, got, k.want)
			}
		}
	}
	server := must(rule.NewClocked(must(rule.NewAnchored(rule.AnchoredConfig{Limit: 1, Window: time.Second})), rule.Clock{Offset: 1}))
	for range 2 {
		if !server.Fits(0, 1) {
			t.Error("Fits counts")
		}
	}
	server.Count(0, 1, true)
	if server.Fits(0, 1) {
		t.Error("Count does not")
	}
}
