package chart_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/lab/chart"
)

// What the tests read back from the pictures.

type point struct{ x, y float64 }

// shape is a path of an SVG picture; its y runs up.
type shape struct {
	style  string
	points []point
}

type label struct {
	text string
	at   point // the left end of its base line
	wide float64
}

type picture struct {
	wide, high  float64
	title, desc string
	shapes      []shape
	labels      []label
}

func parse(t testing.TB, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		t.Fatalf("%q is no coordinate", s)
	}
	return v
}

var commands = regexp.MustCompile(`[A-Za-z]|[^A-Za-z\s,]+`)

// svg writes the figure and reads the picture, which must be well-formed XML.
func svg(t testing.TB, f chart.Figure) picture {
	t.Helper()
	var b bytes.Buffer
	if err := chart.WriteSVG(&b, f); err != nil {
		t.Fatal(err)
	}
	var p picture
	var text *string
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			a := map[string]string{}
			for _, attr := range e.Attr {
				a[attr.Name.Local] = attr.Value
			}
			switch e.Name.Local {
			case "svg":
				p.wide, p.high = parse(t, a["width"]), parse(t, a["height"])
			case "title":
				text = &p.title
			case "desc":
				text = &p.desc
			case "g":
			case "path":
				p.shapes = append(p.shapes, shape{a["style"], corners(t, a["d"])})
			case "text":
				p.labels = append(p.labels, label{at: point{parse(t, a["x"]), -parse(t, a["y"])}, wide: parse(t, a["textLength"])})
				text = &p.labels[len(p.labels)-1].text
			default:
				t.Fatalf("element %s in the picture", e.Name.Local)
			}
		case xml.CharData:
			if text != nil {
				*text += string(e)
			}
		case xml.EndElement:
			text = nil
		}
	}
}

// corners reads a path of M, L, H, V, h and Z. The arcs of dots count as their ends.
func corners(t testing.TB, d string) []point {
	t.Helper()
	var out []point
	var letter string
	var numbers []float64
	flush := func() {
		switch {
		case letter == "" || letter == "Z" || letter == "h":
		case letter == "H" && len(numbers) == 1:
			out = append(out, point{numbers[0], out[len(out)-1].y})
		case letter == "V" && len(numbers) == 1:
			out = append(out, point{out[len(out)-1].x, numbers[0]})
		case (letter == "M" || letter == "L") && len(numbers) == 2, letter == "A" && len(numbers) == 7:
			out = append(out, point{numbers[len(numbers)-2], numbers[len(numbers)-1]})
		default:
			t.Fatalf("%s with %v in the path %q", letter, numbers, d)
		}
		numbers = nil
	}
	for _, w := range commands.FindAllString(d, -1) {
		if c := w[0]; c >= 'A' && c <= 'Z' || c == 'h' {
			flush()
			letter = w
			continue
		}
		numbers = append(numbers, parse(t, w))
	}
	flush()
	return out
}

// with has the shapes whose style has all the parts.
func (p picture) with(parts ...string) (out []shape) {
next:
	for _, s := range p.shapes {
		for _, part := range parts {
			if !strings.Contains(s.style, part) {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

func page(t testing.TB, f chart.Figure) string {
	t.Helper()
	var b bytes.Buffer
	if err := chart.WriteHTML(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// mark is a tick: what it says, and how far it is from the axis's low end, from 0 to 1.
type mark struct {
	value, at float64
}

var (
	yMark = regexp.MustCompile(`<line class="grid" x1="0" x2="100%" y1="([^"]*)" y2="([^"]*)"/><text x="-8" y="([^"]*)" dy="4" text-anchor="end">([^<]*)</text>`)
	xMark = regexp.MustCompile(`<svg x="([^"]*)%" y="240" width="1" height="1" overflow="visible"><line class="axis" y2="5"/><text y="19" text-anchor="middle">([^<]*)</text>`)
	drawn = regexp.MustCompile(`<path data-index="(\d+)" class="([^"]*)" d="([^"]*)"`)
	facts = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
)

// said is the number that a label says.
func said(t testing.TB, label string) float64 {
	t.Helper()
	return parse(t, strings.ReplaceAll(html.UnescapeString(label), ",", ""))
}

// marks reads the ticks of the first panel of a page.
func marks(t testing.TB, page string) (x, y []mark) {
	t.Helper()
	page, _, _ = strings.Cut(page, "</section>")
	for _, m := range yMark.FindAllStringSubmatch(page, -1) {
		if m[1] != m[2] || m[1] != m[3] {
			t.Fatalf("a label is not at its line: %s", m[0])
		}
		y = append(y, mark{said(t, m[4]), 1 - parse(t, m[1])/240})
	}
	for _, m := range xMark.FindAllStringSubmatch(page, -1) {
		x = append(x, mark{said(t, m[2]), parse(t, m[1]) / 100})
	}
	return x, y
}

// between says what value the ticks give to a place.
func between(ticks []mark, at float64, log bool) float64 {
	a, b := ticks[0], ticks[len(ticks)-1]
	part := (at - a.at) / (b.at - a.at)
	if log {
		return a.value * math.Pow(b.value/a.value, part)
	}
	return a.value + (b.value-a.value)*part
}

// trace is one that the page's script knows.
type trace struct {
	Name, Kind string
	Step       bool
	X, Y, Low  []float64
	Gaps       []int
	Index      int
}

type axis struct {
	Lo, Hi float64
	Log    bool
	Unit   string
	Name   string
}

type panelData struct {
	ID     int
	X, Y   axis
	Series []trace
}

// data reads what the page's script reads.
func data(t testing.TB, page string) (out []panelData) {
	t.Helper()
	m := facts.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data")
	}
	if err := json.Unmarshal([]byte(m[1]), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
