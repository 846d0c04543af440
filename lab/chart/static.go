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

	"gonum.org/v1/plot/font"
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
	aloneWide   = 760 // the width of a panel if there is one column
	panelWide   = 560
	plotHigh    = 270 // with the labels below the plot
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

// svgCanvas remembers how wide the texts are that it writes. gonum/plot names only one font, which few readers have, and says only where a
// text begins, so in a wider font a text at the right edge would run out of the picture.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString writes text.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// fit names other fonts in what the canvas has written, and has each text fill its measured width in whatever font it is shown.
func (c *svgCanvas) fit(body string) string {
	parts := strings.Split(body, "<text ") // never within a text, where < is escaped
	for i, wide := range c.widths {
		parts[i+1] = fmt.Sprintf(`textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, float64(wide)) +
			strings.Replace(parts[i+1], "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;", 1)
	}
	return strings.Join(parts, "<text ")
}

func escape(b *bytes.Buffer, s string) {
	_ = xml.EscapeText(b, []byte(s)) // writing to a buffer does not fail
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
	return draw.TextStyle{Color: rgba(c, 1), Font: f, Handler: text.Plain{Fonts: fonts()}}
}

// Styles of the texts of static pictures.
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

// align has the plots of a row begin at the same height and its bars fill theirs. It returns the height of the row.
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

// wrap breaks text into lines; it also breaks words that are longer than a line.
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

// write draws lines of text from y down, and returns where the next line begins.
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

// crop is the part of the canvas from y down that a panel's width takes.
func (s *sheet) crop(c draw.Canvas, x, y, high vg.Length) draw.Canvas {
	return draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: x, Y: s.high - y - high}, Max: vg.Point{X: x + s.panel, Y: s.high - y},
	}}
}

// line is the style of a trace's line.
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

func (s *sheet) drawLines(c draw.Canvas, d *lineDrawing) {
	inside := newPlane(c, d.x, d.y, fitted(d.xText, labelStyle(), s.panel), labelStyle(), 4)
	inside.drawGrid()
	for _, t := range d.traces {
		for _, e := range t.each {
			inside.drawLine(e, 0, len(e.x), e.line())
		}
		t.runs(func(from, to int) {
			if t.kind == band {
				inside.drawBand(t, from, to)
				return
			}
			inside.drawLine(t, from, to, t.line())
		})
	}
	for _, r := range d.refs {
		if len(r.x) > 0 {
			inside.drawLine(trace{x: r.x, y: r.y, step: true}, 0, len(r.x), draw.LineStyle{
				Color: rgba(ink.light, 1), Width: 1.7, Dashes: []vg.Length{5, 4},
			})
		}
	}
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

// glyph is the dot in place of a line that has one point.
func glyph(sty draw.LineStyle) draw.GlyphStyle {
	return draw.GlyphStyle{Color: sty.Color, Radius: 3, Shape: draw.CircleGlyph{}}
}

func (s *sheet) drawBars(c draw.Canvas, d *barDrawing) {
	n := len(d.bars)
	names, values := textStyle(), style(textSize, true, ink.light) // values may be bold, which is widest
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
	inside := newPlane(c, x, y, "", names, 8)
	half := 0.32 * (inside.atY(1) - inside.atY(0))
	for i, bar := range d.bars {
		middle := inside.atY(float64(n-i) - 0.5)
		d.drawBar(inside, bar, middle, half)
	}
	c.StrokeLine2(draw.LineStyle{Color: rgba(axisInk.light, 1), Width: 1}, inside.atX(0), inside.Min.Y, inside.atX(0), inside.Max.Y)
}

// drawBar draws a bar with its whisker and its value.
func (d *barDrawing) drawBar(p plane, bar barRow, middle, half vg.Length) {
	fill := weakBar.light
	if bar.strong {
		fill = palette[0].light
	}
	p.FillPolygon(rgba(fill, 1), []vg.Point{
		{X: p.atX(0), Y: middle - half}, {X: p.atX(bar.Value), Y: middle - half}, {X: p.atX(bar.Value), Y: middle + half}, {X: p.atX(0), Y: middle + half},
	})
	end := bar.Value
	if bar.whisker() {
		end = bar.Max
		sty := draw.LineStyle{Color: rgba(ink.light, 1), Width: 1.3}
		p.StrokeLine2(sty, p.atX(bar.Min), middle, p.atX(bar.Max), middle)
		p.StrokeLine2(sty, p.atX(bar.Min), middle-4, p.atX(bar.Min), middle+4)
		p.StrokeLine2(sty, p.atX(bar.Max), middle-4, p.atX(bar.Max), middle+4)
	}
	sty := textStyle()
	if bar.Highlight {
		sty = style(textSize, true, ink.light)
	}
	sty.YAlign = draw.YCenter
	p.FillText(sty, vg.Point{X: p.atX(end) + 6, Y: middle + 1.5}, d.beside(bar.Value))
}
