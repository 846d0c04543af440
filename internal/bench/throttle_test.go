package bench

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/strategy"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

func TestThrottleRow(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	runs := []fleet.Report{
		{Clients: 5, RetryPercent: 4, Jain: 0.9, Change: number(60), Settle: number(30)},
		{Clients: 5, RetryPercent: 1, Jain: 0.5, Change: number(60)},
		{Clients: 5, RetryPercent: 2, Jain: 0.7, Change: number(60), Settle: number(10)},
	}
	text := func(s *Spread) string { return s.text(1) }
	for range 2 {
		row := ThrottleRow{Scenario: "jump"}
		row.sum(runs)
		if got := []string{text(&row.RetryPercent), text(&row.Jain), text(row.Settle), text(row.Clear)}; strings.Join(got, "; ") != "2.0/4.0; 0.7/0.5; 30.0/never; -" {
			t.Errorf("%s", strings.Join(got, "; "))
		}
		runs[0], runs[2] = runs[2], runs[0] // finished in another order
	}
	row := ThrottleRow{Scenario: "clear-1s"}
	row.sum([]fleet.Report{{Clear: number(80)}, {}, {}})
	if text(row.Clear) != "never/never" || row.Settle != nil {
		t.Errorf("cleared %s", text(row.Clear))
	}
	if even := spread([]float64{4, 1, 3, 2}); *even.Median != 2 || *even.Worst != 4 {
		t.Errorf("median %v, worst %v", *even.Median, *even.Worst)
	}
}

// Rows come scenario by scenario, whichever was finished first, and are those of their seeds.
func TestRunThrottles(t *testing.T) {
	null, err := strategy.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	retry, err := strategy.Named("retry-only")
	if err != nil {
		t.Fatal(err)
	}
	what := ThrottleRuns{Ours: "none", Strategies: []throttle.Strategy{retry, null}, Seeds: 2, Scenarios: func(s throttle.Strategy) []fleet.Scenario {
		return []fleet.Scenario{
			{Name: "short", Duration: time.Minute, Groups: []fleet.Group{{Strategy: s}}},
			{Name: "long", Duration: 10 * time.Minute, Groups: []fleet.Group{{Strategy: s, Threads: 2, Demand: fleet.Demand{Kind: fleet.Light, PerSecond: 0.1}}}},
		}
	}}
	told := 0
	result, err := RunThrottles(t.Context(), what, func(done, all int) {
		if told++; all != 8 || done != told {
			t.Errorf("%d of %d", done, all)
		}
	})
	if err != nil || len(result.Strategies) != 4 || result.Interrupted || math.Abs(result.VirtualHours-44./60) > 1e-9 || told != 8 {
		t.Fatalf("%v: %+v", err, result)
	}
	for i, want := range []string{"short retry-only", "short null", "long retry-only", "long null"} {
		if r := result.Strategies[i]; r.Scenario+" "+r.Name != want || r.Seeds != 2 {
			t.Errorf("row %d is %s %s of %d seeds, want %s", i, r.Scenario, r.Name, r.Seeds, want)
		}
		// Each seed has a demand of its own.
		if r := result.Strategies[i]; r.Scenario == "long" && *r.Unused.Median == *r.Unused.Worst {
			t.Errorf("row %d: both seeds leave %v %% unused", i, *r.Unused.Worst)
		}
	}
	var text strings.Builder
	if err := result.WriteText(&text); err != nil || !strings.Contains(text.String(), "\nlong: 2 clients, 10 min, 2 seeds\n") {
		t.Errorf("%v:\n%s", err, text.String())
	}
	what.FirstSeed = 1001
	if other, err := RunThrottles(t.Context(), what, nil); err != nil || *other.Strategies[2].Unused.Median == *result.Strategies[2].Unused.Median || other.Strategies[2].First.Requests == nil {
		t.Errorf("%v: other seeds are the same, or the first is not shown", err)
	}
	what.Scenarios = func(s throttle.Strategy) []fleet.Scenario {
		return []fleet.Scenario{{Name: "bad", Groups: []fleet.Group{{Strategy: s}}}}
	}
	if _, err := RunThrottles(t.Context(), what, nil); err == nil || !strings.Contains(err.Error(), "Duration") {
		t.Errorf("an impossible scenario: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := RunThrottles(ended, what, nil); err != nil || !result.Interrupted || len(result.Strategies) != 0 {
		t.Errorf("interrupted: %v %+v", err, result)
	}
}

// The widest that a table is likely to be fits a screen of 100 columns.
func TestThrottleTableFits(t *testing.T) {
	number := func(v float64) Spread { return Spread{&v, &v} }
	never := Spread{}
	for _, s := range strategy.All() {
		r := ThrottleRow{Name: s.Name, Scenario: "jump-10-100", RetryPercent: number(99.99), MaxSleep: number(199_999), RequestSD: number(79_999), CV: number(499.9),
			Unused: number(99.9), Settle: &never}
		all := Throttles{Strategies: []ThrottleRow{r}}
		var text strings.Builder
		if err := all.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(text.String(), "\n") {
			if utf8.RuneCountInString(line) > 100 || strings.HasSuffix(line, " ") {
				t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
			}
		}
	}
}
