package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// LLM is what `paceline-lab bench llm -o json` prints. Fields are only ever added to.
type LLM struct {
	Policies []LLMRow `json:"policies"`
	// Produced is about a server that counts output as it is produced.
	Produced []LLMProducedRow `json:"produced"`
	Prompts  int              `json:"prompts"` // of each run
	Seeds    int              `json:"seeds"`
	Wall     float64          `json:"wall_seconds"`
}

// LLMRow is a policy under one kind of arrivals: counts are sums over the seeds, times and
// percentages their means, worst windows the largest of all.
type LLMRow struct {
	Name     string `json:"name"`
	Arrivals string `json:"arrivals"`
	Note     string `json:"note"`
	Filled   int    `json:"filled"` // how many of those that wait may go ahead of the first one: GateConfig.Fill
	Stated   bool   `json:"stated"` // answers say for how long the server worked on them
	// Documented says that the server has a bucket of requests and one of tokens, and counts the
	// larger of input and max_tokens as the tokens of a request, as OpenAI documents.
	Documented bool `json:"documented,omitempty"`
	Sent       int  `json:"sent"` // attempts
	Rejected   int  `json:"rejected"`
	Lost       int  `json:"lost"` // prompts that were never answered
	// Seconds is the time from the start until the last prompt that was served arrived. Ideal is the
	// least time in which anybody could have sent those prompts: sim.LLM.Ideal.
	Seconds        float64 `json:"seconds"`
	Ideal          float64 `json:"ideal_seconds"`
	PercentOfIdeal float64 `json:"percent_of_ideal"`
	// WorstRequests and WorstTokens are how much arrived in the fullest window, in percent of the
	// limit. Refused prompts count, too.
	WorstRequests       float64 `json:"worst_window_requests_percent"`
	WorstTokens         float64 `json:"worst_window_tokens_percent"`
	WakeUpsPerAdmission float64 `json:"wakeups_per_admission"`
	// Wait is from the making of a prompt to the sending that was served.
	Wait LLMWait `json:"wait_ms"`
	// Overrun is about answers with more tokens than were reserved.
	OverrunPercent float64 `json:"overrun_percent"` // of the answers
	OverrunTokens  float64 `json:"overrun_tokens"`  // by how many tokens on average
	OverrunMost    int64   `json:"overrun_tokens_most"`
	Overtaken      int64   `json:"overtaken_tokens_most"` // the most tokens of later prompts that went ahead of one prompt
}

// LLMWait sums up waits, in milliseconds.
type LLMWait struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// LLMArrivals are the loads of the table.
var LLMArrivals = []sim.LLMArrivals{sim.AtOnce, sim.Uniform, sim.Bursts, sim.Mixed}

// The limits of the table.
const (
	llmRequests = 500
	llmTokens   = 30_000
	llmWindow   = time.Minute
)

type llmPolicy struct {
	name, note string
	client     sim.LLMClient
	stated     bool
	documented bool // the server
}

func llmPolicies() []llmPolicy {
	const (
		filled   = "filled from the next 64 (GateConfig.Fill); "
		strict   = "strictly first come, first served; "
		stated   = "the server's answers say how long it worked"
		unstated = "nothing is known but when the answer came"
		fill     = 64
	)
	// with 0.95 the limit is used as fully as with 0.9, and there are a tenth of the refusals
	estimated := sim.LLMLine{Reserve: sim.Estimated, Seen: seenShares(), Fill: fill}
	documented := sim.LLMLine{Reserve: sim.AsDocumented, Fill: fill}
	return []llmPolicy{
		// The policy that users get comes first.
		{"paceline-bounded-unstated", "input and max_tokens; " + filled + unstated,
			sim.LLMLine{Reserve: sim.Bounded, Fill: fill}, false, false},
		{"seed-gates", "as described; refused twice is lost", sim.LLMGates{}, true, false},
		{"seed-gates-100", "with at most 100 in flight, counted behind that, as released", sim.LLMGates{Concurrency: 100},
			true, false},
		{"seed-gates-retried", "as released, and the caller calls again until it is answered",
			sim.LLMGates{Concurrency: 100, Again: true}, true, false},
		{"bucket-full", "the cookbook's: full at the start, max_tokens, polls every ms, pauses 15 s", sim.LLMBucket{}, true,
			false},
		{"paceline-exact", "usage known; " + filled + stated, sim.LLMLine{Fill: fill}, true, false},
		{"paceline-bounded", "input and max_tokens; " + filled + stated, sim.LLMLine{Reserve: sim.Bounded, Fill: fill},
			true, false},
		{"paceline-estimated", "input and the 0.95 quantile of what is used of max_tokens; " + filled + stated, estimated,
			true, false},
		{"paceline-exact-strict", "usage known; " + strict + stated, sim.LLMLine{}, true, false},
		{"paceline-bounded-strict", "input and max_tokens; " + strict + stated, sim.LLMLine{Reserve: sim.Bounded}, true,
			false},
		{"paceline-exact-unstated", "usage known; " + filled + unstated, sim.LLMLine{Fill: fill}, false, false},
		{"paceline-exact-strict-unstated", "usage known; " + strict + unstated, sim.LLMLine{}, false, false},
		{"bucket-full-documented", "the same loop, against the server that OpenAI documents", sim.LLMBucket{}, true, true},
		{"paceline-documented", "what that server counts; " + filled + unstated, documented, false, true},
	}
}

