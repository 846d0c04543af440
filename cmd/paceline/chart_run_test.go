package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// chartPage returns the lines of the charts of a page, by the titles of these and their own names,
// and the page's sentence.
func chartPage(t *testing.T, file string) (charts map[string]map[string][]float64, text string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Title string
		Lines []struct {
			Name string
			Y    []float64
		}
	}
	data := regexp.MustCompile(`<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(page)
	sentence := regexp.MustCompile(`<section class="verdict"><h2>(.*?)</h2>`).FindSubmatch(page)
	if data == nil || sentence == nil || json.Unmarshal(data[1], &all) != nil {
		t.Fatalf("%s is no page of charts", file)
	}
	charts = map[string]map[string][]float64{}
	for _, c := range all {
		charts[c.Title] = map[string][]float64{}
		for _, l := range c.Lines {
			charts[c.Title][l.Name] = l.Y
		}
	}
	return charts, string(sentence[1])
}

// A run's summary, its report, what chart prints and what it draws have the same requests, refusals
// and ceiling.
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
	file := func(name string) string { return filepath.Join(dir, name) }
	in, out, page := write(t, "in.jsonl", numbered(12, srv.URL)), file("out.jsonl"), file("run.html")
	if code, _, stderr := paceline("", "run", "--limit", "500/s", "--out", out, "--summary", file("sum.json"),
		"--report", file("report.html"), in); code != cli.ExitSomeFailed {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var said struct{ Done, Dead, Rejected int }
	if text, err := os.ReadFile(file("sum.json")); err != nil || json.Unmarshal(text, &said) != nil ||
		said.Rejected < 2 || said.Dead != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	code, stdout, stderr := paceline("", "chart", out, "--chart", page)
	want := fmt.Sprintf(": %d done, %d failed; %d attempts were refused.", said.Done, said.Dead, said.Rejected)
	charts, text := chartPage(t, page)
	if code != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "out.jsonl drawn in "+page+": "+text) ||
		!strings.Contains(text, want) {
		t.Errorf("exit %d: %s; the page says %q, want %q", code, stderr, text, want)
	}
	drawn, err := os.ReadFile(page)
	if report, rerr := os.ReadFile(file("report.html")); err != nil || rerr != nil || !bytes.Equal(drawn, report) {
		t.Errorf("the report of the run has %d bytes, the chart of its results %d: %v, %v", len(report), len(drawn),
			rerr, err)
	}
	rates := charts["Rate"]
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
	last := results(t, out)
	ceiling := last[len(last)-1].Ceiling // a limit may have proved wrong meanwhile
	if c := rates["ceiling"]; len(c) == 0 || math.Abs(c[len(c)-1]-ceiling) > 1e-4 || ceiling == 0 || ceiling > 500 {
		t.Errorf("the ceiling is drawn at %v, the last line has %v", c, ceiling)
	}
}

// A table, or the file of rows beside it, is drawn from the results that it was made of, with the
// dead letters.
func TestChartOfTable(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("id") == "1" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{}`)
	})
	dir := t.TempDir()
	table, report := filepath.Join(dir, "t.csv"), filepath.Join(dir, "r.html")
	if code, _, stderr := paceline("", "run", "--limit", "500/s", write(t, "in.jsonl", numbered(5, l.URL)),
		"--select", "id=.id", "--out", table, "--report", report); code != cli.ExitSomeFailed {
		t.Fatal(code, stderr)
	}
	const want = ": 4 done, 1 failed; 0 attempts were refused."
	if _, text := chartPage(t, report); !strings.HasSuffix(text, want) {
		t.Errorf("the report says %q", text)
	}
	for _, name := range []string{table, table + ".rows"} {
		code, _, stderr := paceline("", "chart", name, "--chart", filepath.Join(dir, "t.html"))
		if code != cli.ExitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", name, code, stderr)
		}
	}
}

