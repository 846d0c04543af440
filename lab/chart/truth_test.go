package chart_test

import (
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/lab/chart"
)

// A picture must not lie: what its axes say of a point is what the figure says.

const (
	blue    = "stroke:#1F83D9"
	grid    = "stroke:#E4E7EB"
	grey    = "stroke:#8B929C"
	inkLine = "stroke:#1C2026" // of whiskers and references
)

func one(panel chart.Panel) chart.Figure {
	return chart.Figure{Title: "figure", Panels: []chart.Panel{panel}}
}

func lines(x, y chart.Axis, series ...chart.Series) chart.Lines {
	if x.Label == "" {
		x.Label = "x"
	}
	if y.Label == "" {
		y.Label = "y"
	}
	return chart.Lines{Title: "panel", X: x, Y: y, Series: series}
}

var axes = []struct {
	name string
	l    chart.Lines
	per  float64 // what one unit of the drawn horizontal axis is in the given one
}{
	{"from zero", lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{0, 1, 2, 5}, Y: []float64{0, 10, 5, 7.25}}), 1},
	{"from above zero", lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{3, 4, 9}, Y: []float64{970, 990, 980}}), 1},
	{"negative", lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{-3, 0, 9}, Y: []float64{-12, -0.5, 88}}), 1},
	{"minutes", lines(chart.Axis{Unit: "s"}, chart.Axis{}, chart.Series{Name: "a", X: []float64{0, 450, 1800}, Y: []float64{0.001, 0.004, 0.0033}}), 60},
	{"hours", lines(chart.Axis{Unit: "s"}, chart.Axis{}, chart.Series{Name: "a", X: []float64{0, 7300, 40000}, Y: []float64{1e6, 3.3e7, 1.2e7}}), 3600},
	{"logarithmic", lines(chart.Axis{Log: true}, chart.Axis{Log: true}, chart.Series{Name: "a", X: []float64{1, 30, 1000}, Y: []float64{0.002, 7, 88000}}), 1},
	{"far from zero", lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{1.7e9, 1.7e9 + 40, 1.7e9 + 90}, Y: []float64{1, 2, 3}}), 1},
}

func TestPointsAreWhereTheAxesSay(t *testing.T) {
	for _, c := range axes {
		t.Run(c.name, func(t *testing.T) {
			s := c.l.Series[0]
			p, text := svg(t, one(c.l)), page(t, one(c.l))

			// The picture: a grid line belongs to the label left of it, a tick to the one below.
			var ticksX, ticksY []mark
			var bottom point
			for _, g := range p.with(grey) {
				if g.points[0].y == g.points[1].y {
					bottom = g.points[0]
				}
			}
			for _, g := range p.with(grid) {
				for _, l := range p.labels {
					if middle := l.at.y + 3; math.Abs(middle-g.points[0].y) < 3 && l.at.x < g.points[0].x {
						ticksY = append(ticksY, mark{said(t, l.text), g.points[0].y})
					}
				}
			}
			for _, g := range p.with(grey) {
				if at := g.points[0]; at.x == g.points[1].x {
					for _, l := range p.labels {
						if near := l.at.x + 3.3*float64(len(l.text)); math.Abs(near-at.x) < 8 && l.at.y < bottom.y-8 && l.at.y > bottom.y-20 {
							ticksX = append(ticksX, mark{said(t, l.text), at.x})
						}
					}
				}
			}
			if len(ticksY) != len(p.with(grid)) || len(ticksY) < 3 || len(ticksX) < 2 {
				t.Fatalf("labelled ticks: %v and %v of %d", ticksX, ticksY, len(p.with(grid)))
			}
			line := p.with(blue, "stroke-width:1.8")[1].points // the first is in the legend
			compare(t, "SVG", line, ticksX, ticksY, c.l, c.per, s)

			htmlX, htmlY := marks(t, text)
			var places []point
			for _, at := range corners(t, drawn.FindStringSubmatch(text)[3]) {
				places = append(places, point{at.x / 4000, 1 - at.y/4000})
			}
			compare(t, "HTML", places, htmlX, htmlY, c.l, c.per, s)

			// What the page shows under the pointer.
			known := data(t, text)[0]
			for i := range s.X {
				if got := known.Series[0].X[i] * c.per; math.Abs(got-s.X[i]) > 1e-5*(s.X[len(s.X)-1]-s.X[0]) {
					t.Errorf("the page's data have x %v for %v", got, s.X[i])
				}
				if got := known.Series[0].Y[i]; math.Abs(got-s.Y[i]) > 1e-5*math.Abs(s.Y[i]) {
					t.Errorf("the page's data have y %v for %v", got, s.Y[i])
				}
			}
		})
	}
}

