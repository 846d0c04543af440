package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// mostLines is how many lines a reader can tell apart by their colours. More are drawn as a
	// band.
	mostLines = 6
	// mostThin is how many lines are drawn behind their band.
	mostThin = 30
)

// Crowd returns lines that a reader can tell apart: the lines themselves, if they are few. Of many
// it returns the band between their 5th and 95th percentile, their median, and three of them: those
// whose mean is the lowest, the middle and the highest. Up to 30 are also drawn thinly behind the
// band. The lines have the same instants; what says in the plural what one line is of, such as
// "clients".
func Crowd(what string, lines []Line) []Line {
	if len(lines) <= mostLines {
		return lines
	}
	n := len(lines[0].Y)
	band := Line{Name: fmt.Sprintf("p5 to p95 of %d %s", len(lines), what), Colour: "blue"}
	band.Low, band.Y = make([]float64, n), make([]float64, n)
	median := Line{Name: "median", Kind: Strong, Colour: "blue", Y: make([]float64, n)}
	means := make([]mean, len(lines))
	for i := range means {
		means[i].line = i
	}
	values := make([]float64, 0, len(lines))
	for at := range n {
		values = values[:0]
		for i, l := range lines {
			if v := l.Y[at]; !math.IsNaN(v) {
				values = append(values, v)
				means[i].add(v)
			}
		}
		slices.Sort(values)
		band.Low[at], median.Y[at], band.Y[at] = quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95)
	}
	var out []Line
	if len(lines) <= mostThin {
		for _, l := range lines {
			out = append(out, Line{Name: l.Name, Kind: Thin, Y: l.Y})
		}
		band.Name = fmt.Sprintf("all %d %s; shaded: p5 to p95", len(lines), what)
	}
	out = append(out, band)
	slices.SortStableFunc(means, func(a, b mean) int { return cmp.Compare(a.value(), b.value()) })
	for _, pick := range []struct {
		rank       int
		as, colour string
	}{{0, "lowest mean", "orange"}, {len(lines) / 2, "middle", "green"}, {len(lines) - 1, "highest mean", "pink"}} {
		l := lines[means[pick.rank].line]
		out = append(out, Line{Name: l.Name + " (" + pick.as + ")", Colour: pick.colour, Y: l.Y})
	}
	return append(out, median)
}

// mean is the mean of a line's values.
type mean struct {
	line int
	sum  float64
	n    int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }
func (m mean) value() float64 { return m.sum / float64(max(1, m.n)) }

// quantile of a sorted list, interpolated between the two nearest (Hyndman and Fan's type 7). It is
// NaN if the list is empty.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	part := at - float64(i)
	return sorted[i]*(1-part) + sorted[i+1]*part
}
