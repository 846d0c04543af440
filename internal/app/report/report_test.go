package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/app/report"
)

// small is a page with some of everything.
func small() report.Page {
	none := math.NaN()
	return report.Page{
		Title: "Some of everything", Text: "What <b> and & look like.", Figures: []report.Figure{{Name: "Requests done", Value: "12,345"}},
		Charts: []report.Chart{
			{Title: "Sleep", Caption: "By the minute.", Label: "sleep", Unit: "s", X: []float64{0, 60, 120},
				Step: true, Lines: []report.Line{
					{Name: "one", Y: []float64{0.5, 2, 8}},
					{Name: "later", Y: []float64{none, none, 3}},
					{Name: "optimum", Kind: report.Reference, Y: []float64{4, 4, 4}},
				}},
			{Title: "Rejects", Label: "rejects", Unit: "%", Whiskers: "median to worst", Bars: []report.Bar{
				{Name: "ours", Value: 0.44, Strong: true}, {Name: "backoff", Value: 81.2, Low: 80.1, High: 82},
			}},
			{Title: "Successes", Label: "served", X: []float64{0, 1}, Lines: report.Crowd("clients", crowd(9, 2))},
		},
	}
}

// crowd is n lines, each a constant from 0 on.
func crowd(n, instants int) (all []report.Line) {
	for i := range n {
		l := report.Line{Name: fmt.Sprintf("client %d", i)}
		for range instants {
			l.Y = append(l.Y, float64(i))
		}
		all = append(all, l)
	}
	return all
}

func page(t *testing.T, p report.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var scripts = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>`)

// readable is the text of a page without its scripts and elements.
func readable(text string) string {
	text = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(scripts.ReplaceAllString(text, ""), " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// Without a script a reader has the sentence, the figures, and a table of each chart.
func TestReadableWithoutScript(t *testing.T) {
	got := readable(page(t, small()))
	for _, want := range []string{
		"What <b> and & look like. Figures Requests done 12,345", "Sleep sleep (s) By the minute. As a table Time one later optimum 0 ms 0.5 – 4 1 min 2 – 4 2 min 8 3 4",
		"Rejects rejects (%) median to worst as bars ours 0.44 – backoff 81.2 80.1 – 82", "each is a table, too",
		"all 9 clients; shaded: p5 to p95, from to client 0 (lowest mean) client 4 (middle) client 8 (highest mean) median 0 ms 0.4 7.6 0 4 8 4",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// A page needs nothing else, and allows its own script and style only.
func TestSelfContained(t *testing.T) {
	text := page(t, small())
	if n := len(text); n > 90_000 {
		t.Errorf("%d bytes", n)
	}
	if m := regexp.MustCompile(`(?i)(src|href|url\()\s*=?\s*["']?(http|//|/[a-z])[^"' )]*`).FindString(scripts.ReplaceAllString(text, "")); m != "" {
		t.Errorf("it has %s", m)
	}
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)
	if policy == nil {
		t.Fatal("no policy")
	}
	for kind, between := range map[string]string{"script-src": `(?s)<script>(.*?)</script>`,
		"style-src": `(?s)<style>(.*?)</style>`} {
		all := regexp.MustCompile(between).FindAllStringSubmatch(text, -1)
		if len(all) != 1 {
			t.Fatalf("%d of %s", len(all), kind)
		}
		sum := sha256.Sum256([]byte(all[0][1]))
		if want := kind + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"; !strings.Contains(html.UnescapeString(policy[1]), want) {
			t.Errorf("the policy %s does not allow %s", policy[1], want)
		}
	}
	if !strings.Contains(text, "Permission is hereby granted") {
		t.Error("the licence of uPlot is not there")
	}
}

