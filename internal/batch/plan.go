package batch

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

// Plan is what a run has before it, by the limits. Fields are only ever added.
type Plan struct {
	Format     string `json:"format"`
	Requests   int    `json:"requests"`    // to be sent
	DoneBefore int    `json:"done_before"` // in the results
	DeadBefore int    `json:"dead_before"` // in the dead letters, and not to be tried again
	Invalid    int    `json:"invalid"`     // lines that are passed over
	Keys       int    `json:"keys"`
	InFlight   int    `json:"in_flight"`

	// Of batches for language models, in tokens. Output is what the requests allow themselves, Expected what is likely by
	// the answers in the results so far; there is none before the first.
	Count     string      `json:"count,omitempty"` // what the server is taken to count
	Input     int64       `json:"input_tokens,omitempty"`
	Output    int64       `json:"output_tokens_max,omitempty"`
	Expected  *int64      `json:"output_tokens_expected,omitempty"`
	Answers   int         `json:"answers_so_far,omitempty"` // that Expected is from
	Unbounded int         `json:"unbounded,omitempty"`      // requests that do not bound their output
	Models    []PlanModel `json:"models,omitempty"`         // most requests first
	Largest   *PlanOne    `json:"largest,omitempty"`

	// USD are there if the prices of all models are known. PricesAsOf is when those that were published were looked up, of whom
	// PricesOf; empty: they were given. Unpriced are models of which no price is known.
	USDMax      *float64 `json:"usd_max,omitempty"`
	USDExpected *float64 `json:"usd_expected,omitempty"`
	PricesOf    string   `json:"prices_of,omitempty"`
	PricesAsOf  string   `json:"prices_as_of,omitempty"`
	Unpriced    []string `json:"unpriced,omitempty"`

	// Batch is the same sent by the provider's own batch API, if it is the provider's and that has one.
	Batch *PlanBatch `json:"batch_api,omitempty"`

	Limits []PlanLimit `json:"limits"`
	// Seconds is what the limits alone take, from the first request that is sent to the last. AnswerWithin is how long an
	// answer may take on the average without InFlight slowing that down; 0: any time.
	Seconds      float64   `json:"seconds"`
	Finish       time.Time `json:"finish"`
	AnswerWithin float64   `json:"answer_within_seconds,omitempty"`

	// Alone is what each model takes by itself, longest first, where there are several and the provider may have limits of each. Models that
	// share limits are one, by the name of their family. LimitsOf is the provider; empty: nobody knows whether it has. EachModel: the run
	// has the limits for each of them; otherwise it keeps to those of one for all of them together.
	Alone     []PlanAlone `json:"each_model_alone,omitempty"`
	LimitsOf  string      `json:"limits_of,omitempty"`
	EachModel bool        `json:"limits_of_each_model,omitempty"`

	// Until is when no more is sent.
	Until *time.Time `json:"until,omitempty"`

	Lines          int     `json:"lines"` // of the input, and how long it took to read them
	Bytes          int64   `json:"bytes"`
	ReadingSeconds float64 `json:"reading_seconds"`

	// Notes are what a person should know besides.
	Notes []string `json:"notes,omitempty"`
}

// PlanModel is a model's part of a Plan.
type PlanModel struct {
	Model    string `json:"model"`
	Requests int    `json:"requests"`
	Input    int64  `json:"input_tokens"`
	Output   int64  `json:"output_tokens_max"`

	// USD are there if the model's prices are known.
	USDMax      *float64 `json:"usd_max,omitempty"`
	USDExpected *float64 `json:"usd_expected,omitempty"`
	USDInput    *float64 `json:"usd_per_million_input,omitempty"`
	USDOutput   *float64 `json:"usd_per_million_output,omitempty"`

	// Note is what the prices do not say.
	Note string `json:"note,omitempty"`

	expected int64 // tokens out
	bytes    int64 // of its lines
	cost     limit.Cost
}

// PlanAlone is what the limits take if they let nothing go but what is for one model.
type PlanAlone struct {
	Model    string  `json:"model"`
	Requests int     `json:"requests"`
	Limit    string  `json:"limit,omitempty"` // that binds; empty: all goes at once
	Seconds  float64 `json:"seconds"`
}

// PlanBatch is what a provider's own batch API would take.
type PlanBatch struct {
	Provider    string   `json:"provider"`
	USDMax      *float64 `json:"usd_max,omitempty"` // after the discount, if prices are known
	USDExpected *float64 `json:"usd_expected,omitempty"`
	Discount    float64  `json:"discount"` // of the price, at best
	WithinHours float64  `json:"within_hours"`
	Files       int      `json:"files,omitempty"` // by the most requests and bytes of one; 0: not known
	Docs        string   `json:"docs"`
}

// PlanOne is a request of a Plan.
type PlanOne struct {
	ID     string `json:"id"`
	Line   int    `json:"line"`
	Tokens int64  `json:"tokens"` // as the server counts them
}

