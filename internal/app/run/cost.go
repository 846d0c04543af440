package run

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// charging finds what requests cost besides the one: by Config.Charges, and then by the rows of the
// provider. It is safe for concurrent use.
type charging struct {
	own     *provider.Charges
	rows    *provider.Charges // of Config.ChargedBy; nil: those of each host
	any     bool              // some limit counts another unit than requests and tokens
	some    bool              // there is something to find: any, or charges of the user
	keyless bool              // requests have a credential of their own, or none

	limits    []format.Rate
	resources []ResourceLimit

	notices costs.Notices // what answers show of the rows
	shapes  costs.Shapes  // what requests did cost that only their answers tell

	mu    sync.Mutex
	hosts map[string]*provider.Charges
}

// charged is the requests that have the charge of one.
func charged(q *format.Request) costs.Charged {
	is := costs.Charged{Host: q.URL.Host, Route: costs.Route(q.Method, q.URL.Path)}
	if q.Charge != nil {
		is.On = q.Charge.On
	}
	return is
}

// mostNoticed bounds the keys, and the hosts, whose stated use is kept in mind.
const mostNoticed = 4096

// mended gives a request the resource that answers named.
func (k *charging) mended(q *format.Request) {
	if _, name := k.notices.Taught(charged(q)); name != "" {
		q.Resource, q.Usual = name, name == k.of(q.URL.Host).Usual()
	}
}

// taught lets a request cost what answers have shown: what its shape did cost last, and no less than its route.
// It reports whether that is another cost.
func (k *charging) taught(q *format.Request) (changed bool) {
	was := q.Cost
	if q.Shape != 0 {
		if cost, known := k.shapes.Taught(q.Shape); known {
			q.Cost = costs.Reserved(q.Cost, q.Charge, cost, true)
			k.lower(q)
		}
	}
	cost, _ := k.notices.Taught(charged(q))
	for u, n := range cost {
		q.Cost[u] = max(q.Cost[u], n)
	}
	return q.Cost != was
}

// lessons counts what answers have shown: see costs.Notices.
func (k *charging) lessons() int64 { return k.notices.Lessons() + k.shapes.Lessons() }

// lower lowers a cost that only the answer knows to what the limits allow at once: it is a bound.
func (k *charging) lower(q *format.Request) {
	if q.Charge == nil || q.Charge.Answer == nil {
		return
	}
	for _, l := range k.limits {
		q.Cost[l.Unit] = min(q.Cost[l.Unit], l.Most())
	}
	for _, l := range k.resources {
		if l.Resource.Match(q.Resource) {
			q.Cost[l.Unit] = min(q.Cost[l.Unit], l.Most())
		}
	}
}

// compares compares what an answer states as used with the limits of the run. A limit that counts another thing
// is said once. It reports whether the load is to begin slowly.
func (r *judge) compares(j *job, v *classify.Verdict) (slow bool) {
	if len(v.Said.Limits) == 0 && len(v.Said.Policies) == 0 {
		return false
	}
	own := costs.Configured{Scope: provider.Key}
	for _, l := range j.group.limits() {
		own.Rules = append(own.Rules, limit.Rule{Name: l.Text, Unit: l.Unit, N: l.N, Per: l.Per})
	}
	for _, h := range costs.Highest(v, []costs.Configured{own}) {
		if says := h.Says(); r.teller.IsFirst(says) {
			r.teller.Say("%s: %s. The run keeps to what answers say is left", says, r.c.flagOf(&h))
		}
	}
	wrong, slow := r.c.prices.notices.Compares(j.seen, v, []costs.Configured{own})
	for i := range wrong {
		w, on := &wrong[i], charged(j.r).Mends()
		r.teller.Say("%s: --limit '%s' --charge '%s=%s' counts as it does. The run keeps to what answers state", w.Says(),
			w.Mends(), on, w.Charge())
	}
	return slow
}

