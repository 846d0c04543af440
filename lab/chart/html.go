package chart

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.js
	pageScript string
)

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(pageText))
})

// scriptHash lets the page's policy allow this script and no other. If a name ever escaped from its place and became a script, the browser
// would not run it.
var scriptHash = sync.OnceValue(func() template.HTMLAttr {
	sum := sha256.Sum256([]byte(pageScript))
	return template.HTMLAttr("sha256-" + base64.StdEncoding.EncodeToString(sum[:]))
})

// WriteHTML writes the figure as one page that needs nothing else: no network, no font, no library. The error wraps
// ErrFigure, or is that of w.
func WriteHTML(w io.Writer, f Figure) error {
	drawings, err := f.draw()
	if err != nil {
		return err
	}
	p := page{Title: f.Title, Caption: f.Caption, Columns: min(max(1, f.Columns), len(drawings)), Style: variables(),
		Script: template.JS(pageScript), ScriptHash: scriptHash()}
	for i, d := range drawings {
		v := panelView{ID: i, Title: d.title, Caption: d.caption, Summary: d.summary, Note: d.table.note, Head: d.table.head, Rows: d.table.rows}
		if d.lines != nil {
			v.Lines = viewLines(d.lines)
			p.Data = append(p.Data, dataOf(i, d.lines))
		} else {
			v.Bars = viewBars(d.bars)
		}
		p.Panels = append(p.Panels, v)
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return writeAll(w, b.Bytes())
}

// Sizes on the page, in CSS pixels. Text keeps its size on any screen: widths are given as a part of what there is.
const (
	htmlPlotHigh = 240
	htmlBarHigh  = 44
	htmlLabel    = 12
	htmlText     = 13
	// finest is how many positions a path can have along each side of a plot.
	finest = 4000
)

type page struct {
	Title, Caption string
	Columns        int
	Style          template.CSS
	Script         template.JS
	ScriptHash     template.HTMLAttr
	Panels         []panelView
	Data           []panelData
}

type panelView struct {
	ID             int
	Title, Caption string
	Summary        string
	Lines          *linesView
	Bars           *barsView
	Note           string
	Head           []string
	Rows           [][]string
}

type linesView struct {
	Left, Right, High, SVGHigh int
	Finest                     int
	XText, YText               string
	X, Y                       []markView
	Traces                     []traceView
	Legend                     []traceView
	References                 []string // paths
	Labels                     []labelView
}

type markView struct {
	At    string // in % of the width, or in px of the height
	Label string
}

type traceView struct {
	Index      int
	Name       string
	Kind       string
	Hue        int
	Dot        bool   // it is a single point
	Line, Area string // paths
	Each       string // the path of the lines behind an area, if they are drawn
}

type labelView struct {
	Text, X, Y, Anchor string
	Full               string // the whole text, if Text had to be shortened
	DX                 int
}

type barsView struct {
	Text, Whiskers string
	Right, High    int
	Rows           []rowView
}

type rowView struct {
	Name, Full, Value, Class string
	NameY, Y, Middle         int
	Low, High                int // ends of the whisker's marks
	Width, From, To, End     string
	Whisker                  bool
}

// variables are the colours of both schemes as CSS variables. All of it comes from constants.
func variables() template.CSS {
	var b strings.Builder
	set := func(of func(hue) string, shade float64) {
		for _, v := range []struct {
			name string
			hue  hue
		}{{"ground", ground}, {"ink", ink}, {"muted", muted}, {"grid", gridInk}, {"axis", axisInk}, {"weak", weakBar}} {
			fmt.Fprintf(&b, "--%s:%s;", v.name, of(v.hue))
		}
		for i, h := range palette {
			fmt.Fprintf(&b, "--hue%d:%s;", i, of(h))
		}
		fmt.Fprintf(&b, "--shade:%v;", shade)
	}
	b.WriteString(":root{color-scheme:light dark;")
	set(func(h hue) string { return h.light }, bandShade)
	b.WriteString("}\n@media (prefers-color-scheme:dark){:root{")
	set(func(h hue) string { return h.dark }, bandShadeDark)
	b.WriteString("}}\n")
	for i := range palette {
		fmt.Fprintf(&b, ".hue%d{--hue:var(--hue%d)}\n", i, i)
		if len(dashes[i]) > 0 {
			fmt.Fprintf(&b, ".single.hue%d{stroke-dasharray:%s}\n", i, strings.Trim(fmt.Sprint(dashes[i]), "[]"))
		}
	}
	return template.CSS(b.String())
}

func viewLines(d *lineDrawing) *linesView {
	v := &linesView{High: htmlPlotHigh, SVGHigh: htmlPlotHigh + 26, Finest: finest, XText: d.xText, YText: d.yText}
	for _, t := range d.x.ticks {
		v.X = append(v.X, markView{percent(d.x.at(t.value)), t.label})
		v.Right = max(v.Right, int(width(t.label, htmlLabel)/2)+2)
	}
	for _, t := range d.y.ticks {
		v.Y = append(v.Y, markView{strconv.FormatFloat((1-d.y.at(t.value))*htmlPlotHigh, 'f', 1, 64), t.label})
		v.Left = max(v.Left, int(width(t.label, htmlLabel))+12)
	}
	for i, t := range d.traces {
		view := traceView{Index: i, Name: t.name, Kind: t.kind.String(), Hue: t.hue, Dot: t.dot()}
		if t.kind == band {
			view.Area = area(&t, d)
			for _, e := range t.each {
				view.Each += path(&e, d)
			}
		} else {
			view.Line = path(&t, d)
		}
		v.Traces = append(v.Traces, view)
	}
	for _, i := range d.legend() {
		v.Legend = append(v.Legend, v.Traces[i])
	}
	for _, r := range d.refs {
		if len(r.x) > 0 {
			v.References = append(v.References, path(&trace{x: r.x, y: r.y, step: true, starts: []int{0}}, d))
		}
	}
	for _, l := range d.placed(narrowest, htmlPlotHigh, func(s string) float64 { return width(s, htmlLabel) + 8 }) {
		full := l.full
		if full == l.text {
			full = ""
		}
		v.Labels = append(v.Labels, labelView{
			Text: l.text, Full: full, X: percent(l.x), Y: strconv.FormatFloat(l.y+4, 'f', 1, 64),
			Anchor: [...]string{"start", "middle", "end"}[l.anchor], DX: [...]int{4, 0, -4}[l.anchor],
		})
	}
	return v
}

func percent(part float64) string { return strconv.FormatFloat(part*100, 'f', 2, 64) + "%" }

func (d *lineDrawing) place(x, y float64) (int, int) {
	return int(math.Round(d.x.at(x) * finest)), int(math.Round((1 - d.y.at(y)) * finest))
}

// path is the trace as an SVG path.
func path(t *trace, d *lineDrawing) string {
	var b []byte
	put := func(letter byte, n ...int) {
		b = append(b, letter)
		for i, v := range n {
			if i > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendInt(b, int64(v), 10)
		}
	}
	t.runs(func(from, to int) {
		var beforeX, beforeY int
		for i := from; i < to; i++ {
			x, y := d.place(t.x[i], t.y[i])
			switch {
			case i == from:
				put('M', x, y)
				if to-from == 1 {
					put('h', 0) // with round ends a line of length 0 is a dot
				}
			case t.step:
				if x != beforeX {
					put('H', x)
				}
				if y != beforeY {
					put('V', y)
				}
			default:
				put('L', x, y)
			}
			beforeX, beforeY = x, y
		}
	})
	return string(b)
}

// area is the band as an SVG path.
func area(t *trace, d *lineDrawing) string {
	var b strings.Builder
	t.runs(func(from, to int) {
		letter := "M"
		for i := from; i < to; i++ {
			x, y := d.place(t.x[i], t.y[i])
			fmt.Fprintf(&b, "%s%d %d", letter, x, y)
			letter = "L"
		}
		for i := to - 1; i >= from; i-- {
			x, y := d.place(t.x[i], t.low[i])
			fmt.Fprintf(&b, "L%d %d", x, y)
		}
		b.WriteString("Z")
	})
	return b.String()
}

func viewBars(d *barDrawing) *barsView {
	v := &barsView{Text: d.text, Whiskers: d.whiskers, High: len(d.bars) * htmlBarHigh}
	for _, bar := range d.bars {
		v.Right = max(v.Right, int(width(d.beside(bar.Value), htmlText)*1.1)+12) // the value of a bar may be bold
	}
	for i, bar := range d.bars {
		top := i * htmlBarHigh
		r := rowView{
			Name: shorten(bar.Name, htmlText, narrowest+40), Value: d.beside(bar.Value), Class: "weak",
			NameY: top + 14, Y: top + 20, Middle: top + 28, Low: top + 24, High: top + 32,
			Width: percent(bar.Value / d.most), End: percent(bar.Value / d.most),
		}
		r.Full = bar.Name + ": " + withUnit(bar.Value, d.unit)
		if bar.strong {
			r.Class = "strong"
		}
		if bar.Highlight {
			r.Class += " highlight"
		}
		if bar.whisker() {
			r.Whisker, r.From, r.To, r.End = true, percent(bar.Min/d.most), percent(bar.Max/d.most), percent(bar.Max/d.most)
			r.Full += ", from " + withUnit(bar.Min, d.unit) + " to " + withUnit(bar.Max, d.unit)
		}
		v.Rows = append(v.Rows, r)
	}
	return v
}

// panelData is what the page's script needs to show values.
type panelData struct {
	ID     int         `json:"id"`
	X      axisData    `json:"x"`
	Y      axisData    `json:"y"`
	Series []traceData `json:"series"` // references come last
}

type axisData struct {
	Lo   float64 `json:"lo"`
	Hi   float64 `json:"hi"`
	Log  bool    `json:"log"`
	Unit string  `json:"unit"`
	Name string  `json:"name"`
}

type traceData struct {
	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	Step  bool      `json:"step"`
	X     []rounded `json:"x"`
	Y     []rounded `json:"y"`
	Low   []rounded `json:"low,omitempty"`
	Gaps  []int     `json:"gaps"` // indices at which the line begins anew
	Index int       `json:"index"`
}

// rounded is a number that is written with only as many digits as a reader sees.
type rounded struct {
	value  float64
	digits int
}

// MarshalJSON writes the number.
func (r rounded) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, r.value, 'g', r.digits, 64), nil
}

