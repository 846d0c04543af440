package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text"
)

// Page draws the log.
func (l *Log) Page(title string) Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		return Page{Title: title, Text: "No request has ended."}
	}
	slices.SortStableFunc(l.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	sortPoints(l.ceiling)
	t := l.tally()
	p := Page{Title: title, Text: l.text(t), Figures: l.figures(t), Charts: []Chart{l.rates(t)}}
	if l.isServer {
		p.Charts = append(p.Charts, spread("Until a refused request would pass", "wait", t.at, t.waits)...)
	} else {
		p.Charts = append(p.Charts, spread("Waits before the last attempt", "wait", t.at, t.waits)...)
		p.Charts = append(p.Charts, spread("Answers", "time", t.at, t.latencies)...)
	}
	p.Charts = append(p.Charts, l.leftCharts(t)...)
	return p
}

// slots is the largest number of slots that a log is cut into.
const slots = 240

// slotOf is how long a slot is: a whole number of seconds, and at least one.
func slotOf(span float64) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600} {
		if span <= s*slots {
			return s
		}
	}
	return float64(int(span/slots/3600)+1) * 3600
}

func sortPoints(points []point) {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// short writes a time with three digits.
func short(s float64) string {
	s, _ = strconv.ParseFloat(strconv.FormatFloat(s, 'g', 3, 64), 64)
	return text.Span(seconds(s))
}

// tally is a log by slots.
type tally struct {
	first, span, slot float64   // in seconds
	at                []float64 // when each slot begins, since first
	counts            [3]int    // by kind
	rates             [3][]float64
	waits, latencies  [][]float64
}

func (l *Log) tally() *tally {
	t := &tally{first: l.events[0].at, span: l.events[len(l.events)-1].at - l.events[0].at}
	t.slot = slotOf(t.span)
	n := int(t.span/t.slot) + 1
	t.at, t.waits, t.latencies = make([]float64, n), make([][]float64, n), make([][]float64, n)
	for i := range t.at {
		t.at[i] = float64(i) * t.slot
	}
	for k := range t.rates {
		t.rates[k] = make([]float64, n)
	}
	for _, e := range l.events {
		i := int((e.at - t.first) / t.slot)
		t.rates[e.kind][i] += 1 / t.slot
		t.counts[e.kind]++
		if e.wait >= 0 {
			t.waits[i] = append(t.waits[i], float64(e.wait))
		}
		if e.latency > 0 {
			t.latencies[i] = append(t.latencies[i], float64(e.latency))
		}
	}
	return t
}

// text is the log in one sentence.
func (l *Log) text(t *tally) string {
	in := seconds(t.span).Round(time.Second)
	if l.isServer {
		return fmt.Sprintf("%d requests in %v: %d done, %d refused, %d failed.",
			len(l.events), in, t.counts[done], t.counts[refused], t.counts[failed])
	}
	attempts := text.Count(t.counts[refused]+l.undated, "attempt was", "attempts were")
	text := fmt.Sprintf("%d requests in %v: %d done, %d failed; %s refused",
		t.counts[done]+t.counts[failed], in, t.counts[done], t.counts[failed], attempts)
	if l.undated > 0 {
		text += fmt.Sprintf(", %d of them nobody knows when", l.undated)
	}
	return text + "."
}

// figures are the log in figures.
func (l *Log) figures(t *tally) []Figure {
	count := func(n int) string { return text.Thousands(int64(n)) }
	all := []Figure{{"Requests done", count(t.counts[done])}, {"Requests failed", count(t.counts[failed])}}
	if l.isServer {
		all = append(all, Figure{"Requests refused", count(t.counts[refused])})
	} else {
		all = append(all, Figure{"Attempts refused", count(t.counts[refused] + l.undated)})
	}
	all = append(all, Figure{"From the first to the last", short(t.span)})
	if t.span > 0 {
		all = append(all, Figure{"Done a second", Number(float64(t.counts[done]) / t.span)})
	}
	of := func(name string, values [][]float64) {
		sorted := slices.Sorted(slices.Values(slices.Concat(values...)))
		if len(sorted) == 0 || sorted[len(sorted)-1] == 0 {
			return
		}
		within := func(q float64) string { return short(quantile(sorted, q)) }
		text := fmt.Sprintf("half within %s, 99 %% within %s, at most %s", within(0.5), within(0.99), within(1))
		all = append(all, Figure{name, text})
	}
	if l.isServer {
		of("Until a refused request would pass", t.waits)
	} else {
		of("Wait before the last attempt", t.waits)
		of("Time of an answer", t.latencies)
	}
	return all
}

// whole returns how many slots are drawn, and the rest after them in seconds. The rate seems to fall
// in a slot that the log does not fill. If as much was done there as in the one before, as in
// windows that begin with a burst, it is drawn. So it is where the chart has only a few steps. A log
// ends one mean distance after its last event.
func (l *Log) whole(t *tally) (n int, rest float64) {
	const nearly, few = 0.95, 10
	n = len(t.at)
	if rest = t.span - t.at[n-1]; n <= few || rest+t.span/float64(len(l.events)-1) >= nearly*t.slot ||
		t.rates[done][n-1] >= t.rates[done][n-2] {
		return n, 0
	}
	return n - 1, rest
}

// leftOut says what is in a slot that is not drawn.
func (t *tally) leftOut(i int) string {
	var all []string
	for k, word := range []string{done: "done", refused: "refused", failed: "failed"} {
		if n := int(math.Round(t.rates[k][i] * t.slot)); n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, word))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// rates shows how many requests a second there were of each kind, and what the limits allow.
func (l *Log) rates(t *tally) Chart {
	n, rest := l.whole(t)
	c := Chart{Title: "Rate", Label: "requests", Unit: "/s", Step: true,
		Caption: fmt.Sprintf("Each step is of %v.", seconds(t.slot)),
		X:       append(slices.Clone(t.at[:n]), t.at[n-1]+t.slot)} // without another end the last step would have no width
	if rest > 0 {
		c.Caption += fmt.Sprintf(" The last %s are no whole step, and are left out%s.", short(rest), t.leftOut(n))
	}
	kinds := []Line{done: {Name: "done", Colour: "blue"}, refused: {Name: "refused", Colour: "pink"},
		failed: {Name: "failed", Colour: "orange"}}
	for k, line := range kinds {
		if rates := t.rates[k][:n]; kind(k) == done || slices.Max(rates) > 0 {
			line.Y = append(slices.Clone(rates), rates[n-1])
			c.Lines = append(c.Lines, line)
		}
	}
	if len(l.ceiling) > 0 {
		c.Lines = append(c.Lines, Line{Name: "ceiling", Kind: Reference, Y: l.ceilings(t, c.X)})
	}
	const most = 5
	references := min(len(l.ceiling), 1)
	for _, name := range slices.Sorted(maps.Keys(l.limits)) {
		r := l.limits[name]
		all := float64(r.N) / r.Per.Seconds() * float64(len(l.keys))
		isCeiling := func(c point) bool { return math.Abs(c.y-all) < all/1000 } // which is drawn already
		if references == most || slices.ContainsFunc(l.ceiling, isCeiling) {
			continue
		}
		references++
		if len(l.keys) > 1 {
			name += fmt.Sprintf(" × %d keys", len(l.keys))
		}
		c.Lines = append(c.Lines, Line{Name: text.Sanitize(name), Kind: Reference,
			Y: slices.Repeat([]float64{all}, len(c.X))})
	}
	return c
}

// ceilings are what the limits of a run allowed: the latest that was known in each slot, or before
// it.
func (l *Log) ceilings(t *tally, x []float64) []float64 {
	y := slices.Repeat([]float64{math.NaN()}, len(x))
	next := 0
	for i := range y {
		if i > 0 {
			y[i] = y[i-1]
		}
		for next < len(l.ceiling) && l.ceiling[next].at-t.first < x[i]+t.slot {
			y[i] = l.ceiling[next].y
			next++
		}
	}
	return y
}

// columns is how many instants a chart of what was left can have: about the pixels of its width.
const columns = 480

// leftCharts show what was left of each limit, to each who shares it: the least within each column.
func (l *Log) leftCharts(t *tally) (all []Chart) {
	const mostCharts, mostLines = 12, 1000
	of := slices.SortedFunc(maps.Keys(l.left), func(a, b leftOf) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.who, b.who))
	})
	for len(of) > 0 && len(all) < mostCharts {
		n := 1
		for n < len(of) && of[n].policy == of[0].policy {
			n++
		}
		c := Chart{Title: "Left of " + cmp.Or(text.Sanitize(of[0].policy), "the quota"), Label: "left", Step: true}
		c.X, c.Lines = l.leftLines(t, of[:min(n, mostLines)])
		c.Lines = Crowd("clients", c.Lines)
		all = append(all, c)
		of = of[n:]
	}
	return all
}

