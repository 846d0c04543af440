package chart_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paceline-go/paceline/lab/chart"
)

var nan, inf = math.NaN(), math.Inf(1)

// fine is a panel of lines with nothing wrong, then changed.
func fine(change func(*chart.Lines)) chart.Figure {
	l := lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{0, 1}, Y: []float64{2, 3}})
	l.Title = "sleep"
	l.References = []chart.Reference{{Name: "optimum", Y: []float64{2}}}
	change(&l)
	return one(l)
}

func fineBars(change func(*chart.Bars)) chart.Figure {
	b := chart.Bars{Title: "rejects", Value: chart.Axis{Label: "ratio"}, Bars: []chart.Bar{{Name: "a", Value: 1}, {Name: "b", Value: 2, Min: 1, Max: 3}}}
	change(&b)
	return one(b)
}

type foreign struct{ chart.Lines }

func TestWhatCannotBeDrawn(t *testing.T) {
	type L = chart.Lines
	type B = chart.Bars
	var none *chart.Lines
	for _, c := range []struct {
		f    chart.Figure
		want string
	}{
		{chart.Figure{}, "no panels"},
		{chart.Figure{Title: "a", Panels: []chart.Panel{nil}}, "panel 1 is nil"},
		{chart.Figure{Title: "a", Panels: []chart.Panel{none}}, "panel 1 is nil"},
		{chart.Figure{Title: "a", Panels: []chart.Panel{foreign{}}}, "panel 1 is a chart_test.foreign, neither Lines nor Bars"},
		{chart.Figure{Title: "a", Columns: 5, Panels: fine(func(*L) {}).Panels}, "columns 5 is not from 0 to 4"},
		{chart.Figure{Title: "a", Columns: -1, Panels: fine(func(*L) {}).Panels}, "columns -1 is not from 0 to 4"},
		{chart.Figure{Title: "a", Panels: make([]chart.Panel, 25)}, "25 panels; at most 24 fit"},
		{chart.Figure{Panels: fine(func(*L) {}).Panels}, "no title"},
		{chart.Figure{Title: "a\x00", Panels: fine(func(*L) {}).Panels}, `title "a\x00" has the unprintable character U+0000`},
		{chart.Figure{Title: "a", Caption: "\xff", Panels: fine(func(*L) {}).Panels}, `caption "\xff" is not UTF-8`},
		{chart.Figure{Title: strings.Repeat("ä", 1001), Panels: fine(func(*L) {}).Panels}, "title has 1001 characters; at most 1000 fit"},

		{fine(func(l *L) { l.Title = "" }), `panel 1 (""): no title`},
		{fine(func(l *L) { l.Caption = "two\nlines" }), "unprintable character U+000A"},
		{fine(func(l *L) { l.Caption = "turned\u202e" }), "unprintable character U+202E"},
		{fine(func(l *L) { l.X.Label = "" }), `panel 1 ("sleep"): horizontal axis: no label`},
		{fine(func(l *L) { l.Y.Label = "" }), "vertical axis: no label"},
		{fine(func(l *L) { l.Y.Unit = strings.Repeat("u", 25) }), "has 25 characters; at most 24 fit"},
		{fine(func(l *L) { l.Each = "\t" }), "each \"\\t\" has the unprintable"},
		{fine(func(l *L) { l.Series = nil }), "no series"},
		{fine(func(l *L) { l.Series = make([]chart.Series, 10_001) }), "10001 series; at most 10000"},
		{fine(func(l *L) { l.Series[0].Name = "" }), `series 1 (""): no name`},
		{fine(func(l *L) { l.Series = append(l.Series, l.Series[0]) }), `series 2 ("a"): series 1 has the same name`},
		{fine(func(l *L) { l.Series[0].X, l.Series[0].Y = nil, nil }), `series 1 ("a"): no points`},
		{fine(func(l *L) { l.Series[0].Y = nil }), "2 x but 0 y"},
		{fine(func(l *L) { l.Series[0].X = []float64{1, 0} }), "point 1: x 0 comes after 1"},
		{fine(func(l *L) { l.Series[0].X = []float64{0, nan} }), "point 1: x is NaN"},
		{fine(func(l *L) { l.Series[0].Y = []float64{nan, 1} }), "point 0: y is NaN"},
		{fine(func(l *L) { l.Series[0].Y = []float64{1, inf} }), "point 1: y is infinite"},
		{fine(func(l *L) { l.Series[0].Y = []float64{1, -inf} }), "point 1: y is infinite"},
		{fine(func(l *L) { l.Series[0].Y = []float64{1, 2e15} }), "y 2e+15 is beyond 1e+15"},
		{fine(func(l *L) { l.X.Log = true }), "x 0 is not positive"},
		{fine(func(l *L) { l.Y.Log = true; l.Series[0].Y = []float64{1, -1} }), "y -1 is not positive"},
		{fine(func(l *L) { l.References = make([]chart.Reference, 6) }), "6 reference lines; at most 5"},
		{fine(func(l *L) { l.References[0].Name = "" }), `reference 1 (""): no name`},
		{fine(func(l *L) { l.References[0].Y = nil }), `reference 1 ("optimum"): no x, so one y is expected; there are 0`},
		{fine(func(l *L) { l.References[0].Y = []float64{1, 2} }), "there are 2"},
		{fine(func(l *L) { l.References[0].Y[0] = nan }), "y[0] is NaN"},
		{fine(func(l *L) { l.References[0].X = []float64{1, 2} }), "2 x but 1 y"},
		{fine(func(l *L) { l.Y.Log = true; l.References[0].Y[0] = 0 }), "y[0] 0 is not positive"},

		{fineBars(func(b *B) { b.Title = "" }), "no title"},
		{fineBars(func(b *B) { b.Value.Label = "" }), "value's axis: no label"},
		{fineBars(func(b *B) { b.Value.Log = true }), "logarithmic, but a bar begins at zero"},
		{fineBars(func(b *B) { b.Bars = nil }), "no bars"},
		{fineBars(func(b *B) { b.Bars = make([]chart.Bar, 61) }), "61 bars; at most 60"},
		{fineBars(func(b *B) { b.Whiskers = "\x01" }), "unprintable"},
		{fineBars(func(b *B) { b.Bars[1].Name = "a" }), `bar 2 ("a"): bar 1 has the same name`},
		{fineBars(func(b *B) { b.Bars[0].Name = "" }), "no name"},
		{fineBars(func(b *B) { b.Bars[0].Value = nan }), "value is NaN"},
		{fineBars(func(b *B) { b.Bars[0].Value = -1 }), "value -1 is negative"},
		{fineBars(func(b *B) { b.Bars[0].Max = inf }), "max is infinite"},
		{fineBars(func(b *B) { b.Bars[1].Max = 1.5 }), "value 2 is not between min 1 and max 1.5"},
		{fineBars(func(b *B) { b.Bars[1].Min = -0.5 }), "min -0.5 is negative"},
	} {
		err := c.f.Check()
		if !errors.Is(err, chart.ErrFigure) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v; want %q", err, c.want)
		}
		written(t, c.f, err)
	}
	for _, f := range []chart.Figure{fine(func(*L) {}), fineBars(func(*B) {}), small()} {
		if err := f.Check(); err != nil {
			t.Error(err)
		}
	}
	l, b := lines(chart.Axis{}, chart.Axis{}, chart.Series{Name: "a", X: []float64{1}, Y: []float64{1}}), strategies
	if err := (chart.Figure{Title: "pointers", Panels: []chart.Panel{&l, &b}}).Check(); err != nil {
		t.Error(err)
	}
}