// Results on standard output have a report, too. Those of batches for language models are drawn
// later, too.
func TestReportOfOtherResults(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	dir := t.TempDir()
	report := filepath.Join(dir, "made", "r.html") // the folder is made, as for other files
	code, stdout, stderr := paceline("", "run", "--limit", "500/s", write(t, "in.jsonl", numbered(5, l.URL)),
		"--report", report)
	if _, text := chartPage(t, report); code != cli.ExitOK || strings.Count(stdout, "\n") != 5 ||
		!strings.Contains(text, ": 5 done, 0 failed; 0 attempts were refused.") {
		t.Errorf("exit %d, %s; the report says %q", code, stderr, text)
	}

	server, out := newLLM(t, llm.Config{}), filepath.Join(dir, "batch.jsonl")
	args := []string{"run", "--rpm", "6000", "--header", "Authorization: Bearer k", "--base-url", server.URL(),
		"--out", out, "--report", report, write(t, "batch.jsonl", prompts(4))}
	code, _, stderr = paceline("", args...)
	if _, text := chartPage(t, report); code != cli.ExitOK || !strings.Contains(text,
		": 4 done, 0 failed; 0 attempts were refused.") {
		t.Errorf("exit %d, %s; the report says %q", code, stderr, text)
	}
	if code, _, stderr := paceline("", "chart", out, "--chart", report); code != cli.ExitOK ||
		!strings.Contains(stderr, ": 4 done, 0 failed; 0 attempts were refused.") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// A run that is interrupted writes its report; the run that goes on writes one of both.
func TestReportAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 100), make(chan struct{})
	j := newJudge(t, func(_ http.ResponseWriter, q *http.Request) {
		arrived <- q.URL.Query().Get("id")
		select {
		case <-release:
		case <-q.Context().Done():
		}
	})
	dir := t.TempDir()
	report := filepath.Join(dir, "r.html")
	c := program(t, "run", "--limit", "none", "--concurrency", "2", "--out", filepath.Join(dir, "out.jsonl"),
		"--report", report, write(t, "in.jsonl", numbered(6, j.URL)))
	pipe, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	<-arrived
	if _, err := os.Stat(report); err == nil {
		t.Error("there is a report before the end")
	}
	_ = c.Process.Signal(os.Interrupt)
	lines := bufio.NewReader(pipe)
	for line := ""; !strings.Contains(line, "waiting for 2 answers"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	_, _ = io.Copy(io.Discard, lines)
	_ = c.Wait()
	if _, text := chartPage(t, report); c.ProcessState.ExitCode() != cli.ExitInterrupted ||
		!strings.Contains(text, ": 2 done, 0 failed;") {
		t.Errorf("exit %d, the report says %q", c.ProcessState.ExitCode(), text)
	}
	args := c.Args[1:]
	code, _, stderr := paceline("", args...)
	if _, text := chartPage(t, report); code != cli.ExitOK || !strings.Contains(text, ": 6 done, 0 failed;") {
		t.Errorf("exit %d, %s; the report says %q", code, stderr, text)
	}
}

// A file that cannot be written or read is an error before anything is sent. --dry-run writes nothing.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"in.jsonl": `{"url":"http://127.0.0.1:1/"}` + "\n",
		"urls.txt": "https://a.test\n"} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(file("folder.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"run --limit none --report r.svg in.jsonl", cli.ExitUsage, `--report "r.svg" does not end in .html`},
		{"run --limit none --report folder.html in.jsonl", cli.ExitConfig,
			"--report folder.html is a folder, expected a file"},
		{"run --limit none --report in.jsonl/r.html in.jsonl", cli.ExitConfig, "in.jsonl is a file, expected a folder"},
		{"run --limit none --report in.jsonl/none/r.html in.jsonl", cli.ExitConfig, "there is no folder in.jsonl/none"},
		{"run --limit none --report r.html --out r.html in.jsonl", cli.ExitFailure,
			"--out r.html and --report r.html are one file; nothing was sent"},
		{"chart", cli.ExitUsage, "0 files, expected one: results of paceline run"},
		{"chart in.jsonl urls.txt", cli.ExitUsage, "2 files, expected one"},
		{"chart none.jsonl", cli.ExitConfig, "none.jsonl"},
		{"chart urls.txt", cli.ExitConfig,
			"urls.txt: no results of paceline run (--out), and no log of paceline serve (--log); runs of the simulator are drawn by paceline-lab sim --chart"},
		{"chart in.jsonl --chart r.png", cli.ExitUsage,
			`--chart "r.png" does not end in .html; SVG and PNG are drawn by paceline-lab chart`},
		{"chart in.jsonl --chart none/r.html", cli.ExitConfig, "there is no folder none"},
	} {
		cmd := program(t, strings.Fields(c.args)...)
		cmd.Dir = dir
		text, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: exit %d, %s; want %d, %q", c.args, code, text, c.code, c.want)
		}
	}
	code, _, stderr := paceline("", "run", "--limit", "20/s", "--dry-run", "--report", file("dry.html"),
		file("in.jsonl"))
	if _, err := os.Stat(file("dry.html")); code != cli.ExitOK || err == nil {
		t.Errorf("--dry-run: exit %d, %v, %s", code, err, stderr)
	}
	if left, err := filepath.Glob(file("*.html*")); err != nil || len(left) != 1 { // folder.html
		t.Errorf("files left: %q, %v", left, err)
	}
}