// PlanLimit is what one limit takes.
type PlanLimit struct {
	Limit   string  `json:"limit"`
	Unit    string  `json:"unit"`
	Model   string  `json:"model,omitempty"` // that takes longest, where each model has the limit for itself
	Cost    int64   `json:"cost"`            // of all requests, with Expected if it is known and the server counts what was used
	Seconds float64 `json:"seconds"`
	Binds   bool    `json:"binds"`
}

// planning adds up a Plan while the input is read.
type planning struct {
	plan     Plan
	cost     limit.Cost
	models   map[string]*PlanModel
	again    bool // the input can be read by several at once
	answers  int
	output   int64 // of answers
	expected int64
}

// mostModels bounds the memory for models that somebody made up: those beyond are one.
const (
	mostModels  = 100
	otherModels = "others"
)

// learn takes in a result of the runs before.
func (p *planning) learn(e entry) {
	if n, ok := outputOf(e.body); ok {
		p.answers++
		p.output += n
	}
}

// add puts a request, whose line has size bytes, into the plan unless it has ended before.
func (p *planning) add(r *Run, q *Request, size int64) {
	switch r.tally.past(r.tally.ledger[q.digest]) {
	case &r.tally.totals.SkippedDone:
		p.plan.DoneBefore++
		return
	case &r.tally.totals.SkippedDead:
		p.plan.DeadBefore++
		return
	}
	p.plan.Requests++
	add(&p.cost, q.Cost, 1)
	if _, ok := r.c.Format.(*LLM); !ok {
		return
	}
	e := q.Estimate
	p.plan.Input += e.Input
	p.plan.Output += e.MaxOutput
	expected := int64(0)
	if p.answers > 0 {
		expected = min(p.output/int64(p.answers), e.MaxOutput)
		p.expected += expected
	}
	if q.Unbounded {
		p.plan.Unbounded++
	}
	n := q.Cost[limit.Tokens]
	if p.plan.Largest == nil || n > p.plan.Largest.Tokens {
		p.plan.Largest = &PlanOne{q.ID, q.Line, n}
	}
	name := e.Model
	if p.models[name] == nil && len(p.models) >= mostModels {
		name = otherModels
	}
	m := p.models[name]
	if m == nil {
		m = &PlanModel{Model: name}
		p.models[name] = m
	}
	m.Requests++
	m.Input += e.Input
	m.Output += e.MaxOutput
	m.expected += expected
	m.bytes += size
	add(&m.cost, q.Cost, 1)
}

// Plan says what the run has before it, after Check.
func (r *Run) Plan(now time.Time) Plan {
	p := r.planning
	plan := p.plan
	plan.Format, plan.Invalid, plan.Keys, plan.InFlight = "jsonl", r.tally.totals.Invalid, len(r.c.Keys), r.c.Concurrency
	cost := p.cost
	if l, ok := r.c.Format.(*LLM); ok {
		plan.Format, plan.Count = l.c.Provider.String(), l.Count().String()
		for _, m := range p.models {
			plan.Models = append(plan.Models, *m)
		}
		slices.SortFunc(plan.Models, func(a, b PlanModel) int {
			return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Model, b.Model))
		})
		r.priced(&plan)
		plan.Batch = l.ownBatch(&plan)
		if p.answers > 0 {
			plan.Expected, plan.Answers = &p.expected, p.answers
			if l.Count().Corrected() {
				cost[limit.Output] = p.expected
				cost[limit.Tokens] = cost[limit.Input] + p.expected
			}
		}
		r.alone(l, &plan)
	}
	names, costs := r.eachModel(plan.Expected != nil)
	plan.EachModel = len(names) > 1
	if len(names) == 0 {
		names, costs = []string{""}, map[string]*limit.Cost{"": &cost}
	}
	longest, binds := time.Duration(-1), -1
	for _, l := range r.c.Limits {
		d, of, all := time.Duration(-1), "", int64(0)
		for n, name := range names {
			i := slices.Index(limitsOf(r.c.Limits, name), l)
			if i < 0 {
				continue
			}
			room := l.most() * int64(len(r.c.Keys))
			if n < len(r.groups) { // it is open
				room = r.groups[n].rooms[i]
			}
			all += costs[name][l.Unit]
			if t := l.takes(costs[name][l.Unit], len(r.c.Keys), room); t > d {
				d, of = t, name
			}
		}
		if d < 0 {
			continue // nothing is for that model
		}
		row := PlanLimit{Limit: l.Text, Unit: l.Unit.String(), Cost: all, Seconds: d.Seconds()}
		if plan.EachModel {
			row.Model = of
		}
		plan.Limits = append(plan.Limits, row)
		if d > longest {
			longest, binds = d, len(plan.Limits)-1
		}
	}
	if longest > 0 {
		plan.Limits[binds].Binds = true
		plan.Seconds = longest.Seconds()
		plan.AnswerWithin = float64(plan.InFlight) * plan.Seconds / float64(plan.Requests)
	}
	plan.Finish = now.Add(max(longest, 0))
	if at := r.c.Until; !at.IsZero() {
		plan.Until = &at
	}
	return plan
}

