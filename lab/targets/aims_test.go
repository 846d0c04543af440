package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

func named(t *testing.T, name string) (c Config) {
	t.Helper()
	law, err := strategy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	c.Strategy = law
	return c
}

// Every scenario can be, has a name of its own, and figures that can be measured of it.
func TestTable(t *testing.T) {
	law := named(t, "exponential-backoff").Strategy
	seen := map[string]bool{}
	for _, a := range Table() {
		name := a.Scenario.Name
		if seen[name] || name == "" || a.Text == "" || len(a.Figures) == 0 {
			t.Errorf("%q is there twice, or has no figures or text", name)
		}
		seen[name] = true
		s := a.followed(law, 1)
		if s.Duration = min(s.Duration, 3*time.Hour); s.Server.Window < time.Hour && s.Server.Window > 0 {
			s.Duration = min(s.Duration, 3*time.Minute)
		}
		clients := 0
		for _, g := range s.Groups {
			clients += max(g.Processes, 1) * max(g.Threads, 1)
		}
		if clients > 100 && testing.Short() {
			continue
		}
		f, err := fleet.New(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.Advance(s.Duration)
		r := f.Report()
		for _, figure := range a.Figures {
			if v := figure.Of(&r); math.IsNaN(v) || v < 0 {
				t.Errorf("%s: %s is %v", name, figure.Name, v)
			}
		}
	}
}

// What is said of an aim that is missed is said of one that there is.
func TestOpen(t *testing.T) {
	of := maps.Clone(open)
	for _, a := range Table() {
		for _, f := range a.Figures {
			delete(of, a.Scenario.Name+": "+f.Name)
		}
	}
	if len(of) > 0 {
		t.Errorf("there is no such aim: %q", slices.Sorted(maps.Keys(of)))
	}
}

// Median and worst of seeds, and what is held against them.
func TestMeasured(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		f      Figure
		values []float64
		want   string
	}{
		{Figure{Median: 3, Worst: 5}, []float64{5, 1, 3}, "3 / 5 ≤ 3 / 5 holds"},
		{Figure{Median: 3, Worst: 5}, []float64{5.1, 1, 3}, "3 / 5.1 ≤ 3 / 5 MISSED"},
		{Figure{Median: 3, Worst: none}, []float64{3.01, 1, 9, 9}, "3.01 / 9 ≤ 3 MISSED"},
		{Figure{Median: 3, Worst: none, Open: "nobody knows how"}, []float64{4}, "4 / 4 ≤ 3 open: nobody knows how"},
		{Figure{Median: 3, Worst: none, AtLeast: true}, []float64{9, 3, 2}, "3 / 2 ≥ 3 holds"},
		{Figure{Median: 3, Worst: none, AtLeast: true}, []float64{9, 2, 2}, "2 / 2 ≥ 3 MISSED"},
		{Figure{Median: 3, Worst: 5}, []float64{inf, 2, 2}, "2 / never ≤ 3 / 5 MISSED"},
		{Figure{Median: none, Worst: none}, []float64{7}, "7 / 7 no aim "},
	} {
		m := c.f.measured(slices.Clone(c.values))
		short := func(v *float64) string {
			if v == nil {
				return "never"
			}
			return fmt.Sprint(*v)
		}
		plain := strings.NewReplacer(".000", "", ".00", "")
		got := fmt.Sprintf("%s / %s %s %s", short(m.Median), short(m.Worst), plain.Replace(m.aim()), m.verdict())
		if got != c.want {
			t.Errorf("%v: got  %s\nwant %s", c.values, got, c.want)
		}
	}
}

// A run over few seeds of a law that misses nearly all: it is told which, in the order of the table, and the same each time.
func TestRun(t *testing.T) {
	c := named(t, "exponential-backoff")
	c.First, c.Last, c.Only = 1001, 1003, "threads-"
	told := 0
	c.Progress = func(done, all int) {
		if told++; done != told || all != 9 {
			t.Errorf("%d of %d", done, all)
		}
	}
	r, err := Run(t.Context(), c)
	if err != nil || told != 9 || len(r.Rows) != 3 || r.Rows[0].Scenario != "threads-2x5" || r.Rows[2].Seeds != 3 || r.Held+len(r.Missed)+len(r.Open) != 6 {
		t.Fatalf("%v: %+v", err, r)
	}
	if err := r.Check(); !errors.Is(err, ErrMissed) || !strings.Contains(err.Error(), "threads-5x5: refused %") {
		t.Errorf("missed: %v", err)
	}
	c.Progress = nil
	again, err := Run(t.Context(), c)
	again.Wall = r.Wall
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(again)
	if err != nil || string(a) != string(b) {
		t.Errorf("%v: again it is\n%s\nand was\n%s", err, b, a)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(text.String(), "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("longer than 100 columns: %s", line)
		}
	}
	c.Only = "nothing"
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "there are cold-10, spread-1s") {
		t.Errorf("a scenario that is not there: %v", err)
	}
	c.Only, c.First, c.Last = "", 5, 4
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "seeds 5 to 4") {
		t.Errorf("seeds in the wrong order: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.First, c.Last = 1, 2
	if r, err := Run(ended, c); err != nil || !r.Interrupted || len(r.Rows) != 0 {
		t.Errorf("interrupted: %v %+v", err, r)
	}
}

// Texts fit, too, for all rows.
func TestTextsFit(t *testing.T) {
	for _, a := range Table() {
		if line := a.Scenario.Name + ": " + a.Text; utf8.RuneCountInString(line) > 100 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}
