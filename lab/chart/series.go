package chart

import (
	"image/color"
	"math"
	"regexp"
	"strconv"
	"sync"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/web"
)

// colours are those of the live page on a light ground, by their names there.
var colours = sync.OnceValue(func() map[string]color.NRGBA {
	all := map[string]color.NRGBA{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllSubmatch(web.File(web.Style), -1) {
		if _, known := all[string(m[1])]; known {
			continue // this one is for a dark ground
		}
		n, _ := strconv.ParseUint(string(m[2]), 16, 32)
		all[string(m[1])] = color.NRGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 255}
	}
	return all
})

// shade is a colour that what is behind it shines through.
func shade(name string, opacity float64) color.NRGBA {
	c := colours()[name]
	c.A = uint8(255 * opacity)
	return c
}

var (
	// hues are the colours of lines, in order, and dashes those that some have as well.
	hues   = []string{"blue", "orange", "green", "pink", "violet", "brown"}
	dashes = map[string][]vg.Length{"pink": {7, 3}, "violet": {2, 3}, "brown": {10, 3, 2, 3}}
)

// addLines adds the lines of a chart to its plot.
func (p *panel) addLines() error {
	unit, per := "s", 1.0
	switch span := p.X[len(p.X)-1] - p.X[0]; { // whole minutes and hours are easier to read than thousands of seconds
	case span > 3*3600:
		unit, per = "h", 3600
	case span > 180:
		unit, per = "min", 60
	}
	p.plot.X.Label.Text, p.plot.Y.Label.Text = "time ("+unit+")", p.Measure()
	p.plot.X.Tick.Marker = plot.TickerFunc(ticks)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, colours()["grid"]
	p.plot.Add(grid)
	hue := 0
	for _, l := range p.Lines {
		if l.Kind != report.Thin && l.Kind != report.Reference && l.Colour == "" {
			l.Colour = hues[hue%len(hues)]
			hue++
		}
		if err := p.addLine(&l, per); err != nil {
			return err
		}
	}
	p.plot.Y.Min = min(p.plot.Y.Min, 0) // heights can be compared only from zero
	return nil
}

// ticks are at round numbers of seconds, minutes or hours.
func ticks(lo, hi float64) (all []plot.Tick) {
	for _, step := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 480} {
		if hi-lo > 10*step {
			continue
		}
		for at := math.Ceil(lo / step); at*step <= hi; at++ {
			all = append(all, plot.Tick{Value: at * step, Label: report.Number(at * step)})
		}
		return all
	}
	return plot.DefaultTicks{}.Ticks(lo, hi)
}

// addLine adds a line, or the area between two edges. Its instants are divided by per.
func (p *panel) addLine(l *report.Line, per float64) error {
	var upper, lower plotter.XYs
	for i, x := range p.X {
		if y := l.Y[i]; !math.IsNaN(y) {
			upper = append(upper, plotter.XY{X: x / per, Y: y})
			if l.Low != nil {
				lower = append(plotter.XYs{{X: x / per, Y: l.Low[i]}}, lower...)
			}
		}
	}
	if len(upper) == 0 {
		return nil
	}
	if l.Low != nil {
		area, err := plotter.NewPolygon(append(upper, lower...))
		if err != nil {
			return err
		}
		area.Color, area.LineStyle.Width = shade("line-"+l.Colour, 0.22), 0
		p.plot.Add(area)
		p.name(l.Name, area)
		return nil
	}
	line, err := plotter.NewLine(upper)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: colours()["line-"+l.Colour], Width: 1.6, Dashes: dashes[l.Colour]}
	switch l.Kind {
	case report.Strong:
		line.Width = 2.4
	case report.Thin:
		line.LineStyle = draw.LineStyle{Color: shade("bar", 0.6), Width: 0.7}
	case report.Reference:
		line.LineStyle = draw.LineStyle{Color: colours()["ink"], Width: 1.4, Dashes: []vg.Length{5, 4}}
	}
	if p.Step {
		line.StepStyle = plotter.PostStep
	}
	p.plot.Add(line)
	if l.Kind != report.Thin {
		p.name(l.Name, line)
	}
	return nil
}

// marks are what stands at the bars of a chart: whiskers, and their values in words.
type marks []struct {
	x, y, low, high float64
	text            string
}

// Len and the other methods are what plotter asks for.
func (m marks) Len() int                         { return len(m) }
func (m marks) XY(i int) (x, y float64)          { return m[i].x, m[i].y }
func (m marks) XError(i int) (low, high float64) { return m[i].low, m[i].high }
func (m marks) Label(i int) string               { return m[i].text }

// addBars adds the bars of a chart to its plot, the first on top.
func (p *panel) addBars() error {
	n := len(p.Bars)
	names := make([]string, n)
	values := map[bool]plotter.Values{false: make(plotter.Values, n), true: make(plotter.Values, n)} // by Strong
	var whiskers, words marks
	for i, b := range p.Bars {
		at := n - 1 - i
		names[at], values[b.Strong][at] = b.Name, b.Value
		words = append(words, marks{{x: max(b.Value, b.High), y: float64(at), text: report.Number(b.Value)}}...)
		if b.High > 0 {
			low, high := b.Value-b.Low, b.High-b.Value
			whiskers = append(whiskers, marks{{x: b.Value, y: float64(at), low: low, high: high}}...)
		}
	}
	for _, strong := range []bool{false, true} {
		bars, err := plotter.NewBarChart(values[strong], barHigh*0.6)
		if err != nil {
			return err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, colours()["axis"], 0
		if strong {
			bars.Color = colours()["bar-full"]
		}
		p.plot.Add(bars)
	}
	if len(whiskers) > 0 {
		errors, err := plotter.NewXErrorBars(whiskers)
		if err != nil {
			return err
		}
		p.plot.Add(errors)
	}
	labels, err := plotter.NewLabels(words)
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: 5, Y: -3.5}
	p.plot.Add(labels)
	p.plot.X.Min = 0
	p.plot.NominalY(names...)
	p.plot.X.Label.Text = p.Measure()
	if p.Whiskers != "" {
		p.plot.X.Label.Text += "; whiskers: " + p.Whiskers
	}
	return nil
}
