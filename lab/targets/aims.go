package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

// Aim is a scenario and what should be reached in it. Groups without a strategy follow the one that is measured.
type Aim struct {
	Text     string
	Scenario fleet.Scenario
	Figures  []Figure
}

// Figure is something that is measured in each run, and what it should be over the seeds.
type Figure struct {
	Name string
	Of   func(*fleet.Report) float64
	// Median and Worst are what the median and the worst of the seeds should be at most, or at least
	// if AtLeast is set. If they are not a number, there is no aim.
	Median, Worst float64
	AtLeast       bool
	// Open says why the aim is not reached, if that is known. Then missing it is reported, but is no failure.
	Open string
}

// Config says what to run.
type Config struct {
	Strategy strategy.Strategy
	// First and Last are the first and the last seed to run. If zero, 1001 and 1020.
	First, Last uint64
	// Only chooses the scenario of this name or, if there is none, those whose names begin with it.
	Only string
	// Progress, if not nil, is told how many of the runs are finished.
	Progress func(done, all int)
}

// Result is what was measured. Fields are only ever added.
type Result struct {
	Strategy string   `json:"strategy"`
	First    uint64   `json:"first_seed"`
	Last     uint64   `json:"last_seed"`
	Rows     []Row    `json:"rows"`
	Held     int      `json:"held"`   // how many aims are reached
	Missed   []string `json:"missed"` // the aims that are missed, as scenario and figure
	Open     []string `json:"open"`   // the aims that are missed for a reason that is known
	// Interrupted says that the context ended, so that rows are missing.
	Interrupted bool    `json:"interrupted,omitempty"`
	Wall        float64 `json:"wall_seconds"`
}

// Row is what was measured for one aim.
type Row struct {
	Scenario string     `json:"scenario"`
	Text     string     `json:"text"`
	Seeds    int        `json:"seeds"` // how many were run
	Figures  []Measured `json:"figures"`
}

// Measured is the value of a figure beside its aim. Infinite values are nil, and so are aims that do not exist.
type Measured struct {
	Name      string   `json:"name"`
	Median    *float64 `json:"median"`
	Worst     *float64 `json:"worst"`
	AimMedian *float64 `json:"aim_median"`
	AimWorst  *float64 `json:"aim_worst"`
	AtLeast   bool     `json:"at_least,omitempty"`
	// Holds says whether the aim is reached. It is nil if there is no aim.
	Holds *bool  `json:"holds"`
	Open  string `json:"open,omitempty"`
}

// Run measures all figures of the aims that Config chooses. Its error says what cannot be run. If
// ctx ends, it returns the rows that are finished.
func Run(ctx context.Context, c Config) (Result, error) {
	began := time.Now()
	c.First, c.Last = cmp.Or(c.First, 1001), cmp.Or(c.Last, max(c.First, 1020))
	if c.Last < c.First || c.Last-c.First >= 1e6 {
		return Result{}, fmt.Errorf("aims: seeds %d to %d: want the first, and the last of at most a million", c.First,
			c.Last)
	}
	chosen := Chosen(c.Only)
	if len(chosen) == 0 {
		return Result{}, fmt.Errorf("aims: %q: no scenario's name begins with it: there are %s", c.Only,
			strings.Join(names(), ", "))
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
	err := parallel.OnAll(ctx, len(jobs), parallel.Each(func(i int) (func(), error) {
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

// followed returns the scenario of an aim in which groups without a strategy follow the one that is measured.
func (a *Aim) followed(law strategy.Strategy, seed uint64) fleet.Scenario {
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

// Chosen returns the aim whose scenario has that name. If there is none, it returns those whose
// scenarios have names that begin with it.
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

// add adds the row of an aim.
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

// measured compares the values of a figure over the seeds with its aim.
func (f *Figure) measured(values []float64) Measured {
	slices.Sort(values)
	median, worst := values[(len(values)-1)/2], values[len(values)-1] // the lower of two, as in other tables
	if f.AtLeast {
		worst = values[0]
	}
	m := Measured{Name: f.Name, Median: finite(median), Worst: finite(worst), AimMedian: finite(f.Median),
		AimWorst: finite(f.Worst),
		AtLeast:  f.AtLeast, Open: f.Open}
	if m.AimMedian != nil || m.AimWorst != nil {
		m.Holds = new(f.good(median, f.Median) && f.good(worst, f.Worst))
	}
	return m
}

// good tells whether a value reaches its aim. It compares them as they are printed, so a value that
// rounds to its aim is good.
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

// ErrMissed says that aims are missed which are not known to be open.
var ErrMissed = errors.New("aims are missed")

// Check returns an ErrMissed that names the aims which are missed, or nil.
func (r *Result) Check() error {
	if len(r.Missed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrMissed, strings.Join(r.Missed, "; "))
}
