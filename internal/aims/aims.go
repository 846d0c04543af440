// Package aims says what a strategy for strangers who share a quota should reach, and measures whether it does: table.go has
// each aim as a scenario of package fleet with its figures, figures.go how those are measured; aims.go runs them over seeds, and
// write.go shows what came out.
//
// The seeds that a law is judged by are others than it was tuned on: 1001 to 1020 unless somebody says so.
package aims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/cores"
	"github.com/paceline-go/paceline/sim/compare"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

// Aim is a scenario and what should be reached in it. Groups without a strategy follow the one that is measured.
type Aim struct {
	Text     string
	Scenario fleet.Scenario
	Figures  []Figure
}

// Figure is a measure of a run, with its aim over the seeds.
type Figure struct {
	Name string
	Of   func(*fleet.Report) float64
	// Median and Worst are what the median and the worst of the seeds should be at most, or at least if AtLeast is set. If they are not a
	// number, there is no aim.
	Median, Worst float64
	AtLeast       bool
	// Open says why the aim is known not to be reached, if so: a miss is then reported but is no failure.
	Open string
}

// Config says what to run.
type Config struct {
	Strategy throttle.Strategy
	// First and Last are the first and the last seed to run. If zero, 1001 and 1020.
	First, Last uint64
	// Only chooses the scenario of this name or, if there is none, those whose names begin with it.
	Only string
	// Progress, if not nil, is told how many of the runs are finished.
	Progress func(done, all int)
}

// Result is what came out. Fields are only ever added to.
type Result struct {
	Strategy string   `json:"strategy"`
	First    uint64   `json:"first_seed"`
	Last     uint64   `json:"last_seed"`
	Rows     []Row    `json:"rows"`
	Held     int      `json:"held"`   // aims
	Missed   []string `json:"missed"` // scenario and figure
	Open     []string `json:"open"`   // missed, as is known
	// Interrupted says that only what was finished is there.
	Interrupted bool    `json:"interrupted,omitempty"`
	Wall        float64 `json:"wall_seconds"`
}

// Row is an aim's.
type Row struct {
	Scenario string     `json:"scenario"`
	Text     string     `json:"text"`
	Seeds    int        `json:"seeds"` // that were run
	Figures  []Measured `json:"figures"`
}

// Measured is what a figure came to. Infinite ones are null, as aims that are not there.
type Measured struct {
	Name      string   `json:"name"`
	Median    *float64 `json:"median"`
	Worst     *float64 `json:"worst"`
	AimMedian *float64 `json:"aim_median"`
	AimWorst  *float64 `json:"aim_worst"`
	AtLeast   bool     `json:"at_least,omitempty"`
	// Holds is null where there is no aim.
	Holds *bool  `json:"holds"`
	Open  string `json:"open,omitempty"`
}

// Run measures. Its error says what cannot be run. If ctx ends, it returns what was finished.
func Run(ctx context.Context, c Config) (Result, error) {
	began := time.Now()
	c.First, c.Last = cmp.Or(c.First, 1001), cmp.Or(c.Last, max(c.First, 1020))
	if c.Last < c.First || c.Last-c.First >= 1e6 {
		return Result{}, fmt.Errorf("aims: seeds %d to %d: want the first, and the last of at most a million", c.First, c.Last)
	}
	chosen := Chosen(c.Only)
	if len(chosen) == 0 {
		return Result{}, fmt.Errorf("aims: %q: no scenario's name begins with it: there are %s", c.Only, strings.Join(names(), ", "))
	}
	seeds := int(c.Last - c.First + 1)
	jobs := make([]job, 0, len(chosen)*seeds)
	for i, a := range chosen {
		for s := range seeds {
			jobs = append(jobs, job{aim: i, scenario: a.followed(c.Strategy, c.First+uint64(s))})
		}
	}
	values := make([][][]float64, len(chosen)) // by aim, figure and seed
	for i, a := range chosen {
		values[i] = make([][]float64, len(a.Figures))
	}
	done := 0
	err := cores.OnAll(ctx, len(jobs), cores.Each(func(i int) (func(), error) {
		j := jobs[i]
		report, err := compare.RunScenario(ctx, j.scenario, nil)
		if err != nil || !report.Complete {
			return nil, err
		}
		return func() {
			for k, f := range chosen[j.aim].Figures {
				values[j.aim][k] = append(values[j.aim][k], f.Of(&report))
			}
			if done++; c.Progress != nil {
				c.Progress(done, len(jobs))
			}
		}, nil
	}))
	if err != nil {
		return Result{}, err
	}
	r := Result{Strategy: c.Strategy.Name, First: c.First, Last: c.Last, Interrupted: done < len(jobs)}
	for i, a := range chosen {
		if len(a.Figures) > 0 && len(values[i][0]) > 0 {
			r.add(a, values[i])
		}
	}
	r.Wall = time.Since(began).Seconds()
	return r, nil
}