// Texts of strangers are text.
func TestHostileTexts(t *testing.T) {
	plain := page(t, small())
	for _, evil := range []string{`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "<!--",
		"\u2028'\\", "]]>", "{{.}}"} {
		p := small()
		p.Title, p.Text, p.Figures[0] = evil, evil, report.Figure{Name: evil, Value: evil}
		for i := range p.Charts {
			c := &p.Charts[i]
			c.Title, c.Caption, c.Label, c.Unit, c.Whiskers = evil, evil, evil, evil, evil
			for k := range c.Lines {
				c.Lines[k].Name = evil
			}
			for k := range c.Bars {
				c.Bars[k].Name = evil
			}
		}
		got := page(t, p)
		for _, tag := range []string{"<script", "<img", "<!--", "</style", "onerror=alert(1)>\""} {
			if strings.Count(got, tag) != strings.Count(plain, tag) {
				t.Errorf("%q: %s is %d times on the page, not %d times", evil, tag, strings.Count(got, tag),
					strings.Count(plain, tag))
			}
		}
		if !strings.Contains(readable(got), strings.Join(strings.Fields(evil), " ")) {
			t.Errorf("%q is not shown", evil)
		}
	}
}

// The same page gives the same bytes, from several goroutines too.
func TestSameBytes(t *testing.T) {
	var out [2]string
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i] = page(t, small()) })
	}
	all.Wait()
	if out[0] != out[1] {
		t.Error("not the same bytes")
	}
}

// A chart that cannot be drawn is an error that names it.
func TestCannotBeDrawn(t *testing.T) {
	for _, c := range []report.Chart{
		{Title: "C"}, {Title: "C", Lines: []report.Line{{}}}, {Title: "C", X: []float64{1},
			Lines: []report.Line{{Name: "l", Y: []float64{1, 2}}}},
		{Title: "C", X: []float64{1}, Lines: []report.Line{{Name: "l", Y: []float64{1}, Low: []float64{}}}},
	} {
		if err := (report.Page{Charts: []report.Chart{c}}).WriteHTML(io.Discard); err == nil ||
			!strings.Contains(err.Error(), `chart "C"`) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A band has the percentiles of what is there at each instant. Few lines stay as they are.
func TestCrowd(t *testing.T) {
	if got := report.Crowd("clients", crowd(6, 3)); len(got) != 6 || got[5].Name != "client 5" {
		t.Errorf("six are %+v", got)
	}
	lines := crowd(101, 2)
	for i := 50; i <= 100; i++ {
		lines[i].Y[0] = math.NaN() // they come later
	}
	got := report.Crowd("clients", lines)
	var text []string
	for _, l := range got {
		text = append(text, fmt.Sprint(l.Name, l.Low, l.Y))
	}
	want := "p5 to p95 of 101 clients[2.45 5] [46.55 95] client 0 (lowest mean)[] [0 0] client 50 (middle)[] [NaN 50] client 100 (highest mean)[] [NaN 100] median[] [24.5 50]"
	if strings.Join(text, " ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(text, " "), want)
	}
	if got := report.Crowd("clients", crowd(30, 2)); len(got) != 35 || got[29].Kind != report.Thin ||
		got[30].Low == nil {
		t.Errorf("of thirty there are %d lines", len(got))
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1 + 0.2: "0.3", 1234.5: "1,235", 99.96: "100",
		0.000012345: "0.0000123", -5: "-5", 1e18: "1e+18", math.Inf(1): "+Inf"} {
		if got := report.Number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

// A page is written whole or not at all; a file keeps its rights, a link stays one.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.html")
	if err := os.WriteFile(path, []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	bad := report.Page{Charts: []report.Chart{{}}}
	if err := bad.WriteFile(path); err == nil {
		t.Error("a page that cannot be drawn is written")
	}
	if got, _ := os.ReadFile(path); string(got) != "before" {
		t.Errorf("the file is now %.20q", got)
	}
	link := filepath.Join(dir, "link.HTML")
	if err := os.Symlink(path, link); err != nil {
		link = path // this system makes no links
	}
	if err := report.Check(link); err != nil {
		t.Error(err)
	}
	if err := small().WriteFile(link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || link != path && info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is now %v (%v)", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0o040 || info.Size() < 10_000 {
		t.Errorf("the file is now %v (%v)", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 2 {
		t.Errorf("files left: %v (%v)", entries, err)
	}
}

// Check says beforehand what WriteFile would fail of, and leaves nothing.
func TestCheck(t *testing.T) {
	dir := write(t, map[string]string{"file": ""})
	if err := os.Mkdir(filepath.Join(dir, "folder.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a.html": "", "a.svg": "does not end in .html", "a": "does not end in .html", "folder.html": "is a folder, expected a file",
		"file/a.html": "is a file, expected a folder", "none/a.html": "there is no folder",
	} {
		path := filepath.Join(dir, name)
		err := report.Check(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if want == "does not end in .html" != errors.Is(err, report.ErrName) ||
			want == "there is no folder" != errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v is of the wrong kind", name, err)
		}
		if werr := small().WriteFile(path); (werr == nil) != (err == nil) && !errors.Is(err, report.ErrName) {
			t.Errorf("%s: Check says %v, WriteFile %v", name, err, werr)
		}
	}
}
