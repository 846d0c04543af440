package run

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Plan is what a run would send, its cost, and the time that the limits alone make it take. Fields
// are only ever added.
type Plan struct {
	Format     string `json:"format"`
	Requests   int    `json:"requests"`    // how many are to be sent
	DoneBefore int    `json:"done_before"` // how many requests of the input are in the results already
	DeadBefore int    `json:"dead_before"` // how many are in the dead letters and are not tried again
	// ExpiredBefore is how many expired in a run before and are not tried again.
	ExpiredBefore int `json:"expired_before,omitempty"`
	Invalid       int `json:"invalid"` // how many lines are passed over
	Keys          int `json:"keys"`
	// OneInFlight says that each key has one request in flight at a time, for the order of its nonces. The rate is then
	// bounded by the time of answers, which no plan knows.
	OneInFlight bool `json:"one_in_flight_per_key,omitempty"`
	// InFlight is how many attempts may be in flight at first, and InFlightMost how many if answers need
	// it; 0: no more.
	InFlight     int `json:"in_flight"`
	InFlightMost int `json:"in_flight_most,omitempty"`

	// These fields are for batches for language models, in tokens. Output is the sum of what the
	// requests allow themselves. Expected is the likely output, by the answers in the results so
	// far. Without answers there is none.
	Count     string      `json:"count,omitempty"` // which tokens the server is assumed to count
	Input     int64       `json:"input_tokens,omitempty"`
	Output    int64       `json:"output_tokens_max,omitempty"`
	Expected  *int64      `json:"output_tokens_expected,omitempty"`
	Answers   int         `json:"answers_so_far,omitempty"` // number of answers behind Expected
	Unbounded int         `json:"unbounded,omitempty"`      // how many requests do not bound their output
	Models    []PlanModel `json:"models,omitempty"`         // the model with the most requests comes first
	Largest   *PlanOne    `json:"largest,omitempty"`

	// The sums in USD exist if the prices of all models are known. PricesOf is the provider who
	// published the prices. PricesAsOf is the date on which they were looked up. Both are empty if
	// the user gave the prices. Unpriced are the models without a known price.
	USDMax      *float64 `json:"usd_max,omitempty"`
	USDExpected *float64 `json:"usd_expected,omitempty"`
	PricesOf    string   `json:"prices_of,omitempty"`
	PricesAsOf  string   `json:"prices_as_of,omitempty"`
	Unpriced    []string `json:"unpriced,omitempty"`

	// Batch is the same plan by the provider's own batch API. It is nil if the requests go
	// elsewhere, or if there is no such API.
	Batch *PlanBatch `json:"batch_api,omitempty"`

	// Organizations is how many times over the Keys have the limits, if some keys may share them.
	// With AtLeast set it is a lower bound, since only answers show the organization of a key.
	Organizations int  `json:"organizations,omitempty"`
	AtLeast       bool `json:"organizations_at_least,omitempty"`

	Limits []PlanLimit `json:"limits"`
	// Seconds is how long the limits alone make the run take, from the first send to the last.
	// AnswerWithin is the average time of an answer above which InFlightMost, or InFlight, slows the run
	// down; 0: none does. Together says that it takes longer than each of the Limits alone. None of them
	// binds then: their windows end one after the other.
	Seconds      float64   `json:"seconds"`
	Together     bool      `json:"limits_together,omitempty"`
	Finish       time.Time `json:"finish"`
	AnswerWithin float64   `json:"answer_within_seconds,omitempty"`

	// LimitUnknown says that the limit is not known. The run finds it out.
	LimitUnknown bool `json:"limit_unknown,omitempty"`

	// Alone has the time of each model by itself, the longest first. It exists if there are several
	// models and the provider may have limits for each. Models that share limits are one row, under
	// the name of their family.
	//
	// LimitsOf is the provider. If it is empty, it is not known whether there are limits for each
	// model. EachModel says that the run keeps the limits for each model by itself; otherwise, for
	// all models together.
	Alone     []PlanAlone `json:"each_model_alone,omitempty"`
	LimitsOf  string      `json:"limits_of,omitempty"`
	EachModel bool        `json:"limits_of_each_model,omitempty"`

	// Until is when the run stops sending.
	Until *time.Time `json:"until,omitempty"`

	// By is the plan turned round; nil: Config.By is not set, or there is no limit.
	By *PlanBy `json:"by,omitempty"`

	Lines          int     `json:"lines"` // size of the input, and the time to read it
	Bytes          int64   `json:"bytes"`
	ReadingSeconds float64 `json:"reading_seconds"`

	// First are the first requests as they would be sent, if they are made from rows or other forms
	// of input.
	First []format.PlanRequest `json:"first,omitempty"`

	// Paged says that the answers may name further requests: see Config.Next.
	Paged bool `json:"paged,omitempty"`
	// Notes are further notices for the user.
	Notes []string `json:"notes,omitempty"`
}

