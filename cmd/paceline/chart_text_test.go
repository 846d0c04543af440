package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// drawn is what a chart as HTML shows: the values of each panel, by its title and what they are of.
type drawn map[string]map[string][]float64

var (
	pageData   = regexp.MustCompile(`<script type="application/json" id="data">(.*?)</script>`)
	pagePanels = regexp.MustCompile(`(?s)<section[^>]*data-panel="(\d+)".*?<h2[^>]*>(.*?)</h2>`)
)

func readChart(t *testing.T, file string) drawn {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]string{}
	for _, m := range pagePanels.FindAllStringSubmatch(string(page), -1) {
		titles[m[1]] = m[2]
	}
	var panels []struct {
		ID     int `json:"id"`
		Series []struct {
			Name string    `json:"name"`
			Y    []float64 `json:"y"`
		} `json:"series"`
	}
	if m := pageData.FindSubmatch(page); m == nil || json.Unmarshal(m[1], &panels) != nil || len(panels) == 0 {
		t.Fatalf("%s has no data", file)
	}
	all := drawn{}
	for _, p := range panels {
		title := titles[strconv.Itoa(p.ID)]
		all[title] = map[string][]float64{}
		for _, s := range p.Series {
			all[title][s.Name] = s.Y
		}
	}
	return all
}

// most is the largest value of a panel, but for what is there to compare with.
func (d drawn) most(panel string, but ...string) (most float64) {
	for name, values := range d[panel] {
		if !slices.Contains(but, name) {
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

// captions are what stands below a chart's panels, by title.
func captions(t *testing.T, file string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for section := range strings.SplitSeq(string(page), "<section") {
		title := regexp.MustCompile(`<h2[^>]*>(.*?)</h2>`).FindStringSubmatch(section)
		if title == nil {
			continue
		}
		for _, m := range regexp.MustCompile(`<p>([^<]*)</p>\s*</div>\s*<details>`).FindAllStringSubmatch(section, -1) {
			all[title[1]] = m[1]
		}
	}
	return all
}

// The text and the chart of one run say the same: once it was 340 s beside 480 s, as one had what was slept and the other what the
// strategy had in mind.
func TestChartSaysWhatTheTextDoes(t *testing.T) {
	unraced(t)
	dir := t.TempDir()
	t.Setenv("PACELINE_RUNS", filepath.Join(dir, "runs"))
	scenario, page := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "s.html")
	for _, law := range []string{"exponential-backoff", "aimd", "demo-limit", "fair"} {
		for _, threads := range []int{2, 10} { // of many there is a band, and the longest is in its caption
			text := fmt.Sprintf("version: 1\nduration: 30m\nserver: {quota: 4500/h}\ngroups:\n  - {strategy: %s, threads: %d}\n", law, threads)
			if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := command("sim", scenario, "--chart", page)
			if code != exitOK {
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

// A run's summary, what chart prints and what it draws have the same requests, refusals and ceiling.
func TestChartSaysWhatTheRunDid(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case n%4 == 0:
			w.Header().Set("Retry-After", "0.02")
			w.WriteHeader(http.StatusTooManyRequests)
		case r.URL.Query().Get("id") == "7":
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	in, out, page, summary := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "run.html"), filepath.Join(dir, "summary.json")
	var urls strings.Builder
	for i := range 12 {
		fmt.Fprintf(&urls, "%s/?id=%d\n", srv.URL, i)
	}
	if err := os.WriteFile(in, []byte(urls.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := command("run", "--limit", "500/s", "--out", out, "--summary", summary, in); code != exitSomeFailed {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var said struct{ Done, Dead, Rejected int }
	if text, err := os.ReadFile(summary); err != nil || json.Unmarshal(text, &said) != nil || said.Rejected < 2 || said.Dead != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	code, _, stderr := command("chart", out, "--chart", page)
	want := fmt.Sprintf(": %d done, %d failed; %d attempts were refused.", said.Done, said.Dead, said.Rejected)
	if html, _ := os.ReadFile(page); code != exitOK || !strings.Contains(stderr, want) || !strings.Contains(string(html), want) {
		t.Errorf("exit %d: %s; want %q", code, stderr, want)
	}
	rates := readChart(t, page)["Rate"]
	for kind, n := range map[string]int{"done": said.Done, "failed": said.Dead, "refused": said.Rejected} {
		if len(rates[kind]) == 0 {
			t.Errorf("%d are %s, and none is drawn", n, kind)
			continue
		}
		drawn := -rates[kind][len(rates[kind])-1] // the last step is there twice, for its width; each is of a second
		for _, perSecond := range rates[kind] {
			drawn += perSecond
		}
		if math.Abs(drawn-float64(n)) > 1e-6 {
			t.Errorf("%d are %s, and %v are drawn: %v", n, kind, drawn, rates[kind])
		}
	}
	results, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		Ceiling float64 `json:"ceiling_sustained"`
	}
	for line := range strings.Lines(string(results)) { // a limit may have proved wrong meanwhile
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
	}
	if c := rates["ceiling"]; len(c) == 0 || c[len(c)-1] != last.Ceiling || last.Ceiling == 0 || last.Ceiling > 500 {
		t.Errorf("the ceiling is drawn at %v, the last line has %v", c, last.Ceiling)
	}
}

// The bars of a comparison are the figures of its table.
func TestBarsSayWhatTheTableDoes(t *testing.T) {
	unraced(t)
	dir := t.TempDir()
	t.Setenv("PACELINE_RUNS", filepath.Join(dir, "runs"))
	page := filepath.Join(dir, "c.html")
	code, stdout, stderr := command("sim", "throttle", "--only", "cold-10", "--strategies", "fair,aimd,demo-limit", "--seeds", "3", "--chart", page)
	if code != exitOK {
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
		for _, v := range regexp.MustCompile(`>\s*([0-9.]+)`).FindAllSubmatch(row[1], -1) {
			f, _ := strconv.ParseFloat(string(v[1]), 64)
			values = append(values, strconv.FormatFloat(f, 'f', 0, 64))
		}
		if !slices.Contains(values, median) || !slices.Contains(values, worst) {
			t.Errorf("%s: the bar is %v (%s), the table says %s/%s", cells[0], values, row[1], median, worst)
		}
	}
}