// seenShares is what an estimator has learned from 500 answers of an earlier run, drawn with another seed.
func seenShares() (shares []float64) {
	for _, p := range (sim.LLMWork{Prompts: 500, Seed: 1 << 40}).Make() {
		shares = append(shares, float64(p.Output)/float64(p.MaxTokens))
	}
	return shares
}

// RunLLM runs every policy under every kind of arrivals with seeds 1 to seeds, on all cores.
func RunLLM(ctx context.Context, prompts, seeds int, arrivals []sim.LLMArrivals, progress func(done, all int)) (LLM,
	error) {
	began := time.Now()
	r := LLM{Prompts: prompts, Seeds: seeds}
	all, err := RunPolicies(ctx, prompts, seeds, arrivals, progress)
	if err != nil {
		return LLM{}, err
	}
	for i := range all {
		r.Policies = append(r.Policies, all[i].Row)
	}
	if r.Produced, err = producedRows(ctx, seeds); err != nil {
		return LLM{}, err
	}
	r.Wall = time.Since(began).Seconds()
	return r, nil
}

// LLMRuns are the runs of a row, by their seeds.
type LLMRuns struct {
	Row     LLMRow
	Runs    []sim.LLM
	Tallies []sim.LLMTally
}

// RunPolicies runs the policies of RunLLM; if only names some, those alone.
func RunPolicies(ctx context.Context, prompts, seeds int, arrivals []sim.LLMArrivals, progress func(done, all int),
	only ...string) ([]LLMRuns, error) {
	policies := slices.DeleteFunc(llmPolicies(),
		func(p llmPolicy) bool { return len(only) > 0 && !slices.Contains(only, p.name) })
	done := 0
	rows := len(arrivals) * len(policies)
	runs := make([]sim.LLM, rows*seeds)
	tallies := make([]sim.LLMTally, rows*seeds)
	err := parallel.OnAll(ctx, rows*seeds, parallel.Each(func(i int) (func(), error) {
		row, seed := i/seeds, uint64(i%seeds+1)
		p, a := policies[row%len(policies)], arrivals[row/len(policies)]
		x := sim.LLM{
			Work:     sim.LLMWork{Prompts: prompts, Arrivals: a, Seed: seed}.Make(),
			Requests: llmRequests, Tokens: llmTokens, Window: llmWindow,
			Latency: latency.Lognormal(800*time.Millisecond, 8*time.Second),
			Forward: latency.Uniform(5*time.Millisecond, 40*time.Millisecond),
			Back:    latency.Uniform(5*time.Millisecond, 40*time.Millisecond),
			Stated:  p.stated, Documented: p.documented, Client: p.client, Seed: seed,
		}
		t, err := x.Run()
		return func() {
			runs[i], tallies[i] = x, t
			if done++; progress != nil {
				progress(done, rows*seeds)
			}
		}, err
	}))
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	all := make([]LLMRuns, rows)
	for i := range all {
		r := LLMRuns{Runs: runs[i*seeds : (i+1)*seeds], Tallies: tallies[i*seeds : (i+1)*seeds]}
		r.Row = llmRow(policies[i%len(policies)], arrivals[i/len(policies)], r.Runs, r.Tallies)
		all[i] = r
	}
	return all, nil
}

