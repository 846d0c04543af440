package bench

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
)

// LLMProducedRow is about a client of a server that counts output as it is produced. There is a row
// for each length of the answers. Counts are sums over the seeds, and times and percentages are
// means.
type LLMProducedRow struct {
	Name     string `json:"name"`
	Note     string `json:"note"`
	Outputs  string `json:"outputs"`
	Prompts  int    `json:"prompts"` // of each run
	Rejected int    `json:"rejected"`
	// Seconds is the time until the last answer, and Ideal the least that it could have been. Steady
	// is how many percent of the refill were used after the first minute; it is 0 if the run did not
	// last for longer than that.
	Seconds float64 `json:"seconds"`
	Ideal   float64 `json:"ideal_seconds"`
	Steady  float64 `json:"steady_percent"`
}

const (
	producedLimit = 8000
	producedMost  = 4096
	producedSpeed = 150
	producedWay   = 20 * time.Millisecond
)

var producedPolicies = []struct {
	name, note string
	limiter    func() (limit.Limiter, error)
}{
	{"paceline-produced", "no answer is produced at more than 500 tokens a second, and a request arrives within 1 s " +
		"(limit.Produced)", func() (limit.Limiter, error) {
		return limit.NewProduced(limit.ProducedConfig{Limit: producedLimit, Window: llmWindow})
	}},
	{"paceline-produced-unpromised", "whatever they are produced at, and whenever they arrive",
		func() (limit.Limiter, error) {
			return limit.NewProduced(limit.ProducedConfig{Limit: producedLimit, Window: llmWindow, PerSecond: -1, Within: -1})
		}},
	{"paceline-reserved", "max_tokens is reserved until the answer (limit.Bucket)", func() (limit.Limiter, error) {
		return limit.NewBucket(limit.BucketConfig{Limit: producedLimit, Window: llmWindow, Unit: limit.Output})
	}},
}

func producedRows(ctx context.Context, seeds int) (rows []LLMProducedRow, err error) {
	for _, prompts := range []int{40, 400} {
		for _, outputs := range []sim.LLMOutputs{sim.Short, sim.Longest, sim.Bimodal, sim.Growing} {
			for _, p := range producedPolicies {
				row := LLMProducedRow{Name: p.name, Note: p.note, Outputs: outputs.String(), Prompts: prompts}
				for seed := range seeds {
					if ctx.Err() != nil {
						return nil, ctx.Err()
					}
					l, err := p.limiter()
					if err != nil {
						return nil, err
					}
					got, err := sim.LLMProduced{Prompts: prompts, Limit: producedLimit, Window: llmWindow, MaxTokens: producedMost,
						Outputs:   outputs,
						PerSecond: producedSpeed, Way: producedWay, Limiter: l, Seed: uint64(seed + 1)}.Run()
					if err != nil {
						return nil, err
					}
					row.Rejected += got.Rejected
					row.Seconds += got.End.Seconds() / float64(seeds)
					row.Ideal += got.Ideal.Seconds() / float64(seeds)
					row.Steady += 100 * got.Steady / float64(seeds)
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

var producedColumns = []column[LLMProducedRow]{
	{"prompts", func(p *LLMProducedRow) string { return strconv.Itoa(p.Prompts) }},
	{"outputs", func(p *LLMProducedRow) string { return p.Outputs }},
	{"policy", func(p *LLMProducedRow) string { return p.Name }},
	{"429", func(p *LLMProducedRow) string { return strconv.Itoa(p.Rejected) }},
	{"seconds", func(p *LLMProducedRow) string { return fixed(p.Seconds, 1) }},
	{"ideal s", func(p *LLMProducedRow) string { return fixed(p.Ideal, 1) }},
	{"% of refill", func(p *LLMProducedRow) string {
		if p.Steady == 0 {
			return ""
		}
		return fixed(p.Steady, 1)
	}},
}

func (r *LLM) writeProduced(w io.Writer, para func(string, ...any)) error {
	para("Output that counts as it is produced: %d tokens a minute, prompts of up to %d that are produced at %d a "+
		"second, all made at once; a request is refused when not one token is there as it arrives. short: 300 each; "+
		"bimodal: 20 or %d; growing: 20, 60, 100 and so on. %% of refill: what was used of it from the first minute on.",
		producedLimit, producedMost, producedSpeed, producedMost)
	fmt.Fprintln(w)
	if err := writeTable(w, producedColumns, r.Produced); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var notes screen.Table
	for _, p := range producedPolicies {
		notes.Row(p.name, p.note)
	}
	return notes.Write(w, screen.TableWidth)
}