// written checks that all writers agree with Check, and write nothing of what it refuses.
func written(t *testing.T, f chart.Figure, checked error) {
	t.Helper()
	var b bytes.Buffer
	for _, err := range []error{chart.WriteHTML(&b, f), chart.WriteSVG(&b, f), chart.WritePNG(&b, f)} {
		if err == nil || err.Error() != checked.Error() {
			t.Errorf("Check says %v, a writer %v", checked, err)
		}
	}
	if b.Len() > 0 {
		t.Errorf("of a figure with %v %d bytes are written", checked, b.Len())
	}
}

// figureOf makes a figure of any bytes, good or not.
func figureOf(names string, numbers []byte, flags uint8) chart.Figure {
	next := func() float64 {
		if len(numbers) == 0 {
			return 1
		}
		// Small numbers are likelier than what eight bytes of chance give.
		if head := numbers[0]; head < 200 || len(numbers) < 9 {
			numbers = numbers[1:]
			return float64(head) - 20
		}
		v := math.Float64frombits(binary.LittleEndian.Uint64(numbers[1:]))
		numbers = numbers[9:]
		return v
	}
	name := func() string {
		n, rest, _ := strings.Cut(names, "|")
		names = rest
		return n
	}
	list := func() (out []float64) {
		for range int(math.Abs(next())) % 5 {
			out = append(out, next())
		}
		return out
	}
	f := chart.Figure{Title: name(), Columns: int(flags >> 6)}
	if flags&1 == 0 {
		l := chart.Lines{Title: name(), Step: flags&2 != 0, X: chart.Axis{Label: "x", Unit: name(), Log: flags&4 != 0}, Y: chart.Axis{Label: name(), Log: flags&8 != 0}}
		for range 1 + 8*int(flags>>4&1) {
			s := chart.Series{Name: name(), X: list(), Y: list()}
			if flags&32 != 0 { // likely to be good
				slices.Sort(s.X)
				s.Y = slices.Clone(s.X)
			}
			l.Series = append(l.Series, s)
		}
		if len(names) > 0 {
			l.References = append(l.References, chart.Reference{Name: name(), X: list(), Y: list()})
		}
		f.Panels = append(f.Panels, l)
		return f
	}
	b := chart.Bars{Title: name(), Value: chart.Axis{Label: name()}, Descending: flags&2 != 0}
	for len(names) > 0 {
		bar := chart.Bar{Name: name(), Value: next()}
		if flags&4 != 0 {
			bar.Min, bar.Max = next(), next()
		}
		b.Bars = append(b.Bars, bar)
	}
	f.Panels = append(f.Panels, b)
	return f
}