// PlanModel is a model's part of a Plan.
type PlanModel struct {
	Model    string `json:"model"`
	Requests int    `json:"requests"`
	Input    int64  `json:"input_tokens"`
	Output   int64  `json:"output_tokens_max"`

	// The sums in USD exist if the model's prices are known.
	USDMax      *float64 `json:"usd_max,omitempty"`
	USDExpected *float64 `json:"usd_expected,omitempty"`
	USDInput    *float64 `json:"usd_per_million_input,omitempty"`
	USDOutput   *float64 `json:"usd_per_million_output,omitempty"`

	// Note names what the prices leave out.
	Note string `json:"note,omitempty"`

	// TooLong is how many requests have more tokens of input than the Context of the model, as published; it
	// refuses them. First is the first one.
	TooLong int      `json:"too_long,omitempty"`
	Context int64    `json:"context_tokens,omitempty"`
	First   *PlanOne `json:"too_long_first,omitempty"`

	takes    int64 // tokens of input and output; 0: not known
	expected int64 // tokens of output
	bytes    int64 // the size of the model's lines
	cost     limit.Cost
}

// PlanAlone is the time that the limits would need for the requests of one model alone.
type PlanAlone struct {
	Model    string  `json:"model"`
	Requests int     `json:"requests"`
	Limit    string  `json:"limit,omitempty"` // the limit that takes longest; empty: all requests may go at once
	Seconds  float64 `json:"seconds"`
}

// PlanBy is what it takes to send all requests before an instant.
type PlanBy struct {
	At time.Time `json:"at"`
	// Needed is the part of the limits that is needed: 0.31, or 2.4 where the limits are too low. Keys is
	// how many keys with these limits are enough. Fits is how many of the requests can be sent before At,
	// with the keys there are.
	Needed float64 `json:"limits_needed"`
	Keys   int     `json:"keys_needed"`
	Fits   int     `json:"fits"`
	// USDMax is the most that those cost, if the prices of all models are known.
	USDMax *float64 `json:"usd_max,omitempty"`
}

// PlanBatch is a plan by the provider's own batch API.
type PlanBatch struct {
	Provider    string   `json:"provider"`
	USDMax      *float64 `json:"usd_max,omitempty"` // after the discount, if the prices are known
	USDExpected *float64 `json:"usd_expected,omitempty"`
	Discount    float64  `json:"discount"` // part of the price that is saved at best
	WithinHours float64  `json:"within_hours"`
	Files       int      `json:"files,omitempty"` // needed within the provider's bounds of a file; 0: not known
	Docs        string   `json:"docs"`
}

// PlanOne is a single request in a Plan.
type PlanOne struct {
	ID     string `json:"id"`
	Line   int    `json:"line"`
	Tokens int64  `json:"tokens"` // as the server counts them
}

// PlanLimit is the time that one limit needs.
type PlanLimit struct {
	Limit   string  `json:"limit"`
	Unit    string  `json:"unit"`
	Model   string  `json:"model,omitempty"` // the model that takes longest, if each model has the limit for itself
	Cost    int64   `json:"cost"`            // of all requests, with Expected output if known and counted
	Seconds float64 `json:"seconds"`
	Binds   bool    `json:"binds"`
}

// planning adds up the figures of a Plan while the input is read.
type planning struct {
	c       *Config
	tally   *tally.Tally
	secrets *format.Secrets
	sender  *sending.Sender

	plan   Plan
	cost   limit.Cost
	models map[string]*PlanModel
	// resources are the costs of those with limits of their own. With apart, they count in no other limit.
	resources map[string]*limit.Cost
	apart     bool
	again     bool // several readers can read the input at once
	answers   int
	output    int64 // the tokens of output of those answers
	expected  int64
}

