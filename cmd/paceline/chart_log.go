package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/lab/chart"
)

// logLine is a line of the results of paceline run, or of the --log of paceline serve. The fields that a line has tell which it is.
type logLine struct {
	// These fields are of results.
	State     string           `json:"state"`
	Ended     string           `json:"at"`
	WaitedMS  float64          `json:"waited_ms"`
	LatencyMS float64          `json:"latency_ms"`
	WaitedFor map[string]int64 `json:"waited_for_ms"`
	Key       string           `json:"key"`
	Refused   int              `json:"refused"`
	RefusedAt []string         `json:"refused_at"`
	Ceiling   float64          `json:"ceiling_sustained"`

	// These fields are of servers.
	Event     string `json:"event"`
	Status    int    `json:"status"`
	CheckedNS *int64 `json:"checked_ns"`
	AtNS      *int64 `json:"at_ns"`
	UnixNS    *int64 `json:"at_unix_ns"`
	WaitNS    int64  `json:"wait_ns"`
	Remaining *int64 `json:"remaining"`
	Counts    []struct {
		Policy, Who string
		Left        int64
	} `json:"counts"`
}

// requestLog is the part of a log that is drawn.
type requestLog struct {
	ofRun   bool
	events  []logEvent
	undated int                  // how many attempts of a run were refused at an instant that the log does not have
	limits  map[string]rate.Rate // the limits that requests waited for; the keys are their texts
	keys    map[string]bool      // the API keys; each has those limits for itself
	ceiling []logPoint           // how many requests per second the limits of a run allowed
	left    map[leftOf][]logPoint
}

// leftOf names a limit of a server and who shares it, as a key for what is left. Both are empty if the log is of a server with one limit.
type leftOf struct{ policy, who string }

type logPoint struct{ at, y float64 } // at is in seconds

// logEvent is a request, or an attempt of a run that was refused.
type logEvent struct {
	at      float64 // seconds
	kind    string  // "done", "refused", "failed"
	wait    float64 // in seconds; in the log of a server, the time until a refused request would pass; negative: it is not known
	latency float64 // seconds
}

// readLog reads a log. ok is false if the file is something else.
func readLog(r io.Reader) (l requestLog, ok bool, err error) {
	lines := bufio.NewReaderSize(r, 1<<20)
	l.limits, l.keys, l.left = map[string]rate.Rate{}, map[string]bool{}, map[leftOf][]logPoint{}
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if len(strings.TrimSpace(string(text))) > 0 {
			var line logLine
			if bad := json.Unmarshal(text, &line); bad != nil {
				if number == 1 {
					return l, false, nil
				}
				if err == io.EOF { // a crash broke off the last line
					break
				}
				return l, true, fmt.Errorf("line %d: %w", number, bad)
			}
			if !l.add(&line) && number == 1 {
				return l, false, nil
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return l, true, err
		}
	}
	return l, true, nil
}

// add takes in a line. It returns false if the line has nothing that is drawn.
func (l *requestLog) add(line *logLine) bool {
	at := line.CheckedNS
	for _, other := range []*int64{line.AtNS, line.UnixNS} {
		if at == nil {
			at = other
		}
	}
	ended, ok := secondsOf(line.Ended)
	switch {
	case line.State == "rows" && !ok: // it says what rows are made of the results, and comes first
		l.ofRun = true
	case line.State != "" && ok:
		l.ofRun = true
		l.result(line, ended)
	case at != nil && (line.Event == "" || line.Event == "request"):
		l.checked(line, float64(*at)/1e9)
	default:
		return false
	}
	return true
}

// secondsOf reads an instant as results have it.
func secondsOf(text string) (at float64, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return float64(t.UnixNano()) / 1e9, err == nil
}

// result takes in a line of a run's results: the request, and the attempts of it that were refused. Older versions did not write these
// attempts; of their results it is only known whether the last attempt was refused.
func (l *requestLog) result(line *logLine, ended float64) {
	e := logEvent{at: ended, kind: "done", wait: line.WaitedMS / 1e3, latency: line.LatencyMS / 1e3}
	if line.State != "done" {
		e.kind = "failed"
	}
	l.events = append(l.events, e)
	refused := max(line.Refused, len(line.RefusedAt))
	if refused == 0 && line.Status == http.StatusTooManyRequests {
		refused, line.RefusedAt = 1, []string{line.Ended}
	}
	for _, text := range line.RefusedAt {
		if at, ok := secondsOf(text); ok {
			l.events = append(l.events, logEvent{at: at, kind: "refused", wait: -1})
			refused--
		}
	}
	l.undated += refused
	if line.Ceiling > 0 {
		l.ceiling = append(l.ceiling, logPoint{ended, line.Ceiling})
	}
	l.keys[line.Key] = true
	for what := range line.WaitedFor {
		if text, is := strings.CutPrefix(what, "limit "); is {
			if r, err := rate.Parse(text); err == nil {
				l.limits[what] = r
			}
		}
	}
}

