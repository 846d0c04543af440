package compare

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

func TestRow(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	runs := []fleet.Report{
		{Clients: 5, RetryPercent: 4, Jain: 0.9, Change: number(60), Settle: number(30)},
		{Clients: 5, RetryPercent: 1, Jain: 0.5, Change: number(60)},
		{Clients: 5, RetryPercent: 2, Jain: 0.7, Change: number(60), Settle: number(10)},
	}
	text := func(s *Spread) string { return s.text(1) }
	for range 2 {
		row := Row{Scenario: "jump"}
		row.sum(runs)
		if got := []string{text(&row.RetryPercent), text(&row.Jain), text(row.Settle), text(row.Clear)}; strings.Join(got, "; ") != "2.0/4.0; 0.7/0.5; 30.0/never; -" {
			t.Errorf("%s", strings.Join(got, "; "))
		}
		runs[0], runs[2] = runs[2], runs[0] // finished in another order
	}
	row := Row{Scenario: "clear-1s"}
	row.sum([]fleet.Report{{Clear: number(80)}, {}, {}})
	if text(row.Clear) != "never/never" || row.Settle != nil {
		t.Errorf("cleared %s", text(row.Clear))
	}
	if even := spread([]float64{4, 1, 3, 2}); *even.Median != 2 || *even.Worst != 4 {
		t.Errorf("median %v, worst %v", *even.Median, *even.Worst)
	}
}

// Rows come scenario by scenario, whichever was finished first, and are those of their seeds.
func TestRun(t *testing.T) {
	null, err := strategy.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	retry, err := strategy.Named("retry-only")
	if err != nil {
		t.Fatal(err)
	}
	what := Config{Ours: "none", Strategies: []strategy.Strategy{retry, null}, Seeds: 2, Scenarios: func(s strategy.Strategy) []fleet.Scenario {
		return []fleet.Scenario{
			{Name: "short", Duration: time.Minute, Groups: []fleet.Group{{Strategy: s}}},
			{Name: "long", Duration: 10 * time.Minute, Groups: []fleet.Group{{Strategy: s, Threads: 2, Demand: fleet.Demand{Kind: fleet.Light, PerSecond: 0.1}}}},
		}
	}}
	told := 0
	what.Progress = func(done, all int) {
		if told++; all != 8 || done != told {
			t.Errorf("%d of %d", done, all)
		}
	}
	result, err := Run(t.Context(), what)
	what.Progress = nil
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
	if other, err := Run(t.Context(), what); err != nil || *other.Strategies[2].Unused.Median == *result.Strategies[2].Unused.Median || other.Strategies[2].First.Requests == nil {
		t.Errorf("%v: other seeds are the same, or the first is not shown", err)
	}
	chosen := what
	chosen.Only, chosen.Ours, chosen.Strategies, chosen.Against = "sho", "", chosen.Strategies[1:], []string{"retry-only"}
	if r, err := Run(t.Context(), chosen); err != nil || len(r.Strategies) != 2 || r.Strategies[1].Name != "retry-only" || r.Strategies[1].Scenario != "short" || r.Ours != "null" {
		t.Errorf("%v: %+v", err, r)
	}
	good := what
	what.Scenarios = func(s strategy.Strategy) []fleet.Scenario {
		return []fleet.Scenario{{Name: "bad", Groups: []fleet.Group{{Strategy: s}}}}
	}
	if _, err := Run(t.Context(), what); err == nil || !strings.Contains(err.Error(), "Duration") {
		t.Errorf("an impossible scenario: %v", err)
	}
	for want, change := range map[string]func(*Config){
		`Only "medium": no scenario's name begins with it: there are short, long`: func(c *Config) { c.Only = "medium" },
		`Against: strategy "best" is none of`:                                     func(c *Config) { c.Against = []string{"best"} },
		"Strategies and Against are empty":                                        func(c *Config) { c.Strategies = nil },
		"Seeds -1 is negative":                                                    func(c *Config) { c.Seeds = -1 },
		`returns 2 scenarios for strategy "retry-only" and 1 for "null"`: func(c *Config) {
			all := c.Scenarios
			c.Scenarios = func(s strategy.Strategy) []fleet.Scenario {
				if s.Name == "null" {
					return all(s)[:1]
				}
				return all(s)
			}
		},
	} {
		c := good
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := Run(ended, what); err != nil || !result.Interrupted || len(result.Strategies) != 0 {
		t.Errorf("interrupted: %v %+v", err, result)
	}
}

// The widest that a table is likely to be fits a screen of 100 columns.
func TestTableFits(t *testing.T) {
	number := func(v float64) Spread { return Spread{&v, &v} }
	never := Spread{}
	own := "the-strategy-of-our-third-attempt-v2" // of somebody's own, who may call it anything
	if got := shortName(own); got != "…ur-third-attempt-v2" {
		t.Errorf("%s is short for %s", got, own)
	}
	for _, s := range append(strategy.All(), strategy.Strategy{Name: own}) {
		if short := shortName(s.Name); s.Name != own && strings.Contains(short, "…") {
			t.Errorf("%s is abbreviated to %s", s.Name, short)
		}
		r := Row{Name: s.Name, Scenario: "jump-10-100", RetryPercent: number(99.99), MaxSleep: number(199_999), RequestSD: number(79_999), CV: number(499.9),
			Unused: number(99.9), Settle: &never}
		all := Table{Strategies: []Row{r}}
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
