package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// drawing is a checked panel, worked out as far as the static pictures and the page have it in common. Either lines or bars is set.
type drawing struct {
	title, caption string
	summary        string // describes the panel in words, for readers who do not see it
	lines          *lineDrawing
	bars           *barDrawing
	table          table
}

// table has a panel's data, or a few rows of them.
type table struct {
	note string // which rows it has, if not all
	head []string
	rows [][]string // the first column names the row
}

type lineDrawing struct {
	x, y         scale
	xText, yText string // the titles of the axes
	xUnit, yUnit string
	traces       []trace // in the order in which they are drawn
	refs         []refDrawing
}

// trace is a line or band of a panel of lines.
type trace struct {
	kind kind
	name string
	hue  int // index into palette and dashes
	step bool
	x, y []float64
	low  []float64 // the lower edge of a band, whose upper one is y
	// starts are the indices at which the line begins anew, after a gap: 0 and perhaps others.
	starts []int
	// each has the lines of all series of a band, if they are few enough to be drawn behind it.
	each []trace
}

// dot says that the trace is one point, which a line would not show.
func (t trace) dot() bool { return len(t.x) == 1 }

type kind int

const (
	single kind = iota
	faint       // one of the lines beside a band
	each        // one of the lines behind a band
	median
	band
)

// String is the kind's class on the page.
func (k kind) String() string { return [...]string{"single", "faint", "each", "median", "band"}[k] }

type refDrawing struct {
	name  string
	value string    // the value of a level line, with its unit; otherwise empty
	x, y  []float64 // points from the panel's low end to its high end
}

type barDrawing struct {
	text, unit string // the title of the axis, and the unit that follows values
	whiskers   string // what the whiskers span; empty if there are no whiskers
	most       float64
	bars       []barRow
}

// beside returns the value that stands beside a bar. A long unit would take the place of the bar; it stands above instead.
func (d *barDrawing) beside(v float64) string {
	if width(d.unit, htmlText) > 80 {
		return number(v)
	}
	return withUnit(v, d.unit)
}

type barRow struct {
	Bar
	strong bool
}

const (
	// maxSingles is how many series have a hue and a dash each. More are drawn as a band.
	maxSingles = len(palette)
	// maxEach is how many series are drawn behind their band.
	maxEach = 30
	// drawnColumns is how many columns of points a trace is thinned to: about the pixels of a panel.
	drawnColumns = 480
	// tableRows is how many instants the table of longer series has.
	tableRows = 21
	// bandColumns is at how many instants the percentiles of a band are taken; those of the table are among them.
	bandColumns = 12*(tableRows-1) + 1
	// narrowest is how wide a plot without its labels is on the narrowest screen, in pixels.
	narrowest = 260
)

func (l Lines) heading() string { return l.Title }
func (b Bars) heading() string  { return b.Title }

