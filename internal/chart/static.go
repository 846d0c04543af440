package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a static picture, in its pixels. A PNG has pngScale pixels to each.
const (
	margin      = 24
	gap         = 36  // between panels
	aloneWide   = 760 // a panel in the only column
	panelWide   = 560
	plotHigh    = 270 // with the labels below it
	legendHigh  = 20
	axisHigh    = 24
	barHigh     = 30
	titleSize   = 22
	headingSize = 16
	textSize    = 13
	labelSize   = 12
	pngScale    = 2
)

// WriteSVG writes the figure as an SVG picture on a white ground. The error wraps ErrFigure, or is that of w.
func WriteSVG(w io.Writer, f Figure) error {
	sheet, err := newSheet(f)
	if err != nil {
		return err
	}
	c := &svgCanvas{Canvas: vgsvg.NewWith(vgsvg.UseWH(sheet.wide, sheet.high))}
	sheet.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	_, body, _ := strings.Cut(b.String(), "<svg")
	_, body, _ = strings.Cut(body, ">")
	body = c.fit(body)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]v" height="%[2]v" viewBox="0 0 %[1]v %[2]v" role="img" aria-labelledby="title desc">`,
		float64(sheet.wide), float64(sheet.high))
	out.WriteString("\n<title id=\"title\">")
	escape(&out, f.Title)
	out.WriteString("</title>\n<desc id=\"desc\">")
	for i, d := range sheet.drawings {
		if i > 0 {
			out.WriteString(" ")
		}
		escape(&out, d.summary)
	}
	out.WriteString("</desc>")
	out.WriteString(body)
	return writeAll(w, out.Bytes())
}

