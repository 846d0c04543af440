package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/lab/chart"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Runs that are stored are listed, and drawn again.
func TestChart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PACELINE_RUNS", filepath.Join(dir, "runs"))
	file := func(name string) string { return filepath.Join(dir, name) }
	other := file("other.yaml")
	if err := os.WriteFile(other, []byte("version: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, text := command("chart"); code != cli.ExitUsage || !strings.Contains(text, "no run is stored in ") {
		t.Errorf("nothing stored: exit %d, %s", code, text)
	}
	r := &fleet.Report{Clients: 1, Groups: []fleet.GroupReport{{Requests: []int{9}}}, Series: &fleet.Series{
		At: []float64{0, 1}, Level: []int64{5, 0}, ServedBy: [][]int{{0, 9}}, Sleep: [][]float64{{0, 1}}}}
	for i, name := range []string{"two share", "three"} {
		if err := (storedRun{Scenario: r}).store(time.Unix(int64(i), 0), name); err != nil {
			t.Fatal(err)
		}
	}
	_, list, _ := command("chart", "--list")
	if list != "19700101-000001-three\n19700101-000000-two-share\n" {
		t.Error(list)
	}
	for _, name := range append(strings.Fields(list), "") {
		out := file("again.svg")
		args := []string{"chart", "--chart", out}
		if name != "" {
			args = append(args, name)
		}
		if code, _, text := command(args...); code != cli.ExitOK || !strings.Contains(text, "drawn in "+out) {
			t.Errorf("%v: exit %d, %s", args, code, text)
		}
	}
	for want, args := range map[string][]string{
		"--chart: ":                   {"chart", "--chart", "run.gif"},
		`"nowhere" is neither a file`: {"chart", "nowhere"},
		"is no stored run":            {"chart", other},
		"want one run at most":        {"chart", "a", "b"},
	} {
		if code, _, text := command(args...); code == cli.ExitOK || !strings.Contains(text, want) {
			t.Errorf("%v: exit %d, %s; want %s", args, code, text, want)
		}
	}
}

// The results of a run are drawn as paceline chart draws them, and as a picture, too.
func TestChartOfResults(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PACELINE_RUNS", filepath.Join(dir, "runs"))
	results := filepath.Join(dir, "results.jsonl")
	line := `{"id":"a","state":"done","status":200,"waited_ms":5,"latency_ms":20,"at":"2026-11-22T21:39:00.100Z"}` + "\n"
	if err := os.WriteFile(results, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, begins := range map[string]string{"r.png": "\x89PNG", "r.svg": "<svg", "r.html": "<!doctype html>"} {
		out := filepath.Join(dir, name)
		code, _, text := command("chart", results, "--chart", out)
		want := "results.jsonl drawn in " + out + ": 1 requests in 0s: 1 done, 0 failed; 0 attempts were refused."
		if code != cli.ExitOK || !strings.Contains(text, want) {
			t.Errorf("exit %d, %s; want %s", code, text, want)
		}
		if drawn, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(drawn), begins) {
			t.Errorf("%s begins with %.20q, %v", name, drawn, err)
		}
	}
	if err := os.WriteFile(results, []byte(line+"nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, text := command("chart", results); code != cli.ExitConfig || !strings.Contains(text, "line 2") {
		t.Errorf("exit %d, %s", code, text)
	}
}

// Only the latest runs are kept.
func TestRunsKept(t *testing.T) {
	t.Setenv("PACELINE_RUNS", t.TempDir())
	for i := range runsKept + 3 {
		if err := (storedRun{Scenario: &fleet.Report{}}).store(time.Unix(int64(i), 0), "n"); err != nil {
			t.Fatal(err)
		}
	}
	names, err := storedRuns()
	if err != nil || len(names) != runsKept || names[0] <= names[1] {
		t.Errorf("%d runs, %v", len(names), err)
	}
	if code, _, text := command("chart", "--chart", filepath.Join(t.TempDir(), "x.svg")); code == cli.ExitOK || !strings.Contains(text, "no series to draw") {
		t.Errorf("exit %d, %s", code, text)
	}
}

// The chart of several groups says what each got, as the report does.
func TestChartOfGroups(t *testing.T) {
	r := &fleet.Report{Clients: 3, Groups: []fleet.GroupReport{{Name: "a", Requests: []int{4, 9}}, {Name: "a", Requests: []int{7}}},
		Series: &fleet.Series{At: []float64{0, 1}, Level: []int64{5, 0}, ServedBy: [][]int{{0, 4}, {1, 9}, {0, 7}}, Sleep: [][]float64{{0, 0}, {0, 1}, {0, 0}}}}
	p, err := scenarioPage(r)
	if err != nil {
		t.Fatal(err)
	}
	lines, bars := p.Charts[len(p.Charts)-2], p.Charts[len(p.Charts)-1]
	if got := fmt.Sprint(lines.Lines[0].Y, lines.Lines[1].Y); got != "[1 13] [0 7]" {
		t.Errorf("served together: %s", got)
	}
	want := []report.Bar{
		{Name: "a", Value: 6.5, Low: 4, High: 9, Strong: true}, {Name: "group 2 a", Value: 7, Low: 7, High: 7, Strong: true},
	}
	if !slices.Equal(bars.Bars, want) {
		t.Errorf("served by a client: %+v, want %+v", bars.Bars, want)
	}
	if err := chart.WriteSVG(io.Discard, p); err != nil {
		t.Error(err)
	}
	r.Groups = r.Groups[:1]
	if p, err := scenarioPage(r); err != nil || len(p.Charts) != 3 {
		t.Errorf("%v: one group has %d charts", err, len(p.Charts))
	}
}

// Runs that end together remove the same old ones, and none complains.
func TestRunsStoredTogether(t *testing.T) {
	t.Setenv("PACELINE_RUNS", t.TempDir())
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if err := (storedRun{Scenario: &fleet.Report{}}).store(time.Unix(int64(i), 0), "n"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if names, err := storedRuns(); err != nil || len(names) != runsKept {
		t.Errorf("%d runs, %v", len(names), err)
	}
}
