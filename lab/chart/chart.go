// Package chart draws plain numbers: lines over time and bars that compare, as an SVG or PNG picture and as an HTML page.
//
// A Figure is a grid of panels, each a Lines or a Bars. Its texts are single lines of up to 1,000 characters. It is
// checked before anything is written: what cannot be drawn honestly (lists of unequal length, NaN, a zero on a
// logarithmic axis) is an error that names the place. Many series are not drawn as so many lines, but as the band that
// holds most of them, their median and a few of the lines; see Lines.
//
// The page is one file that needs no network: its style, script and data are inside. It follows the reader's light or
// dark scheme, shows the values under the pointer, hides a series on demand, and has its data as tables too.
//
// The same Figure gives the same bytes. The package reads no clock and starts nothing; its functions may be called at
// the same time as long as nobody changes the Figure.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrFigure is wrapped by the error of a Figure that cannot be drawn. Its text names the panel, series and value.
var ErrFigure = errors.New("chart: cannot draw the figure")

// ErrSuffix is wrapped by the error of a file name whose suffix is none of .html, .png and .svg.
var ErrSuffix = errors.New("chart: unknown kind of picture")

// Figure is one picture: a title, panels in a grid, and a caption below.
type Figure struct {
	Title   string // required
	Caption string // what to see in it, and what it was made from; may be empty
	// Columns is how many panels stand side by side; a narrow page shows fewer. If zero, 1. At most 4.
	Columns int
	// Panels are laid out row by row: from 1 to 24.
	Panels []Panel
}

// Panel is one chart of a Figure: Lines or Bars.
type Panel interface {
	// draw checks the panel and works out what both kinds of picture have in common.
	draw() (drawing, error)
	heading() string
}

// Lines is a panel of series over a common horizontal axis, usually time.
//
// Up to 6 series are drawn as lines. More are drawn as the band between their 5th and 95th percentile at each instant,
// their median, and three of the lines: those whose mean over time is the lowest, the middle and the highest. Up to 30
// are also drawn thinly behind the band, so that none is out of sight. A percentile between two series is interpolated,
// and a series counts from its first instant to its last.
type Lines struct {
	Title   string // required
	Caption string
	X, Y    Axis
	// Series are the lines: from 1 to 10,000.
	Series []Series
	// Each says what one series is, in the plural, for the name of a band: "clients". If empty, "series".
	Each string
	// Step says that a value holds until the next one, instead of changing evenly until then.
	Step bool
	// References are lines to compare with, drawn dashed and labelled, such as an optimum: at most 5.
	References []Reference
}

// Axis says what is measured along an axis.
type Axis struct {
	Label string // required: "sleep"
	// Unit follows the values: "s", "requests", "%", "tokens". May be empty; at most 24 characters. A horizontal axis in
	// "s" is shown in minutes or hours if it is long. It is best counted from the beginning of what is shown.
	Unit string
	// Log makes the axis logarithmic: all values must be positive.
	Log bool
}

// Series is a named list of points, in the order of X. X may repeat: the last value at an instant is the one that holds.
// A series ends with its last point: one that should hold its value for longer needs another point there.
type Series struct {
	Name string // required, and no other series of the panel has it
	X, Y []float64
}

// Reference is a line to compare with. With an empty X its one Y is level over the whole panel; otherwise each Y holds
// from its X to the next one, and the last to the end of the panel.
type Reference struct {
	Name string // required: "optimum"
	X, Y []float64
}

// Bars is a panel that compares values by bars from zero, the smallest on top.
type Bars struct {
	Title   string // required
	Caption string
	Value   Axis // not logarithmic: a bar's length is its value
	// Bars are drawn sorted by value, equal ones in the order given: from 1 to 60.
	Bars []Bar
	// Descending puts the largest on top.
	Descending bool
	// Whiskers says what the whiskers span. If empty, "smallest to largest".
	Whiskers string
}

// Bar is one value, with the range it stands for.
type Bar struct {
	Name  string // required, and no other bar of the panel has it
	Value float64
	// Min and Max are the ends of the whisker, and hold Value between them. Both zero: no whisker.
	Min, Max float64
	// Highlight draws the bar in a strong colour. If no bar has it, all are drawn so.
	Highlight bool
}

// formats are the suffixes of WriteFile, in the order in which errors name them.
var formats = []struct {
	suffix string
	write  func(io.Writer, Figure) error
}{
	{".html", WriteHTML},
	{".png", WritePNG},
	{".svg", WriteSVG},
}

func format(path string) (func(io.Writer, Figure) error, error) {
	var accepted []string
	for _, f := range formats {
		if strings.EqualFold(filepath.Ext(path), f.suffix) {
			return f.write, nil
		}
		accepted = append(accepted, f.suffix)
	}
	return nil, fmt.Errorf("%w: %q does not end in %s", ErrSuffix, path, strings.Join(accepted, ", "))
}

// CheckPath reports whether WriteFile can tell from the suffix of path what to write; the error wraps ErrSuffix. It does not look at the
// disk. Call it before a long computation.
func CheckPath(path string) error {
	_, err := format(path)
	return err
}

// WriteFile writes the figure to a file, as its suffix says: .html, .png or .svg in any case. A file that is there is
// replaced when the new one is complete; after an error it is as it was. The error wraps ErrSuffix, ErrFigure or that of
// the file system.
func WriteFile(path string, f Figure) error {
	write, err := format(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := write(&b, f); err != nil {
		return err
	}
	return replace(path, b.Bytes())
}

func replace(path string, data []byte) (err error) {
	// A link stays a link: what it points to is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := os.FileMode(0o666) // less the umask
	if old, err := os.Stat(path); err == nil {
		if !old.Mode().IsRegular() {
			return fmt.Errorf("chart: %s is not a file that can be replaced", path)
		}
		mode = old.Mode().Perm()
	}
	// Not os.CreateTemp, whose files nobody else may read.
	var temp *os.File
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s.%d-%d.tmp", path, os.Getpid(), i)
		temp, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) || i == 100 {
			return fmt.Errorf("chart: %w", err)
		}
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("chart: %w", err)
		}
	}()
	if _, err = temp.Write(data); err == nil {
		// Without it a crash of the machine can leave the new name with none of the data.
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
