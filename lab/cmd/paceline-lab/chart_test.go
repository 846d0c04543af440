package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/chart"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// What cannot be drawn is refused, with the reason.
func TestChart(t *testing.T) {
	other := write(t, "other.yaml", "version: 1\n")
	for want, args := range map[string][]string{
		"--chart: ":                     {"chart", other, "--chart", "run.gif"},
		"nowhere":                       {"chart", "nowhere"},
		"other.yaml":                    {"chart", other},
		"want one file of results, got": {"chart", "a", "b"},
		"got 0 arguments":               {"chart"},
	} {
		if code, _, text := command(args...); code == cli.ExitOK || !strings.Contains(text, want) {
			t.Errorf("%v: exit %d, %s; want %s", args, code, text, want)
		}
	}
}

// The results of a run are drawn as paceline chart draws them, and as a picture, too.
func TestChartOfResults(t *testing.T) {
	race.Without(t) // nothing runs beside it
	dir := t.TempDir()
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

// The chart of several groups says what each got, as the report does.
func TestChartOfGroups(t *testing.T) {
	r := &fleet.Report{Clients: 3, Groups: []fleet.GroupReport{{Name: "a", Requests: []int{4, 9}}, {Name: "a", Requests: []int{7}}},
		Series: &fleet.Series{At: []float64{0, 1}, Level: []int64{5, 0}, ServedBy: [][]int{{0, 4}, {1, 9}, {0, 7}}, Slept: [][]float64{{0, 0}, {0, 1}, {0, 0}}}}
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