func (l Lines) draw() (drawing, error) {
	if err := l.check(); err != nil {
		return drawing{}, err
	}
	if l.Each == "" {
		l.Each = "series"
	}
	xLo, xHi := ends(nil, l.Series, Series.xs)
	xAxis, perUnit := l.X, 1.0
	clock := false
	if l.X.Unit == "s" && !l.X.Log {
		// Whole minutes and hours are easier to read than thousands of seconds.
		switch span := xHi - xLo; {
		case span > 3*3600:
			xAxis.Unit, perUnit, clock = "h", 3600, true
		case span > 180:
			xAxis.Unit, perUnit, clock = "min", 60, true
		}
	}
	l.Series = slices.Clone(l.Series)
	for i, s := range l.Series {
		l.Series[i].X = divided(s.X, perUnit)
	}
	xLo, xHi = xLo/perUnit, xHi/perUnit

	d := &lineDrawing{
		xText: xAxis.text(), yText: l.Y.text(),
		xUnit: xAxis.Unit, yUnit: l.Y.Unit,
	}
	for n := 7; n >= 2; n-- {
		s := linear(xLo, xHi, n, false, clock)
		if l.X.Log {
			s = logarithmic(xLo, xHi, n)
		}
		if n < 7 && len(s.ticks) < 2 {
			break
		}
		d.x = s
		var taken float64
		for _, t := range s.ticks {
			taken += width(t.label, 12) + 14
		}
		if taken <= narrowest {
			break
		}
	}
	var levels []Series
	for _, r := range l.References {
		levels = append(levels, Series{r.Name, divided(r.X, perUnit), r.Y})
	}
	yLo, yHi := ends(levels, l.Series, Series.ys)
	if l.Y.Log {
		d.y = logarithmic(yLo, yHi, 7)
	} else {
		if yLo > 0 {
			yLo = 0 // heights can be compared only from zero
		}
		d.y = linear(yLo, yHi, 6, true, false)
	}

	drawn := l.Series
	if len(l.Series) <= maxSingles {
		for i, s := range l.Series {
			d.traces = append(d.traces, trace{kind: single, name: s.Name, hue: i, step: l.Step, x: s.X, y: s.Y, starts: []int{0}})
		}
	} else {
		d.traces, drawn = l.banded(xLo, xHi)
	}
	for i := range d.traces {
		d.traces[i].thin(d.x)
		for j := range d.traces[i].each {
			d.traces[i].each[j].thin(d.x)
		}
	}
	for _, s := range levels {
		d.refs = append(d.refs, reference(s, d.x, l.Y.Unit))
	}

	out := drawing{title: l.Title, caption: l.Caption, lines: d}
	out.table = l.table(xAxis, drawn, d, xLo, xHi)
	out.summary = l.summary(d, xLo, xHi)
	return out, nil
}

func (s Series) xs() []float64 { return s.X }
func (s Series) ys() []float64 { return s.Y }

// ends returns the smallest and the greatest value of the lists.
func ends(more, series []Series, list func(Series) []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, ss := range [][]Series{more, series} {
		for _, s := range ss {
			for _, v := range list(s) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi
}

func divided(list []float64, by float64) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = v / by
	}
	return out
}

// label is what the line is called where it is drawn, shortened to most: the name, not the value.
func (r refDrawing) label(most float64, measure func(string) float64) string {
	if r.value == "" {
		return shortenBy(r.name, most, measure)
	}
	value := ": " + r.value
	if measure("…"+value) > most {
		return shortenBy(r.name+value, most, measure)
	}
	return shortenBy(r.name, most, func(s string) float64 { return measure(s + value) }) + value
}

// reference lays a reference line over the whole panel.
func reference(s Series, x scale, unit string) refDrawing {
	if len(s.X) == 0 {
		return refDrawing{s.Name, withUnit(s.Y[0], unit), []float64{x.lo, x.hi}, []float64{s.Y[0], s.Y[0]}}
	}
	r := refDrawing{name: s.Name}
	for i, v := range s.X {
		if v > x.hi {
			break
		}
		if v < x.lo {
			v = x.lo
		}
		r.x, r.y = append(r.x, v), append(r.y, s.Y[i])
	}
	if n := len(r.x); n > 0 {
		r.x, r.y = append(r.x, x.hi), append(r.y, r.y[n-1])
	}
	return r
}

// sampler reads a series at instants that do not decrease.
type sampler struct {
	s    Series
	step bool
	next int // index of the first point after the last instant asked for
}

// at returns the value at x; ok says that the series has begun and not ended.
func (a *sampler) at(x float64) (y float64, ok bool) {
	n := len(a.s.X)
	for a.next < n && a.s.X[a.next] <= x {
		a.next++
	}
	if a.next == 0 || a.next == n && a.s.X[n-1] < x {
		return 0, false
	}
	i := a.next - 1
	if a.step || a.next == n || a.s.X[i] == x {
		return a.s.Y[i], true
	}
	part := (x - a.s.X[i]) / (a.s.X[i+1] - a.s.X[i])
	return a.s.Y[i]*(1-part) + a.s.Y[i+1]*part, true
}

