package chart

import (
	"slices"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fonts has the two fonts that pictures are written in. Package gonum.org/v1/plot would bring ten more into the program, and writers of
// PDF and TeX.
var fonts = sync.OnceValue(func() *font.Cache {
	var faces font.Collection
	for weight, ttf := range map[xfont.Weight][]byte{xfont.WeightNormal: liberationsansregular.TTF, xfont.WeightBold: liberationsansbold.TTF} {
		face, err := opentype.Parse(ttf)
		if err != nil {
			panic("chart: " + err.Error()) // the fonts are part of the module, so this is a bug
		}
		faces = append(faces, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}, Face: face})
	}
	return font.NewCache(faces)
})

// plane is the part of a panel that data is drawn in, with the scales of its axes.
type plane struct {
	draw.Canvas
	x, y scale
}

func (p plane) atX(v float64) vg.Length { return p.Canvas.X(p.x.at(v)) }
func (p plane) atY(v float64) vg.Length { return p.Canvas.Y(p.y.at(v)) }

// clamped is the place of v; a value that rounding has put outside the axis goes to its end.
func clamped(s scale, v float64) float64 { return s.at(max(s.lo, min(s.hi, v))) }

// Distances of what stands around a plane.
const (
	tickLong = 5 // length of a tick on the horizontal axis
	underX   = 5 // between the labels and the title of the horizontal axis
)

// newPlane finds room in c for the labels of both axes, and for a text below the horizontal axis if it is not empty, and draws these. sty
// is the style of the vertical axis's labels; beside is the distance between them and the data.
func newPlane(c draw.Canvas, x, y scale, text string, sty draw.TextStyle, beside vg.Length) plane {
	p := plane{c, x, y}
	label := labelStyle()
	inside := &p.Rectangle
	inside.Min.X += longest(sty, y.ticks, draw.TextStyle.Width) + label.Width(" ") + beside
	bottom := c.Min.Y
	if text != "" {
		bottom += label.Height(text) + underX
	}
	inside.Min.Y = bottom
	high := longest(label, x.ticks, draw.TextStyle.Height)
	if len(x.ticks) > 0 {
		inside.Min.Y += high + tickLong
	}
	// A label is centred at its tick, so half of the last one on each axis reaches beyond the axis.
	inside.Max.X = room(inside.Min.X, c.Max.X, x, func(s string) vg.Length { return label.Width(s) / 2 })
	if text != "" {
		inside.Max.X = min(inside.Max.X, 2*c.Max.X-inside.Min.X-label.Width(text))
	}
	inside.Max.Y = room(inside.Min.Y, c.Max.Y, y, func(s string) vg.Length { return sty.Height(s) / 2 })

	if text != "" {
		label.XAlign, label.YAlign = draw.XCenter, draw.YBottom
		c.FillText(label, vg.Point{X: p.Center().X, Y: c.Min.Y + label.FontExtents().Descent}, text)
	}
	label.XAlign, label.YAlign = draw.XCenter, draw.YTop
	for _, t := range x.ticks {
		c.FillText(label, vg.Point{X: p.Canvas.X(clamped(x, t.value)), Y: bottom + high + label.FontExtents().Descent}, t.label)
	}
	for _, t := range x.ticks {
		at := p.Canvas.X(clamped(x, t.value))
		c.StrokeLine2(draw.LineStyle{Color: rgba(axisInk.light, 1), Width: 1}, at, bottom+high, at, bottom+high+tickLong)
	}
	sty.XAlign, sty.YAlign = draw.XRight, draw.YCenter
	edge := c.Min.X + longest(sty, y.ticks, draw.TextStyle.Width)
	for _, t := range y.ticks {
		c.FillText(sty, vg.Point{X: edge, Y: p.Canvas.Y(clamped(y, t.value)) + sty.FontExtents().Descent}, t.label)
	}
	return p
}

func longest(sty draw.TextStyle, ticks []tick, measure func(draw.TextStyle, string) vg.Length) (most vg.Length) {
	for _, t := range ticks {
		most = max(most, measure(sty, t.label))
	}
	return most
}

// room is how far an axis that begins at lo may reach, so that no label reaches beyond hi. half gives half of a label's size.
func room(lo, hi vg.Length, s scale, half func(string) vg.Length) vg.Length {
	end := hi
	for _, t := range s.ticks {
		if at := vg.Length(clamped(s, t.value)); at > 0 {
			end = min(end, lo+(hi-half(t.label)-lo)/at)
		}
	}
	return end
}

// drawGrid draws a line at each label of the vertical axis, and the horizontal axis.
func (p plane) drawGrid() {
	for _, t := range p.y.ticks {
		at := p.Canvas.Y(clamped(p.y, t.value))
		p.StrokeLine2(draw.LineStyle{Color: rgba(gridInk.light, 1), Width: 1}, p.Min.X, at, p.Max.X, at)
	}
	p.StrokeLine2(draw.LineStyle{Color: rgba(axisInk.light, 1), Width: 1}, p.Min.X, p.Min.Y, p.Max.X, p.Min.Y)
}

// drawLine draws the values of a trace from one index to another. A single point is drawn as a dot, since a line would not show it.
func (p plane) drawLine(t trace, from, to int, sty draw.LineStyle) {
	points := make([]vg.Point, 0, to-from)
	for i := from; i < to; i++ {
		at := vg.Point{X: p.atX(t.x[i]), Y: p.atY(t.y[i])}
		if t.step && i > from { // the value before holds until this one
			points = append(points, vg.Point{X: at.X, Y: points[len(points)-1].Y})
		}
		points = append(points, at)
	}
	if len(points) == 1 {
		p.DrawGlyph(glyph(sty), points[0])
		return
	}
	p.StrokeLines(sty, p.ClipLinesXY(points)...)
}

// drawBand fills the area between the low and the high edge of a trace.
func (p plane) drawBand(t trace, from, to int) {
	var points []vg.Point
	for i := from; i < to; i++ {
		points = append(points, vg.Point{X: p.atX(t.x[i]), Y: p.atY(t.y[i])})
	}
	for i := range slices.Backward(t.x[from:to]) {
		points = append(points, vg.Point{X: p.atX(t.x[from+i]), Y: p.atY(t.low[from+i])})
	}
	p.FillPolygon(rgba(palette[t.hue].light, bandShade), p.ClipPolygonXY(points))
}
