// Package baselines has what five published systems claim of themselves, each claim with our rerun
// of it in its own set-up, what came of it and why. They are named by what they are. `paceline-lab
// sim published` prints it, and docs/published.md is the same.
//
//	document.go         the page, its documents and their claims
//	claims.md           the texts of claims; claims.go reads them
//	exchange_claims.go  limiters, queues and nonces of an exchange client
//	gem_claims.go       a throttle; its runs are in gem_runs.go, their author's figures in gem_seen.go
//	demo_claims.go      a demonstration of throttles; the ways that its author tried are in demo_tried.go
//	gates.go            two gates before a language model, for requests and for tokens
//	counters.go         a counter of slots
//	document_text.go    puts all of it into words
package baselines

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Page is what `paceline-lab sim published -o json` prints. Fields are only ever added to.
type Page struct {
	Seeds     int        `json:"seeds"`
	Documents []Document `json:"documents"`
	// Runs and Jitter are about the gem, with the quantiles of our runs.
	Runs        []GemRun    `json:"runs"`
	Jitter      []GemJitter `json:"jitter"`
	Interrupted bool        `json:"interrupted,omitempty"`
}

// Document is one published system.
type Document struct {
	Name   string  `json:"name"`  // what the system is
	About  string  `json:"about"` // how it is rerun
	Claims []Claim `json:"claims"`
	Tables []Table `json:"tables,omitempty"`
}

// Claim is a claim of a document, and what came of it in the rerun.
type Claim struct {
	Claim   string  `json:"claim"` // in words, with its figure
	Setup   string  `json:"setup"` // the claim's own set-up, as far as the document tells it
	Rerun   string  `json:"rerun"`
	Verdict Verdict `json:"verdict"` // follows from the rerun
	Why     string  `json:"why"`

	written Verdict // the verdict that Why was written for
}

// Table has figures to read that go beyond what a claim needs.
type Table struct {
	Title   string     `json:"title"`
	Heading []string   `json:"heading"`
	Rows    [][]string `json:"rows"`
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
	P5  float64 `json:"p5"`
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
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
	ctx      context.Context
	seeds    int
	progress func(done, all int)
}

// fleets runs each scenario with every seed.
func (r *run) fleets(scenarios []fleet.Scenario) ([][]fleet.Report, error) {
	reports, err := bench.RunSeeds(r.ctx, scenarios, r.seeds, r.progress)
	if err == nil {
		err = r.ctx.Err()
	}
	return reports, err
}

// Run reruns everything, with so many seeds of what is short. progress, if not nil, is told how far
// the current document is. If ctx ends, Run returns the documents that were finished.
func Run(ctx context.Context, seeds int, progress func(done, all int)) (*Page, error) {
	p := &Page{Seeds: seeds, Documents: []Document{}, Runs: []GemRun{}, Jitter: []GemJitter{}}
	r := &run{ctx, seeds, progress}
	for _, rerun := range []func(*run, *Page) (Document, error){exchangeClient, gem, demo, gates, counters} {
		d, err := rerun(r, p)
		if ctx.Err() != nil {
			p.Interrupted = true
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		p.Documents = append(p.Documents, d)
	}
	return p, nil
}
