package chart

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"
)

const (
	maxPanels     = 24
	maxColumns    = 4
	maxSeries     = 10_000
	maxReferences = 5
	maxBars       = 60
	maxText       = 1000 // characters
	maxUnit       = 24   // a unit stands beside every bar

	// With larger or smaller values the differences that axes are made of would overflow or lose their last digits.
	largest  = 1e15
	smallest = 1e-15
)

// Check says whether the figure can be drawn. The error wraps ErrFigure and names the place and what is wrong there. The
// functions that write check too.
func (f Figure) Check() error {
	_, err := f.draw()
	return err
}

func (f Figure) draw() ([]drawing, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFigure, err)
	}
	drawings := make([]drawing, len(f.Panels))
	for i, p := range f.Panels {
		d, err := p.draw()
		if err != nil {
			return nil, fmt.Errorf("%w: panel %d (%q): %w", ErrFigure, i+1, p.heading(), err)
		}
		drawings[i] = d
	}
	return drawings, nil
}

func (f Figure) check() error {
	switch {
	case len(f.Panels) == 0:
		return fmt.Errorf("no panels")
	case len(f.Panels) > maxPanels:
		return fmt.Errorf("%d panels; at most %d fit", len(f.Panels), maxPanels)
	case f.Columns < 0 || f.Columns > maxColumns:
		return fmt.Errorf("columns %d is not from 0 to %d", f.Columns, maxColumns)
	}
	for i, p := range f.Panels {
		// A nil *Lines is a Panel as well, since the methods are those of the value.
		switch p := p.(type) {
		case Lines, Bars:
		case *Lines:
			if p == nil {
				return fmt.Errorf("panel %d is nil", i+1)
			}
		case *Bars:
			if p == nil {
				return fmt.Errorf("panel %d is nil", i+1)
			}
		case nil:
			return fmt.Errorf("panel %d is nil", i+1)
		default:
			return fmt.Errorf("panel %d is a %T, neither Lines nor Bars", i+1, p)
		}
	}
	return all(
		required("title", f.Title),
		optional("caption", f.Caption),
	)
}

func (l Lines) check() error {
	if err := all(
		required("title", l.Title),
		optional("caption", l.Caption),
		l.X.check("horizontal axis"),
		l.Y.check("vertical axis"),
		optional("each", l.Each),
	); err != nil {
		return err
	}
	switch {
	case len(l.Series) == 0:
		return fmt.Errorf("no series")
	case len(l.Series) > maxSeries:
		return fmt.Errorf("%d series; at most %d can be drawn", len(l.Series), maxSeries)
	case len(l.References) > maxReferences:
		return fmt.Errorf("%d reference lines; at most %d can be labelled", len(l.References), maxReferences)
	}
	names := make(map[string]int, len(l.Series))
	for i, s := range l.Series {
		where := fmt.Sprintf("series %d (%q)", i+1, s.Name)
		err := required("name", s.Name)
		if before, taken := names[s.Name]; taken && err == nil {
			err = fmt.Errorf("series %d has the same name", before+1)
		}
		names[s.Name] = i
		if err == nil && len(s.X) == 0 && len(s.Y) == 0 {
			err = fmt.Errorf("no points")
		}
		if err == nil {
			err = points(s.X, s.Y, l.X, l.Y)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	for i, r := range l.References {
		where := fmt.Sprintf("reference %d (%q)", i+1, r.Name)
		err := required("name", r.Name)
		switch {
		case err != nil:
		case len(r.X) == 0 && len(r.Y) != 1:
			err = fmt.Errorf("no x, so one y is expected; there are %d", len(r.Y))
		case len(r.X) == 0:
			err = value("y[0]", r.Y[0], l.Y)
		default:
			err = points(r.X, r.Y, l.X, l.Y)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

func (b Bars) check() error {
	if err := all(
		required("title", b.Title),
		optional("caption", b.Caption),
		b.Value.check("value's axis"),
		optional("whiskers", b.Whiskers),
	); err != nil {
		return err
	}
	switch {
	case b.Value.Log:
		return fmt.Errorf("value's axis: logarithmic, but a bar begins at zero")
	case len(b.Bars) == 0:
		return fmt.Errorf("no bars")
	case len(b.Bars) > maxBars:
		return fmt.Errorf("%d bars; at most %d fit", len(b.Bars), maxBars)
	}
	names := make(map[string]int, len(b.Bars))
	for i, bar := range b.Bars {
		where := fmt.Sprintf("bar %d (%q)", i+1, bar.Name)
		err := all(
			required("name", bar.Name),
			value("value", bar.Value, b.Value),
			value("min", bar.Min, b.Value),
			value("max", bar.Max, b.Value),
		)
		if before, taken := names[bar.Name]; taken && err == nil {
			err = fmt.Errorf("bar %d has the same name", before+1)
		}
		names[bar.Name] = i
		switch {
		case err != nil:
		case bar.Value < 0:
			err = fmt.Errorf("value %v is negative", bar.Value)
		case !bar.whisker():
		case bar.Min < 0:
			err = fmt.Errorf("min %v is negative", bar.Min)
		case bar.Min > bar.Value || bar.Value > bar.Max:
			err = fmt.Errorf("value %v is not between min %v and max %v", bar.Value, bar.Min, bar.Max)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

func (b Bar) whisker() bool { return b.Min != 0 || b.Max != 0 }

func (a Axis) check(where string) error {
	err := all(required("label", a.Label), optional("unit", a.Unit))
	if n := utf8.RuneCountInString(a.Unit); err == nil && n > maxUnit {
		err = fmt.Errorf("unit %q has %d characters; at most %d fit", a.Unit, n, maxUnit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func points(x, y []float64, xAxis, yAxis Axis) error {
	if len(x) != len(y) {
		return fmt.Errorf("%d x but %d y", len(x), len(y))
	}
	for i := range x {
		if err := value("x", x[i], xAxis); err != nil {
			return fmt.Errorf("point %d: %w", i, err)
		}
		if err := value("y", y[i], yAxis); err != nil {
			return fmt.Errorf("point %d: %w", i, err)
		}
		if i > 0 && x[i] < x[i-1] {
			return fmt.Errorf("point %d: x %v comes after %v", i, x[i], x[i-1])
		}
	}
	return nil
}

func value(name string, v float64, a Axis) error {
	switch {
	case math.IsNaN(v):
		return fmt.Errorf("%s is NaN", name)
	case math.IsInf(v, 0):
		return fmt.Errorf("%s is infinite", name)
	case math.Abs(v) > largest:
		return fmt.Errorf("%s %v is beyond %v", name, v, float64(largest))
	case a.Log && v < smallest:
		return fmt.Errorf("%s %v is not positive (from %v on), and its axis is logarithmic", name, v, float64(smallest))
	}
	return nil
}

func required(name, s string) error {
	if s == "" {
		return fmt.Errorf("no %s", name)
	}
	return optional(name, s)
}

// optional refuses characters that no renderer shows: control characters, which XML forbids too, and characters that turn the direction of
// the text around them.
func optional(name, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s %q is not UTF-8", name, s)
	}
	if n := utf8.RuneCountInString(s); n > maxText {
		return fmt.Errorf("%s has %d characters; at most %d fit", name, n, maxText)
	}
	for _, r := range s {
		const joiner = '\u200d' // it is part of emoji, and of letters of some scripts
		if !unicode.IsGraphic(r) && r != joiner {
			return fmt.Errorf("%s %q has the unprintable character %U", name, s, r)
		}
	}
	return nil
}

func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
