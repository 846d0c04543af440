package chart_test

import (
	"bytes"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/lab/chart"
)

var update = flag.Bool("update", false, "write the golden files anew")

// small is a figure with some of everything.
func small() chart.Figure {
	clients := make([]chart.Series, 7)
	for i := range clients {
		clients[i] = chart.Series{Name: string(rune('a' + i)), X: []float64{0, 300, 600}, Y: []float64{1, float64(5 + i), float64(8 - i)}}
	}
	return chart.Figure{
		Title:   "Some of everything",
		Caption: "What <b> and & look like.",
		Columns: 2,
		Panels: []chart.Panel{
			chart.Lines{
				Title: "Sleep", Caption: "Logarithmic.", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "sleep", Unit: "s", Log: true}, Step: true,
				Series: []chart.Series{
					{Name: "one", X: []float64{0, 60, 120}, Y: []float64{0.5, 2, 8}},
					{Name: "once", X: []float64{100}, Y: []float64{3}},
				},
				References: []chart.Reference{{Name: "optimum", X: []float64{0, 60}, Y: []float64{4, 8}}, {Name: "most", Y: []float64{9}}},
			},
			chart.Lines{
				Title: "Successes", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "accepted", Unit: "requests"},
				Series: clients, Each: "clients",
			},
			chart.Bars{Title: "Rejects", Value: chart.Axis{Label: "rejects", Unit: "%"}, Bars: []chart.Bar{
				{Name: "backoff", Value: 81.2, Min: 80.1, Max: 82}, {Name: "ours", Value: 0.44, Highlight: true},
			}},
		},
	}
}

func TestGolden(t *testing.T) {
	for name, write := range map[string]func(io.Writer, chart.Figure) error{"small.svg": chart.WriteSVG, "small.html": chart.WriteHTML} {
		var b bytes.Buffer
		if err := write(&b, small()); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		got, lines := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
		for i := range max(len(got), len(lines)) {
			switch {
			case i >= len(got):
				t.Fatalf("%s ends before line %d; if that is right, run go test ./chart -update and look at it", golden, i+1)
			case i >= len(lines) || got[i] != lines[i]:
				t.Fatalf("%s, line %d:\n%s\nif that is right, run go test ./chart -update and look at it", golden, i+1, got[i])
			}
		}
	}
}

// The same figure gives the same bytes, from several goroutines too.
func TestSameBytes(t *testing.T) {
	for _, write := range []func(io.Writer, chart.Figure) error{chart.WriteSVG, chart.WriteHTML, chart.WritePNG} {
		var out [2]bytes.Buffer
		var wg sync.WaitGroup
		f := one(strategies)
		for i := range out {
			wg.Go(func() {
				if err := write(&out[i], f); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) || out[0].Len() == 0 {
			t.Error("not the same bytes")
		}
	}
}

// The PNG picture is the SVG one at two pixels for each, on white.
func TestPNG(t *testing.T) {
	f := one(strategies)
	p := svg(t, f)
	var b bytes.Buffer
	if err := chart.WritePNG(&b, f); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := img.Bounds(), image.Rect(0, 0, int(2*p.wide), int(2*p.high)); got != want {
		t.Fatalf("%v pixels; want %v", got, want)
	}
	at := func(x, y float64) color.NRGBA {
		return color.NRGBAModel.Convert(img.At(int(2*x), int(2*(p.high-y)))).(color.NRGBA)
	}
	white, bar := color.NRGBA{255, 255, 255, 255}, color.NRGBA{0x1f, 0x83, 0xd9, 255}
	if c := at(1, 1); c != white {
		t.Errorf("the ground is %v", c)
	}
	for _, s := range p.with("fill:#1F83D9") {
		left, right, y := s.points[0].x, s.points[1].x, s.points[0].y+3
		if right == left {
			continue
		}
		if c := at(right-3, y); c != bar {
			t.Errorf("within a bar from %v to %v the picture is %v", left, right, c)
		}
		if c := at(right+2, y); c != white {
			t.Errorf("beyond a bar from %v to %v the picture is %v", left, right, c)
		}
	}
}

// Other than gonum/plot's own, the fonts of the picture are on all kinds of machines.
func TestFonts(t *testing.T) {
	var b bytes.Buffer
	if err := chart.WriteSVG(&b, small()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(b.String(), "Liberation Sans,Arial,Helvetica,sans-serif;"), strings.Count(b.String(), "<text"); got != want {
		t.Errorf("%d of %d texts name fonts that others have", got, want)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	for name, begins := range map[string]string{"a.svg": "<svg ", "a.PNG": "\x89PNG", "a.html": "<!DOCTYPE html>"} {
		path := filepath.Join(dir, name)
		if err := chart.CheckPath(path); err != nil {
			t.Error(err)
		}
		for range 2 { // the second replaces the first
			if err := chart.WriteFile(path, one(strategies)); err != nil {
				t.Error(err)
			}
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
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("files left: %v (%v)", entries, err)
	}
}

// After an error the file that was there is as it was, and no other is left.
func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.svg")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := chart.WriteFile(path, chart.Figure{}); !errors.Is(err, chart.ErrFigure) {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "before" {
		t.Errorf("the file is now %.20q", got)
	}
	if err := chart.WriteFile(filepath.Join(dir, "nowhere", "a.svg"), small()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	folder := filepath.Join(dir, "folder.svg")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := chart.WriteFile(folder, small()); err == nil {
		t.Error("a folder is replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("files left: %v (%v)", entries, err)
	}

	// A file keeps its rights, a link stays one.
	link := filepath.Join(dir, "link.svg")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("this system makes no links: %v", err)
	}
	if err := chart.WriteFile(link, small()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is now %v (%v)", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1000 {
		t.Errorf("the file is now %v (%v)", info, err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriterFails(t *testing.T) {
	for _, write := range []func(io.Writer, chart.Figure) error{chart.WriteSVG, chart.WriteHTML, chart.WritePNG} {
		if err := write(full{}, one(strategies)); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("error %v", err)
		}
	}
}

// Writing leaves the figure as it was: bars and lists in their order.
func TestFigureIsNotChanged(t *testing.T) {
	f := one(strategies)
	before := slices.Clone(strategies.Bars)
	page(t, f)
	if !slices.Equal(before, strategies.Bars) {
		t.Error("the caller's bars are sorted")
	}
	l := axes[3].l // in seconds, drawn in minutes
	x := slices.Clone(l.Series[0].X)
	page(t, one(l))
	if !slices.Equal(x, l.Series[0].X) {
		t.Error("the caller's instants are changed")
	}
}