type job struct {
	aim      int
	scenario fleet.Scenario
}

// followed is the scenario with the strategy in it that is measured.
func (a *Aim) followed(law throttle.Strategy, seed uint64) fleet.Scenario {
	s := a.Scenario
	s.Seed = seed
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		if s.Groups[i].Strategy.Name == "" {
			s.Groups[i].Strategy = law
		}
	}
	return s
}

// Chosen returns the aims whose scenario is of that name or, if none is, begins with it.
func Chosen(only string) []Aim {
	all := Table()
	if i := slices.IndexFunc(all, func(a Aim) bool { return a.Scenario.Name == only }); i >= 0 {
		return all[i : i+1]
	}
	return slices.DeleteFunc(all, func(a Aim) bool { return !strings.HasPrefix(a.Scenario.Name, only) })
}

func names() (names []string) {
	for _, a := range Table() {
		names = append(names, a.Scenario.Name)
	}
	return names
}

// add sums up an aim.
func (r *Result) add(a Aim, values [][]float64) {
	row := Row{Scenario: a.Scenario.Name, Text: a.Text, Seeds: len(values[0])}
	for i, f := range a.Figures {
		m := f.measured(values[i])
		row.Figures = append(row.Figures, m)
		switch name := a.Scenario.Name + ": " + f.Name; {
		case m.Holds == nil:
		case *m.Holds:
			r.Held++
		case f.Open != "":
			r.Open = append(r.Open, name)
		default:
			r.Missed = append(r.Missed, name)
		}
	}
	r.Rows = append(r.Rows, row)
}

// measured compares what a figure was over the seeds with its aim.
func (f *Figure) measured(values []float64) Measured {
	slices.Sort(values)
	median, worst := values[(len(values)-1)/2], values[len(values)-1] // the lower of two, as in other tables
	if f.AtLeast {
		worst = values[0]
	}
	m := Measured{Name: f.Name, Median: finite(median), Worst: finite(worst), AimMedian: finite(f.Median), AimWorst: finite(f.Worst),
		AtLeast: f.AtLeast, Open: f.Open}
	if m.AimMedian != nil || m.AimWorst != nil {
		holds := f.good(median, f.Median) && f.good(worst, f.Worst)
		m.Holds = &holds
	}
	return m
}

// good compares figures as they are printed: what rounds to its aim is as good.
func (f *Figure) good(value, aim float64) bool {
	const slack = 1e-9
	switch {
	case math.IsNaN(aim):
		return true
	case f.AtLeast:
		return value >= aim-slack
	}
	return value <= aim+slack
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// ErrMissed is of aims that are missed, and were not known to be.
var ErrMissed = errors.New("aims are missed")

// Check returns ErrMissed, with the names of what is missed.
func (r *Result) Check() error {
	if len(r.Missed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrMissed, strings.Join(r.Missed, "; "))
}