// mostShown is how many requests a plan shows.
const mostShown = 3

// learn takes in a result of an earlier run.
func (p *planning) learn(e format.Entry) {
	n, ok := e.OutputTokens, e.OutputTokens > 0
	if !ok {
		n, ok = format.OutputOf(e.Body)
	}
	if ok {
		p.answers++
		p.output += n
	}
}

// add adds a request to the plan unless it ended in an earlier run. Its line has size bytes.
func (p *planning) add(q *format.Request, size int64) {
	switch p.tally.Earlier(q.Hash) {
	case &p.tally.Totals.SkippedDone:
		p.plan.DoneBefore++
		return
	case &p.tally.Totals.SkippedDead:
		p.plan.DeadBefore++
		return
	case &p.tally.Totals.SkippedExpired:
		p.plan.ExpiredBefore++
		return
	}
	p.plan.Requests++
	tally.Add(&p.cost, q.Cost, 1)
	if q.Resource != "" {
		p.addResource(q)
	}
	if p.secrets.Converted() && len(p.plan.First) < mostShown {
		p.plan.First = append(p.plan.First, p.sender.Sample(q, p.c.Keys[0].Name))
	}
	if p.c.Meter == nil {
		return
	}
	e := q.Estimate
	p.plan.Input += e.Input
	p.plan.Output += e.MaxOutput
	expected := int64(0)
	if p.answers > 0 {
		if expected = min(p.output/int64(p.answers), e.MaxOutput); p.tally.WasCut(q.Hash) { // it wants more than it got
			expected = e.MaxOutput
		}
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
	if p.models[name] == nil && len(p.models) >= tally.MostModels {
		name = tally.OtherModels
	}
	m := p.models[name]
	if m == nil {
		about, _ := provider.LookupModel(p.c.Meter.Seller(), name)
		m = &PlanModel{Model: name, takes: about.Context}
		p.models[name] = m
	}
	m.Requests++
	if m.takes > 0 && e.Input > m.takes {
		if m.TooLong++; m.First == nil {
			m.Context, m.First = m.takes, &PlanOne{q.ID, q.Line, e.Input}
		}
	}
	m.Input += e.Input
	m.Output += e.MaxOutput
	m.expected += expected
	m.bytes += size
	tally.Add(&m.cost, q.Cost, 1)
}

// Plan returns the plan of the run. Check must be called first.
func (r *Run) Plan(now time.Time) Plan { return r.planning.from(now, r.organizations, r.groups) }

// from returns the plan from now on. of tells how many times over the keys have the limits; groups are
// those of an open run.
func (p *planning) from(now time.Time, of *organizations, groups pools) Plan {
	plan := p.plan
	plan.Format, plan.Invalid, plan.Keys, plan.InFlight = "jsonl", p.tally.Totals.Invalid, len(p.c.Keys), p.c.inFlight.Least
	plan.Paged = p.c.Next != nil
	if most := p.c.inFlight.Most; most > plan.InFlight {
		plan.InFlightMost = most
	}
	plan.OneInFlight = p.c.nonces && p.c.Gap == 0
	plan.LimitUnknown = p.c.Auto != nil || p.c.Unknown
	quotas, sure := of.count()
	if of.together {
		plan.Organizations, plan.AtLeast = quotas, !sure
	}
	if h, ok := p.c.Format.(*format.Items); ok {
		plan.Format = h.Form().String()
	}
	cost := p.cost
	if l, ok := p.c.Format.(*format.LLM); ok {
		plan.Format = l.Form().String()
	}
	if l := p.c.Meter; l != nil {
		plan.Count = l.Count().String()
		for _, m := range p.models {
			plan.Models = append(plan.Models, *m)
		}
		slices.SortFunc(plan.Models, func(a, b PlanModel) int {
			return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Model, b.Model))
		})
		p.priced(&plan)
		plan.Batch = ownBatch(l, &plan)
		if p.answers > 0 {
			expected := p.expected
			plan.Expected, plan.Answers = &expected, p.answers
			if l.Count().Corrected() {
				cost[limit.Output] = expected
				cost[limit.Tokens] = cost[limit.Input] + expected
			}
		}
		p.alone(now, l, &plan, quotas)
	}
	longest := p.limits(now, &plan, p.inKeys(cost), quotas, groups)
	plan.Finish = now.Add(max(longest, 0))
	if at := p.c.Until; !at.IsZero() {
		plan.Until = &at
	}
	if !p.c.By.IsZero() {
		p.by(now, &plan, p.inKeys(cost), quotas)
	}
	return plan
}

