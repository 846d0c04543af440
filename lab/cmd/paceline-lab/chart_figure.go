package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

var errNoSeries = errors.New("the run has no series to draw: it has a --sample of 0")

func scenarioPage(r *fleet.Report) (report.Page, error) {
	if r.Series == nil || len(r.Series.At) == 0 {
		return report.Page{}, errNoSeries
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
	text := fmt.Sprintf("%d clients, %s, seed %d: %.2f %% limited, standard deviation of requests %.1f, %.1f %% of the "+
		"quota not used.",
		r.Clients, strings.Join(strategies, ", "), r.Seed, r.RetryPercent, r.RequestSD, r.UnusedPercent)
	charts := append(seriesCharts(r.Series, names, r.OptimumSleep, r.Sleep), groupCharts(r, groups)...)
	title := cmp.Or(r.Scenario, "Clients that share a quota")
	return report.Page{Title: title, Text: text, Charts: charts}, nil
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

// groupCharts say which group got what, where there are several, and not more than can be told
// apart.
func groupCharts(r *fleet.Report, names []string) []report.Chart {
	const most = 6
	if len(r.Groups) < 2 || len(r.Groups) > most {
		return nil
	}
	together := report.Chart{Title: "Successes per group", Label: "served", Unit: "requests", X: r.Series.At}
	each := report.Chart{Title: "Successes of a client, by group", Label: "served, mean", Unit: "requests",
		Whiskers: "fewest to most"}
	first := 0
	for i, g := range r.Groups {
		clients := r.Series.ServedBy[first : first+len(g.Requests)]
		first += len(g.Requests)
		total := make([]float64, len(r.Series.At))
		bar := report.Bar{Name: names[i], Low: math.Inf(1), Strong: true}
		for _, served := range clients {
			for at, n := range served {
				total[at] += float64(n)
			}
			end := float64(served[len(served)-1])
			bar.Low, bar.High = min(bar.Low, end), max(bar.High, end)
		}
		bar.Value = total[len(total)-1] / float64(len(clients))
		together.Lines = append(together.Lines, report.Line{Name: names[i], Y: total})
		each.Bars = append(each.Bars, bar)
	}
	sortBars(each.Bars)
	return []report.Chart{together, each}
}

// sortBars puts the shortest bar on top.
func sortBars(bars []report.Bar) {
	slices.SortStableFunc(bars, func(a, b report.Bar) int { return cmp.Compare(a.Value, b.Value) })
}

// sleepText is what the text and the chart of a run say about its sleeps.
func sleepText(s fleet.Sleeps) string {
	return fmt.Sprintf("at most %.1f s, p99 %.1f s, median %.1f s", s.Max, s.P99, s.Median)
}

func seriesCharts(s *fleet.Series, names []string, optimum float64, sleeps fleet.Sleeps) []report.Chart {
	level := report.Line{Name: "level"}
	for _, n := range s.Level {
		level.Y = append(level.Y, float64(n))
	}
	served := make([]report.Line, len(names))
	for i, name := range names {
		served[i].Name = name
		for _, n := range s.ServedBy[i] {
			served[i].Y = append(served[i].Y, float64(n))
		}
	}
	slept := sleepChart("Sleep per client", s, names, optimum)
	slept.Caption = strings.ToUpper(sleepText(sleeps)[:1]) + sleepText(sleeps)[1:] + "."
	return []report.Chart{
		slept,
		{Title: "Level of the quota", Label: "left", Unit: "requests", X: s.At, Lines: []report.Line{level}},
		{Title: "Successes per client", Label: "served", Unit: "requests", X: s.At,
			Lines: report.Crowd("clients", served)},
	}
}

func sleepChart(title string, s *fleet.Series, names []string, optimum float64) report.Chart {
	c := report.Chart{Title: title, Label: "sleep", Unit: "s", X: s.At, Step: true}
	for i, name := range names {
		c.Lines = append(c.Lines, report.Line{Name: name, Y: s.Slept[i]})
	}
	c.Lines = report.Crowd("clients", c.Lines)
	if optimum > 0 {
		c.Lines = append(c.Lines, level(fmt.Sprintf("optimum: %s s", report.Number(optimum)), optimum, len(s.At)))
	}
	return c
}

// level is a line to compare with that stays where it is.
func level(name string, y float64, n int) report.Line {
	return report.Line{Name: name, Kind: report.Reference, Y: slices.Repeat([]float64{y}, n)}
}

// short is a strategy's name without the prefix that many share, since a label has room for little
// more than that prefix.
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

// throttlesPage compares strategies. It has the clients' sleep where that is known, then bars of
// the measures of the first scenario, and of the rejects in the others.
func throttlesPage(t *compare.Table) (report.Page, error) {
	if len(t.Strategies) == 0 {
		return report.Page{}, errors.New("the run has no finished scenario to draw")
	}
	first := t.Strategies[0].Scenario
	page := report.Page{Title: "Strategies that share a quota of 4,500 requests an hour",
		Text: fmt.Sprintf("Bars are medians of %d seeds, whiskers reach to the worst. Ours is %s.",
			t.Strategies[0].Seeds, t.Ours)}
	longest := func(s *fleet.Series) (most float64) {
		for _, sleeps := range s.Slept {
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
		if r.Scenario != first || r.Series == nil || len(page.Charts) == 2 {
			continue
		}
		var names []string
		for i := range r.Series.Sleep {
			names = append(names, fmt.Sprintf("client %d", i+1))
		}
		c := sleepChart(fmt.Sprintf("%s: sleep per client, %s", first, short(r.Name)), r.Series, names, r.Optimum)
		c.Caption = fmt.Sprintf("The first of the seeds: at most %.0f s. Of the longest sleeps of all seeds the median is %s.", longest(r.Series), medianWorst(&r.MaxSleep))
		if longest(r.Series) < highest { // both panels get the same scale, so that they can be compared by eye
			c.Lines = append(c.Lines, level(fmt.Sprintf("the other's longest: %s s", report.Number(highest)), highest,
				len(c.X)))
		}
		page.Charts = append(page.Charts, c)
	}
	bars := func(title, label, unit, scenario string, of func(*compare.Row) *compare.Spread) {
		c := report.Chart{Title: title, Label: label, Unit: unit, Whiskers: "median to worst"}
		for i := range t.Strategies {
			r := &t.Strategies[i]
			s := of(r)
			if r.Scenario != scenario || s == nil || s.Median == nil {
				continue
			}
			bar := report.Bar{Name: short(r.Name), Value: *s.Median, Strong: r.Name == t.Ours}
			if s.Worst != nil {
				bar.Low, bar.High = min(*s.Median, *s.Worst), max(*s.Median, *s.Worst)
			}
			c.Bars = append(c.Bars, bar)
		}
		sortBars(c.Bars)
		if len(c.Bars) > 0 {
			page.Charts = append(page.Charts, c)
		}
	}
	bars(first+": rejects", "limited", "%", first, func(r *compare.Row) *compare.Spread { return &r.RetryPercent })
	bars(first+": unfairness", "standard deviation of requests", "", first,
		func(r *compare.Row) *compare.Spread { return &r.RequestSD })
	bars(first+": longest sleep", "sleep", "s", first, func(r *compare.Row) *compare.Spread { return &r.MaxSleep })
	seen := first
	for i := range t.Strategies {
		const most = 16
		if name := t.Strategies[i].Scenario; name != seen && !strings.HasPrefix(name, first+" ") &&
			len(page.Charts) < most {
			seen = name
			if strings.HasPrefix(name, "clear") {
				bars(name+": time to do 4,500", "time", "s", name,
					func(r *compare.Row) *compare.Spread { return r.Clear })
				continue
			}
			bars(name+": rejects", "limited", "%", name,
				func(r *compare.Row) *compare.Spread { return &r.RetryPercent })
		}
	}
	return page, nil
}
