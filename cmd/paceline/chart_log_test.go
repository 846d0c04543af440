package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The chart of a log has what its lines say: rates of each kind, waits, what is left, limits that were waited for. What it is of shows in
// its content, and what is no log is said to be none.
func TestChartOfLogs(t *testing.T) {
	unraced(t)
	dir := t.TempDir()
	t.Setenv("PACELINE_RUNS", filepath.Join(dir, "runs"))
	var results, refused, dead, gcra, service strings.Builder
	for i := range 40 {
		fmt.Fprintf(&results, `{"id":"r%d","state":"done","status":200,"attempts":1,"waited_ms":%d,"latency_ms":20,"waited_for_ms":{"limit 10/s":%d},"at":"2026-11-22T21:39:%02d.100Z"}`+"\n", i, 100*i, 100*i, i/10)
		again := "" // each fourth was refused three times, 0.5 s apart, of which two are dated
		if i%4 == 0 {
			again = fmt.Sprintf(`,"refused":3,"refused_at":["2026-11-22T21:39:%02d.100Z","2026-11-22T21:39:%02d.600Z"]`, i/10, i/10)
		}
		fmt.Fprintf(&refused, `{"id":"r%d","state":"done","status":200,"attempts":4,"waited_ms":0,"waited_for_ms":{"limit 10/s":30,"limit 3/s":40},"key":"%c","at":"2026-11-22T21:39:%02d.900Z"%s,"ceiling_sustained":%d}`+"\n",
			i, 'A'+i%2, i/10, again, map[bool]int{true: 20, false: 12}[i < 20])
		fmt.Fprintf(&gcra, `{"checked_ns":%d,"status":%d,"remaining":%d}`+"\n", int64(i)*1e8, map[bool]int{true: 200, false: 429}[i < 30], max(0, 30-i))
		fmt.Fprintf(&service, `{"event":"request","at_unix_ns":%d,"status":429,"wait_ns":2500000000,"counts":[{"policy":"minute","who":"key %d","cost":1,"left":%d},{"policy":"day","who":"all","left":%d}]}`+"\n"+`{"event":"answered","at_unix_ns":%d}`+"\n",
			int64(1.7e18)+int64(i)*1e8, i%2+1, 20-i/2, 500-i, int64(1.7e18)+int64(i)*1e8)
	}
	fmt.Fprintln(&dead, `{"id":"d","state":"dead","status":404,"attempts":1,"waited_ms":0,"latency_ms":20,"at":"2026-11-22T21:39:03.500Z"}`)
	results.WriteString(`{"id":"broken o`) // by a crash
	for _, c := range []struct {
		name, text, panel, series string
		most                      float64
		caption                   string
	}{
		{"out.jsonl", results.String(), "Rate", "done", 10, "41 requests in 3s: 40 done, 1 failed; 0 attempts were refused."},
		{"out.jsonl", results.String(), "Rate", "failed", 1, ""},
		{"out.jsonl", results.String(), "Rate", "limit 10/s", 10, ""},
		{"out.jsonl", results.String(), "Waits before the last attempt", "longest", 3.9, ""},
		{"out.jsonl", results.String(), "Answers", "median", 0.02, ""},
		{"refused.jsonl", refused.String(), "Rate", "refused", 6, "40 requests in 4s: 40 done, 0 failed; 30 attempts were refused, 10 of them nobody knows when."},
		{"refused.jsonl", refused.String(), "Rate", "failed", -1, ""},
		{"refused.jsonl", refused.String(), "Rate", "ceiling", 20, ""},
		{"refused.jsonl", refused.String(), "Rate", "limit 3/s × 2 keys", 6, ""},
		{"refused.jsonl", refused.String(), "Rate", "limit 10/s × 2 keys", -1, ""}, // it is the ceiling
		{"service.jsonl", service.String(), "Left of minute", "key 1", 20, ""},
		{"service.jsonl", service.String(), "Left of minute", "key 2", 20, ""},
		{"service.jsonl", service.String(), "Left of day", "all", 500, ""},
		{"gcra.jsonl", gcra.String(), "Left of the quota", "left", 30, "40 requests in 4s: 30 done, 10 refused, 0 failed."},
		{"gcra.jsonl", gcra.String(), "Rate", "refused", 10, ""},
		{"service.jsonl", service.String(), "Until a refused request would pass", "median", 2.5, "40 requests in 4s: 0 done, 40 refused, 0 failed."},
	} {
		file, page := filepath.Join(dir, c.name), filepath.Join(dir, "log.html")
		for name, text := range map[string]string{file: c.text, filepath.Join(dir, "out.dead.jsonl"): dead.String()} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, _, stderr := command("chart", file, "--chart", page)
		if code != exitOK || !strings.Contains(stderr, c.caption) {
			t.Fatalf("%s: exit %d: %s", c.name, code, stderr)
		}
		got, there := readChart(t, page)[c.panel][c.series]
		if c.most < 0 {
			if there {
				t.Errorf("%s, %s has %s: %v", c.name, c.panel, c.series, got)
			}
			continue
		}
		most := 0.0
		for _, v := range got {
			most = max(most, v)
		}
		if !there || most < c.most-1e-6 || most > c.most+1e-6 {
			t.Errorf("%s, %s, %s goes to %v, want %v: %v", c.name, c.panel, c.series, most, c.most, got)
		}
		if html, _ := os.ReadFile(page); !strings.Contains(string(html), c.caption) {
			t.Errorf("%s: the chart does not say %q", c.name, c.caption)
		}
	}
	for text, want := range map[string]string{"https://a.test\n": "other is no stored run of paceline sim, and has no results of paceline run", "": "is no stored run of paceline sim", `{"a":1}` + "\n": "is no stored run", results.String()[:200] + "\nnonsense\n": "line 2"} {
		file := filepath.Join(dir, "other")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := command("chart", file, "--chart", filepath.Join(dir, "o.svg")); code != exitConfig || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s, want %q", text, code, stderr, want)
		}
	}
}

// A table, or the file of rows beside it, is drawn from the results that it was made of, with the dead letters.
func TestChartOfTable(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("id") == "1" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{}`)
	})
	dir := t.TempDir()
	table := filepath.Join(dir, "t.csv")
	if code, _, stderr := paceline("", "run", "--limit", "500/s", write(t, "in.jsonl", numbered(5, l.URL)), "--select", "id=.id", "--out", table); code != exitSomeFailed {
		t.Fatal(code, stderr)
	}
	for _, name := range []string{table, table + ".rows"} {
		code, _, stderr := command("chart", name, "--chart", filepath.Join(dir, "t.svg"))
		if code != exitOK || !strings.Contains(stderr, ": 4 done, 1 failed; 0 attempts were refused.") {
			t.Errorf("%s: %d %s", name, code, stderr)
		}
	}
}
