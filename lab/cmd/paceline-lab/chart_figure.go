package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/chart"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

func (r *storedRun) figure() (chart.Figure, error) {
	switch {
	case r.Scenario != nil:
		return scenarioFigure(r.Scenario)
	case r.Live != nil:
		return liveFigure(r.Live)
	}
	return throttlesFigure(r.Throttles)
}

var errNoSeries = errors.New("the run has no series to draw: it has a --sample of 0")

func scenarioFigure(r *fleet.Report) (chart.Figure, error) {
	if r.Series == nil || len(r.Series.At) == 0 {
		return chart.Figure{}, errNoSeries
	}
	var names []string
	var strategies []string
	groups := groupNames(r)
	for i, g := range r.Groups {
		for j := range g.Requests {
			names = append(names, strings.TrimSpace(fmt.Sprintf("%s client %d", groups[i], j+1)))
		}
		strategies = append(strategies, g.Strategy)
	}
	title := r.Scenario
	if title == "" {
		title = "Clients that share a quota"
	}
	caption := fmt.Sprintf("%d clients, %s, seed %d: %.2f %% limited, standard deviation of requests %.1f, %.1f %% of the quota not used.",
		r.Clients, strings.Join(strategies, ", "), r.Seed, r.RetryPercent, r.RequestSD, r.UnusedPercent)
	panels := append(seriesPanels(r.Series, names, r.OptimumSleep, r.Sleep), groupPanels(r, groups)...)
	return chart.Figure{Title: title, Caption: caption, Columns: 2, Panels: panels}, nil
}

// groupNames tells groups apart, also those without a name and those that have the same.
func groupNames(r *fleet.Report) (names []string) {
	for i, g := range r.Groups {
		name := g.Name
		if name == "" && len(r.Groups) > 1 || slices.Contains(names, name) {
			name = strings.TrimSpace(fmt.Sprintf("group %d %s", i+1, name))
		}
		names = append(names, name)
	}
	return names
}

// groupPanels say which group got what, where there are several, and not more than can be told apart.
func groupPanels(r *fleet.Report, names []string) []chart.Panel {
	const most = 6
	if len(r.Groups) < 2 || len(r.Groups) > most {
		return nil
	}
	together := chart.Lines{Title: "Successes per group", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "served", Unit: "requests"}}
	each := chart.Bars{Title: "Successes of a client, by group", Value: chart.Axis{Label: "served, mean", Unit: "requests"}, Whiskers: "fewest to most"}
	first := 0
	for i, g := range r.Groups {
		clients := r.Series.ServedBy[first : first+len(g.Requests)]
		first += len(g.Requests)
		total := make([]float64, len(r.Series.At))
		bar := chart.Bar{Name: names[i], Min: math.Inf(1)}
		for _, served := range clients {
			for at, n := range served {
				total[at] += float64(n)
			}
			end := float64(served[len(served)-1])
			bar.Min, bar.Max = min(bar.Min, end), max(bar.Max, end)
		}
		bar.Value = total[len(total)-1] / float64(len(clients))
		together.Series = append(together.Series, chart.Series{Name: names[i], X: r.Series.At, Y: total})
		each.Bars = append(each.Bars, bar)
	}
	return []chart.Panel{together, each}
}

func liveFigure(r *loadgen.Report) (chart.Figure, error) {
	if r.Series == nil || len(r.Series.At) == 0 {
		return chart.Figure{}, errNoSeries
	}
	var names []string
	for i := range r.RequestCount {
		names = append(names, fmt.Sprintf("client %d", i+1))
	}
	return chart.Figure{
		Title: r.Strategy + ", live",
		Caption: fmt.Sprintf("%d HTTP clients, %v at scale %v: %.2f %% limited, standard deviation of requests %.1f.",
			r.Clients, time.Duration(r.Seconds*1e9).Round(time.Second), r.Scale, r.RetryPercent, r.RequestSD),
		Columns: 2, Panels: seriesPanels(r.Series, names, r.OptimumSleep, r.Sleep),
	}, nil
}

// sleepText is what the text and the chart of a run say about its sleeps.
func sleepText(s fleet.Sleeps) string {
	return fmt.Sprintf("at most %.1f s, p99 %.1f s, median %.1f s", s.Max, s.P99, s.Median)
}

func seriesPanels(s *fleet.Series, names []string, optimum float64, sleeps fleet.Sleeps) []chart.Panel {
	seconds := chart.Axis{Label: "time", Unit: "s"}
	level := make([]float64, len(s.Level))
	for i, n := range s.Level {
		level[i] = float64(n)
	}
	served := make([]chart.Series, len(names))
	for i, name := range names {
		served[i] = chart.Series{Name: name, X: s.At, Y: make([]float64, len(s.At))}
		for j, n := range s.ServedBy[i] {
			served[i].Y[j] = float64(n)
		}
	}
	slept := sleepPanel("Sleep per client", s, names, optimum)
	slept.Caption = strings.ToUpper(sleepText(sleeps)[:1]) + sleepText(sleeps)[1:] + "."
	return []chart.Panel{
		slept,
		chart.Lines{Title: "Level of the quota", X: seconds, Y: chart.Axis{Label: "left", Unit: "requests"},
			Series: []chart.Series{{Name: "level", X: s.At, Y: level}}},
		chart.Lines{Title: "Successes per client", X: seconds, Y: chart.Axis{Label: "served", Unit: "requests"}, Series: served, Each: "clients"},
	}
}