func compare(t *testing.T, kind string, line []point, x, y []mark, l chart.Lines, per float64, s chart.Series) {
	t.Helper()
	if len(line) != len(s.X) {
		t.Fatalf("%s: %d points; want %d", kind, len(line), len(s.X))
	}
	near := func(name string, ticks []mark, log bool, at, want float64) {
		got := between(ticks, at, log)
		size := math.Abs(ticks[len(ticks)-1].value - ticks[0].value)
		if log {
			got, want, size = math.Log(got), math.Log(want), math.Log(ticks[len(ticks)-1].value/ticks[0].value)
		}
		if math.Abs(got-want) > size/1000 {
			t.Errorf("%s: the axis says %s %v of %v", kind, name, got, want)
		}
	}
	for i, at := range line {
		near("x", x, l.X.Log, at.x, s.X[i]/per)
		near("y", y, l.Y.Log, at.y, s.Y[i])
	}
}

func TestHeightsBeginAtZero(t *testing.T) {
	_, y := marks(t, page(t, one(axes[1].l)))
	if y[0] != (mark{0, 0}) {
		t.Errorf("values from 970 to 990 are drawn from %v", y[0])
	}
}

func TestStepsAreLevel(t *testing.T) {
	l := lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{0, 5, 10}, Y: []float64{0, 10, 10}})
	l.Step = true
	l.References = []chart.Reference{{Name: "optimum", X: []float64{0, 5}, Y: []float64{10, 5}}}
	p := svg(t, one(l))
	at := p.with(blue, "stroke-width:1.8")[1].points
	if at[0].y != at[1].y || at[1].x != at[2].x {
		t.Errorf("SVG: the line does not hold its value: %v", at)
	}
	text := page(t, one(l))
	if d := drawn.FindStringSubmatch(text)[3]; d != "M0 4000H2000V0H4000" {
		t.Errorf("HTML: the line does not hold its value: %s", d)
	}
	if !strings.Contains(text, `<path class="line reference" d="M0 0H2000V2000H4000"/>`) {
		t.Error("HTML: the optimum is not drawn to the end")
	}
	ref := p.with(inkLine, "dasharray")[0].points
	if last := ref[len(ref)-1]; last.x != at[len(at)-1].x || last.y >= ref[0].y {
		t.Errorf("SVG: the optimum is not drawn to the end: %v", ref)
	}
}

var strategies = chart.Bars{Title: "panel", Value: chart.Axis{Label: "accepted", Unit: "requests"}, Descending: true, Bars: []chart.Bar{
	{Name: "half", Value: 500, Min: 250, Max: 750},
	{Name: "nothing", Value: 0},
	{Name: "all", Value: 1000, Min: 990, Max: 1010},
	{Name: "a tenth", Value: 100},
	{Name: "another half", Value: 500},
}}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	p := svg(t, one(strategies))
	names := []string{"all", "half", "another half", "a tenth", "nothing"}
	values := []float64{1000, 500, 500, 100, 0}
	bars := p.with("fill:#1F83D9")
	if len(bars) != len(values) {
		t.Fatalf("%d bars", len(bars))
	}
	left := bars[0].points[0].x
	perUnit := (bars[0].points[1].x - left) / 1000
	var middle []float64
	for i, b := range bars {
		if at := b.points[0].x; at != left {
			t.Errorf("SVG: %s begins at %v, others at %v", names[i], at, left)
		}
		if got := (b.points[1].x - left) / perUnit; math.Abs(got-values[i]) > 0.5 {
			t.Errorf("SVG: %s is %v long; want %v", names[i], got, values[i])
		}
		middle = append(middle, (b.points[0].y+b.points[2].y)/2)
		if !slices.ContainsFunc(p.labels, func(l label) bool { return l.text == names[i] && math.Abs(l.at.y+4-middle[i]) < 4 }) {
			t.Errorf("SVG: %s is not named where it is drawn", names[i])
		}
	}
	var ends []float64
	for _, w := range p.with(inkLine) {
		if w.points[0].y == w.points[1].y {
			ends = append(ends, (w.points[0].x-left)/perUnit, (w.points[1].x-left)/perUnit)
		}
	}
	for i, want := range []float64{990, 1010, 250, 750} {
		if len(ends) != 4 || math.Abs(ends[i]-want) > 0.5 {
			t.Fatalf("SVG: whiskers end at %v", ends)
		}
	}

	rows := regexp.MustCompile(`<g class="strong"><title>([^<:]*):[^<]*</title><text[^>]*>([^<]*)</text><rect x="0" y="\d+" width="([^"]*)%"`).FindAllStringSubmatch(page(t, one(strategies)), -1)
	if len(rows) != len(names) {
		t.Fatalf("HTML: %d bars", len(rows))
	}
	for i, r := range rows {
		if r[1] != names[i] || r[2] != names[i] || math.Abs(parse(t, r[3])-values[i]/10.10) > 0.01 {
			t.Errorf("HTML: bar %d is %q", i, r[1:])
		}
	}
}