// banded returns the band of 5th to 95th percentile, the median and some single lines, and these lines' series.
func (l Lines) banded(xLo, xHi float64) (traces []trace, drawn []Series) {
	samplers := make([]sampler, len(l.Series))
	for i, s := range l.Series {
		samplers[i] = sampler{s: s, step: l.Step}
	}
	sums, counts := make([]float64, len(l.Series)), make([]int, len(l.Series))
	b := trace{kind: band, name: fmt.Sprintf("p5 to p95 of %s %s", thousands(fmt.Sprint(len(l.Series))), l.Each)}
	if len(l.Series) <= maxEach {
		b.name = fmt.Sprintf("all %d %s; shaded: p5 to p95", len(l.Series), l.Each)
		for _, s := range l.Series {
			b.each = append(b.each, trace{kind: each, step: l.Step, x: s.X, y: s.Y, starts: []int{0}})
		}
	}
	m := trace{kind: median, name: "median"}
	at := make([]float64, 0, len(l.Series))
	whole := true
	for _, x := range instants(xLo, xHi, bandColumns, l.X.Log) {
		at = at[:0]
		for i := range samplers {
			if y, ok := samplers[i].at(x); ok {
				at = append(at, y)
				sums[i] += y
				counts[i]++
			}
		}
		if len(at) == 0 {
			whole = false
			continue
		}
		if !whole || len(b.x) == 0 {
			b.starts, m.starts, whole = append(b.starts, len(b.x)), append(m.starts, len(b.x)), true
		}
		slices.Sort(at)
		b.x, m.x = append(b.x, x), append(m.x, x)
		b.low, b.y, m.y = append(b.low, quantile(at, 0.05)), append(b.y, quantile(at, 0.95)), append(m.y, quantile(at, 0.5))
	}

	mean := func(i int) float64 {
		if counts[i] == 0 { // the series lies between two instants
			return l.Series[i].Y[0]
		}
		return sums[i] / float64(counts[i])
	}
	order := make([]int, len(l.Series))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch a, b := mean(i), mean(j); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	traces = append(traces, b)
	for n, pick := range []struct {
		rank int
		as   string
	}{{0, "lowest mean"}, {len(order) / 2, "middle"}, {len(order) - 1, "highest mean"}} {
		s := l.Series[order[pick.rank]]
		drawn = append(drawn, s)
		traces = append(traces, trace{
			kind: faint, name: s.Name + " (" + pick.as + ")", hue: n + 1, step: l.Step, x: s.X, y: s.Y, starts: []int{0},
		})
	}
	return append(traces, m), drawn
}

// instants are n places from lo to hi, evenly spaced on the axis.
func instants(lo, hi float64, n int, log bool) []float64 {
	if lo == hi {
		return []float64{lo}
	}
	out := make([]float64, n)
	for i := range out {
		part := float64(i) / float64(n-1)
		if log {
			out[i] = lo * math.Pow(hi/lo, part)
		} else {
			out[i] = lo + (hi-lo)*part
		}
	}
	out[n-1] = hi // exactly hi: a hair above it every series has ended
	return out
}

// quantile of a sorted list, interpolated between the two nearest (Hyndman and Fan's type 7).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := at - float64(i)
	return sorted[i]*(1-part) + sorted[i+1]*part
}

// thin keeps the first, the least, the greatest and the last point in each column of pixels. The picture stays the same, since lines
// within one column fall on each other.
func (t *trace) thin(x scale) {
	if len(t.x) <= 2*drawnColumns || t.kind == median || t.kind == band {
		return
	}
	var xs, ys []float64
	keep := func(i int) { xs, ys = append(xs, t.x[i]), append(ys, t.y[i]) }
	column := func(i int) int { return int(x.at(t.x[i]) * drawnColumns) }
	for i := 0; i < len(t.x); {
		end, least, most := i, i, i
		for ; end < len(t.x) && column(end) == column(i); end++ {
			if t.y[end] < t.y[least] {
				least = end
			}
			if t.y[end] > t.y[most] {
				most = end
			}
		}
		kept := []int{i, min(least, most), max(least, most), end - 1}
		for j, k := range kept {
			if j == 0 || k != kept[j-1] {
				keep(k)
			}
		}
		i = end
	}
	t.x, t.y = xs, ys
}