// by fills in what it takes to be done before Config.By.
func (p *planning) by(now time.Time, plan *Plan, cost limit.Cost, quotas int) {
	names, costs := p.eachModel(plan.Expected != nil)
	if len(names) == 0 {
		names, costs = []string{""}, map[string]*limit.Cost{"": &cost}
	}
	by := PlanBy{At: p.c.By}
	all, fits, use := 0.0, 0.0, cmp.Or(p.c.Use, 1)
	for _, name := range names {
		needed := p.needed(now, rate.OfModel(p.c.Limits, name), *costs[name], quotas)
		by.Needed = max(by.Needed, needed)
		n := float64(costs[name][limit.Requests])
		all, fits = all+n, fits+n/max(needed/use, 1)
	}
	for name, of := range p.resources {
		needed := p.needed(now, p.ofResource(name), *of, quotas)
		if by.Needed = max(by.Needed, needed); p.apart { // otherwise they are among those of the keys
			n := float64(of[limit.Requests])
			all, fits = all+n, fits+n/max(needed/use, 1)
		} else if needed > use {
			fits -= float64(of[limit.Requests]) * (1 - use/needed)
		}
	}
	if by.Needed == 0 {
		return
	}
	part := 1.0
	if all > 0 {
		part = fits / all
	}
	const rounding = 1e-9
	by.Keys = int(math.Ceil(by.Needed/use*float64(quotas) - rounding))
	by.Fits = int(math.Floor(float64(plan.Requests)*part + rounding))
	if plan.USDMax != nil {
		usd := *plan.USDMax * part
		by.USDMax = &usd
	}
	plan.By = &by
}

// needed is the part of some limits that requests of cost take before Config.By.
func (p *planning) needed(now time.Time, limits []format.Rate, cost limit.Cost, quotas int) float64 {
	n, d := float64(cost[limit.Requests]), p.c.By.Sub(now)
	return n / rate.Play(now, rate.Repeat(limits, quotas), cost, nil, n, d).Begun(d)
}

// ofResource are the limits of a resource.
func (p *planning) ofResource(name string) (limits []format.Rate) {
	for _, l := range p.c.Resources {
		if l.Resource.Match(name) {
			limits = append(limits, l.Rate)
		}
	}
	return limits
}

// together is how long some limits need for requests of cost, as far as they are used. rooms are the contents of their
// buckets; nil: they are full.
func (p *planning) together(now time.Time, limits []format.Rate, cost limit.Cost, quotas int,
	rooms []int64) time.Duration {
	used := rate.Repeat(limits, quotas)
	for i := range used {
		used[i].Limit = used[i].Part(p.c.Use)
	}
	n := float64(cost[limit.Requests])
	return rate.Play(now, used, cost, rooms, n, 0).Takes(n)
}