func llmRow(p llmPolicy, a sim.LLMArrivals, runs []sim.LLM, tallies []sim.LLMTally) LLMRow {
	row := LLMRow{Name: p.name, Note: p.note, Arrivals: a.String(), Stated: p.stated, Documented: p.documented}
	if line, ok := p.client.(sim.LLMLine); ok {
		row.Filled = line.Fill
	}
	n := float64(len(runs))
	var wakeUps, answered, overruns int
	var overrun int64
	var waits []time.Duration
	for i, t := range tallies {
		ideal := runs[i].Ideal(func(k int) bool { return t.Waits[k] >= 0 }).Seconds()
		last := t.Last.Sub(0).Seconds()
		row.Seconds += last / n
		row.Ideal += ideal / n
		if last > 0 {
			row.PercentOfIdeal += 100 * ideal / last / n
		}
		row.Sent += t.Sent
		row.Rejected += t.Rejected
		row.Lost += t.Lost
		row.WorstRequests = max(row.WorstRequests, 100*float64(t.WorstRequests)/llmRequests)
		row.WorstTokens = max(row.WorstTokens, 100*float64(t.WorstTokens)/llmTokens)
		row.OverrunMost = max(row.OverrunMost, t.Overrun)
		row.Overtaken = max(row.Overtaken, t.Overtaken)
		wakeUps += t.WakeUps
		answered += t.Prompts - t.Lost
		overruns += t.Overruns
		overrun += t.OverrunTokens
		for _, w := range t.Waits {
			if w >= 0 {
				waits = append(waits, w)
			}
		}
	}
	row.WakeUpsPerAdmission = float64(wakeUps) / float64(max(row.Sent, 1))
	row.OverrunPercent = 100 * float64(overruns) / float64(max(answered, 1))
	row.OverrunTokens = float64(overrun) / float64(max(overruns, 1))
	if slices.Sort(waits); len(waits) > 0 {
		at := func(q float64) float64 {
			return float64(waits[min(int(q*float64(len(waits))), len(waits)-1)]) / float64(time.Millisecond)
		}
		row.Wait = LLMWait{at(0.5), at(0.99), at(1)}
	}
	return row
}

// Failed says which row of ours did something that must not happen, and what. It returns "" if all is well.
func (r *LLM) Failed() string {
	for _, p := range r.Policies {
		most := 0.0
		switch p.Name {
		case "seed-gates", "seed-gates-100", "seed-gates-retried", "bucket-full", "bucket-full-documented":
			continue
		case "paceline-estimated":
			most = max(2, 0.001*float64(r.Prompts*r.Seeds)) // in a short run there may be some by chance
		}
		if p.Lost > 0 || float64(p.Rejected) > most {
			return fmt.Sprintf("%s, %s: %d rejected, %d lost", p.Name, p.Arrivals, p.Rejected, p.Lost)
		}
	}
	for _, p := range r.Produced {
		if p.Rejected > 0 {
			return fmt.Sprintf("%s, %s: %d rejected", p.Name, p.Outputs, p.Rejected)
		}
	}
	return ""
}

// llmColumns are the columns for people: they fit 100 characters. The JSON has all figures.
var llmColumns = []column[LLMRow]{
	{"arrivals", func(r *LLMRow) string { return r.Arrivals }},
	{"policy", func(r *LLMRow) string { return r.Name }},
	{"429", func(r *LLMRow) string { return strconv.Itoa(r.Rejected) }},
	{"lost", func(r *LLMRow) string { return strconv.Itoa(r.Lost) }},
	{"seconds", func(r *LLMRow) string { return fixed(r.Seconds, 0) }},
	{"% ideal", func(r *LLMRow) string { return fixed(r.PercentOfIdeal, 2) }},
	{"wait s p50", func(r *LLMRow) string { return fixed(r.Wait.P50/1000, 1) }},
	{"wait s p99", func(r *LLMRow) string { return fixed(r.Wait.P99/1000, 1) }},
}

// WriteText writes the tables for people, within 100 columns.
func (r *LLM) WriteText(w io.Writer) error {
	para := func(format string, args ...any) {
		fmt.Fprintln(w, screen.Wrap(fmt.Sprintf(format, args...), screen.TableWidth, ""))
	}
	para("llm: %d requests and %d tokens in any minute, counted at arrival with actual tokens; %d prompts, %d seeds, "+
		"virtual time",
		llmRequests, llmTokens, r.Prompts, r.Seeds)
	for from := 0; from < len(r.Policies); {
		to := from + 1
		for to < len(r.Policies) && r.Policies[to].Arrivals == r.Policies[from].Arrivals {
			to++
		}
		fmt.Fprintln(w)
		if err := writeTable(w, llmColumns, r.Policies[from:to]); err != nil {
			return err
		}
		from = to
	}
	fmt.Fprintln(w)
	var notes screen.Table
	seen := map[string]bool{}
	for k := range r.Policies {
		if p := &r.Policies[k]; !seen[p.Name] {
			seen[p.Name] = true
			notes.Row(p.Name, p.Note)
		}
	}
	if err := notes.Write(w, screen.TableWidth); err != nil {
		return err
	}
	fmt.Fprintln(w)
	para("The rows that end in -documented are against the server that OpenAI documents: a bucket of %d requests and "+
		"one of %d tokens, refilled evenly within a minute, of which a request takes the larger of input and max_tokens. "+
		"Their ideal is of that, too. Where prompts were lost, seconds and ideal are of those that were served.",
		llmRequests, llmTokens)
	fmt.Fprintln(w)
	if err := r.writeProduced(w, para); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nin %s s of wall time\n", fixed(r.Wall, 1))
	return err
}