// legend has the traces in the order of the legend: the median before the others.
func (d *lineDrawing) legend() []int {
	var first, rest []int
	for i, t := range d.traces {
		if t.kind == median {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(first, rest...)
}

// runs calls yield for every unbroken part of the trace.
func (t *trace) runs(yield func(from, to int)) {
	for i, from := range t.starts {
		to := len(t.x)
		if i+1 < len(t.starts) {
			to = t.starts[i+1]
		}
		if from < to {
			yield(from, to)
		}
	}
}

func (l Lines) table(x Axis, drawn []Series, d *lineDrawing, xLo, xHi float64) table {
	at := instants(xLo, xHi, tableRows, x.Log)
	t := table{head: []string{x.text()}}
	// Short series that share their instants are shown as they are.
	same := len(l.Series[0].X) <= 40 && len(l.Series) <= maxSingles
	for _, s := range l.Series {
		same = same && slices.Equal(s.X, l.Series[0].X)
	}
	if same {
		at = slices.Compact(slices.Clone(l.Series[0].X))
	} else {
		t.note = fmt.Sprintf("Values at %d instants.", len(at))
	}
	var columns []*sampler
	add := func(name string, s Series, step bool) {
		t.head = append(t.head, name)
		columns = append(columns, &sampler{s: s, step: step})
	}
	var stats []trace
	if len(l.Series) > maxSingles {
		for _, tr := range d.traces {
			switch tr.kind {
			case band:
				low := tr
				low.y = tr.low
				stats = append(stats, low, tr)
				t.head = append(t.head, "p5", "p95")
			case median:
				stats = append(stats, tr)
				t.head = append(t.head, "median")
			}
		}
	}
	for _, s := range drawn {
		add(s.Name, s, l.Step)
	}
	for _, r := range d.refs {
		add(r.name, Series{X: r.x, Y: r.y}, true)
	}
	for _, v := range at {
		row := []string{number(v)}
		for _, tr := range stats {
			cell := "–"
			if i := nearest(tr.x, v); math.Abs(tr.x[i]-v) <= 1e-6*(xHi-xLo) {
				cell = number(tr.y[i])
			}
			row = append(row, cell)
		}
		for _, c := range columns {
			cell := "–"
			if y, ok := c.at(v); ok {
				cell = number(y)
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// nearest is the index of the value nearest to v in a sorted list.
func nearest(sorted []float64, v float64) int {
	i, _ := slices.BinarySearch(sorted, v)
	if i == len(sorted) || i > 0 && v-sorted[i-1] < sorted[i]-v {
		i--
	}
	return i
}

func (l Lines) summary(d *lineDrawing, xLo, xHi float64) string {
	lo, hi := ends(nil, l.Series, Series.ys)
	what := fmt.Sprintf("%d %s", len(l.Series), l.Each)
	if len(l.Series) <= maxSingles {
		var names []string
		for _, s := range l.Series {
			names = append(names, s.Name)
		}
		what = strings.Join(names, ", ")
	}
	var s strings.Builder
	fmt.Fprintf(&s, "Lines. %s: %s. %s from %s to %s; %s from %s to %s.", l.Title, what,
		l.X.Label, number(xLo), withUnit(xHi, d.xUnit), l.Y.Label, number(lo), withUnit(hi, d.yUnit))
	for _, r := range d.refs {
		s.WriteString(" Reference: " + r.name)
		if r.value != "" {
			s.WriteString(" " + r.value)
		}
		s.WriteString(".")
	}
	return s.String()
}

func (b Bars) draw() (drawing, error) {
	if err := b.check(); err != nil {
		return drawing{}, err
	}
	d := &barDrawing{text: b.Value.text(), unit: b.Value.Unit}
	strong := !slices.ContainsFunc(b.Bars, func(bar Bar) bool { return bar.Highlight })
	for _, bar := range b.Bars {
		d.bars = append(d.bars, barRow{bar, strong || bar.Highlight})
		d.most = max(d.most, bar.Value, bar.Max)
		if bar.whisker() {
			d.whiskers = "smallest to largest"
		}
	}
	if d.whiskers != "" && b.Whiskers != "" {
		d.whiskers = b.Whiskers
	}
	if d.most < smallest {
		d.most = 1
	}
	slices.SortStableFunc(d.bars, func(a, c barRow) int {
		if b.Descending {
			a, c = c, a
		}
		switch {
		case a.Value < c.Value:
			return -1
		case a.Value > c.Value:
			return 1
		}
		return 0
	})
	out := drawing{title: b.Title, caption: b.Caption, bars: d, table: table{head: []string{"", d.text}}}
	if d.whiskers != "" {
		out.table.head = append(out.table.head, "smallest", "largest")
		out.table.note = "Whiskers: " + d.whiskers + "."
	}
	var values []string
	for _, bar := range d.bars {
		row := []string{bar.Name, number(bar.Value)}
		switch {
		case bar.whisker():
			row = append(row, number(bar.Min), number(bar.Max))
		case d.whiskers != "":
			row = append(row, "–", "–")
		}
		out.table.rows = append(out.table.rows, row)
		values = append(values, bar.Name+" "+withUnit(bar.Value, d.unit))
	}
	out.summary = fmt.Sprintf("Bars. %s, %s: %s.", b.Title, b.Value.Label, strings.Join(values, ", "))
	return out, nil
}

// refLabel is the place of a label at a reference line. Its middle is y pixels below the plot's top. anchor says whether its left end, its
// middle or its right end is at x, which goes from 0 to 1.
type refLabel struct {
	text, full string
	x, y       float64
	anchor
}

// anchor tells which part of a label is at its x.
type anchor int

const (
	atStart anchor = iota
	atMiddle
	atEnd
)

// placed puts a label at each reference line, in a plot of wide by high pixels: at one end of the line or its middle, above or below it,
// where it hides the least, and so that no two labels are at the same height.
func (d *lineDrawing) placed(wide, high float64, measure func(string) float64) []refLabel {
	const half, each = 8.0, 16.0
	var out []refLabel
	for _, r := range d.refs {
		if len(r.x) == 0 {
			continue
		}
		l := refLabel{text: r.label(wide-12, measure), full: r.label(math.Inf(1), measure)}
		least := math.Inf(1)
		for _, a := range []anchor{atEnd, atStart, atMiddle} {
			x := float64(a) / 2
			size := measure(l.text) / wide
			from := x - size*x
			level := sampler{s: Series{X: r.x, Y: r.y}, step: true}
			value, ok := level.at(d.x.value(x))
			if !ok {
				value = r.y[0]
			}
			line := (1 - d.y.at(value)) * high
			for _, y := range []float64{line - half - 2, line + half + 2} {
				if y < half || y > high-half {
					continue
				}
				// The line itself may step through the label as well.
				hidden := d.hidden(from, from+size, y, half+2, high)
				level := trace{x: r.x, y: r.y, step: true}
				hidden += 3 * d.crossed(level, from, from+size, y, half-1, high)
				if hidden < least-0.5 {
					least, l.x, l.y, l.anchor = hidden, x, y, a
				}
			}
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b refLabel) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	for i := range out {
		low := half
		if i > 0 {
			low = out[i-1].y + each
		}
		out[i].y = max(out[i].y, low)
	}
	for i := len(out) - 1; i >= 0; i-- {
		most := high - half
		if i+1 < len(out) {
			most = out[i+1].y - each
		}
		out[i].y = min(out[i].y, most)
	}
	return out
}

// hidden tells how much of the traces would lie behind a label.
func (d *lineDrawing) hidden(from, to, y, half, high float64) float64 {
	var sum float64
	for _, t := range d.traces {
		part := d.crossed(t, from, to, y, half, high)
		if t.kind == band {
			part /= 3
		}
		sum += part
	}
	return sum
}

// crossed tells how much of a trace lies in a box, from 0 to 10.
func (d *lineDrawing) crossed(t trace, from, to, y, half, high float64) float64 {
	var n float64
	line := sampler{s: Series{X: t.x, Y: t.y}, step: t.step}
	low := sampler{s: Series{X: t.x, Y: t.low}}
	for i := range 11 {
		x := d.x.value(math.Max(0, math.Min(1, from+(to-from)*float64(i)/10)))
		v, ok := line.at(x)
		if !ok {
			continue
		}
		top := (1 - d.y.at(v)) * high
		bottom := top
		if t.kind == band {
			v, _ = low.at(x)
			bottom = (1 - d.y.at(v)) * high
		}
		if bottom > y-half && top < y+half {
			n++
		}
	}
	return n
}
