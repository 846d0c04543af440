package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// Every kind of run is drawn.
func TestSimCharts(t *testing.T) {
	race.Without(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	scenario := file("s.yaml")
	if err := os.WriteFile(scenario, []byte("version: 1\nname: two share\nduration: 10m\nserver: {quota: 4500/h}\ngroups:\n  - {strategy: fair, threads: 2}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"sim", scenario, "--chart", file("scenario.svg")},
		{"sim", "throttle", "--only", "cold-10", "--strategies", "fair,exponential-increase-proportional-remaining-decrease", "--seeds", "2", "--chart", file("throttle.html")},
	} {
		code, _, text := command(args...)
		if code != cli.ExitOK {
			t.Fatalf("%v: exit %d, %s", args, code, text)
		}
		if drawn, err := os.ReadFile(args[len(args)-1]); err != nil || len(drawn) < 10_000 {
			t.Errorf("%v: %d bytes, %v", args, len(drawn), err)
		}
	}
	// Where it cannot be drawn the figures are printed all the same.
	if err := os.Mkdir(file("nowhere.svg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, stdout, text := command("sim", scenario, "--chart", file("nowhere.svg")); code != cli.ExitFailure || !strings.Contains(stdout, "requests") || !strings.Contains(text, "nowhere") {
		t.Errorf("exit %d, %s, %s", code, stdout, text)
	}
	for want, args := range map[string][]string{
		`"throttle.jpg" does not end in`: {"sim", "throttle", "--chart", "throttle.jpg"},
	} {
		if code, _, text := command(args...); code == cli.ExitOK || !strings.Contains(text, want) {
			t.Errorf("%v: exit %d, %s; want %s", args, code, text, want)
		}
	}
}

// drawn is what the charts of a page show: the values of each line, by the chart's title and the line's name.
type drawn map[string]map[string][]float64

var pageData = regexp.MustCompile(`<script type="application/json" id="data">(.*?)</script>`)

func readChart(t *testing.T, file string) drawn {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var charts []struct {
		Title string
		Lines []struct {
			Name string
			Y    []float64
		}
	}
	if m := pageData.FindSubmatch(page); m == nil || json.Unmarshal(m[1], &charts) != nil || len(charts) == 0 {
		t.Fatalf("%s has no data", file)
	}
	all := drawn{}
	for _, c := range charts {
		all[c.Title] = map[string][]float64{}
		for _, l := range c.Lines {
			all[c.Title][l.Name] = l.Y
		}
	}
	return all
}

// most is the largest value of a chart, but for the line to compare with of that name.
func (d drawn) most(chart, but string) (most float64) {
	for name, values := range d[chart] {
		if !strings.HasPrefix(name, but) {
			most = max(most, slices.Max(values))
		}
	}
	return most
}

// said is the number behind these words in a text.
func said(t *testing.T, text, words string) float64 {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(words) + ` *([0-9.]+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%q is not said in\n%s", words, text)
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	return v
}

// captions are what stands below the charts of lines, by their titles.
func captions(t *testing.T, file string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	caption := regexp.MustCompile(`<figcaption>(.*?) <span[^>]*>[^<]*</span></figcaption>\s*<div[^>]*></div>\s*<p>([^<]*)</p>`)
	for _, m := range caption.FindAllStringSubmatch(string(page), -1) {
		all[m[1]] = m[2]
	}
	return all
}

// The text and the chart of one run say the same: once it was 340 s beside 480 s, as one had what was slept and the
// other what the strategy had in mind.
func TestChartSaysWhatTheTextDoes(t *testing.T) {
	race.Without(t)
	dir := t.TempDir()
	scenario, page := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "s.html")
	for _, law := range []string{"exponential-backoff", "aimd", "demo-limit", "fair"} {
		for _, threads := range []int{2, 10} { // of many there is a band, and the longest is in its caption
			text := fmt.Sprintf("version: 1\nduration: 30m\nserver: {quota: 4500/h}\ngroups:\n  - {strategy: %s, threads: %d}\n", law, threads)
			if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := command("sim", scenario, "--chart", page)
			if code != cli.ExitOK {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			_, slept, _ := strings.Cut(stdout, "sleep           ")
			slept, _, _ = strings.Cut(slept, "; optimum")
			if got := captions(t, page)["Sleep per client"]; !strings.EqualFold(got, slept+".") {
				t.Errorf("%s, %d threads: the chart says %q, the text %q", law, threads, got, slept)
			}
			if threads > 2 {
				continue
			}
			chart := readChart(t, page)
			if got, want := chart.most("Sleep per client", "optimum"), said(t, slept, "at most"); math.Abs(got-want) > 0.051 {
				t.Errorf("%s: the chart's longest sleep is %v s, the text's %v s", law, got, want)
			}
			served := 0.0
			for _, of := range chart["Successes per client"] {
				served += of[len(of)-1]
			}
			_, line, _ := strings.Cut(stdout, "requests ")
			if want := said(t, line, ": "); math.Abs(served-want) > 0.01 {
				t.Errorf("%s: %v are served in the chart, %v in the text", law, served, want)
			}
		}
	}
}

// The bars of a comparison are the figures of its table.
func TestBarsSayWhatTheTableDoes(t *testing.T) {
	race.Without(t)
	dir := t.TempDir()
	page := filepath.Join(dir, "c.html")
	code, stdout, stderr := command("sim", "throttle", "--only", "cold-10", "--strategies", "fair,aimd,demo-limit", "--seeds", "3", "--chart", page)
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(stdout, "  strategy ")
	lines := strings.Split(stdout[i:], "\n")
	for _, line := range lines[1:4] {
		cells := strings.Fields(line)
		median, worst, _ := strings.Cut(cells[2], "/")
		row := regexp.MustCompile(`(?s)cold-10: longest sleep.*?` + cells[0] + `</th>(.*?)</tr>`).FindSubmatch(html)
		if row == nil {
			t.Fatalf("no bar of %s", cells[0])
		}
		var values []string
		for _, v := range regexp.MustCompile(`[>–]\s*([0-9.]+)`).FindAllSubmatch(row[1], -1) {
			f, _ := strconv.ParseFloat(string(v[1]), 64)
			values = append(values, strconv.FormatFloat(f, 'f', 0, 64))
		}
		if !slices.Contains(values, median) || !slices.Contains(values, worst) {
			t.Errorf("%s: the bar is %v (%s), the table says %s/%s", cells[0], values, row[1], median, worst)
		}
	}
}