// leftLines has a line for each of those who share a limit, and the columns in which at least one
// of them has a value.
func (l *Log) leftLines(t *tally, of []leftOf) (x []float64, lines []Line) {
	width := max(t.span, 1e-3) / columns
	column := func(p point) int { return int((p.at - t.first) / width) }
	var used []int
	for _, one := range of {
		for _, p := range l.left[one] {
			used = append(used, column(p))
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	for _, c := range used {
		x = append(x, float64(c)*width)
	}
	for _, one := range of {
		points := l.left[one]
		sortPoints(points)
		line := Line{Name: cmp.Or(text.Sanitize(one.who), "left"), Y: slices.Repeat([]float64{math.NaN()}, len(x))}
		next, now := 0, math.NaN()
		for i, c := range used {
			for least := math.Inf(1); next < len(points) && column(points[next]) == c; next++ {
				least = min(least, points[next].y)
				line.Y[i] = least
				now = points[next].y
			}
			if math.IsNaN(line.Y[i]) && next < len(points) {
				line.Y[i] = now // it holds until the next
			}
		}
		lines = append(lines, line)
	}
	return x, lines
}

// spread shows the median and the longest value of each slot. It returns no chart if there is
// nothing to show.
func spread(title, label string, at []float64, values [][]float64) []Chart {
	median, longest := Line{Name: "median"}, Line{Name: "longest"}
	most := 0.0
	for _, of := range values {
		if len(of) == 0 {
			median.Y, longest.Y = append(median.Y, math.NaN()), append(longest.Y, math.NaN())
			continue
		}
		slices.Sort(of)
		median.Y, longest.Y = append(median.Y, of[len(of)/2]), append(longest.Y, of[len(of)-1])
		most = max(most, of[len(of)-1])
	}
	if most == 0 {
		return nil
	}
	return []Chart{{Title: title, Label: label, Unit: "s", X: at, Lines: []Line{median, longest},
		Caption: fmt.Sprintf("At most %.1f s.", most)}}
}
