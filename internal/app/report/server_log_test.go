package report_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// write writes files into a new folder.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// drawn is what a page shows: the values of each line, by the title of its chart and its name.
func drawn(p report.Page) map[string]map[string][]float64 {
	all := map[string]map[string][]float64{}
	for _, c := range p.Charts {
		all[c.Title] = map[string][]float64{}
		for _, l := range c.Lines {
			all[c.Title][l.Name] = l.Y
		}
	}
	return all
}

func most(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	return most
}

// logs are files of every kind.
func logs() map[string]string {
	var results, refused, gcra, service strings.Builder
	for i := range 40 {
		fmt.Fprintf(&results,
			`{"id":"r%d","state":"done","status":200,"attempts":1,"waited_ms":%d,"latency_ms":20,"waited_for_ms":{"limit 10/s":%d},"at":"2026-11-22T21:39:%02d.100Z"}`+"\n", i, 100*i, 100*i, i/10)
		again := "" // each fourth was refused three times, 0.5 s apart, of which two are dated
		if i%4 == 0 {
			again = fmt.Sprintf(`,"refused":3,"refused_at":["2026-11-22T21:39:%02d.100Z","2026-11-22T21:39:%02d.600Z"]`, i/10, i/10)
		}
		fmt.Fprintf(&refused,
			`{"id":"r%d","state":"done","status":200,"attempts":4,"waited_ms":0,"waited_for_ms":{"limit 10/s":30,"limit 3/s":40},"key":"%c","at":"2026-11-22T21:39:%02d.900Z"%s,"ceiling_sustained":%d}`+"\n",
			i, 'A'+i%2, i/10, again, map[bool]int{true: 20, false: 12}[i < 20])
		fmt.Fprintf(&gcra, `{"checked_ns":%d,"status":%d,"remaining":%d}`+"\n", int64(i)*1e8,
			map[bool]int{true: 200, false: 429}[i < 30], max(0, 30-i))
		fmt.Fprintf(&service,
			`{"event":"request","at_unix_ns":%d,"status":429,"wait_ns":2500000000,"counts":[{"policy":"minute","who":"key %d","cost":1,"left":%d},{"policy":"day","who":"all","left":%d}]}`+"\n"+`{"event":"answered","at_unix_ns":%d}`+"\n",
			int64(1.7e18)+int64(i)*1e8, i%2+1, 20-i/2, 500-i, int64(1.7e18)+int64(i)*1e8)
	}
	results.WriteString(`{"id":"broken o`) // by a crash
	dead := `{"id":"d","state":"dead","status":404,"attempts":1,"waited_ms":0,"latency_ms":20,"at":"2026-11-22T21:39:03.500Z"}` + "\n"
	var batch, errs strings.Builder
	for i := range 20 {
		fmt.Fprintf(&batch, `{"id":"batch_req_%d","custom_id":"r%d","response":{"status_code":200},"error":null,"paceline":{"state":"done","attempts":1,"waited_ms":%d,"waited_for_ms":{"limit 10/s":900},"latency_ms":20,"key":"A","at":"2026-11-22T21:39:0%d.000Z"}}`+"\n", i, i, i*100, i/10)
	}
	errs.WriteString(`{"id":"batch_req_x","custom_id":"x","response":{"status_code":404},"error":null,"paceline":{"state":"dead","attempts":1,"waited_ms":0,"key":"A","at":"2026-11-22T21:39:01.950Z"}}` + "\n")
	return map[string]string{
		"b.jsonl": batch.String(), "b.errors.jsonl": errs.String(),
		"out.jsonl": results.String(), "out.dead.jsonl": dead, "elsewhere": dead, "alone.jsonl": results.String(), "refused.jsonl": refused.String(),
		"gcra.jsonl": gcra.String(), "service.jsonl": service.String(),
		"t.csv": "id\n1\n", "t.csv.rows": `{"state":"rows","select":"id=.id"}` + "\n" + results.String(), "t.csv.dead.jsonl": dead,
	}
}

