package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/paceline-go/paceline/internal/app/report"
)

// ErrSuffix is wrapped by the error of a file name whose suffix is none of .html, .png and .svg.
var ErrSuffix = errors.New("unknown kind of picture")

// formats are the suffixes of WriteFile, in the order in which errors name them.
var formats = []struct {
	suffix string
	write  func(io.Writer, report.Page) error
}{
	{".html", func(w io.Writer, p report.Page) error { return p.WriteHTML(w) }},
	{".png", WritePNG},
	{".svg", WriteSVG},
}

func format(path string) (func(io.Writer, report.Page) error, error) {
	var accepted []string
	for _, f := range formats {
		if strings.EqualFold(filepath.Ext(path), f.suffix) {
			return f.write, nil
		}
		accepted = append(accepted, f.suffix)
	}
	return nil, fmt.Errorf("%w: %q does not end in %s", ErrSuffix, path, strings.Join(accepted, ", "))
}

// CheckPath returns an error if WriteFile cannot tell from the suffix of path what to write; the
// error wraps ErrSuffix. It does not look at the disk. Call it before a long computation.
func CheckPath(path string) error {
	_, err := format(path)
	return err
}

// WriteFile writes the page to a file, as its suffix says: .html, .png or .svg in any case. A file
// that is there is replaced when the new one is complete; after an error it is as it was.
func WriteFile(path string, p report.Page) error {
	write, err := format(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := write(&b, p); err != nil {
		return err
	}
	return report.Replace(path, b.Bytes())
}

// WritePNG writes the page as a PNG picture on a white ground, with two pixels for each point.
func WritePNG(w io.Writer, p report.Page) error {
	s, err := newSheet(p)
	if err != nil {
		return err
	}
	c := vgimg.NewWith(vgimg.UseWH(s.wide, s.high), vgimg.UseDPI(144), vgimg.UseBackgroundColor(color.White))
	s.draw(draw.New(c))
	_, err = vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// WriteSVG writes the page as an SVG picture on a white ground. Its width is in pixels, and it has
// a title for readers who do not see it.
func WriteSVG(w io.Writer, p report.Page) error {
	s, err := newSheet(p)
	if err != nil {
		return err
	}
	c := &svgCanvas{Canvas: vgsvg.New(s.wide, s.high)}
	s.draw(draw.New(c))
	var b, title bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	if err := xml.EscapeText(&title, []byte(p.Title)); err != nil {
		return err
	}
	_, body, _ := strings.Cut(b.String(), "<svg")
	_, body, _ = strings.Cut(body, ">")
	_, err = fmt.Fprintf(w,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]v" height="%[2]v" viewBox="0 0 %[1]v %[2]v" role="img">`+
			"\n<title>%[3]s</title>%[4]s", float64(s.wide), float64(s.high), title.Bytes(), c.fit(body))
	return err
}

// svgCanvas remembers how wide the texts are that it writes. Few readers have the font in which
// they are measured, and in a wider one they would run into the bars beside them.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString writes text.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// fit names other fonts in what the canvas has written, and has each text fill its measured width
// in whatever font it is shown.
func (c *svgCanvas) fit(body string) string {
	parts := strings.Split(body, "<text ") // never within a text, where < is escaped
	for i, wide := range c.widths {
		parts[i+1] = fmt.Sprintf(`textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, float64(wide)) +
			strings.Replace(parts[i+1], "Liberation Sans;", "Liberation Sans,Arial,Helvetica,sans-serif;", 1)
	}
	return strings.Join(parts, "<text ")
}
