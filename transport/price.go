package transport

import (
	"fmt"
	"math"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send/pricing"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// bill is what a request costs in money, by Config.Price. Its zero value is nothing.
type bill struct {
	price    provider.ModelInfo
	times    float64 // the price of input that its input may cost
	known    bool
	reserved int64  // of the cost
	unknown  string // why nobody knows what it costs, of a request to a language model
}

// most is the most that so many tokens may cost.
func (b *bill) most(input, output int64) int64 {
	return micros(pricing.Most(b.price, b.times, input, output))
}

// micros is a price in millionths of a dollar, rounded up, but for what is no more than the error of a sum.
func micros(usd float64) int64 { return int64(min(math.Ceil(usd*1e6-1e-6), limit.MaxCost)) }

// price adds to the cost what the request may cost in money. No text has more tokens than bytes. Where the body states no maximum, what is
// reserved for its output is what counts, as elsewhere: what the model could write at most would be more than most limits a day.
func (c *call) price(body tokens.Body) {
	b := &c.bill
	if c.t.config.Price == nil {
		return
	}
	if b.price, b.known = c.t.config.Price(c.leaf.partition, c.est.Model); !b.known {
		b.unknown = fmt.Sprintf("no price is known of the model %q", c.est.Model)
		return
	}
	input, output := max(c.est.Input, body.Bytes()), c.est.MaxOutput
	if c.est.Assumed {
		output = c.est.Output
	}
	b.reserved = b.most(input, output)
	c.cost[limit.Money] += b.reserved
	if c.least[limit.Money] = b.reserved; c.est.Assumed {
		c.least[limit.Money] = b.most(input, min(output, 1))
	}
}

// unpriced is why a request is not sent that a limit of money concerns, nil if there is no such reason.
func (c *call) unpriced() error {
	if c.bill.unknown == "" || c.t.config.Price == nil {
		return nil
	}
	for n := range c.leaf.distinct {
		if n.money.Load() {
			return &Error{Partition: n.partition, Client: c.leaf.partition.Client, Unit: limit.Money, Err: fmt.Errorf("%w: %s", ErrPrice, c.bill.unknown)}
		}
	}
	return nil
}

// spent is what an attempt has cost in money, beside what Config.Cost says; false: nobody knows, or it was not sent.
func (s *sent) spent(o *limit.Outcome) (cost int64, known bool) {
	switch o.Result {
	case limit.Limited, limit.Failed:
		return 0, true
	case limit.Accepted:
		if s.used != nil {
			return micros(pricing.Spent(s.bill.price, s.api, *s.used)), true
		}
		return s.bill.reserved, true
	}
	return s.bill.reserved, false
}

// billed is an outcome with what the attempt has cost in money, of a cost that is known otherwise; false: it is as it was.
func (s *sent) billed(o limit.Outcome) (limit.Outcome, bool) {
	if s.bill.reserved == 0 {
		return o, false
	}
	spent, known := s.spent(&o)
	if !known {
		return o, false
	}
	if !o.Metered {
		o.Metered, o.Actual = true, s.cost
	}
	o.Actual[limit.Money] = max(s.cost[limit.Money]-s.bill.reserved+spent, 0)
	return o, true
}

// looked is what those hear who look at an attempt that has cost money. Of what else it has cost they hear only what is known: to
// limit.Produced, a failure that is metered is one that has produced all of it.
func looked(o, billed limit.Outcome) limit.Outcome {
	if !o.Metered {
		billed.Actual = limit.Cost{limit.Money: billed.Actual[limit.Money]}
	}
	return billed
}

// bills tells a limit of money what an attempt has cost. To others an outcome stays as it is.
func (s *sent) bills(m *paceline.Limit, o, billed limit.Outcome) limit.Outcome {
	if i := s.way.index(m); i >= 0 && s.way.nodes[i].money.Load() {
		o.Metered, o.Actual = true, billed.Actual
	}
	return o
}