// priced puts prices on a plan's models, and on all of it if all of them have some.
func (r *Run) priced(plan *Plan) {
	most, expected := 0.0, 0.0
	for i := range plan.Models {
		m := &plan.Models[i]
		p, note, known := r.pricesOf(m.Model)
		if !known {
			plan.Unpriced = append(plan.Unpriced, m.Model)
			continue
		}
		usd := [...]float64{p.usd(m.Input, m.Output), p.usd(m.Input, m.expected), p.Input, p.Output}
		m.Note, m.USDMax, m.USDInput, m.USDOutput = note, &usd[0], &usd[2], &usd[3]
		if r.planning.answers > 0 {
			m.USDExpected = &usd[1]
		}
		most, expected = most+usd[0], expected+usd[1]
	}
	if l := r.c.Format.(*LLM); !r.c.Prices.given() && len(plan.Unpriced) < len(plan.Models) {
		row, _ := quota.LookupProvider(l.seller)
		plan.PricesOf, plan.PricesAsOf = row.Name, row.ModelsAsOf
	}
	if len(plan.Unpriced) > 0 || len(plan.Models) == 0 && !r.c.Prices.given() {
		return
	}
	plan.USDMax = &most
	if r.planning.answers > 0 {
		plan.USDExpected = &expected
	}
}

// ownBatch is what a plan would be by the provider's own batch API.
func (l *LLM) ownBatch(plan *Plan) *PlanBatch {
	row, _ := quota.LookupProvider(l.seller)
	api := row.Batch
	if !l.own || api == nil || plan.Requests == 0 {
		return nil
	}
	b := &PlanBatch{Provider: row.Title, Discount: api.Discount, WithinHours: api.Within.Hours(), Docs: api.Docs}
	less := func(usd *float64) *float64 {
		if usd == nil {
			return nil
		}
		n := *usd * (1 - api.Discount)
		return &n
	}
	b.USDMax, b.USDExpected = less(plan.USDMax), less(plan.USDExpected)
	if api.Requests == 0 && api.Bytes == 0 {
		return b
	}
	files := func(requests int, bytes int64) int {
		n := 1
		if api.Requests > 0 {
			n = max(n, int((int64(requests)+api.Requests-1)/api.Requests))
		}
		if api.Bytes > 0 {
			n = max(n, int((bytes+api.Bytes-1)/api.Bytes))
		}
		return n
	}
	var bytes int64
	for _, m := range plan.Models {
		bytes += m.bytes
		if l.c.Provider == OpenAI { // whose files have one model each
			b.Files += files(m.Requests, m.bytes)
		}
	}
	if l.c.Provider == Anthropic {
		b.Files = files(plan.Requests, bytes)
	}
	return b
}

// likely is what a model's requests cost, with the output that answers have taught to expect if there are any.
func (l *LLM) likely(m *PlanModel, expected bool) limit.Cost {
	cost := m.cost
	if expected && l.Count().Corrected() {
		cost[limit.Output] = m.expected
		cost[limit.Tokens] = cost[limit.Input] + m.expected
	}
	return cost
}

// alone says what each model takes by itself.
func (r *Run) alone(l *LLM, plan *Plan) {
	row, known := quota.LookupProvider(l.c.LimitsOf)
	if known && row.Limited != quota.Model || len(r.c.Limits) == 0 {
		return
	}
	if names, _ := r.eachModel(false); slices.Contains(names, otherModels) {
		return // the others are not alone
	}
	costs, index := []limit.Cost(nil), map[string]int{}
	for _, m := range plan.Models {
		name := l.sharedModel(m.Model)
		i, seen := index[name]
		if !seen {
			i = len(costs)
			index[name], costs = i, append(costs, limit.Cost{})
			plan.Alone = append(plan.Alone, PlanAlone{Model: name})
		}
		plan.Alone[i].Requests += m.Requests
		add(&costs[i], l.likely(&m, plan.Expected != nil), 1)
	}
	if len(costs) < 2 {
		plan.Alone = nil
		return
	}
	plan.LimitsOf = row.Title
	for i := range plan.Alone {
		a := &plan.Alone[i]
		for _, rate := range limitsOf(r.c.Limits, a.Model) {
			d := rate.takes(costs[i][rate.Unit], len(r.c.Keys), rate.most()*int64(len(r.c.Keys)))
			if s := d.Seconds(); s > a.Seconds {
				a.Seconds, a.Limit = s, rate.Text
			}
		}
	}
	slices.SortStableFunc(plan.Alone, func(a, b PlanAlone) int { return cmp.Compare(b.Seconds, a.Seconds) })
}