// The page of a log has what its lines say: rates of each kind, waits, what is left, limits that
// were waited for. The content says what a log is of.
func TestPageOfLogs(t *testing.T) {
	dir := write(t, logs())
	for _, c := range []struct {
		name, dead    string
		chart, series string
		most          float64 // negative: the series is not drawn
		text          string
	}{
		{"out.jsonl", "", "Rate", "done", 10, "41 requests in 3s: 40 done, 1 failed; 0 attempts were refused."},
		{"out.jsonl", "", "Rate", "failed", 1, ""},
		{"out.jsonl", "", "Rate", "limit 10/s", 10, ""},
		{"out.jsonl", "", "Waits before the last attempt", "longest", 3.9, ""},
		{"out.jsonl", "", "Answers", "median", 0.02, ""},
		{"alone.jsonl", "", "Rate", "failed", -1, "40 requests in 3s: 40 done, 0 failed; 0 attempts were refused."},
		{"alone.jsonl", "elsewhere", "Rate", "failed", 1,
			"41 requests in 3s: 40 done, 1 failed; 0 attempts were refused."},
		{"b.jsonl", "", "Rate", "failed", 1, "21 requests in 2s: 20 done, 1 failed; 0 attempts were refused."},
		{"b.jsonl", "", "Rate", "limit 10/s", 10, ""},
		{"b.jsonl", "", "Waits before the last attempt", "longest", 1.9, ""},
		{"t.csv", "", "Rate", "failed", 1, "41 requests in 3s: 40 done, 1 failed; 0 attempts were refused."},
		{"t.csv.rows", "", "Rate", "failed", 1, "41 requests in 3s: 40 done, 1 failed; 0 attempts were refused."},
		{"refused.jsonl", "", "Rate", "refused", 6,
			"40 requests in 4s: 40 done, 0 failed; 30 attempts were refused, 10 of them nobody knows when."},
		{"refused.jsonl", "", "Rate", "failed", -1, ""},
		{"refused.jsonl", "", "Rate", "ceiling", 20, ""},
		{"refused.jsonl", "", "Rate", "limit 3/s × 2 keys", 6, ""},
		{"refused.jsonl", "", "Rate", "limit 10/s × 2 keys", -1, ""}, // it is the ceiling
		{"service.jsonl", "", "Left of minute", "key 1", 20, ""},
		{"service.jsonl", "", "Left of minute", "key 2", 20, ""},
		{"service.jsonl", "", "Left of day", "all", 500, ""},
		{"gcra.jsonl", "", "Left of the quota", "left", 30, "40 requests in 4s: 30 done, 10 refused, 0 failed."},
		{"gcra.jsonl", "", "Rate", "refused", 10, ""},
		{"service.jsonl", "", "Until a refused request would pass", "median", 2.5,
			"40 requests in 4s: 0 done, 40 refused, 0 failed."},
	} {
		dead := ""
		if c.dead != "" {
			dead = filepath.Join(dir, c.dead)
		}
		log, err := report.Read(filepath.Join(dir, c.name), dead)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		page := log.Page("a log")
		if c.text != "" && page.Text != c.text {
			t.Errorf("%s: %q, want %q", c.name, page.Text, c.text)
		}
		got, there := drawn(page)[c.chart][c.series]
		if there != (c.most >= 0) || there && math.Abs(most(got)-c.most) > 1e-6 {
			t.Errorf("%s, %s, %s goes to %v, want %v", c.name, c.chart, c.series, got, c.most)
		}
	}
}

// The rates of a page add up to the requests, and the ceiling is the one of each second.
func TestRates(t *testing.T) {
	dir := write(t, logs())
	log, err := report.Read(filepath.Join(dir, "refused.jsonl"), "")
	if err != nil {
		t.Fatal(err)
	}
	rates := drawn(log.Page(""))["Rate"]
	if got := fmt.Sprint(rates["done"], rates["refused"],
		rates["ceiling"]); got != "[10 10 10 10 10] [6 4 6 4 4] [20 20 12 12 12]" {
		t.Errorf("done, refused and ceiling by the second are %s", got)
	}
}