// checked takes in a line of a server's log.
func (l *requestLog) checked(line *logLine, at float64) {
	e := logEvent{at: at, kind: "done", wait: -1}
	switch {
	case line.Status == http.StatusTooManyRequests:
		e.kind, e.wait = "refused", float64(line.WaitNS)/1e9
	case line.Status >= http.StatusBadRequest:
		e.kind = "failed"
	}
	l.events = append(l.events, e)
	if line.Remaining != nil {
		l.left[leftOf{}] = append(l.left[leftOf{}], logPoint{at, float64(*line.Remaining)})
	}
	for _, c := range line.Counts {
		of := leftOf{c.Policy, c.Who}
		l.left[of] = append(l.left[of], logPoint{at, float64(c.Left)})
	}
}

// openLog reads the log of this name. ok is false if there is no such file, or if it is something else.
func openLog(name string) (l requestLog, ok bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return l, false, nil // the name may be that of a stored run
	}
	defer file.Close()
	if l, ok, err = readLog(file); err != nil {
		err = exitError{exitConfig, fmt.Errorf("%s: %w", name, err)}
	}
	return l, ok, err
}

// loadLog reads the log of this name, or if it is a table that a run made of its results, those. ok is false if the file is no log. If it has
// the results of a run, and a file beside it has the dead letters, both are drawn together.
func loadLog(name string) (figure chart.Figure, ok bool, err error) {
	l, ok, err := openLog(name)
	if !ok && err == nil {
		l, ok, err = openLog(run.RowsOf(name))
	}
	if err != nil {
		return figure, true, err
	}
	if !ok || len(l.events) == 0 {
		return figure, false, nil
	}
	if dead, err := os.Open(run.DeadBeside(strings.TrimSuffix(name, run.RowsOf("")))); l.ofRun && err == nil {
		defer dead.Close()
		if more, ok, err := readLog(dead); ok && err == nil {
			l.events, l.ceiling, l.undated = append(l.events, more.events...), append(l.ceiling, more.ceiling...), l.undated+more.undated
			maps.Copy(l.limits, more.limits)
			maps.Copy(l.keys, more.keys)
		}
	}
	slices.SortStableFunc(l.events, func(a, b logEvent) int { return cmp.Compare(a.at, b.at) })
	sortPoints(l.ceiling)
	for _, points := range l.left {
		sortPoints(points)
	}
	return l.figure(sanitize.Text(filepath.Base(name))), true, nil
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

func sortPoints(points []logPoint) {
	slices.SortStableFunc(points, func(a, b logPoint) int { return cmp.Compare(a.at, b.at) })
}

func (l *requestLog) figure(title string) chart.Figure {
	first, last := l.events[0].at, l.events[len(l.events)-1].at
	slot := slotOf(last - first)
	n := int((last-first)/slot) + 1
	at := make([]float64, n)
	for i := range at {
		at[i] = float64(i) * slot
	}
	rates := map[string][]float64{}
	for _, k := range logKinds {
		rates[k] = make([]float64, n)
	}
	waits, latencies, counts := make([][]float64, n), make([][]float64, n), map[string]int{}
	for _, e := range l.events {
		i := int((e.at - first) / slot)
		rates[e.kind][i] += 1 / slot
		counts[e.kind]++
		if e.wait >= 0 {
			waits[i] = append(waits[i], e.wait)
		}
		if e.latency > 0 {
			latencies[i] = append(latencies[i], e.latency)
		}
	}
	f := chart.Figure{Title: title, Caption: l.caption(counts, last-first), Columns: 2}
	f.Panels = append(f.Panels, l.ratePanel(rates, at, slot, first))
	if !l.ofRun {
		f.Panels = append(f.Panels, spreadPanel("Until a refused request would pass", "wait", at, waits)...)
	} else {
		f.Panels = append(f.Panels, spreadPanel("Waits before the last attempt", "wait", at, waits)...)
		f.Panels = append(f.Panels, spreadPanel("Answers", "time", at, latencies)...)
	}
	f.Panels = append(f.Panels, l.leftPanels(first)...)
	return f
}

// caption is the log in one line. The same line is printed.
func (l *requestLog) caption(counts map[string]int, span float64) string {
	in := time.Duration(span * 1e9).Round(time.Second)
	if !l.ofRun {
		return fmt.Sprintf("%d requests in %v: %d done, %d refused, %d failed.", len(l.events), in, counts["done"], counts["refused"], counts["failed"])
	}
	text := fmt.Sprintf("%d requests in %v: %d done, %d failed; %s refused", counts["done"]+counts["failed"], in, counts["done"], counts["failed"],
		sanitize.Count(counts["refused"]+l.undated, "attempt was", "attempts were"))
	if l.undated > 0 {
		text += fmt.Sprintf(", %d of them nobody knows when", l.undated)
	}
	return text + "."
}

// logKinds are what becomes of a request, and the attempts of a run that were refused.
var logKinds = []string{"done", "refused", "failed"}

// ratePanel shows how many requests a second there were of each kind, and what the limits allow.
func (l *requestLog) ratePanel(rates map[string][]float64, at []float64, slot, first float64) chart.Lines {
	p := chart.Lines{Title: "Rate", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "requests", Unit: "/s"}, Step: true,
		Caption: fmt.Sprintf("Each step is of %v.", time.Duration(slot)*time.Second)}
	n := len(at)
	ends := append(slices.Clone(at), at[n-1]+slot) // without another end the last step would have no width
	for _, k := range logKinds {
		if k == "done" || slices.Max(rates[k]) > 0 {
			p.Series = append(p.Series, chart.Series{Name: k, X: ends, Y: append(rates[k], rates[k][n-1])})
		}
	}
	const most = 5
	if r, ok := l.ceilingLine(slot, first); ok {
		p.References = append(p.References, r)
	}
	for _, name := range slices.Sorted(maps.Keys(l.limits)) {
		r := l.limits[name]
		all := float64(r.N) / r.Per.Seconds() * float64(len(l.keys))
		if len(p.References) == most || slices.ContainsFunc(l.ceiling, func(c logPoint) bool { return math.Abs(c.y-all) < all/1000 }) {
			continue // this limit is the ceiling, which is drawn already
		}
		if len(l.keys) > 1 {
			name += fmt.Sprintf(" × %d keys", len(l.keys))
		}
		p.References = append(p.References, chart.Reference{Name: sanitize.Text(name), Y: []float64{all}})
	}
	return p
}

