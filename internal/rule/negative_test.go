package rule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
)

// For witnesses, too, a negative cost is a bug of the caller, and a cost of 0 leaves no trace.
func TestWitnessesOfNegativeCosts(t *testing.T) {
	const n, s = 5, time.Second
	witness := func(w rule.Witness, err error) rule.Witness { return must(w, err) }
	densest := must(rule.NewDensest(s, 0))
	for name, hear := range map[string]func(cost int64){
		"rolling":  func(c int64) { witness(rule.RollingConfig{Limit: n, Window: s}.Witness()).Hear(0, c, true) },
		"calendar": func(c int64) { witness(rule.CalendarConfig{Limit: n, Window: s}.Witness()).Hear(0, c, true) },
		"anchored": func(c int64) { witness(rule.AnchoredConfig{Limit: n, Window: s}.Witness()).Hear(0, c, true) },
		"bucket":   func(c int64) { witness(rule.BucketConfig{Limit: n, Window: s}.Witness()).Hear(0, c, true) },
		"gcra":     func(c int64) { witness(rule.GCRAConfig{Limit: n, Window: s}.Witness()).Hear(0, c, true) },
		"weighted": func(c int64) { witness(rule.WeightedConfig{Limit: n, Window: s}.Witness()).Hear(0, c, true) },
		"densest":  func(c int64) { densest.Hear(0, c) },
	} {
		hear(0)
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "negative cost -1") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			hear(-1)
		}()
	}
	if most, _, _ := densest.Most(); most != 0 {
		t.Errorf("%d is the most of nothing", most)
	}
}

// A clock may be off by as much as the longest span, by one step or by all together, and by no
// nanosecond more.
func TestClocksAtTheirEdges(t *testing.T) {
	const longest = time.Duration(1 << 59)
	for _, c := range []struct {
		clock rule.Clock
		ok    bool
	}{
		{rule.Clock{Offset: longest}, true}, {rule.Clock{Offset: -longest}, true},
		{rule.Clock{Offset: longest + 1}, false}, {rule.Clock{Offset: -longest - 1}, false},
		{rule.Clock{Offset: longest - 5, Steps: []rule.Step{{By: -5}}}, true}, {rule.Clock{Offset: longest - 5, Steps: []rule.Step{{By: -5}, {By: 1}}}, false},
		{rule.Clock{DriftPPM: -999_999}, true}, {rule.Clock{DriftPPM: 1_000_000}, true}, {rule.Clock{DriftPPM: 1_000_001}, false},
	} {
		if _, err := rule.NewClocked(rule.All(), c.clock); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.clock, err)
		}
	}
}