// limits fills in how long each limit needs for the requests, all of which cost cost. It returns the
// longest of these times; negative: there is no limit.
func (p *planning) limits(now time.Time, plan *Plan, cost limit.Cost, quotas int, groups pools) time.Duration {
	if len(p.c.Servers) > 0 {
		return p.atServers(now, plan, cost)
	}
	names, costs := p.eachModel(plan.Expected != nil)
	plan.EachModel = len(names) > 1
	if len(names) == 0 {
		names, costs = []string{""}, map[string]*limit.Cost{"": &cost}
	}
	longest, binds := time.Duration(-1), -1
	for _, l := range p.c.Limits {
		d, of, all := time.Duration(-1), "", int64(0)
		for n, name := range names {
			i := slices.Index(rate.OfModel(p.c.Limits, name), l)
			if i < 0 {
				continue
			}
			used := l.Part(p.c.Use)
			room := used.Most() * int64(quotas)
			if n < len(groups) { // the run is open, so the group is made
				room = min(room, groups[n].rooms[i])
			}
			all += costs[name][l.Unit]
			if t := used.Takes(now, costs[name][l.Unit], quotas, room); t > d {
				d, of = t, name
			}
		}
		if d < 0 {
			continue // the limit is for a model that the input does not have
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
	if d, i := p.ofResources(now, plan, quotas); d > longest {
		longest, binds = d, i
	}
	together := time.Duration(-1)
	for n, name := range names {
		var rooms []int64
		if n < len(groups) {
			rooms = groups[n].rooms
		}
		together = max(together, p.together(now, rate.OfModel(p.c.Limits, name), *costs[name], quotas, rooms))
	}
	for name, of := range p.resources {
		together = max(together, p.together(now, p.ofResource(name), *of, quotas, nil))
	}
	if longest >= 0 && together > longest+longest/100 { // below that it is the part of a request that a bucket lacks
		longest, binds = together, -1
	}
	plan.bind(longest, binds)
	return longest
}

// bind fills in how long the requests take by the limit that needs longest; negative: by several of them together.
func (p *Plan) bind(longest time.Duration, limit int) {
	if longest > 0 {
		if p.Together = limit < 0; !p.Together {
			p.Limits[limit].Binds = true
		}
		p.Seconds = longest.Seconds()
		p.AnswerWithin = float64(max(p.InFlight, p.InFlightMost)) * p.Seconds / float64(p.Requests)
	}
}

// atServers fills in how long the limits of Config.Servers need, which divide the requests among each other.
func (p *planning) atServers(now time.Time, plan *Plan, cost limit.Cost) time.Duration {
	d, parts := rate.AtServers(now, cost, p.c.Servers)
	longest, binds := time.Duration(-1), -1
	for i, s := range p.c.Servers {
		for _, l := range s.Limits {
			row := PlanLimit{Limit: l.Text, Unit: l.Unit.String(), Cost: int64(math.Ceil(parts[i]*float64(cost[l.Unit]) - 1e-6))}
			if s.Name != "" {
				row.Limit = s.Name + ", " + l.Text
			}
			takes := min(l.Takes(now, row.Cost, l.Times, l.Most()*int64(l.Times)), d)
			row.Seconds = takes.Seconds()
			plan.Limits = append(plan.Limits, row)
			if takes > longest {
				longest, binds = takes, len(plan.Limits)-1
			}
		}
	}
	if longest < d {
		binds = -1
	}
	plan.bind(d, binds)
	return d
}

// priced fills in the prices of a plan's models, and of the whole plan if the prices of all models
// are known.
func (p *planning) priced(plan *Plan) {
	most, expected := 0.0, 0.0
	for i := range plan.Models {
		m := &plan.Models[i]
		prices, known := p.c.pricesOf(m.Model)
		if !known {
			plan.Unpriced = append(plan.Unpriced, m.Model)
			continue
		}
		usd := [...]float64{prices.USD(m.Input, m.Output), prices.USD(m.Input, m.expected), prices.Input, prices.Output}
		m.Note, m.USDMax, m.USDInput, m.USDOutput = prices.Note, &usd[0], &usd[2], &usd[3]
		if p.answers > 0 {
			m.USDExpected = &usd[1]
		}
		most, expected = most+usd[0], expected+usd[1]
	}
	if l := p.c.Meter; !p.c.Prices.given() && len(plan.Unpriced) < len(plan.Models) {
		row, _ := provider.LookupProvider(l.Seller())
		plan.PricesOf, plan.PricesAsOf = row.Name, row.ModelsAsOf
	}
	if len(plan.Unpriced) > 0 || len(plan.Models) == 0 && !p.c.Prices.given() {
		return
	}
	plan.USDMax = &most
	if p.answers > 0 {
		plan.USDExpected = &expected
	}
}

// ownBatch returns the plan by the provider's own batch API.
func ownBatch(l *meter.Meter, plan *Plan) *PlanBatch {
	row, _ := provider.LookupProvider(l.Seller())
	api := row.Batch
	if !l.IsOwn() || api == nil || plan.Requests == 0 {
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
		if l.API() != tokens.Messages { // a file for OpenAI may have one model only
			b.Files += files(m.Requests, m.bytes)
		}
	}
	if l.API() == tokens.Messages {
		b.Files = files(plan.Requests, bytes)
	}
	return b
}

// likely returns the cost of a model's requests. If expected is set, the output is an estimate from
// earlier answers.
func likely(l *meter.Meter, m *PlanModel, expected bool) limit.Cost {
	cost := m.cost
	if expected && l.Count().Corrected() {
		cost[limit.Output] = m.expected
		cost[limit.Tokens] = cost[limit.Input] + m.expected
	}
	return cost
}

// alone adds to the plan how long each model takes by itself, from now on.
func (p *planning) alone(now time.Time, l *meter.Meter, plan *Plan, quotas int) {
	row, known := provider.LookupProvider(l.LimitsOf())
	if known && row.Limited != provider.Model || len(p.c.Limits) == 0 {
		return
	}
	if names, _ := p.eachModel(false); slices.Contains(names, tally.OtherModels) {
		return // models that are counted together cannot be shown one by one
	}
	costs, index := []limit.Cost(nil), map[string]int{}
	for _, m := range plan.Models {
		name := l.SharedModel(m.Model)
		i, seen := index[name]
		if !seen {
			i = len(costs)
			index[name], costs = i, append(costs, limit.Cost{})
			plan.Alone = append(plan.Alone, PlanAlone{Model: name})
		}
		plan.Alone[i].Requests += m.Requests
		tally.Add(&costs[i], likely(l, &m, plan.Expected != nil), 1)
	}
	if len(costs) < 2 {
		plan.Alone = nil
		return
	}
	plan.LimitsOf = row.Title
	for i := range plan.Alone {
		a := &plan.Alone[i]
		for _, l := range rate.OfModel(p.c.Limits, a.Model) {
			used := l.Part(p.c.Use)
			d := used.Takes(now, costs[i][l.Unit], quotas, used.Most()*int64(quotas))
			if s := d.Seconds(); s > a.Seconds {
				a.Seconds, a.Limit = s, l.Text
			}
		}
		a.Seconds = max(a.Seconds, p.together(now, rate.OfModel(p.c.Limits, a.Model), costs[i], quotas, nil).Seconds())
	}
	slices.SortStableFunc(plan.Alone, func(a, b PlanAlone) int { return cmp.Compare(b.Seconds, a.Seconds) })
}

// mostResources is how many resources a plan tells apart. Requests of more count in none.
const mostResources = 256

// addResource adds a request to those of its resource, if that has limits of its own.
func (p *planning) addResource(q *format.Request) {
	name := q.Apart()
	if name == "" {
		return
	}
	of := p.resources[name]
	if of == nil {
		if len(p.resources) >= mostResources {
			return
		}
		if p.resources == nil {
			p.resources = map[string]*limit.Cost{}
		}
		of = new(limit.Cost)
		p.resources[name] = of
	}
	tally.Add(of, q.Cost, 1)
}

// inKeys returns the part of a cost that counts in the limits of the keys: without that of resources, if
// those limits are the usual resource's alone.
func (p *planning) inKeys(cost limit.Cost) limit.Cost {
	if p.apart {
		for _, of := range p.resources {
			tally.Add(&cost, *of, -1)
		}
	}
	return cost
}

// ofResources adds to a plan how long the limits of resources need. Each resource has a limit for itself. It
// returns the longest of these times, and its place in the plan; negative: there is none.
func (p *planning) ofResources(now time.Time, plan *Plan, quotas int) (longest time.Duration, binds int) {
	longest = -1
	for _, l := range p.c.Resources {
		used := l.Part(p.c.Use)
		d, all := time.Duration(-1), int64(0)
		for name, cost := range p.resources {
			if l.Resource.Match(name) {
				all += cost[l.Unit]
				d = max(d, used.Takes(now, cost[l.Unit], quotas, used.Most()*int64(quotas)))
			}
		}
		if d >= 0 {
			if d > longest {
				longest, binds = d, len(plan.Limits)
			}
			plan.Limits = append(plan.Limits, PlanLimit{Limit: string(l.Resource) + ": " + l.Text, Unit: l.Unit.String(),
				Cost: all, Seconds: d.Seconds()})
		}
	}
	return longest, binds
}