// round rounds the list to six digits of the axis's span. Six digits of the value would make instants that count from 1970 all the same.
func round(list []float64, s scale) []rounded {
	digits := 6
	if most := math.Max(math.Abs(s.lo), math.Abs(s.hi)); !s.log {
		digits += max(0, int(math.Ceil(math.Log10(most/(s.hi-s.lo)))))
	}
	out := make([]rounded, len(list))
	for i, v := range list {
		out[i] = rounded{v, min(digits, 17)}
	}
	return out
}

func dataOf(id int, d *lineDrawing) panelData {
	data := panelData{
		ID: id,
		X:  axisData{Lo: d.x.lo, Hi: d.x.hi, Log: d.x.log, Unit: d.xUnit, Name: d.xText},
		Y:  axisData{Lo: d.y.lo, Hi: d.y.hi, Log: d.y.log, Unit: d.yUnit, Name: d.yText},
	}
	add := func(t trace, kind string, index int) {
		data.Series = append(data.Series, traceData{
			Name: t.name, Kind: kind, Step: t.step, Index: index,
			X: round(t.x, d.x), Y: round(t.y, d.y), Low: round(t.low, d.y), Gaps: t.starts,
		})
	}
	for _, i := range d.legend() {
		add(d.traces[i], d.traces[i].kind.String(), i)
	}
	for _, r := range d.refs {
		if len(r.x) > 0 {
			add(trace{name: r.name, step: true, x: r.x, y: r.y, starts: []int{0}}, "reference", -1)
		}
	}
	return data
}
