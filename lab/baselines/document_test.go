package baselines

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Page is docs/published.md before it is Markdown.
type Page struct {
	Seeds     int
	Documents []Document
	// Runs and Jitter are about the gem, with the quantiles of our runs.
	Runs   []GemRun
	Jitter []GemJitter
}

// Document is one published system.
type Document struct {
	Name   string // what the system is
	About  string // how it is rerun
	Claims []Claim
	Tables []Table
}

// Claim is a claim of a document, and what came of it in the rerun.
type Claim struct {
	Claim   string // in words, with its figure
	Setup   string // the claim's own set-up, as far as the document tells it
	Rerun   string
	Verdict Verdict // follows from the rerun
	Why     string
	written Verdict // the verdict that Why was written for
}

// Table has figures to read that go beyond what a claim needs.
type Table struct {
	Title   string
	Heading []string
	Rows    [][]string
}

// Verdict is what a rerun makes of a claim.
type Verdict string

const (
	Confirmed Verdict = "confirmed"
	InPart    Verdict = "in part"
	Refuted   Verdict = "refuted"
)

// judge returns Confirmed if all holds, and Refuted if nothing does.
func judge(holds ...bool) Verdict {
	n := 0
	for _, h := range holds {
		if h {
			n++
		}
	}
	switch n {
	case len(holds):
		return Confirmed
	case 0:
		return Refuted
	}
	return InPart
}

// near tells whether a is b, give or take a share of b.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// Quantiles are quantiles of our runs, one run per seed.
type Quantiles struct {
	P5, P50, P95 float64
}

func quantiles(values []float64) Quantiles {
	slices.Sort(values)
	// the value at the quantile, or the nearest below it
	at := func(q float64) float64 { return values[int(q*float64(len(values)-1))] }
	return Quantiles{at(0.05), at(0.5), at(0.95)}
}

func of(runs []fleet.Report, value func(*fleet.Report) float64) Quantiles {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = value(&runs[i])
	}
	return quantiles(values)
}

func (q Quantiles) text(digits int) string {
	return fmt.Sprintf("%.*f / %.*f / %.*f", digits, q.P5, digits, q.P50, digits, q.P95)
}

// hours writes quantiles of seconds as hours.
func (q Quantiles) hours() string {
	return Quantiles{q.P5 / 3600, q.P50 / 3600, q.P95 / 3600}.text(2)
}

// has tells whether a published value lies within the spread of ours.
func (q Quantiles) has(published float64) bool { return q.P5 <= published && published <= q.P95 }

func retry(r *fleet.Report) float64 { return r.RetryPercent }
func sleep(r *fleet.Report) float64 { return r.Sleep.Max }
func sd(r *fleet.Report) float64    { return r.RequestSD }

// clear is how long it took to serve everything, or how long the run waited for that.
func clear(r *fleet.Report) float64 {
	if r.Clear == nil {
		return r.Seconds
	}
	return *r.Clear
}

// run has the settings that all reruns share.
type run struct {
	ctx   context.Context
	seeds int
}

// fleets runs each scenario with seeds 1 to r.seeds, on all cores.
func (r *run) fleets(scenarios []fleet.Scenario) ([][]fleet.Report, error) {
	reports := make([][]fleet.Report, len(scenarios))
	err := parallel.OnAll(r.ctx, r.seeds*len(scenarios), parallel.Each(func(i int) (func(), error) {
		s := scenarios[i/r.seeds]
		s.Seed = uint64(i%r.seeds + 1)
		report, err := compare.RunScenario(r.ctx, s, nil)
		return func() { reports[i/r.seeds] = append(reports[i/r.seeds], report) }, err
	}))
	return reports, err
}

// Run reruns everything, with so many seeds of what is short.
func Run(ctx context.Context, seeds int) (*Page, error) {
	p := &Page{Seeds: seeds}
	r := &run{ctx, seeds}
	for _, rerun := range []func(*run, *Page) (Document, error){exchangeClient, gem, demo, gates, counters} {
		d, err := rerun(r, p)
		if err != nil {
			return nil, err
		}
		p.Documents = append(p.Documents, d)
	}
	return p, nil
}

// summary counts the verdicts.
func (p *Page) summary() string {
	n := map[Verdict]int{}
	all := 0
	for _, d := range p.Documents {
		for _, c := range d.Claims {
			n[c.Verdict]++
			all++
		}
	}
	return fmt.Sprintf("%d claims: %d confirmed, %d in part, %d refuted", all, n[Confirmed], n[InPart], n[Refuted])
}
