package batch

import (
	"fmt"
	"strings"

	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
)

// Prices are in USD per million tokens, of every model. Negative: what the provider publishes of each.
type Prices struct{ Input, Output float64 }

func (p Prices) given() bool { return p.Input >= 0 && p.Output >= 0 }

// of is what so many tokens cost.
func (p Prices) of(input, output int64) money { return toMoney(p.usd(input, output)) }

func (p Prices) usd(input, output int64) float64 {
	return (max(p.Input, 0)*float64(input) + max(p.Output, 0)*float64(output)) / 1e6
}

// pricesOf returns what the tokens of a model cost, and what is to be known besides. False: nobody knows. That of a tuned model is not
// the one of what it was tuned from.
func (r *Run) pricesOf(model string) (p Prices, note string, known bool) {
	if r.c.Prices.given() {
		return r.c.Prices, "", true
	}
	l, ok := r.c.Format.(*LLM)
	if !ok || strings.HasPrefix(model, "ft:") {
		return Prices{}, "", false
	}
	m, known := quota.LookupModel(l.seller, model)
	return Prices{m.Input, m.Output}, m.Note, known
}

// price is the most that an attempt at a request may cost. No text has more tokens than bytes.
func (r *Run) price(q *Request) money {
	if _, ok := r.c.Format.(*LLM); ok {
		p, _, _ := r.pricesOf(q.Estimate.Model)
		return p.of(max(q.Estimate.Input, int64(len(q.Body))), q.Estimate.MaxOutput)
	}
	return toMoney(r.c.Price * float64(q.Cost[limit.Requests]))
}

// cost is what an attempt has cost, of the price that was reserved.
func (r *Run) cost(j *job, result limit.Result, price money) money {
	switch {
	case result == limit.Unsent, result == limit.Limited:
		return 0
	case j.res.status == 0 || j.res.err != nil:
		return price
	}
	_, ok := r.c.Format.(*LLM)
	switch {
	case !ok:
		return price
	case j.res.status >= 300:
		return 0
	}
	if u, err := tokens.ParseUsage(j.r.Estimate.API, j.res.body); err == nil {
		p, _, _ := r.pricesOf(j.r.Estimate.Model)
		return p.of(u.Input, u.Output)
	}
	return price
}

// noBudget ends the reading at a request for which a budget cannot hold, as nobody knows its price.
func (r *Run) noBudget(q *Request) bool {
	if _, ok := r.c.Format.(*LLM); !ok || r.c.Budget == 0 || q.Estimate.Model == "" {
		return false
	}
	if _, _, known := r.pricesOf(q.Estimate.Model); known {
		return false
	}
	r.course.first(&r.course.input, r.unpriced([]string{q.Estimate.Model}))
	return true
}

func (r *Run) unpriced(models []string) error {
	return fmt.Errorf("%w: no price is known of %s, and --budget needs it: --price-input and --price-output, in USD per million tokens",
		ErrConfig, shown.Some(models, 5))
}
