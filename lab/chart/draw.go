package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/app/screen"
)

func init() {
	plot.DefaultFont.Variant = "Sans"
	plotter.DefaultFont.Variant = "Sans"
}

// Sizes of a picture, in points.
const (
	margin    = 24
	gap       = 32 // between panels
	panelWide = 540
	plotHigh  = 230
	barHigh   = 26
	barsHigh  = 50 // an axis with its label
	lineHigh  = 16 // of text
	headHigh  = 24 // the title of a panel
)

// sheet is a page laid out as a picture, in two columns of panels.
type sheet struct {
	page       report.Page
	panels     []*panel
	columns    int
	wide, high vg.Length
}

// panel is one chart.
type panel struct {
	*report.Chart
	plot    *plot.Plot
	legends [2]plot.Legend // side by side
	named   int            // entries of the legends
	caption []string
	high    vg.Length
}

func newSheet(p report.Page) (*sheet, error) {
	s := &sheet{page: p, columns: min(2, len(p.Charts)), high: margin + 2*lineHigh}
	for i := range p.Charts {
		one, err := newPanel(&p.Charts[i])
		if err != nil {
			return nil, fmt.Errorf("chart %q: %w", p.Charts[i].Title, err)
		}
		s.panels = append(s.panels, one)
	}
	if len(s.panels) == 0 {
		return nil, fmt.Errorf("%q has no charts to draw", p.Title)
	}
	s.wide = 2*margin + vg.Length(s.columns)*(panelWide+gap) - gap
	for row := range slices.Chunk(s.panels, s.columns) {
		s.high += tallest(row) + gap
	}
	s.high += vg.Length(len(s.text()))*lineHigh + margin - gap
	return s, nil
}

func tallest(row []*panel) (high vg.Length) {
	for _, p := range row {
		high = max(high, p.high)
	}
	return high
}

// text is the page's sentence in lines. A character is at most half as wide as it is high, on
// average.
func (s *sheet) text() []string { return wrap(s.page.Text, s.wide-2*margin) }

func wrap(text string, wide vg.Length) []string {
	if text == "" {
		return nil
	}
	return strings.Split(screen.Wrap(text, int(wide/6), ""), "\n")
}

func (s *sheet) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	y := c.Max.Y - margin
	write(c, margin, y, 18, true, s.page.Title)
	y -= 2 * lineHigh
	for row := range slices.Chunk(s.panels, s.columns) {
		high := tallest(row)
		for i, p := range row {
			left := vg.Length(margin + i*(panelWide+gap))
			tile := vg.Rectangle{Min: vg.Point{X: left, Y: y - high}, Max: vg.Point{X: left + panelWide, Y: y}}
			p.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: tile})
		}
		y -= high + gap
	}
	y += gap / 2
	for _, line := range s.text() {
		write(c, margin, y, 12, false, line)
		y -= lineHigh
	}
}

// write writes a line of text whose top is at y.
func write(c draw.Canvas, x, y, size vg.Length, bold bool, text string) {
	f := font.From(plot.DefaultFont, size)
	if bold {
		f.Weight = 3 // golang.org/x/image/font.WeightBold
	}
	sty := draw.TextStyle{Color: colours()["ink"], Font: f, Handler: plot.DefaultTextHandler, YAlign: draw.YTop}
	c.FillText(sty, vg.Point{X: x, Y: y}, text)
}

func newPanel(c *report.Chart) (*panel, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	p := &panel{Chart: c, plot: plot.New(), caption: wrap(c.Caption, panelWide)}
	for i := range p.legends {
		p.legends[i] = plot.NewLegend()
		p.legends[i].Left, p.legends[i].Top, p.legends[i].Padding = true, true, 4
	}
	p.high = headHigh
	add, high := p.addLines, vg.Length(plotHigh)
	if len(c.Bars) > 0 {
		add, high = p.addBars, vg.Length(barsHigh+barHigh*len(c.Bars))
	}
	if err := add(); err != nil {
		return nil, err
	}
	p.high += vg.Length(p.rows())*lineHigh + high + vg.Length(len(p.caption))*lineHigh
	return p, nil
}

func (p *panel) draw(c draw.Canvas) {
	write(c, c.Min.X, c.Max.Y, 14, true, p.Title)
	top := vg.Length(headHigh)
	for i := range p.legends {
		p.legends[i].Draw(draw.Crop(c, vg.Length(i)*panelWide/2, 0, 0, -top))
	}
	top += vg.Length(p.rows()) * lineHigh
	bottom := vg.Length(len(p.caption)) * lineHigh
	plotted := c.Max.Y - top - (p.high - top - bottom) // panels of a row begin at its top
	p.plot.Draw(draw.Crop(c, 0, 0, plotted-c.Min.Y, -top))
	for i, line := range p.caption {
		write(c, c.Min.X, plotted-vg.Length(i)*lineHigh-4, 12, false, line)
	}
}

// name adds an entry to the legends, left and right in turn.
func (p *panel) name(name string, thumb plot.Thumbnailer) {
	p.legends[p.named%2].Add(name, thumb)
	p.named++
}

// rows is how many lines the legends take.
func (p *panel) rows() int { return (p.named + 1) / 2 }
