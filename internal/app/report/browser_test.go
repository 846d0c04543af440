package report_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/testkit/browser"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A page opens from the disk, in both schemes and on a telephone: it asks for nothing else, draws
// each chart of lines, fits the screen, and is read by the arrow keys. PACELINE_SHOTS names a
// folder for what it looks like.
func TestBrowser(t *testing.T) {
	need.NotShort(t, "TestLegend opens a page, and looks change with the page alone")
	dir := write(t, logs())
	pages := map[string]report.Page{"small": small()}
	for _, name := range []string{"refused", "service"} {
		log, err := report.Read(filepath.Join(dir, name+".jsonl"), "")
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = log.Page(name + ".jsonl")
	}
	b := browser.Open(t, 1200, 900)
	for name, p := range pages {
		file := filepath.Join(dir, name+".html")
		if err := p.WriteFile(file); err != nil {
			t.Fatal(err)
		}
		address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
		lines := 0
		for _, c := range p.Charts {
			lines += min(1, len(c.Lines))
		}
		for _, wide := range []int{1200, 400} {
			b.Size(wide, 900)
			for _, scheme := range []string{"light", "dark"} {
				b.Scheme(scheme)
				b.Go(address)
				b.Until(`document.readyState === "complete" && document.querySelectorAll("canvas").length === document.querySelectorAll(".drawing").length`)
				var saw struct {
					Canvases int
					Over     float64
					Ground   string
				}
				b.Eval(`({canvases: [...document.querySelectorAll("canvas")].filter(c => c.width > 200 && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v)).length,
					over: document.documentElement.scrollWidth - innerWidth, ground: getComputedStyle(document.body).backgroundColor})`, &saw)
				if saw.Canvases != lines || saw.Over > 0 || saw.Ground == "rgb(16, 19, 24)" != (scheme == "dark") {
					t.Errorf("%s, %d px, %s: of %d charts %d are drawn; %v px do not fit; the ground is %s", name,
						wide, scheme, lines, saw.Canvases, saw.Over, saw.Ground)
				}
				if shots := os.Getenv("PACELINE_SHOTS"); shots != "" {
					b.Screenshot(filepath.Join(shots, strings.Join([]string{name, scheme,
						map[int]string{1200: "wide", 400: "narrow"}[wide]}, "-")+".png"))
				}
			}
		}
	}
	for _, asked := range b.Asked() {
		if !strings.HasPrefix(asked, "file://") {
			t.Errorf("it asks for %s", asked)
		}
	}
	for _, c := range b.Complaints() {
		t.Errorf("the browser says: %s", c)
	}
}

// The legend says what a chart has where a reader points, and hides a line.
func TestLegend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.html")
	if err := small().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	b := browser.Open(t, 1200, 900)
	b.Go((&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String())
	b.Until(`document.querySelectorAll("canvas").length === 2`)
	legend := func(id string) (all []string) {
		b.Eval(`[...document.querySelectorAll("#chart-`+id+` .legend li")].map(e => e.textContent.replaceAll("\u00a0", " ").trim())`, &all)
		return all
	}
	b.Eval(`document.querySelector("#chart-0 .plot").focus()`, nil)
	b.Press("End")
	if got, want := legend("0"), []string{"one 8 s", "later 3 s", "optimum 4 s", "after 2 min"}; !slices.Equal(got,
		want) {
		t.Errorf("at the end the legend is %q, want %q", got, want)
	}
	b.Press("ArrowLeft")
	if got, want := legend("0"), []string{"one 2 s", "later –", "optimum 4 s", "after 1 min"}; !slices.Equal(got,
		want) {
		t.Errorf("before it the legend is %q, want %q", got, want)
	}
	b.Eval(`document.querySelector("#chart-2 .plot").focus()`, nil)
	b.Press("Home")
	if got := legend("2"); len(got) != 6 || got[0] != "all 9 clients; shaded: p5 to p95 0.4 – 7.6" ||
		got[5] != "after 0 ms" {
		t.Errorf("of many the legend is %q", got)
	}
	pixels := `[...document.querySelector("#chart-0 canvas").getContext("2d").getImageData(0, 0, 900, 400).data].reduce((a, b) => a + b)`
	var before, hidden, after int
	b.Eval(pixels, &before)
	b.Eval(`document.querySelector("#chart-0 .legend button").click()`, nil)
	b.Until(`document.querySelector("#chart-0 .legend button").getAttribute("aria-pressed") === "false"`)
	b.Until(pixels + ` !== ` + strconv.Itoa(before))
	b.Eval(pixels, &hidden)
	b.Eval(`document.querySelector("#chart-0 .legend button").click()`, nil)
	b.Until(pixels + ` === ` + strconv.Itoa(before))
	if b.Eval(pixels, &after); hidden >= before || after != before {
		t.Errorf("the chart has ink %d, hidden %d, again %d", before, hidden, after)
	}
	var label string
	b.Eval(`document.querySelector("#chart-0 .plot").getAttribute("aria-label").replaceAll("\u00a0", " ")`, &label)
	if label != "Sleep: one, at most 8 s; later, at most 3 s; optimum, at most 4 s. Arrow keys show values." {
		t.Errorf("a reader who does not see it is told %q", label)
	}
}