// hopeless finds, in its own way, reasons why a figure cannot be drawn. It does not know all.
func hopeless(f chart.Figure) bool {
	bad := func(v float64) bool { return math.IsNaN(v) || math.Abs(v) > 1e15 }
	text := func(s string) bool {
		return s == "" || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\n\t\r\x7f\u2028\u202e")
	}
	series := func(l chart.Lines, x, y []float64) bool {
		low := func(log bool, list []float64) bool { return log && len(list) > 0 && slices.Min(list) <= 0 }
		return slices.ContainsFunc(x, bad) || slices.ContainsFunc(y, bad) || !slices.IsSorted(x) || low(l.X.Log, x) || low(l.Y.Log, y)
	}
	if text(f.Title) {
		return true
	}
	seen := map[string]bool{}
	switch p := f.Panels[0].(type) {
	case chart.Lines:
		for _, s := range p.Series {
			if text(s.Name) || seen[s.Name] || len(s.X) != len(s.Y) || len(s.X) == 0 || series(p, s.X, s.Y) {
				return true
			}
			seen[s.Name] = true
		}
		for _, r := range p.References {
			if text(r.Name) || len(r.Y) == 0 || series(p, r.X, r.Y) {
				return true
			}
		}
		return text(p.Title)
	case chart.Bars:
		for _, b := range p.Bars {
			if text(b.Name) || seen[b.Name] || bad(b.Value) || b.Value < 0 || b.Max != 0 && (b.Min > b.Value || b.Max < b.Value) {
				return true
			}
			seen[b.Name] = true
		}
		return text(p.Title) || len(p.Bars) == 0
	}
	return true
}

// FuzzCheck: what cannot be drawn is refused with nothing written; what Check lets pass is drawn within the picture, by
// numbers all of which are numbers, and as the same bytes each time.
func FuzzCheck(f *testing.F) {
	f.Add("title|panel|unit|y|series", []byte{22, 0, 30, 22, 20, 90}, uint8(0))
	f.Add("title|panel|s|y|a|b|c|d|e|f|g|h|i|optimum", []byte{22, 30, 200, 22, 3, 3, 22, 22, 21, 24, 1, 1, 1}, uint8(16|32|2))
	f.Add("title|panel||y|series", []byte{23, 100, 130, 180, 22, 120, 190}, uint8(32|4|8))
	f.Add("title|panel|value|one|two|three", []byte{25, 22, 30, 40, 40, 50}, uint8(1|4))
	f.Add("title|panel|value|one|one", []byte{25, 22}, uint8(1))
	f.Add("title|pa\x00nel|value|one", []byte{25}, uint8(1|2))
	f.Add("t|p|v|nan", []byte{200, 1, 0, 0, 0, 0, 0, 0xf8, 0x7f}, uint8(1))
	f.Add("t|p|v|infinite", []byte{200, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f}, uint8(1))
	f.Fuzz(func(t *testing.T, names string, numbers []byte, flags uint8) {
		figure := figureOf(names, numbers, flags)
		err := figure.Check()
		if err != nil {
			if !errors.Is(err, chart.ErrFigure) {
				t.Errorf("error %v", err)
			}
			written(t, figure, err)
			return
		}
		if hopeless(figure) {
			t.Fatalf("Check lets %+v pass", figure)
		}
		p := svg(t, figure) // which reads every number
		for _, s := range p.shapes {
			for _, at := range s.points {
				if at.x < -1 || at.x > p.wide+1 || at.y < -1 || at.y > p.high+1 {
					t.Errorf("%+v: %v is outside of %v by %v", figure, at, p.wide, p.high)
				}
			}
		}
		for _, l := range p.labels {
			if l.at.x < 0 || l.at.x+l.wide > p.wide || l.wide <= 0 || l.at.y < 0 || l.at.y > p.high {
				t.Errorf("%+v: %q is outside of %v by %v", figure, l.text, p.wide, p.high)
			}
		}
		text := page(t, figure)
		for _, m := range drawn.FindAllStringSubmatch(text, -1) {
			for _, at := range corners(t, m[3]) {
				if at.x < 0 || at.x > 4000 || at.y < 0 || at.y > 4000 {
					t.Errorf("%+v: %v is outside of the plot", figure, at)
				}
			}
		}
		if strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%+v: the page has a value where it must not be", figure)
		}
		if text != page(t, figure) {
			t.Errorf("%+v: not the same bytes twice", figure)
		}
	})
}
