package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/chart"
	"github.com/paceline-go/paceline/internal/live"
	"github.com/paceline-go/paceline/sim/compare"
	"github.com/paceline-go/paceline/sim/fleet"
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
	for i, g := range r.Groups {
		group := g.Name
		if group == "" && len(r.Groups) > 1 {
			group = fmt.Sprintf("group %d", i+1)
		}
		for j := range g.Requests {
			names = append(names, strings.TrimSpace(fmt.Sprintf("%s client %d", group, j+1)))
		}
		strategies = append(strategies, g.Strategy)
	}
	title := r.Scenario
	if title == "" {
		title = "Clients that share a quota"
	}
	caption := fmt.Sprintf("%d clients, %s, seed %d: %.2f %% limited, standard deviation of requests %.1f, %.1f %% of the quota not used.",
		r.Clients, strings.Join(strategies, ", "), r.Seed, r.RetryPercent, r.RequestSD, r.UnusedPercent)
	return chart.Figure{Title: title, Caption: caption, Columns: 2, Panels: seriesPanels(r.Series, names, r.OptimumSleep)}, nil
}

func liveFigure(r *live.Report) (chart.Figure, error) {
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
		Columns: 2, Panels: seriesPanels(r.Series, names, r.OptimumSleep),
	}, nil
}

func seriesPanels(s *fleet.Series, names []string, optimum float64) []chart.Panel {
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
	return []chart.Panel{
		sleepPanel("Sleep per client", s, names, optimum),
		chart.Lines{Title: "Level of the quota", X: seconds, Y: chart.Axis{Label: "left", Unit: "requests"},
			Series: []chart.Series{{Name: "level", X: s.At, Y: level}}},
		chart.Lines{Title: "Successes per client", X: seconds, Y: chart.Axis{Label: "served", Unit: "requests"}, Series: served, Each: "clients"},
	}
}

func sleepPanel(title string, s *fleet.Series, names []string, optimum float64) chart.Lines {
	p := chart.Lines{Title: title, X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "sleep", Unit: "s"}, Each: "clients", Step: true}
	for i, name := range names {
		p.Series = append(p.Series, chart.Series{Name: name, X: s.At, Y: s.Sleep[i]})
	}
	if optimum > 0 {
		p.References = []chart.Reference{{Name: "optimum", Y: []float64{optimum}}}
	}
	return p
}

// short is a strategy's name without what many begin with, which would be all that a label has room for.
func short(strategy string) string { return strings.TrimPrefix(strategy, "exponential-increase-") }

// throttlesFigure compares strategies: the clients' sleep where it is known, then bars of the first scenario's measures, and
// of the others' rejects.
func throttlesFigure(t *compare.Table) (chart.Figure, error) {
	if len(t.Strategies) == 0 {
		return chart.Figure{}, errors.New("the run has no finished scenario to draw")
	}
	first := t.Strategies[0].Scenario
	f := chart.Figure{Title: "Strategies that share a quota of 4,500 requests an hour", Columns: 2,
		Caption: fmt.Sprintf("Bars are medians of %d seeds, whiskers reach to the worst. Ours is %s.", t.Strategies[0].Seeds, t.Ours)}
	longest := func(s *fleet.Series) (most float64) {
		for _, sleeps := range s.Sleep {
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
		p.Caption = "The first of the seeds."
		if longest(r.Series) < highest { // the same scale, for the eye
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
