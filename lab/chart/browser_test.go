package chart_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/chart"
)

// browse runs Chromium, which reaches no address but this machine's, and returns what it printed.
func browse(t *testing.T, dark bool, args ...string) string {
	t.Helper()
	program := need.Program(t, "chromium")
	// Not t.TempDir: a child of the browser may still write there when the browser has ended.
	home, err := os.MkdirTemp("", "chart")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	scheme := 1
	if dark {
		scheme = 0
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, program, append([]string{
		"--headless", "--no-sandbox", // which root has none of, nor a container
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--user-data-dir=" + home, "--enable-logging=stderr",
		fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme),
	}, args...)...)
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	c.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.String())
	}
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser's console: %s", line)
		}
	}
	return out.String()
}

type report struct {
	Name, Title string
	Width       int
	Dark        bool
	Elements    []string
	Scripts     int
	Handlers    int
	Loaded      []string
	Overflow    float64
	Outside     []string
	Overlaps    []string
	Texts       []struct{ Text, Colour, Ground string }
	Panels      []seen
}

type seen struct {
	Heading                       string
	Bars                          []float64
	Rows                          [][]string
	Ticks, Grid                   [][2]any // label and place
	Ends, Dots                    [][2]float64
	Before, Half, Left, Home      string
	Escaped, HalfHidden           string
	TipInside, Hidden, ShownAgain bool
}

// probe shows figures in frames and returns what testdata/probe.html saw.
func probe(t *testing.T, dark bool, figures map[string]chart.Figure, widths string) map[string][]report {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		name := strings.TrimPrefix(r.URL.Path, "/")
		f, ok := figures[name]
		switch {
		case name == "probe.html":
			http.ServeFile(w, r, "testdata/probe.html")
		case !ok:
			t.Errorf("the browser asks for %s", r.URL)
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html")
			if err := chart.WriteHTML(w, f); err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	var names []string
	for name := range figures {
		names = append(names, name)
	}
	slices.Sort(names)
	dom := browse(t, dark, "--window-size=1500,1000", "--virtual-time-budget=20000", "--dump-dom",
		server.URL+"/probe.html?charts="+url.QueryEscape(strings.Join(names, ","))+"&widths="+widths)
	m := regexp.MustCompile(`(?s)<pre id="report">(.*?)</pre>`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("the probe did not report: %.2000s", dom)
	}
	var list []report
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string][]report{}
	for _, r := range list {
		out[r.Name] = append(out[r.Name], r)
	}
	for name := range figures {
		if n := strings.Count(widths, ",") + 1; len(out[name]) != n || asked["/"+name] != n {
			t.Fatalf("%s is reported %d times and loaded %d times; want %d", name, len(out[name]), asked["/"+name], n)
		}
	}
	return out
}

// rgb reads what a browser computes.
func rgb(t *testing.T, s string) linear {
	t.Helper()
	var r, g, b int
	if _, err := fmt.Sscanf(s, "rgb(%d, %d, %d)", &r, &g, &b); err != nil {
		t.Fatalf("colour %q: %v", s, err)
	}
	return light(t, fmt.Sprintf("#%02x%02x%02x", r, g, b))
}

// The page in light and dark, on a telephone and on a wide screen: nothing is loaded, nothing overlaps or runs out of the
// picture, all text has the contrast that reading needs, and what is shown where is true.
func TestPageInBrowser(t *testing.T) {
	need.Program(t, "chromium")
	for _, dark := range []bool{false, true} {
		t.Run(map[bool]string{false: "light", true: "dark"}[dark], func(t *testing.T) {
			t.Parallel()
			figures := map[string]chart.Figure{"small": small(), "ten": story(10), "line": one(axes[0].l), "bars": one(strategies)}
			if !dark {
				f := few()
				f.Columns = 4
				figures["few"] = f
			}
			all := probe(t, dark, figures, "340,800,1400")
			for _, list := range all {
				for _, r := range list {
					ordinary(t, r, dark, figures[r.Name])
				}
			}
			for _, r := range all["line"] {
				truthful(t, r)
			}
			for _, r := range all["bars"] {
				for i, want := range []float64{1000, 500, 500, 100, 0} {
					bars := r.Panels[0].Bars
					if got := bars[i] / bars[0] * 1000; math.Abs(got-want) > 2 {
						t.Errorf("%d px wide: bar %d is as long as %v; want %v", r.Width, i, got, want)
					}
				}
				if got := fmt.Sprint(r.Panels[0].Rows); got != "[[all 1,000 990 1,010] [half 500 250 750] [another half 500 – –] [a tenth 100 – –] [nothing 0 – –]]" {
					t.Errorf("the table has %s", got)
				}
			}
		})
	}
}