// Labels of lines that are near each other are not, nor are they outside of the plot.
func TestReferencesAreToldApart(t *testing.T) {
	names := []string{"one", "two", "three", "four", "five"}
	for _, from := range []float64{0, 96} {
		l := lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{0, 10}, Y: []float64{0, 100}})
		for i, name := range names {
			l.References = append(l.References, chart.Reference{Name: name, Y: []float64{from + float64(i)}})
		}
		apart := func(kind string, y []float64, top, bottom float64) {
			slices.Sort(y)
			for i := range y {
				if len(y) != len(names) || i > 0 && y[i]-y[i-1] < 12 || y[i] < top || y[i] > bottom {
					t.Errorf("%s, lines from %v on: the labels are at the heights %v; the plot is from %v to %v", kind, from, y, top, bottom)
					return
				}
			}
		}
		var y []float64
		p := svg(t, one(l))
		for _, l := range p.labels {
			if name, _, ok := strings.Cut(l.text, ": "); ok && slices.Contains(names, name) {
				y = append(y, p.high-l.at.y)
			}
		}
		levels := p.with(grid)
		apart("SVG", y, p.high-levels[len(levels)-1].points[0].y, p.high-levels[0].points[0].y)
		y = nil
		for _, m := range regexp.MustCompile(`<text class="reference" [^>]* y="([^"]*)"`).FindAllStringSubmatch(page(t, one(l)), -1) {
			y = append(y, parse(t, m[1]))
		}
		apart("HTML", y, 0, 240)
	}
}

// A hundred series that are 0, 1, 2 ... 99 all the time have known percentiles.
func TestBandHoldsMostSeries(t *testing.T) {
	l := lines(chart.Axis{}, chart.Axis{})
	l.Each = "clients"
	for i := range 100 {
		name := strings.Repeat("i", i+1)
		l.Series = append(l.Series, chart.Series{Name: name, X: []float64{0, 10}, Y: []float64{float64(i), float64(i)}})
	}
	known := data(t, page(t, one(l)))[0]
	if n := len(known.Series); n != 5 {
		t.Fatalf("%d traces are drawn", n)
	}
	for i, want := range []struct {
		name   string
		y, low float64
	}{
		{"median", 49.5, 0},
		{"p5 to p95 of 100 clients", 94.05, 4.95},
		{"i (lowest mean)", 0, 0},
		{strings.Repeat("i", 51) + " (middle)", 50, 0},
		{strings.Repeat("i", 100) + " (highest mean)", 99, 0},
	} {
		s := known.Series[i]
		low := 0.0
		if len(s.Low) > 0 {
			low = s.Low[len(s.Low)/2]
		}
		if y := s.Y[len(s.Y)/2]; s.Name != want.name || math.Abs(y-want.y) > 1e-9 || math.Abs(low-want.low) > 1e-9 {
			t.Errorf("trace %d is %q: %v, from %v; want %+v", i, s.Name, y, low, want)
		}
	}
}