// sleptOf returns how long clients slept; the text has the longest of these. Runs that were stored before this was
// recorded have only how long the clients meant to sleep, so it returns that.
func sleptOf(s *fleet.Series) [][]float64 {
	if len(s.Slept) == len(s.Sleep) {
		return s.Slept
	}
	return s.Sleep
}

func sleepPanel(title string, s *fleet.Series, names []string, optimum float64) chart.Lines {
	p := chart.Lines{Title: title, X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "sleep", Unit: "s"}, Each: "clients", Step: true}
	slept := sleptOf(s)
	for i, name := range names {
		p.Series = append(p.Series, chart.Series{Name: name, X: s.At, Y: slept[i]})
	}
	if optimum > 0 {
		p.References = []chart.Reference{{Name: "optimum", Y: []float64{optimum}}}
	}
	return p
}

// short is a strategy's name without the prefix that many share, since a label has room for little more than that
// prefix.
func short(strategy string) string { return strings.TrimPrefix(strategy, "exponential-increase-") }

// medianWorst writes a figure of several seeds as the table does.
func medianWorst(s *compare.Spread) string {
	number := func(v *float64) string {
		if v == nil {
			return "never"
		}
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return fmt.Sprintf("%s s, the worst %s s", number(s.Median), number(s.Worst))
}

// throttlesFigure compares strategies. It has the clients' sleep where that is known, then bars of the measures of
// the first scenario, and of the rejects in the others.
func throttlesFigure(t *compare.Table) (chart.Figure, error) {
	if len(t.Strategies) == 0 {
		return chart.Figure{}, errors.New("the run has no finished scenario to draw")
	}
	first := t.Strategies[0].Scenario
	f := chart.Figure{Title: "Strategies that share a quota of 4,500 requests an hour", Columns: 2,
		Caption: fmt.Sprintf("Bars are medians of %d seeds, whiskers reach to the worst. Ours is %s.", t.Strategies[0].Seeds, t.Ours)}
	longest := func(s *fleet.Series) (most float64) {
		for _, sleeps := range sleptOf(s) {
			most = max(most, slices.Max(sleeps))
		}
		return most
	}
	highest := 0.0
	for i := range t.Strategies {
		if r := &t.Strategies[i]; r.Scenario == first && r.Series != nil {
			highest = max(highest, longest(r.Series))
		}
	}
	for i := range t.Strategies {
		r := &t.Strategies[i]
		if r.Scenario != first || r.Series == nil || len(f.Panels) == 2 {
			continue
		}
		var names []string
		for i := range r.Series.Sleep {
			names = append(names, fmt.Sprintf("client %d", i+1))
		}
		p := sleepPanel(fmt.Sprintf("%s: sleep per client, %s", first, short(r.Name)), r.Series, names, r.Optimum)
		p.Caption = fmt.Sprintf("The first of the seeds: at most %.0f s. Of the longest sleeps of all seeds the median is %s.", longest(r.Series), medianWorst(&r.MaxSleep))
		if longest(r.Series) < highest { // both panels get the same scale, so that they can be compared by eye
			p.References = append(p.References, chart.Reference{Name: "the other's longest", Y: []float64{highest}})
		}
		f.Panels = append(f.Panels, p)
	}
	bars := func(title, label, unit, scenario string, of func(*compare.Row) *compare.Spread) {
		b := chart.Bars{Title: title, Value: chart.Axis{Label: label, Unit: unit}, Whiskers: "median to worst"}
		for i := range t.Strategies {
			r := &t.Strategies[i]
			s := of(r)
			if r.Scenario != scenario || s == nil || s.Median == nil {
				continue
			}
			bar := chart.Bar{Name: short(r.Name), Value: *s.Median, Highlight: r.Name == t.Ours}
			if s.Worst != nil {
				bar.Min, bar.Max = min(*s.Median, *s.Worst), max(*s.Median, *s.Worst)
			}
			b.Bars = append(b.Bars, bar)
		}
		if len(b.Bars) > 0 {
			f.Panels = append(f.Panels, b)
		}
	}
	bars(first+": rejects", "limited", "%", first, func(r *compare.Row) *compare.Spread { return &r.RetryPercent })
	bars(first+": unfairness", "standard deviation of requests", "", first, func(r *compare.Row) *compare.Spread { return &r.RequestSD })
	bars(first+": longest sleep", "sleep", "s", first, func(r *compare.Row) *compare.Spread { return &r.MaxSleep })
	seen := first
	for i := range t.Strategies {
		const most = 16
		if name := t.Strategies[i].Scenario; name != seen && !strings.HasPrefix(name, first+" ") && len(f.Panels) < most {
			seen = name
			if strings.HasPrefix(name, "clear") {
				bars(name+": time to do 4,500", "time", "s", name, func(r *compare.Row) *compare.Spread { return r.Clear })
				continue
			}
			bars(name+": rejects", "limited", "%", name, func(r *compare.Row) *compare.Spread { return &r.RetryPercent })
		}
	}
	return f, nil
}
