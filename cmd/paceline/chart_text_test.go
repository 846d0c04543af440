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