// Of so few series each is drawn, since a single one that starves would be outside the band.
func TestFewSeriesAreAllDrawn(t *testing.T) {
	l := lines(chart.Axis{}, chart.Axis{})
	for i := range 10 {
		l.Series = append(l.Series, chart.Series{Name: string(rune('a' + i)), X: []float64{0, 10}, Y: []float64{float64(i), 9}})
	}
	text := page(t, one(l))
	m := drawn.FindStringSubmatch(text)
	if m[2] != "line each hue0" || strings.Count(m[3], "M") != 10 {
		t.Errorf("the lines of ten series are %q: %s", m[2], m[3])
	}
	if n := len(svg(t, one(l)).with("stroke-opacity:0.45", "stroke-width:0.8")); n != 10+1 { // one is in the legend
		t.Errorf("SVG: %d lines are drawn for ten series and the legend", n)
	}
}

// A series counts from its first instant to its last.
func TestBandEndsWithItsSeries(t *testing.T) {
	l := lines(chart.Axis{}, chart.Axis{})
	for i := range 8 {
		from := 0.0
		if i >= 4 {
			from = 60
		}
		l.Series = append(l.Series, chart.Series{Name: string(rune('a' + i)), X: []float64{from, from + 40}, Y: []float64{1, 1}})
	}
	known := data(t, page(t, one(l)))[0].Series[0]
	if len(known.Gaps) != 2 {
		t.Fatalf("the median has parts from %v", known.Gaps)
	}
	if end, begin := known.X[known.Gaps[1]-1], known.X[known.Gaps[1]]; end > 40 || end < 39 || begin < 60 || begin > 61 {
		t.Errorf("the median ends at %v and begins again at %v", end, begin)
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		of      []float64
		q, want float64
	}{
		{[]float64{7}, 0.95, 7},
		{[]float64{1, 2}, 0.5, 1.5},
		{[]float64{1, 2, 3, 4}, 0, 1},
		{[]float64{1, 2, 3, 4}, 1, 4},
		{[]float64{0, 10, 20, 30, 40}, 0.95, 38},
	} {
		if got := chart.Quantile(c.of, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Quantile(%v, %v) = %v; want %v", c.of, c.q, got, c.want)
		}
	}
}

// Long series are thinned, but their peaks stay.
func TestPeaksAreDrawn(t *testing.T) {
	s := chart.Series{Name: "a"}
	for i := range 100_000 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, 5)
	}
	s.Y[77_777], s.Y[11_111] = 10, 0
	text := page(t, one(lines(chart.Axis{}, chart.Axis{}, s)))
	at := corners(t, drawn.FindStringSubmatch(text)[3])
	high := slices.MinFunc(at, func(a, b point) int { return int(a.y - b.y) })
	low := slices.MaxFunc(at, func(a, b point) int { return int(a.y - b.y) })
	if high.y != 0 || math.Abs(high.x-3111) > 1 || low.y != 4000 || math.Abs(low.x-444) > 1 {
		t.Errorf("the peaks are drawn at %v and %v", high, low)
	}
	if len(text) > 200_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// FuzzTicks: the ticks are at the places of what they say, no two say the same, and all points are within the axis.
func FuzzTicks(f *testing.F) {
	f.Add(0.0, 10.0, false, false)
	f.Add(0.1, 0.7, false, true)
	f.Add(1.0, 1000.0, true, false)
	f.Add(3.0, 3.0, true, true)
	f.Add(-7.0, -7.0, false, false)
	f.Add(0.0, 0.0, false, false)
	f.Add(1e15, 1e15-1, false, false)
	f.Add(1e-15, 1e15, true, true)
	f.Add(5e-324, 1e-320, false, false)
	f.Add(1.7e9, 1.7e9+1800, false, true)
	f.Fuzz(func(t *testing.T, a, b float64, log, unit bool) {
		a, b = min(a, b), max(a, b)
		x := chart.Axis{Label: "x", Log: log}
		if unit {
			x.Unit = "s"
		}
		l := lines(x, chart.Axis{Log: log}, chart.Series{Name: "a", X: []float64{a, b}, Y: []float64{b, a}})
		if one(l).Check() != nil {
			return
		}
		text := page(t, one(l))
		per := 1.0
		switch {
		case strings.Contains(text, "<p class=\"unit x\">x (min)"):
			per = 60
		case strings.Contains(text, "<p class=\"unit x\">x (h)"):
			per = 3600
		}
		known := data(t, text)[0]
		ticksX, ticksY := marks(t, text)
		for _, c := range []struct {
			name  string
			ticks []mark
			of    axis
		}{{"x", ticksX, known.X}, {"y", ticksY, known.Y}} {
			if n := len(c.ticks); n < 2 && (c.name == "y" || !log && per == 1) || n > 9 {
				t.Errorf("%s from %v to %v: ticks %v", c.name, a, b, c.ticks)
			}
			for i, m := range c.ticks {
				want := (m.value - c.of.Lo) / (c.of.Hi - c.of.Lo)
				if c.of.Log {
					want = math.Log(m.value/c.of.Lo) / math.Log(c.of.Hi/c.of.Lo)
				}
				if math.Abs(m.at-want) > 0.01 {
					t.Errorf("%s from %v to %v: the tick %v is at %v; want %v", c.name, a, b, m.value, m.at, want)
				}
				if i > 0 && (m.value <= c.ticks[i-1].value || m.at <= c.ticks[i-1].at) {
					t.Errorf("%s from %v to %v: ticks %v do not rise", c.name, a, b, c.ticks)
				}
			}
		}
		const off = 1e-8 // less than a thousandth of a pixel
		if slack := off * max(math.Abs(a), math.Abs(b)) / per; known.X.Lo > a/per+slack || known.X.Hi < b/per-slack {
			t.Errorf("x from %v to %v is drawn from %v to %v", a, b, known.X.Lo, known.X.Hi)
		}
		for _, at := range corners(t, drawn.FindStringSubmatch(text)[3]) {
			if at.x < 0 || at.x > 4000 || at.y < 0 || at.y > 4000 {
				t.Errorf("from %v to %v: the point %v is outside", a, b, at)
			}
		}
	})
}

