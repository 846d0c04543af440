package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/chart"
)

// small is a page with some of everything.
func small() report.Page {
	none := math.NaN()
	return report.Page{
		Title: "Some of <everything> & more", Text: strings.Repeat("What it looks like. ", 20),
		Charts: []report.Chart{
			{Title: "Sleep", Caption: "In minutes.", Label: "sleep", Unit: "s", X: []float64{0, 300, 600}, Step: true,
				Lines: []report.Line{
					{Name: "low", Y: []float64{0, 0, 0}},
					{Name: "middle", Y: []float64{5, 5, 5}},
					{Name: "high", Y: []float64{10, 10, 10}},
					{Name: "later", Y: []float64{none, none, 3}},
					{Name: "never", Y: []float64{none, none, none}},
					{Name: "optimum", Kind: report.Reference, Y: []float64{4, 4, 4}},
				}},
			{Title: "Rejects", Label: "rejects", Unit: "%", Whiskers: "median to worst", Bars: []report.Bar{
				{Name: "ours", Value: 20, Strong: true}, {Name: "backoff", Value: 60}, {Name: "aimd", High: 70},
			}},
			{Title: "Successes", Label: "served", X: []float64{0, 1},
				Lines: []report.Line{{Name: "band", Colour: "blue", Low: []float64{1, 1}, Y: []float64{2, 3}}}},
		},
	}
}

func svg(t *testing.T, p report.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := chart.WriteSVG(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A picture says all that its page does, in fonts that others have, each text as wide as it was
// measured.
func TestTexts(t *testing.T) {
	picture := svg(t, small())
	var texts []string
	d := xml.NewDecoder(strings.NewReader(picture))
	for in := ""; ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local
		case xml.CharData:
			if in == "text" || in == "title" {
				texts = append(texts, strings.TrimSpace(string(token)))
			}
			in = ""
		}
	}
	all := "\n" + strings.Join(texts, "\n") + "\n"
	for _, want := range []string{
		"Some of <everything> & more", "Sleep", "low", "middle", "high", "later", "optimum", "sleep (s)", "time (min)", "In minutes.", "10",
		"Rejects", "ours", "backoff", "aimd", "20", "60", "rejects (%); whiskers: median to worst", "Successes", "band", "served", "time (s)",
	} {
		if !strings.Contains(all, "\n"+want+"\n") {
			t.Errorf("%q is not in%s", want, all)
		}
	}
	if strings.Contains(all, "never") || strings.Count(strings.Join(texts, " "), "What it looks like.") != 20 {
		t.Errorf("the texts are%s", all)
	}
	if n := strings.Count(picture, "<text "); n < 30 || strings.Count(picture,
		"Liberation Sans,Arial,Helvetica,sans-serif;") != n || strings.Count(picture, ` textLength="`) != n {
		t.Errorf("%d texts, of which %d name other fonts", n,
			strings.Count(picture, "Liberation Sans,Arial,Helvetica,sans-serif;"))
	}
}

// colours are those of one chart of small as PNG: how many pixels have each, and which rows have
// most of a line of it.
func colours(t *testing.T, i int) (count map[color.NRGBA]int, rows map[color.NRGBA][]int) {
	t.Helper()
	p := small()
	p.Charts = p.Charts[i : i+1]
	var b bytes.Buffer
	if err := chart.WritePNG(&b, p); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	size := img.Bounds()
	if text := svg(t, p); !strings.Contains(text, fmt.Sprintf(`viewBox="0 0 %d %d"`, size.Dx()/2, size.Dy()/2)) {
		t.Errorf("%v pixels, and the SVG picture is %.200s", size, text)
	}
	count, rows = map[color.NRGBA]int{}, map[color.NRGBA][]int{}
	for y := range size.Dy() {
		in := map[color.NRGBA]int{}
		for x := range size.Dx() {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			count[c]++
			if in[c]++; in[c] == 500 {
				rows[c] = append(rows[c], y)
			}
		}
	}
	return count, rows
}

// Bars are as long as their values, and lines as high.
func TestLengths(t *testing.T) {
	race.Without(t) // nothing runs beside it
	blue, orange := color.NRGBA{0x1f, 0x83, 0xd9, 255}, color.NRGBA{0xd9, 0x77, 0x2b, 255}
	green, grey := color.NRGBA{0x0a, 0x4a, 0x3c, 255}, color.NRGBA{0x8b, 0x92, 0x9c, 255}
	count, _ := colours(t, 1)
	if ratio := float64(count[grey]) / float64(count[blue]); count[blue] < 1000 || math.Abs(ratio-3) > 0.05 {
		t.Errorf("the bar of 60 has %d pixels, that of 20 %d", count[grey], count[blue])
	}
	_, rows := colours(t, 0)
	at := func(c color.NRGBA) float64 {
		if len(rows[c]) == 0 {
			t.Fatalf("no line has the colour %v", c)
		}
		return float64(rows[c][0]+rows[c][len(rows[c])-1]) / 2
	}
	low, middle, high := at(blue), at(orange), at(green)
	if low-high < 200 || math.Abs((low-middle)/(low-high)-0.5) > 0.02 {
		t.Errorf("lines of 0, 5 and 10 are drawn %v, %v and %v from the top", low, middle, high)
	}
}

// The same page gives the same bytes, from several goroutines too.
func TestSameBytes(t *testing.T) {
	for _, write := range []func(io.Writer, report.Page) error{chart.WriteSVG, chart.WritePNG} {
		var out [2]bytes.Buffer
		var all sync.WaitGroup
		for i := range out {
			all.Go(func() {
				if err := write(&out[i], small()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) || out[0].Len() == 0 {
			t.Error("not the same bytes")
		}
	}
}

func TestWriteFile(t *testing.T) {
	race.Without(t) // nothing runs beside it
	dir := t.TempDir()
	for name, begins := range map[string]string{"a.svg": "<svg ", "a.PNG": "\x89PNG", "a.html": "<!doctype html>"} {
		path := filepath.Join(dir, name)
		if err := chart.CheckPath(path); err != nil {
			t.Error(err)
		}
		if err := chart.WriteFile(path, small()); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(got), begins) {
			t.Errorf("%s begins with %.20q (%v)", name, got, err)
		}
	}
	for _, name := range []string{"a", "a.pdf", "svg", ".svg.gz", ""} {
		for _, err := range []error{chart.CheckPath(name), chart.WriteFile(filepath.Join(dir, name), small())} {
			if !errors.Is(err, chart.ErrSuffix) || !strings.Contains(err.Error(), "does not end in .html, .png, .svg") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// A chart that cannot be drawn is an error that names it. The file stays as it was.
func TestCannotBeDrawn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.svg")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, charts := range [][]report.Chart{
		nil, {{Title: "C"}}, {{Title: "C", X: []float64{1}, Lines: []report.Line{{Name: "l", Y: []float64{1, 2}}}}},
		{{Title: "C", X: []float64{1}, Lines: []report.Line{{Name: "l", Y: []float64{math.Inf(1)}}}}},
		{{Title: "C", Bars: []report.Bar{{Name: "b", Value: math.NaN()}}}},
	} {
		if err := chart.WriteFile(path, report.Page{Title: "C", Charts: charts}); err == nil ||
			!strings.Contains(err.Error(), `"C"`) {
			t.Errorf("%+v: %v", charts, err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "before" {
		t.Errorf("the file is now %.20q", got)
	}
}