// flagOf returns the flag for a limit that the server states.
func (c *Config) flagOf(h *costs.Higher) string {
	words := map[limit.Unit]string{limit.Requests: "rpm", limit.Tokens: "tpm", limit.Input: "itpm", limit.Output: "otpm"}
	if flag := words[h.Stated.Unit]; c.Meter != nil && flag != "" && h.Stated.Per == time.Minute {
		return fmt.Sprintf("--%s %d", flag, h.Stated.N)
	}
	return fmt.Sprintf("--limit '%s'", h.Mends())
}

// noticed looks at what an answer states of the use of limits. A wrong charge is said once, and requests that
// wait cost what was found.
func (r *judge) noticed(j *job, v *classify.Verdict) {
	is := charged(j.r)
	if !r.c.prices.any || !r.c.prices.notices.Answered(j.seen, is, v, &j.r.Cost, false) {
		return
	}
	cost, _ := r.c.prices.notices.Taught(is)
	var worth limit.Cost
	line := ""
	if c := j.r.Charge; c != nil {
		if worth = classify.CostOf(c.Cost); c.Resource != "" {
			line = ", resource " + c.Resource
		}
	}
	all, not := costs.Words(worth, cost)
	r.teller.Say("%s costs %s, and not %s, as answers show: --charge '%s=%s%s'", is.Mends(), all, not, is.Mends(), all, line)
	r.c.prices.mend(j.group.r.groups, 0)
}

// mend lets the requests of a shape that wait cost what answers have shown; 0: all.
func (k *charging) mend(all pools, shape uint64) {
	for _, g := range all {
		g.pool.Update(func(_ mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			for _, t := range q.Waiting() {
				other := q.Info(t).Request.Value.(*job)
				if (shape == 0 || other.r.Shape == shape) && k.taught(other.r) {
					q.SetCost(t, other.r.Cost)
				}
			}
		})
	}
}

// newCharging fails if a charge is wrong, or fits nothing.
func newCharging(c *Config) (*charging, error) {
	own, err := provider.NewCharges(c.Charges)
	if err != nil {
		return nil, err
	}
	if hidden, by, ok := own.Hidden(); ok {
		return nil, fmt.Errorf("no request fits the charge on %q but those of the one before it, on %q",
			c.Charges[hidden].On, c.Charges[by].On)
	}
	k := &charging{own: own, limits: c.Limits, resources: c.Resources, hosts: map[string]*provider.Charges{}, keyless: c.keyless &&
		secret.Credential(fixed(c.Header, http.CanonicalHeaderKey),
			&url.URL{RawQuery: url.Values(fixed(c.Query, strings.Clone)).Encode()}) == ""}
	if c.ChargedBy != "" { // the first look makes the table of providers
		k.rows = provider.ChargesOf(c.ChargedBy)
	}
	for _, l := range c.Limits {
		k.any = k.any || l.Unit == limit.Weight || l.Unit == limit.Orders
	}
	for _, l := range c.Resources {
		k.any = k.any || l.Unit == limit.Weight || l.Unit == limit.Orders
	}
	k.some = k.any || len(c.Charges) > 0
	return k, nil
}

// isBare reports whether a request has no credential.
func (k *charging) isBare(q *format.Request) bool {
	return k.keyless && secret.Credential(q.Header, q.URL) == ""
}