// Names come back from both kinds of text as they were given, and nothing of them is an element or a script.
func TestHostileNames(t *testing.T) {
	for _, name := range hostile {
		f := named(name)
		p := svg(t, f)
		if p.title != name || !strings.Contains(p.desc, name) {
			t.Errorf("SVG: %q came back as %q", name, p.title)
		}
		for _, l := range p.labels {
			if l.at.x < 0 || l.at.x+l.wide > p.wide {
				t.Errorf("SVG: %.40q runs out of the picture", l.text)
			}
		}
		// Of one that is long the legend shows the beginning.
		if n := slices.IndexFunc(p.labels, func(l label) bool { return strings.HasPrefix(name, strings.TrimSuffix(l.text, "…")) }); n < 0 {
			t.Errorf("SVG: %q is not in the picture", name)
		}
		text := page(t, f)
		if got := data(t, text)[0].Series[0].Name; got != name {
			t.Errorf("HTML: %q came back as %q", name, got)
		}
		_, title, _ := strings.Cut(text, "<title>")
		if title, _, _ = strings.Cut(title, "</title>"); html.UnescapeString(title) != name {
			t.Errorf("HTML: the title is %q, not %q", title, name)
		}
		plain := page(t, named(regexp.MustCompile("[<>&\"'=]").ReplaceAllString(name, "n"))) // as long
		for _, word := range []string{"<script", "</script", "<img", "<svg", "<path", "<!--", "</title", "<style", "</style"} {
			if got, want := strings.Count(text, word), strings.Count(plain, word); got != want {
				t.Errorf("HTML: %q makes %d of %q; want %d", name, got, word, want)
			}
		}
	}
}

var hostile = []string{
	`</script><script>document.title="taken"</script>`,
	`"><img src=x onerror='document.title="taken"'>`,
	`'};document.title="taken";//`,
	`</title></style><svg/onload=document.title="taken">`,
	`]]>&amp;<!-- --`,
	`{{.Title}} ${1+1} \u003c %s %d`,
	"a\u200db ünïcödé 日本語 🙂",
	`javascript:document.title="taken"`,
	strings.Repeat("W", 1000),
}

// named is a figure that has the name wherever one can be.
func named(name string) chart.Figure {
	unit := string([]rune(name)[:min(24, len([]rune(name)))])
	axis := chart.Axis{Label: name, Unit: unit}
	return chart.Figure{Title: name, Caption: name, Columns: 2, Panels: []chart.Panel{
		chart.Lines{
			Title: name, Caption: name, X: axis, Y: axis, Each: name,
			Series:     []chart.Series{{Name: name, X: []float64{0, 1}, Y: []float64{0, 1}}},
			References: []chart.Reference{{Name: name, Y: []float64{0.5}}},
		},
		chart.Bars{Title: name, Caption: name, Value: axis, Whiskers: name, Bars: []chart.Bar{{Name: name, Value: 1, Min: 0.5, Max: 1.5}}},
	}}
}
