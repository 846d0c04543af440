package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/web"
)

// Page is what one file shows.
type Page struct {
	Title   string
	Text    string // the outcome in a sentence
	Figures []Figure
	Charts  []Chart
}

// Figure is a number with its name.
type Figure struct{ Name, Value string }

// Chart shows either Lines over time, or Bars.
type Chart struct {
	Title, Caption string
	Label, Unit    string // what is measured, and in what: "sleep", "s"

	X     Values // instants, in seconds from the beginning; they rise
	Step  bool   // a value holds until the next instant
	Lines []Line

	Bars     []Bar
	Whiskers string // what Low and High of the Bars are, if they have any
}

// Line is a series of values. Y has one for each X of its Chart, or NaN.
type Line struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Colour is one of blue, orange, green, pink, violet and brown. If empty, the chart chooses.
	Colour string `json:"colour"`
	Y      Values `json:"y"`
	// Low, if not nil, makes the line the area between Low and Y.
	Low Values `json:"low,omitempty"`
}

// Kind says how a Line is drawn.
type Kind string

// Kinds of lines.
const (
	Plain     Kind = ""
	Strong    Kind = "strong"    // the one to look at
	Thin      Kind = "thin"      // one of many, without a place in the legend and the table
	Reference Kind = "reference" // dashed: to compare with
)

// Bar is a value, and the range from Low to High that it stands for. If both are zero, there is
// none.
type Bar struct {
	Name             string
	Value, Low, High float64
	Strong           bool // it stands out
}

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle []byte
	//go:embed page.js
	pageScript []byte
)

// parts are what all pages have in common. The policy of a page allows its style and its script by
// their hashes, and no others: a text that escaped from its place would still not run.
type parts struct {
	style, script         string
	styleHash, scriptHash string
}

var common = sync.OnceValue(func() *parts {
	style := joined(web.File(web.UPlotStyle), web.File(web.Style), pageStyle)
	licence := joined([]byte("/*"), web.File(web.Licence), []byte("*/"))
	script := joined(licence, web.File(web.UPlot), web.File(web.Charts), pageScript)
	return &parts{
		style: string(style), styleHash: hashOf(style),
		script: string(script), scriptHash: hashOf(script),
	}
})

func joined(all ...[]byte) []byte { return bytes.Join(all, []byte("\n")) }

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// WriteHTML writes the page as HTML.
func (p Page) WriteHTML(w io.Writer) error {
	var views []view
	var drawn []data
	for i := range p.Charts {
		c := &p.Charts[i]
		if err := c.Check(); err != nil {
			return err
		}
		views = append(views, viewOf(i, c))
		if len(c.Lines) > 0 {
			drawn = append(drawn, data{i, c.Title, c.Unit, c.Step, c.X, c.Lines})
		}
	}
	text, err := new(page).write(&p, views, drawn)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// Check returns an error if there is nothing to draw, or not a value for each instant.
func (c *Chart) Check() error {
	if len(c.Lines)+len(c.Bars) == 0 || len(c.Lines) > 0 && len(c.X) == 0 {
		return fmt.Errorf("chart %q has nothing to draw", c.Title)
	}
	for _, l := range c.Lines {
		if len(l.Y) != len(c.X) || l.Low != nil && len(l.Low) != len(c.X) {
			return fmt.Errorf("chart %q, line %q: %d values, expected one for each of %d instants",
				c.Title, l.Name, len(l.Y), len(c.X))
		}
	}
	return nil
}

// Measure is what the chart shows, with the unit: "sleep (s)".
func (c *Chart) Measure() string {
	if c.Unit == "" || c.Unit == c.Label {
		return c.Label
	}
	return c.Label + " (" + c.Unit + ")"
}

// view is a chart as the page has it. A chart of lines has a table of some of its instants, one
// of bars is a table.
type view struct {
	ID int
	*Chart
	Head []string
	Rows [][]string
	Bars []barView
}

// barView is a bar whose lengths are percentages of the longest.
type barView struct {
	Cells            []string
	Strong, Whisker  bool
	Value, Low, High percent
}

// percent is written to two places.
type percent float64

func (p percent) String() string { return strconv.FormatFloat(float64(p), 'f', 2, 64) }

func viewOf(id int, c *Chart) view {
	v := view{ID: id, Chart: c}
	if len(c.Lines) > 0 {
		v.Head, v.Rows = c.table()
		return v
	}
	v.Head = []string{"", c.Measure()}
	if c.Whiskers != "" {
		v.Head = append(v.Head, c.Whiskers)
	}
	longest := math.SmallestNonzeroFloat64
	for _, b := range c.Bars {
		longest = max(longest, b.Value, b.High)
	}
	for _, b := range c.Bars {
		row := barView{Cells: []string{b.Name, Number(b.Value)}, Strong: b.Strong, Whisker: b.High > 0}
		of := func(v float64) percent { return percent(100 * v / longest) }
		row.Value = of(b.Value)
		switch {
		case row.Whisker:
			row.Cells = append(row.Cells, Number(b.Low)+" – "+Number(b.High))
			row.Low, row.High = of(b.Low), of(b.High)
		case c.Whiskers != "":
			row.Cells = append(row.Cells, "–")
		}
		v.Bars = append(v.Bars, row)
	}
	return v
}

// tableRows is how many instants of a chart its table has.
const tableRows = 25

// table has the values of the lines at some instants.
func (c *Chart) table() (head []string, rows [][]string) {
	head = []string{"Time"}
	var columns [][]float64
	for _, l := range c.Lines {
		switch {
		case l.Kind == Thin:
		case l.Low != nil:
			head, columns = append(head, l.Name+", from", "to"), append(columns, l.Low, l.Y)
		default:
			head, columns = append(head, l.Name), append(columns, l.Y)
		}
	}
	n := min(len(c.X), tableRows)
	for i := range n {
		at := i * (len(c.X) - 1) / max(1, n-1)
		row := []string{text.Span(seconds(c.X[at]))}
		for _, values := range columns {
			row = append(row, Number(values[at]))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// Number writes a value for people: with three digits, and with all digits before the point.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 99.95:
		return text.Thousands(int64(math.Round(v)))
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// data are what the page's script draws.
type data struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	Step  bool   `json:"step"`
	X     Values `json:"x"`
	Lines []Line `json:"lines"`
}

// Values are numbers that are written with as many digits as anybody sees.
type Values []float64

// MarshalJSON writes NaN as null.
func (v Values) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(f) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, f, 'g', 7, 64)
		}
	}
	return append(b, ']'), nil
}