// of returns the rows of a host's provider.
func (k *charging) of(host string) *provider.Charges {
	if k.rows != nil {
		return k.rows
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	rows, known := k.hosts[host]
	if !known {
		if d, ok := provider.ForHost(host); ok {
			rows = provider.ChargesOf(d.Name())
		}
		k.hosts[host] = rows
	}
	return rows
}

// charge sets the cost of a request in each unit of which its line says nothing.
func (k *charging) charge(q *format.Request) {
	if q.URL == nil { // an earlier run ended it
		return
	}
	r := &http.Request{Method: q.Method, URL: q.URL}
	c, resource := k.own.Of(r)
	if rows := k.of(q.URL.Host); c == nil && rows != nil {
		of := rows.Of
		if k.isBare(q) {
			of = rows.OfKeyless
		}
		if c, resource = of(r); !k.any && c != nil && c.Answer == nil {
			c = nil // else answers state a limit of what they tell
		}
		q.Usual = strings.TrimPrefix(resource, "address ") == rows.Usual()
	}
	q.Resource, q.Charge = resource, c
	if c != nil {
		k.count(q, c)
	}
	if k.notices.HasTaught() {
		k.mended(q)
	}
	if k.lessons() > 0 {
		k.taught(q)
	}
}

// count sets the cost of a request by its charge.
func (k *charging) count(q *format.Request, c *provider.Charge) {
	cost := classify.CostOf(c.Cost)
	for unit, e := range c.Body {
		u, ok := classify.UnitOf(unit)
		if n, err := e.Count(q.Body); ok && err == nil {
			cost[u] = min(n, limit.MaxCost)
		}
	}
	if c.Answer != nil && !declares(q, c) {
		q.Shape = costs.ShapeOf(q.URL.Host, c, q.Body)
		cost = costs.Reserved(cost, c, limit.Cost{}, false)
	}
	for u, n := range cost {
		if q.Cost[u] == 0 {
			q.Cost[u] = n
		}
	}
}

// declares reports whether the line of a request has a cost in a unit that only answers tell.
func declares(q *format.Request, c *provider.Charge) bool {
	for unit := range c.Answer {
		if u, ok := classify.UnitOf(unit); ok && q.Cost[u] != 0 {
			return true
		}
	}
	return false
}

// fits returns why a request can never go; empty: it can. It lowers a cost that is a bound to what fits.
func (c *Config) fits(q *format.Request) string {
	c.prices.lower(q)
	for _, l := range c.Limits {
		if n := q.Cost[l.Unit]; (l.Unit == limit.Weight || l.Unit == limit.Orders) && !l.Fits(n) {
			return fmt.Sprintf("cost %d %v can never go: limit %s allows %d at once", n, l.Unit, l.Text, l.Most())
		}
	}
	return ""
}

// states takes what the request cost from its answer, if its charge says where. Others of its shape then cost
// that, too.
func (r *judge) states(j *job, ans *pool.Answer) {
	c, told := j.r.Charge, false
	if c.Answer == nil || ans.Result != limit.Accepted || j.res.Cut {
		return
	}
	for unit, e := range c.Answer {
		u, ok := classify.UnitOf(unit)
		n, err := e.Count(j.res.Body)
		if !ok || err != nil {
			continue
		}
		if !ans.Metered {
			ans.Metered, ans.Actual = true, j.r.Cost
		}
		ans.Actual[u] = min(n, limit.MaxCost)
		told = true
	}
	if !told {
		return
	}
	if j.r.Shape != 0 && r.c.prices.shapes.Teach(j.r.Shape, ans.Actual) {
		r.c.prices.mend(j.group.r.groups, j.r.Shape)
	}
	if r.c.prices.notices.Exceeds(charged(j.r), c, ans.Actual) {
		r.c.prices.mend(j.group.r.groups, 0)
	}
}

// Prices are in USD per million tokens, for all models. Negative prices stand for the provider's
// published prices of each model. Cached is the price of input from a cache; 0: that of any input.
type Prices struct{ Input, Output, Cached float64 }

func (p Prices) given() bool { return p.Input >= 0 && p.Output >= 0 }

// pricesOf returns a model with its prices: those of Config.Prices if they are given. It returns false if
// they are not known.
func (c *Config) pricesOf(model string) (m provider.ModelInfo, known bool) {
	if c.Prices.given() {
		return provider.ModelInfo{Input: c.Prices.Input, Output: c.Prices.Output, Cached: c.Prices.Cached}, true
	}
	if c.Meter == nil {
		return m, false
	}
	return provider.PriceOf(c.Meter.Seller(), model)
}

// price returns the most that one attempt of a request may cost. Its tokens of input count as no
// fewer than its bytes, as no text has more.
func (c *Config) price(q *format.Request) sending.Money {
	if c.Meter != nil {
		m, _ := c.pricesOf(q.Estimate.Model)
		return sending.ToMoney(send.PriceAtMost(m, send.InputTimes(q.Estimate.API, q.Body),
			max(q.Estimate.Input, int64(len(q.Body))), q.Estimate.MaxOutput))
	}
	return sending.ToMoney(c.Price * float64(q.Cost[limit.Requests]))
}

// purse has the money of a run: what attempts may cost is reserved, and what they cost is spent. Safe for
// concurrent use.
type purse struct {
	c      *Config
	tally  *tally.Tally
	course *course
	budget *sending.Budget
}

// budget returns that of a run. Of one that several processes share, each takes parts.
func (c *Config) budget() *sending.Budget {
	if c.Backlog == nil || c.Budget == 0 {
		return sending.NewBudget(sending.ToMoney(c.Budget))
	}
	b := sending.NewBudget(0)
	b.More = c.Backlog.Money
	return b
}

// Unspent returns what the run took of a shared budget and did not spend. It is for a run that has ended.
func (r *Run) Unspent() sending.Money { return r.purse.budget.Unspent() }

// reserve reserves the most that an attempt of a request may cost. It returns false if the attempt may not
// go: ctx has ended, or the run, since the budget is spent.
func (p *purse) reserve(ctx context.Context, q *format.Request) (price sending.Money, ok bool) {
	price = p.c.price(q)
	ok, err := p.budget.Reserve(ctx, price)
	if !ok && err == nil {
		p.course.ends(p.overBudget())
	}
	return price, ok
}

// giveBack gives back what was reserved for an attempt that was not sent.
func (p *purse) giveBack(price sending.Money) { p.budget.Settle(price, 0) }

// pay spends the cost of a job's attempt in place of what was reserved.
func (p *purse) pay(j *job, result limit.Result, price sending.Money) {
	j.cost = p.c.cost(j, result, price)
	p.budget.Settle(price, j.cost)
	p.tally.Spend(j.r.Estimate.Model, j.cost)
}

// cost returns the cost of an attempt for which price was reserved.
func (c *Config) cost(j *job, result limit.Result, price sending.Money) sending.Money {
	switch {
	case result == limit.Unsent, result == limit.Limited:
		return 0
	case j.res.Status == 0 || j.res.Err != nil:
		return price
	}
	switch {
	case c.Meter == nil:
		return price
	case j.res.Status >= 300:
		return 0
	}
	if j.usage != nil {
		m, _ := c.pricesOf(j.r.Estimate.Model)
		return sending.ToMoney(send.Price(m, j.r.Estimate.API, *j.usage))
	}
	return price
}

// unpriced says that a budget cannot be kept with these models.
func unpriced(models []string) error {
	return fmt.Errorf("%w: no price is known of %s, and --budget needs it: --price-input and --price-output, in USD per "+
		"million tokens",
		ErrConfig, text.Some(models, 5))
}

// overBudget says that the budget is spent.
func (p *purse) overBudget() error {
	if p.budget.More != nil {
		return fmt.Errorf("%w: what is left of the budget of %v, and not with other workers, is less than the next request "+
			"may cost (--budget)", ErrEnough, sending.ToMoney(p.c.Budget))
	}
	return fmt.Errorf("%w: %v of the budget of %v are spent, and the next request may cost more than the rest (--budget)",
		ErrEnough, p.budget.IsSpent(), p.budget.Most)
}

// totals puts the totals of each model, and of all, into t.
func (p *purse) totals(t *tally.Totals) {
	t.USD = p.budget.IsSpent().USD()
	if p.c.Meter == nil {
		return
	}
	published := false
	for name, m := range p.tally.Models {
		if _, known := p.c.pricesOf(name); known {
			usd := m.Spent.USD()
			m.USD = &usd
			published = !p.c.Prices.given()
		}
		t.Models = append(t.Models, *m)
	}
	if published {
		row, _ := provider.LookupProvider(p.c.Meter.Seller())
		t.PricesAsOf = row.ModelsAsOf
	}
	slices.SortFunc(t.Models, func(a, b tally.ModelTotals) int {
		return cmp.Or(cmp.Compare(b.Done, a.Done), cmp.Compare(a.Model, b.Model))
	})
}