func ordinary(t *testing.T, r report, dark bool, f chart.Figure) {
	t.Helper()
	where := fmt.Sprintf("%s, %d px wide", r.Name, r.Width)
	if r.Dark != dark {
		t.Fatalf("%s: dark is %v", where, r.Dark)
	}
	if r.Title != f.Title || len(r.Panels) != len(f.Panels) {
		t.Errorf("%s: title %q, %d panels", where, r.Title, len(r.Panels))
	}
	if len(r.Loaded) > 0 {
		t.Errorf("%s: it loads %v", where, r.Loaded)
	}
	if r.Overflow > 0 || len(r.Outside) > 0 {
		t.Errorf("%s: it is %v px too wide; outside are %q", where, r.Overflow, r.Outside)
	}
	if len(r.Overlaps) > 0 {
		t.Errorf("%s: these overlap: %q", where, r.Overlaps)
	}
	if len(r.Texts) < 10 {
		t.Errorf("%s: it has only the texts %q", where, r.Texts)
	}
	for _, s := range r.Texts {
		ground := rgb(t, s.Ground)
		if c := contrast(rgb(t, s.Colour), ground); c < 4.5 {
			t.Errorf("%s: %q has a contrast of %.2f", where, s.Text, c)
		}
		if c := contrast(ground, linear{}); dark != (c < 3) { // to black
			t.Errorf("%s: %q is on %s", where, s.Text, s.Ground)
		}
	}
	for _, p := range r.Panels {
		if len(p.Rows) == 0 {
			t.Errorf("%s: %s has no table", where, p.Heading)
		}
		if len(p.Grid) == 0 { // bars
			continue
		}
		if p.Before != "" || p.Half == "" || !p.TipInside || p.Left != "" || p.Home == "" || p.Escaped != "" {
			t.Errorf("%s: %s shows values %q, %q, %q, %q, %q; inside is %v", where, p.Heading, p.Before, p.Half, p.Left, p.Home, p.Escaped, p.TipInside)
		}
		if !p.Hidden || !p.ShownAgain || p.HalfHidden == p.Half {
			t.Errorf("%s: %s hides a series: %v; shows it again: %v; values %q, then %q", where, p.Heading, p.Hidden, p.ShownAgain, p.Half, p.HalfHidden)
		}
	}
}

// truthful checks the first of axes: it goes from 0, 0 by 1, 10 and 2, 5 to 5, 7.25.
func truthful(t *testing.T, r report) {
	t.Helper()
	p := r.Panels[0]
	scale := func(ticks [][2]any) []mark {
		var out []mark
		for _, m := range ticks {
			out = append(out, mark{said(t, m[0].(string)), m[1].(float64)})
		}
		return out
	}
	x, y := scale(p.Ticks), scale(p.Grid)
	for i, want := range []point{{0, 0}, {5, 7.25}} {
		got := point{between(x, p.Ends[i][0], false), between(y, p.Ends[i][1], false)}
		if math.Abs(got.x-want.x) > 0.03 || math.Abs(got.y-want.y) > 0.06 {
			t.Errorf("%d px wide: the axes say %v of %v", r.Width, got, want)
		}
	}
	if p.Half != "x 2.5|a|5.38" || p.Home != "x 0|a|0" || p.HalfHidden != "x 2.5" {
		t.Errorf("%d px wide: at half the panel shows %q, at its left end %q, without its line %q", r.Width, p.Half, p.Home, p.HalfHidden)
	}
	if len(p.Dots) != 1 || math.Hypot(p.Dots[0][0]-p.Ends[1][0], p.Dots[0][1]-p.Ends[1][1]) > 1 {
		t.Errorf("%d px wide: the dots at the right end are at %v; the line ends at %v", r.Width, p.Dots, p.Ends[1])
	}
}

// Nothing of a name is run, and no name makes an element.
func TestHostileNamesInBrowser(t *testing.T) {
	need.Program(t, "chromium")
	t.Parallel()
	figures := map[string]chart.Figure{"plain": named("name")}
	for i, name := range hostile {
		figures[fmt.Sprint("hostile", i)] = named(name)
	}
	all := probe(t, false, figures, "340,1000")
	plain := all["plain"][0]
	for i, name := range hostile {
		for _, r := range all[fmt.Sprint("hostile", i)] {
			if r.Title != strings.Join(strings.Fields(name), " ") { // as the browser shows titles
				t.Errorf("%q: the title is %q", name, r.Title)
			}
			if !slices.Equal(r.Elements, plain.Elements) || r.Scripts != plain.Scripts || r.Handlers != 0 || len(r.Loaded) > 0 {
				t.Errorf("%q makes elements %v, %d scripts, %d handlers and loads %v", name, r.Elements, r.Scripts, r.Handlers, r.Loaded)
			}
			if r.Overflow > 0 || len(r.Outside) > 0 {
				t.Errorf("%.30q, %d px wide: it is %v px too wide; outside are %.80q", name, r.Width, r.Overflow, r.Outside)
			}
			if len(r.Overlaps) > 0 {
				t.Errorf("%.30q, %d px wide: these overlap: %.200q", name, r.Width, r.Overlaps)
			}
		}
	}
}

// The page as a file without a server: a picture of it has its colours.
func TestPageFromFile(t *testing.T) {
	need.Program(t, "chromium")
	t.Parallel()
	dir := t.TempDir()
	file, shot := filepath.Join(dir, "chart.html"), filepath.Join(dir, "shot.png")
	if err := chart.WriteFile(file, small()); err != nil {
		t.Fatal(err)
	}
	browse(t, true, "--window-size=1000,1200", "--screenshot="+shot, "file://"+file)
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	series, texts, ground := chart.Colours()
	count := map[color.NRGBA]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			count[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
		}
	}
	of := func(h chart.Hue) int {
		var c color.NRGBA
		if _, err := fmt.Sscanf(h.Dark, "#%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
			t.Fatal(err)
		}
		c.A = 255
		return count[c]
	}
	all := img.Bounds().Dx() * img.Bounds().Dy()
	if of(ground) < all/2 || of(ground) > all*99/100 || of(series[0]) < 100 || of(texts["ink"]) < 100 {
		t.Errorf("of %d pixels %d are ground, %d a series, %d text", all, of(ground), of(series[0]), of(texts["ink"]))
	}
}
