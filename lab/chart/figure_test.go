package chart_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/paceline-go/paceline/lab/chart"
)

// story is a figure like those of a simulation: n clients that share 4,500 requests an hour for half an hour, and whose
// number doubles at half time.
func story(n int) chart.Figure {
	rnd := rand.New(rand.NewPCG(1, 2))
	const end = 1800.0
	optimum := float64(n) * 0.8
	sleeps := make([]chart.Series, n)
	done := make([]chart.Series, n)
	for i := range sleeps {
		name := fmt.Sprintf("client %d", i+1)
		sleep, sum := 0.5+rnd.Float64(), 0.0
		s, c := chart.Series{Name: name}, chart.Series{Name: name}
		for t := 0.0; t < end; t += max(sleep, 2) {
			goal := optimum
			if t > end/2 {
				goal *= 2
			}
			sleep += (goal - sleep) * (0.08 + 0.06*rnd.Float64())
			sleep *= 1 + 0.1*(rnd.Float64()-0.5)
			sum++
			s.X, s.Y = append(s.X, t), append(s.Y, sleep)
			c.X, c.Y = append(c.X, t), append(c.Y, sum)
		}
		s.X, s.Y = append(s.X, end), append(s.Y, sleep)
		c.X, c.Y = append(c.X, end), append(c.Y, sum)
		sleeps[i], done[i] = s, c
	}
	var level chart.Series
	level.Name = "bucket"
	for t := 0.0; t <= end; t += 5 {
		level.X = append(level.X, t)
		level.Y = append(level.Y, 4500*math.Exp(-t/300)+60*(1+math.Sin(t/40)))
	}
	return chart.Figure{
		Title:   fmt.Sprintf("%d clients share 4,500 requests an hour", n),
		Caption: "Each client sees only 200s, 429s and a remaining count. At half time as many clients again join. Seed 1.",
		Columns: 2,
		Panels: []chart.Panel{
			chart.Lines{
				Title: "Sleep per client", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "sleep", Unit: "s"},
				Series: sleeps, Each: "clients", Step: true,
				References: []chart.Reference{{Name: "optimum", X: []float64{0, end / 2}, Y: []float64{optimum, 2 * optimum}}},
			},
			chart.Lines{
				Title: "Level of the bucket", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "level", Unit: "tokens"},
				Series:     []chart.Series{level},
				References: []chart.Reference{{Name: "capacity", Y: []float64{4500}}, {Name: "empty", Y: []float64{0}}},
			},
			chart.Lines{
				Title: "Cumulative successes per client", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "accepted", Unit: "requests"},
				Series: done, Each: "clients", Step: true,
			},
			chart.Bars{
				Title: "Rejects by strategy", Value: chart.Axis{Label: "retry ratio", Unit: "%"}, Whiskers: "smallest to largest of 20 seeds",
				Bars: []chart.Bar{
					{Name: "exponential backoff", Value: 81.2, Min: 80.1, Max: 82},
					{Name: "gradual decrease", Value: 44, Min: 40.6, Max: 48.3},
					{Name: "proportional", Value: 3.2, Min: 2.7, Max: 3.9},
					{Name: "proportional, remaining", Value: 3.6, Min: 3, Max: 4.2},
					{Name: "ours", Value: 0.446, Min: 0.44, Max: 0.49, Highlight: true},
				},
				Caption: "The least that clients can do who begin without knowledge is 0.44 %.",
			},
		},
	}
}

// few is a figure with up to six lines in each panel, in one column, with what else there is to draw.
func few() chart.Figure {
	f := story(5)
	lines := f.Panels[0].(chart.Lines)
	lines.Title = "Sleep of five clients, logarithmic"
	lines.Y.Log = true
	lines.References = append(lines.References, chart.Reference{Name: "the longest sleep that the strategy allows", Y: []float64{30}})
	return chart.Figure{
		Title: "Five clients",
		Panels: []chart.Panel{
			lines,
			chart.Lines{
				Title: "Rejects when clients join", X: chart.Axis{Label: "clients", Log: true}, Y: chart.Axis{Label: "rejects", Unit: "requests", Log: true},
				Series: []chart.Series{
					{Name: "backoff", X: []float64{1, 10, 100, 1000}, Y: []float64{90, 880, 9100, 88000}},
					{Name: "proportional", X: []float64{1, 10, 100, 1000}, Y: []float64{4, 60, 800, 12000}},
					{Name: "ours", X: []float64{1, 10, 100, 1000}, Y: []float64{1, 10, 240, 3800}},
					{Name: "once measured", X: []float64{30}, Y: []float64{100}},
				},
			},
			chart.Bars{Title: "Requests in the first hour", Value: chart.Axis{Label: "accepted", Unit: "requests"}, Descending: true, Bars: []chart.Bar{
				{Name: "one", Value: 4500}, {Name: "two", Value: 4499}, {Name: "none", Value: 0},
			}},
		},
	}
}