// svgCanvas remembers how wide the texts are that it writes. gonum/plot names one font only, which few readers have, and
// says only where a text begins: in another font one at the right edge would run out of the picture.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString writes text.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// fit names other fonts in what the canvas has written, and gives each text its width in whatever font it is shown.
func (c *svgCanvas) fit(body string) string {
	parts := strings.Split(body, "<text ") // never in a name, where it is escaped
	for i, wide := range c.widths {
		parts[i+1] = fmt.Sprintf(`textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, float64(wide)) +
			strings.Replace(parts[i+1], "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;", 1)
	}
	return strings.Join(parts, "<text ")
}

func escape(b *bytes.Buffer, s string) {
	_ = xml.EscapeText(b, []byte(s)) // a buffer takes all
}

// WritePNG writes the figure as a PNG picture on a white ground, with two pixels for each one of the SVG picture. The
// error wraps ErrFigure, or is that of w.
func WritePNG(w io.Writer, f Figure) error {
	sheet, err := newSheet(f)
	if err != nil {
		return err
	}
	c := vgimg.NewWith(vgimg.UseWH(sheet.wide, sheet.high), vgimg.UseDPI(72*pngScale), vgimg.UseBackgroundColor(color.White))
	sheet.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return writeAll(w, b.Bytes())
}

func writeAll(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}

// sheet is a figure laid out for a static picture. Its y runs down from the top; that of gonum/plot runs up.
type sheet struct {
	figure        Figure
	drawings      []drawing
	columns       int
	panel         vg.Length // the width of a panel
	wide, high    vg.Length
	title, footer []string // in lines
	rows          []vg.Length
	panels        []*panel
}

// panel is a drawing with its texts broken into lines that fit.
type panel struct {
	drawing
	title, caption []string
	legend         []legendLine
	sub            []string  // what bars show
	head           vg.Length // how far below the panel's top its plot begins
	plot, high     vg.Length
}

type legendLine []legendEntry

type legendEntry struct {
	trace trace
	name  string
	x     vg.Length
}

func style(size vg.Length, bold bool, c string) draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = 3 // golang.org/x/image/font.WeightBold
	}
	return draw.TextStyle{Color: rgba(c, 1), Font: f, Handler: text.Plain{Fonts: font.DefaultCache}}
}

// Texts of the static pictures.
func titleStyle() draw.TextStyle   { return style(titleSize, true, ink.light) }
func headingStyle() draw.TextStyle { return style(headingSize, true, ink.light) }
func textStyle() draw.TextStyle    { return style(textSize, false, ink.light) }
func noteStyle() draw.TextStyle    { return style(textSize, false, muted.light) }
func labelStyle() draw.TextStyle   { return style(labelSize, false, muted.light) }

func newSheet(f Figure) (*sheet, error) {
	drawings, err := f.draw()
	if err != nil {
		return nil, err
	}
	s := &sheet{figure: f, drawings: drawings, columns: min(max(1, f.Columns), len(drawings)), panel: panelWide}
	if s.columns == 1 {
		s.panel = aloneWide
	}
	s.wide = 2*margin + vg.Length(s.columns)*s.panel + vg.Length(s.columns-1)*gap
	s.title = wrap(f.Title, titleStyle(), s.wide-2*margin)
	s.footer = wrap(f.Caption, noteStyle(), s.wide-2*margin)
	s.high = margin + lines(s.title, titleSize) + 12
	for _, d := range drawings {
		s.panels = append(s.panels, s.layout(d))
	}
	for row := range slices.Chunk(s.panels, s.columns) {
		s.rows = append(s.rows, align(row))
	}
	for i, row := range s.rows {
		if i > 0 {
			s.high += gap
		}
		s.high += row
	}
	if len(s.footer) > 0 {
		s.high += 22 + lines(s.footer, textSize)
	}
	s.high = vg.Length(math.Ceil(float64(s.high + margin)))
	return s, nil
}

func lines(text []string, size vg.Length) vg.Length { return vg.Length(len(text)) * size * 1.35 }

func (s *sheet) layout(d drawing) *panel {
	p := &panel{
		drawing: d,
		title:   wrap(d.title, headingStyle(), s.panel),
		caption: wrap(d.caption, noteStyle(), s.panel),
	}
	p.head = lines(p.title, headingSize) + 6
	if d.lines != nil {
		p.legend = legend(d.lines, s.panel)
		p.head += vg.Length(len(p.legend))*legendHigh + axisHigh
		p.plot = plotHigh
	} else {
		sub := d.bars.text
		if d.bars.whiskers != "" {
			sub += "; whiskers: " + d.bars.whiskers
		}
		p.sub = wrap(sub, noteStyle(), s.panel)
		p.head += lines(p.sub, textSize) + 8
		p.plot = vg.Length(len(d.bars.bars)) * barHigh
	}
	if len(p.caption) > 0 {
		p.high += 8 + lines(p.caption, textSize)
	}
	return p
}

// align lets the plots of a row begin at the same height, bars fill theirs, and returns the height of the row.
func align(row []*panel) (high vg.Length) {
	var head, plot vg.Length
	for _, p := range row {
		head, plot = max(head, p.head), max(plot, p.plot)
	}
	for _, p := range row {
		if p.bars != nil {
			p.plot = max(p.plot, min(plot, vg.Length(len(p.bars.bars))*barHigh*1.6))
		} else {
			p.head = head
		}
		p.high += p.head + p.plot
		high = max(high, p.high)
	}
	return high
}

// wrap breaks text into lines, and words that are longer than a line.
func wrap(s string, sty draw.TextStyle, wide vg.Length) []string {
	var out []string
	var line string
	for word := range strings.FieldsSeq(s) {
		try := word
		if line != "" {
			try = line + " " + word
		}
		if sty.Width(try) <= wide {
			line = try
			continue
		}
		if line != "" {
			out = append(out, line)
		}
		line = word
		for sty.Width(line) > wide {
			runes := []rune(line)
			n := max(1, sort.Search(len(runes), func(n int) bool { return sty.Width(string(runes[:n])) > wide })-1)
			out, line = append(out, string(runes[:n])), string(runes[n:])
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

const swatch = 26 // the width of a legend's line

func legend(d *lineDrawing, wide vg.Length) []legendLine {
	var out []legendLine
	var line legendLine
	var x vg.Length
	for _, i := range d.legend() {
		t := d.traces[i]
		name := fitted(t.name, textStyle(), wide-swatch-8)
		need := swatch + 8 + textStyle().Width(name)
		if len(line) > 0 && x+need > wide {
			out, line, x = append(out, line), nil, 0
		}
		line = append(line, legendEntry{t, name, x})
		x += need + 20
	}
	return append(out, line)
}

func fitted(s string, sty draw.TextStyle, wide vg.Length) string {
	return shortenBy(s, float64(wide), func(s string) float64 { return float64(sty.Width(s)) })
}

// write draws lines of text from y down and returns where the next one begins.
func (s *sheet) write(c draw.Canvas, x, y vg.Length, text []string, sty draw.TextStyle, wide vg.Length) vg.Length {
	for _, line := range text {
		sty.YAlign = draw.YTop
		c.FillText(sty, vg.Point{X: x, Y: s.high - y}, line)
		y += sty.Font.Size * 1.35
	}
	return y
}

func (s *sheet) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	y := s.write(c, margin, margin, s.title, titleStyle(), s.wide) + 12
	for i, p := range s.panels {
		column, row := i%s.columns, i/s.columns
		if column == 0 && row > 0 {
			y += s.rows[row-1] + gap
		}
		s.drawPanel(c, p, margin+vg.Length(column)*(s.panel+gap), y)
	}
	y += s.rows[len(s.rows)-1] + 22
	s.write(c, margin, y, s.footer, noteStyle(), s.wide)
}

func (s *sheet) drawPanel(c draw.Canvas, p *panel, x, y vg.Length) {
	plot := y + p.head
	y = s.write(c, x, y, p.title, headingStyle(), s.panel) + 6
	if p.lines != nil {
		for _, line := range p.legend {
			for _, e := range line {
				middle := s.high - y - 8
				e.trace.swatch(c, x+e.x, middle)
				sty := textStyle()
				sty.YAlign = draw.YCenter
				c.FillText(sty, vg.Point{X: x + e.x + swatch + 8, Y: middle + 1}, e.name)
			}
			y += legendHigh
		}
		s.write(c, x, plot-axisHigh+2, []string{fitted(p.lines.yText, labelStyle(), s.panel)}, labelStyle(), s.panel)
		s.drawLines(s.crop(c, x, plot, p.plot), p.lines)
	} else {
		s.write(c, x, y, p.sub, noteStyle(), s.panel)
		s.drawBars(s.crop(c, x, plot, p.plot), p.bars)
	}
	s.write(c, x, plot+p.plot+8, p.caption, noteStyle(), s.panel)
}

// crop is the part of a panel's width from y down.
func (s *sheet) crop(c draw.Canvas, x, y, high vg.Length) draw.Canvas {
	return draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: x, Y: s.high - y - high}, Max: vg.Point{X: x + s.panel, Y: s.high - y},
	}}
}

// line is how a trace's line is drawn.
func (t trace) line() draw.LineStyle {
	sty := draw.LineStyle{Color: rgba(palette[t.hue].light, 1), Width: 1.8}
	switch t.kind {
	case median:
		sty.Width = 2.6
		return sty
	case faint:
		sty.Width = 1.2
		return sty
	case each:
		sty.Width = 0.8
		sty.Color = rgba(palette[t.hue].light, eachShade)
		return sty
	}
	for _, d := range dashes[t.hue] {
		sty.Dashes = append(sty.Dashes, vg.Length(d))
	}
	return sty
}

func (t trace) swatch(c draw.Canvas, x, middle vg.Length) {
	if t.kind == band {
		c.FillPolygon(rgba(palette[t.hue].light, bandShade), []vg.Point{
			{X: x, Y: middle - 6}, {X: x + swatch, Y: middle - 6}, {X: x + swatch, Y: middle + 6}, {X: x, Y: middle + 6},
		})
		if len(t.each) > 0 {
			c.StrokeLine2(trace{kind: each}.line(), x, middle, x+swatch, middle)
		}
		return
	}
	if t.dot() {
		c.DrawGlyph(glyph(t.line()), vg.Point{X: x + swatch/2, Y: middle})
		return
	}
	c.StrokeLine2(t.line(), x, middle, x+swatch, middle)
}

// newPlot has the axes of gonum/plot without its decoration.
func newPlot(x, y scale) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	set := func(a *plot.Axis, s scale) {
		a.Min, a.Max = s.lo, s.hi
		a.Scale = plot.LinearScale{}
		if s.log {
			a.Scale = plot.LogScale{}
		}
		marks := make(plot.ConstantTicks, len(s.ticks))
		for i, t := range s.ticks {
			// A value that rounding puts outside the axis would not be drawn.
			marks[i] = plot.Tick{Value: math.Max(s.lo, math.Min(s.hi, t.value)), Label: t.label}
		}
		a.Tick.Marker = marks
		a.Padding = 4
		a.Tick.LineStyle.Width = 0
		// The alignment is the axis's own.
		a.Tick.Label.Font, a.Tick.Label.Color, a.Tick.Label.Handler = labelStyle().Font, labelStyle().Color, labelStyle().Handler
		a.LineStyle.Width = 0
		a.Label.TextStyle = labelStyle()
		a.Label.TextStyle.XAlign = draw.XCenter
		a.Label.TextStyle.YAlign = draw.YBottom
		a.Label.Padding = 5
	}
	set(&p.X, x)
	set(&p.Y, y)
	p.X.Padding = 0
	p.X.Tick.Length = 5
	p.X.Tick.LineStyle = draw.LineStyle{Color: rgba(axisInk.light, 1), Width: 1}
	return p
}

func (s *sheet) drawLines(c draw.Canvas, d *lineDrawing) {
	p := newPlot(d.x, d.y)
	p.X.Label.Text = fitted(d.xText, labelStyle(), s.panel)
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal = draw.LineStyle{Color: rgba(gridInk.light, 1), Width: 1}
	p.Add(grid)
	p.Add(axisLine{})
	for _, t := range d.traces {
		for _, e := range t.each {
			p.Add(linePlotter(e, 0, len(e.x)))
		}
		t.runs(func(from, to int) {
			if t.kind == band {
				p.Add(bandPlotter(t, from, to))
				return
			}
			p.Add(linePlotter(t, from, to))
		})
	}
	for _, r := range d.refs {
		if len(r.x) > 0 {
			p.Add(linePlotter(trace{x: r.x, y: r.y, step: true}, 0, len(r.x), draw.LineStyle{
				Color: rgba(ink.light, 1), Width: 1.7, Dashes: []vg.Length{5, 4},
			}))
		}
	}
	// Adding a plotter widens the axes to its data, by what rounding left outside.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = d.x.lo, d.x.hi, d.y.lo, d.y.hi
	p.Draw(c)
	inside := p.DataCanvas(c)
	size := inside.Max.Sub(inside.Min)
	sty := style(labelSize, true, ink.light)
	sty.YAlign = draw.YCenter
	for _, l := range d.placed(float64(size.X), float64(size.Y), func(s string) float64 { return float64(sty.Width(s)) + 8 }) {
		wide := sty.Width(l.text)
		sty.XAlign = []draw.XAlignment{draw.XLeft, draw.XCenter, draw.XRight}[l.anchor]
		at := vg.Point{
			X: inside.Min.X + vg.Length(l.x)*size.X + []vg.Length{4, 0, -4}[l.anchor],
			Y: inside.Max.Y - vg.Length(l.y),
		}
		left := at.X + wide*vg.Length(sty.XAlign) - 3
		c.FillPolygon(rgba(ground.light, 0.8), []vg.Point{
			{X: left, Y: at.Y - 6}, {X: left, Y: at.Y + 7}, {X: left + wide + 6, Y: at.Y + 7}, {X: left + wide + 6, Y: at.Y - 6},
		})
		c.FillText(sty, at, l.text)
	}
}

// axisLine draws the horizontal axis. That of gonum/plot would leave half its width between itself and the lowest grid
// line.
type axisLine struct{}

func (axisLine) Plot(c draw.Canvas, _ *plot.Plot) {
	c.StrokeLine2(draw.LineStyle{Color: rgba(axisInk.light, 1), Width: 1}, c.Min.X, c.Min.Y, c.Max.X, c.Min.Y)
}

func linePlotter(t trace, from, to int, given ...draw.LineStyle) plot.Plotter {
	sty := t.line()
	if len(given) > 0 {
		sty = given[0]
	}
	xys := make(plotter.XYs, to-from)
	for i := range xys {
		xys[i] = plotter.XY{X: t.x[from+i], Y: t.y[from+i]}
	}
	if to-from == 1 { // a line of one point would not be seen
		return &plotter.Scatter{XYs: xys, GlyphStyle: glyph(sty)}
	}
	l := &plotter.Line{XYs: xys, LineStyle: sty}
	if t.step {
		l.StepStyle = plotter.PostStep
	}
	return l
}

// glyph is the dot of a line of one point.
func glyph(sty draw.LineStyle) draw.GlyphStyle {
	return draw.GlyphStyle{Color: sty.Color, Radius: 3, Shape: draw.CircleGlyph{}}
}

func bandPlotter(t trace, from, to int) plot.Plotter {
	var xys plotter.XYs
	for i := from; i < to; i++ {
		xys = append(xys, plotter.XY{X: t.x[i], Y: t.y[i]})
	}
	for i := to - 1; i >= from; i-- {
		xys = append(xys, plotter.XY{X: t.x[i], Y: t.low[i]})
	}
	return &plotter.Polygon{XYs: []plotter.XYs{xys}, Color: rgba(palette[t.hue].light, bandShade)}
}

func (s *sheet) drawBars(c draw.Canvas, d *barDrawing) {
	n := len(d.bars)
	names, values := textStyle(), style(textSize, true, ink.light) // the widest
	var left, right vg.Length
	labels := make([]string, n)
	for i, b := range d.bars {
		labels[i] = fitted(b.Name, names, s.panel*0.42)
		left = max(left, names.Width(labels[i]))
		right = max(right, values.Width(d.beside(b.Value)))
	}
	room := float64(s.panel - left - 12 - right - 16)
	x := scale{lo: 0, hi: d.most * float64(s.panel-left-12) / math.Max(room, 40)}
	y := scale{lo: 0, hi: float64(n)}
	for i := range d.bars {
		y.ticks = append(y.ticks, tick{float64(n-i) - 0.5, labels[i]})
	}
	p := newPlot(x, y)
	p.Y.Padding = 8
	p.Y.Tick.Label.Color, p.Y.Tick.Label.Font = names.Color, names.Font
	p.Add(barPlotter{d})
	p.Draw(c)
}

// barPlotter draws bars, whiskers and values.
type barPlotter struct{ d *barDrawing }

func (b barPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	n := len(b.d.bars)
	half := 0.32 * (toY(1) - toY(0))
	for i, bar := range b.d.bars {
		middle := toY(float64(n-i) - 0.5)
		fill := weakBar.light
		if bar.strong {
			fill = palette[0].light
		}
		c.FillPolygon(rgba(fill, 1), []vg.Point{
			{X: toX(0), Y: middle - half}, {X: toX(bar.Value), Y: middle - half}, {X: toX(bar.Value), Y: middle + half}, {X: toX(0), Y: middle + half},
		})
		end := bar.Value
		if bar.whisker() {
			end = bar.Max
			sty := draw.LineStyle{Color: rgba(ink.light, 1), Width: 1.3}
			c.StrokeLine2(sty, toX(bar.Min), middle, toX(bar.Max), middle)
			c.StrokeLine2(sty, toX(bar.Min), middle-4, toX(bar.Min), middle+4)
			c.StrokeLine2(sty, toX(bar.Max), middle-4, toX(bar.Max), middle+4)
		}
		sty := textStyle()
		if bar.Highlight {
			sty = style(textSize, true, ink.light)
		}
		sty.YAlign = draw.YCenter
		c.FillText(sty, vg.Point{X: toX(end) + 6, Y: middle + 1.5}, b.d.beside(bar.Value))
	}
	c.StrokeLine2(draw.LineStyle{Color: rgba(axisInk.light, 1), Width: 1}, toX(0), c.Min.Y, toX(0), c.Max.Y)
}