// A log that ends within a step shows no fall of its rate there: the step is left out, and that is
// said. A log that fills its last step, or has only one, shows all.
func TestLastStep(t *testing.T) {
	for _, c := range []struct {
		name   string
		events int
		every  time.Duration
		steps  string
		says   string
	}{
		{"5/s for 12.6 s", 63, 200 * time.Millisecond, "[5 5 5 5 5 5 5 5 5 5 5 5 5]", "Each step is of 1s. The last 400 ms are no whole step, and are left out: 3 done."},
		{"10/s for 3 s", 30, 100 * time.Millisecond, "[10 10 10 10]", "Each step is of 1s."},
		{"10/s for 12 s", 120, 100 * time.Millisecond, "[10 10 10 10 10 10 10 10 10 10 10 10 10]", "Each step is of 1s."},
		{"10/s for 2.5 s, few steps", 25, 100 * time.Millisecond, "[10 10 5 5]", "Each step is of 1s."},
		{"1/s for 4 s", 4, time.Second, "[1 1 1 1 1]", "Each step is of 1s."},
		{"one", 1, time.Second, "[1 1]", "Each step is of 1s."},
		{"all within a step", 3, 10 * time.Millisecond, "[3 3]", "Each step is of 1s."},
	} {
		var b strings.Builder
		begin := time.Date(2026, 11, 22, 21, 39, 0, 0, time.UTC)
		for i := range c.events {
			fmt.Fprintf(&b, `{"id":"%d","state":"done","at":"%s"}`+"\n", i, begin.Add(time.Duration(i)*c.every).Format(time.RFC3339Nano))
		}
		log, err := report.Read(filepath.Join(write(t, map[string]string{"log": b.String()}), "log"), "")
		if err != nil {
			t.Fatal(err)
		}
		page := log.Page("")
		if got := fmt.Sprint(drawn(page)["Rate"]["done"]); got != c.steps || page.Charts[0].Caption != c.says {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, got, page.Charts[0].Caption, c.steps, c.says)
		}
	}
}

// A file that is no log is an error that says so.
func TestNotLog(t *testing.T) {
	dir := write(t, map[string]string{
		"urls": "https://a.test\n", "empty": "", "json": `{"a":1}` + "\n", "blank": "\n", "rows": `{"state":"rows"}` + "\n",
		"torn": logs()["out.jsonl"][:250] + "\nnonsense\n", "batch": `{"id":"batch_req_1","custom_id":"a","response":{"status_code":200}}` + "\n",
	})
	for _, name := range []string{"urls", "empty", "json", "blank", "rows", "batch"} {
		if _, err := report.Read(filepath.Join(dir, name), ""); !errors.Is(err, report.ErrNotLog) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := report.Read(filepath.Join(dir, "torn"), ""); err == nil || errors.Is(err, report.ErrNotLog) ||
		!strings.Contains(err.Error(), "line 2") {
		t.Errorf("torn: %v", err)
	}
	if _, err := report.Read(filepath.Join(dir, "none"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

// Results that a run hands over are drawn like those in its file; without any the page says so.
func TestResults(t *testing.T) {
	var log report.Log
	if page := log.Page("none"); page.Text != "No request has ended." || len(page.Charts) != 0 {
		t.Errorf("without a request: %+v", page)
	}
	log.Result(&format.Result{ID: "a", State: "done", Status: 200, WaitedMS: 1500, LatencyMS: 250, Key: "K",
		At: "2026-11-22T21:39:00.000Z", Ceiling: 5,
		WaitedFor: map[string]int64{"limit 7/s": 1500}, Refused: 1, RefusedAt: []string{"2026-11-22T21:39:01.000Z"}})
	log.Result(&format.Result{ID: "b", State: "expired", Key: "K", At: "2026-11-22T21:39:02.000Z"})
	page := log.Page("two")
	if page.Text != "2 requests in 2s: 1 done, 1 failed; 1 attempt was refused." {
		t.Error(page.Text)
	}
	all := drawn(page)
	if all["Waits before the last attempt"]["longest"][0] != 1.5 || all["Answers"]["longest"][0] != 0.25 ||
		all["Rate"]["limit 7/s"][0] != 7 || all["Rate"]["ceiling"][0] != 5 {
		t.Errorf("%v", all)
	}
}

// Of many who share a limit there is a band with a few of them. A long log has so many instants and
// no more.
func TestManyAndLong(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, `{"event":"request","at_unix_ns":%d,"status":200,"counts":[{"policy":"p","who":"client %d","left":%d}]}`+"\n", int64(i)*1e9, i%40, i%97)
	}
	log, err := report.Read(filepath.Join(write(t, map[string]string{"l": text.String()}), "l"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range log.Page("").Charts {
		if err := c.Check(); err != nil || len(c.X) < 100 || len(c.X) > 500 {
			t.Errorf("%s: %d instants, %v", c.Title, len(c.X), err)
		}
		if c.Title == "Left of p" && (len(c.Lines) != 5 || c.Lines[0].Name != "p5 to p95 of 40 clients") {
			t.Errorf("%d lines, the first is %q", len(c.Lines), c.Lines[0].Name)
		}
	}
}