// ceilingLine is what the limits of a run allowed. For each slot it has the latest value within the slot.
func (l *requestLog) ceilingLine(slot, first float64) (line chart.Reference, ok bool) {
	line.Name = "ceiling"
	for _, c := range l.ceiling {
		x := float64(int((c.at-first)/slot)) * slot
		switch n := len(line.X); {
		case n > 0 && line.X[n-1] == x:
			line.Y[n-1] = c.y
		case n == 0 || line.Y[n-1] != c.y:
			line.X, line.Y = append(line.X, x), append(line.Y, c.y)
		}
	}
	return line, len(line.X) > 0
}

// leftPanels show what was left of each limit, to each who shares it.
func (l *requestLog) leftPanels(first float64) (panels []chart.Panel) {
	of := slices.SortedFunc(maps.Keys(l.left), func(a, b leftOf) int { return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.who, b.who)) })
	const mostPanels, mostSeries = 12, 1000
	for len(of) > 0 && len(panels) < mostPanels {
		p := chart.Lines{Title: "Left of " + cmp.Or(sanitize.Text(of[0].policy), "the quota"), X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "left"}, Each: "clients", Step: true}
		for policy := of[0].policy; len(of) > 0 && of[0].policy == policy; of = of[1:] {
			s := chart.Series{Name: cmp.Or(sanitize.Text(of[0].who), "left")}
			for _, at := range l.left[of[0]] {
				s.X, s.Y = append(s.X, at.at-first), append(s.Y, at.y)
			}
			if len(p.Series) < mostSeries {
				p.Series = append(p.Series, s)
			}
		}
		panels = append(panels, p)
	}
	return panels
}

// spreadPanel shows the median and the longest value of each slot. It returns no panel if there is nothing to show.
func spreadPanel(title, label string, at []float64, values [][]float64) []chart.Panel {
	median, longest := chart.Series{Name: "median"}, chart.Series{Name: "longest"}
	for i, of := range values {
		if len(of) == 0 {
			continue
		}
		slices.Sort(of)
		median.X, median.Y = append(median.X, at[i]), append(median.Y, of[len(of)/2])
		longest.X, longest.Y = append(longest.X, at[i]), append(longest.Y, of[len(of)-1])
	}
	if len(longest.Y) == 0 || slices.Max(longest.Y) == 0 {
		return nil
	}
	return []chart.Panel{chart.Lines{Title: title, X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: label, Unit: "s"}, Series: []chart.Series{median, longest},
		Caption: fmt.Sprintf("At most %.1f s.", slices.Max(longest.Y))}}
}
