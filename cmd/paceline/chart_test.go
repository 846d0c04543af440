package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/chart"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// command runs a command line.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(context.Background(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// Every kind of run is stored and drawn, and drawn again later.
func TestChart(t *testing.T) {
	unraced(t)
	dir := t.TempDir()
	t.Setenv("PACELINE_RUNS", filepath.Join(dir, "runs"))
	t.Setenv(asProgram, "1") // clients of --live are processes of this binary
	file := func(name string) string { return filepath.Join(dir, name) }
	scenario := file("s.yaml")
	if err := os.WriteFile(scenario, []byte("version: 1\nname: two share\nduration: 10m\nserver: {quota: 4500/h}\ngroups:\n  - {strategy: fair, threads: 2}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, text := command("chart"); code != exitUsage || !strings.Contains(text, "no run is stored in ") {
		t.Errorf("nothing stored: exit %d, %s", code, text)
	}
	for i, c := range []struct {
		args  []string
		names string
	}{
		{[]string{"sim", scenario, "--chart", file("scenario.svg")}, "two-share"},
		{[]string{"sim", "throttle", "--only", "cold-10", "--strategies", "fair,exponential-increase-proportional-remaining-decrease", "--seeds", "2", "--chart", file("throttle.html")}, "throttle-cold-10"},
		{[]string{"sim", "--live", "--strategy", "aimd", "--scale", "1000", "--duration", "5m", "--processes", "1", "--quiet", "-o", "json", "--chart", file("live.png")}, "live-aimd"},
	} {
		code, stdout, text := command(c.args...)
		if code != exitOK {
			t.Fatalf("%v: exit %d, %s", c.args, code, text)
		}
		if drawn, err := os.ReadFile(c.args[len(c.args)-1]); err != nil || len(drawn) < 10_000 {
			t.Errorf("%v: %d bytes, %v", c.args, len(drawn), err)
		}
		if i == 2 {
			var r loadgen.Report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Requests == 0 || r.Series != nil {
				t.Errorf("%v: %s", err, stdout)
			}
		}
		_, list, _ := command("chart", "--list")
		if names := strings.Fields(list); len(names) != i+1 || !strings.Contains(list, c.names) {
			t.Errorf("stored after %v: %q", c.args, names)
		}
	}
	// Where it cannot be drawn the figures are printed all the same.
	if err := os.Mkdir(file("nowhere.svg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, stdout, text := command("sim", scenario, "--chart", file("nowhere.svg")); code != exitFailure || !strings.Contains(stdout, "requests") || !strings.Contains(text, "nowhere") {
		t.Errorf("exit %d, %s, %s", code, stdout, text)
	}
	_, list, _ := command("chart", "--list")
	for _, name := range append(strings.Fields(list), "") {
		out := file("again.svg")
		args := []string{"chart", "--chart", out}
		if name != "" {
			args = append(args, name)
		}
		if code, _, text := command(args...); code != exitOK || !strings.Contains(text, "drawn in "+out) {
			t.Errorf("%v: exit %d, %s", args, code, text)
		}
	}
	for want, args := range map[string][]string{
		"--chart: ":                      {"chart", "--chart", "run.gif"},
		`"nowhere" is neither a file`:    {"chart", "nowhere"},
		"is no stored run":               {"chart", scenario},
		"want one run at most":           {"chart", "a", "b"},
		`"throttle.jpg" does not end in`: {"sim", "throttle", "--chart", "throttle.jpg"},
		"--live takes no scenario":       {"sim", "--live", scenario},
		"--scale 0: want":                {"sim", "--live", "--scale", "0"},
		"--processes 0: want":            {"sim", "--live", "--processes", "0"},
		"--threads -1: want":             {"sim", "--live", "--threads", "-1"},
		"--level 5000: want":             {"sim", "--live", "--level", "5000"},
		`strategy "best" is none of`:     {"sim", "--live", "--strategy", "best"},
		`strategy "worst" is none of`:    {"sim", "--live", "--strategy", "fair, worst"},
		"names 3 strategies for":         {"sim", "--live", "--strategy", "fair,aimd,demo"},
		`--url "here": want one such as`: {"sim", "--live", "--url", "here"},
		"Multiplier 0.5 is not":          {"sim", "--live", "--strategy", "demo", "--multiplier", "0.5"},
		"--latency: ":                    {"sim", "--live", "--latency", "soon"},
	} {
		if code, _, text := command(args...); code == exitOK || !strings.Contains(text, want) {
			t.Errorf("%v: exit %d, %s; want %s", args, code, text, want)
		}
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
	if code, _, text := command("chart", "--chart", filepath.Join(t.TempDir(), "x.svg")); code == exitOK || !strings.Contains(text, "no series to draw") {
		t.Errorf("exit %d, %s", code, text)
	}
}

// Beyond scale 10 a warning says what figures are worth; the environment sets flags.
func TestSimLiveFromEnvironment(t *testing.T) {
	t.Setenv("PACELINE_RUNS", t.TempDir())
	t.Setenv(asProgram, "1")
	t.Setenv("PACELINE_SCALE", "1000")
	t.Setenv("PACELINE_THREADS", "2")
	code, stdout, stderr := command("sim", "--live", "--strategy", "fair", "--duration", "2m", "--level", "400")
	if code != exitOK || !strings.Contains(stdout, "fair, live: 4 clients, 2m0s at scale 1000") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if !strings.Contains(stderr, "warning: at --scale 1000") || !strings.Contains(stderr, "1#1: status=200 remaining=") {
		t.Errorf("%.500s", stderr)
	}
}

// The chart of several groups says what each got, as the report does.
func TestChartOfGroups(t *testing.T) {
	r := &fleet.Report{Clients: 3, Groups: []fleet.GroupReport{{Name: "a", Requests: []int{4, 9}}, {Name: "a", Requests: []int{7}}},
		Series: &fleet.Series{At: []float64{0, 1}, Level: []int64{5, 0}, ServedBy: [][]int{{0, 4}, {1, 9}, {0, 7}}, Sleep: [][]float64{{0, 0}, {0, 1}, {0, 0}}}}
	f, err := scenarioFigure(r)
	if err != nil {
		t.Fatal(err)
	}
	lines, bars := f.Panels[len(f.Panels)-2].(chart.Lines), f.Panels[len(f.Panels)-1].(chart.Bars)
	if got := fmt.Sprint(lines.Series[0].Y, lines.Series[1].Y); got != "[1 13] [0 7]" {
		t.Errorf("served together: %s", got)
	}
	want := []chart.Bar{{Name: "a", Value: 6.5, Min: 4, Max: 9}, {Name: "group 2 a", Value: 7, Min: 7, Max: 7}}
	if !slices.Equal(bars.Bars, want) {
		t.Errorf("served by a client: %+v, want %+v", bars.Bars, want)
	}
	if err := chart.WriteSVG(io.Discard, f); err != nil {
		t.Error(err)
	}
	r.Groups = r.Groups[:1]
	if f, err := scenarioFigure(r); err != nil || len(f.Panels) != 3 {
		t.Errorf("%v: one group has %d panels", err, len(f.Panels))
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
