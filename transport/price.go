package transport

import (
	"fmt"
	"math"
	"slices"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// bill is the cost of a request in money, by Config.Price. Its zero value is nothing.
type bill struct {
	price    *provider.ModelInfo // nil: unknown
	times    float64             // the highest factor on the price of input
	reserved int64               // the price's part of the cost, reserved until the answer
}

// most returns the highest price of so many tokens.
func (b *bill) most(input, output int64) int64 {
	return micros(send.PriceAtMost(*b.price, b.times, input, output))
}

// micros converts a price to millionths of a dollar, rounded up, except for the error of a sum.
func micros(usd float64) int64 { return int64(min(math.Ceil(usd*1e6-1e-6), limit.MaxCost)) }

// price adds the highest price of the request to the cost. A text has at most as many tokens as
// bytes. If the body states no maximum, the reserved output counts, as elsewhere. The most that the
// model could write would exceed most daily limits.
func (c *call) price(w *way, body tokens.Body) {
	b := &c.bill
	if c.t.config.Price == nil {
		return
	}
	p := w.on(c.leaf)
	name := c.est.Model
	if w.target != nil {
		name = w.target.renames(c.model)
	}
	price, known := c.t.config.Price(p, name)
	if !known && w.target != nil { // a name of one's own has no price
		price, known = c.t.config.Price(p, c.model)
	}
	if !known {
		c.unknown = fmt.Sprintf("no price is known of the model %q", c.est.Model)
		return
	}
	b.price = &price
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

// unpriced returns the error of a request of unknown price, if it counts in a limit of money by w or,
// without Targets, by any way.
func (c *call) unpriced(w *way) error {
	if c.t.config.Price == nil {
		return nil
	}
	for n := range c.leaf.distinct {
		if n.money.Load() && (w.target == nil || slices.Contains(w.nodes[:w.count], n)) {
			return &Error{Partition: *n.in(), Client: c.leaf.partition.Client, Unit: limit.Money,
				Err: fmt.Errorf("%w: %s", ErrPrice, c.unknown)}
		}
	}
	return nil
}

// spent returns the price of an attempt, beside the result of Config.Cost; false: unknown, or not
// sent.
func (s *sent) spent(o *limit.Outcome) (cost int64, known bool) {
	switch o.Result {
	case limit.Limited, limit.Failed:
		return 0, true
	case limit.Accepted:
		if s.used != nil {
			return micros(send.Price(*s.bill.price, s.api, *s.used)), true
		}
		return s.bill.reserved, true
	}
	return s.bill.reserved, false
}

// billed returns an outcome of known cost with the attempt's price added; false: it is unchanged.
func (s *sent) billed(o limit.Outcome) (limit.Outcome, bool) {
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

// looked returns the outcome for limits that only watch an attempt with a price. It has only the
// known costs: to limit.Produced, a metered failure has produced everything.
func looked(o, billed limit.Outcome) limit.Outcome {
	if !o.Metered {
		billed.Actual = limit.Cost{limit.Money: billed.Actual[limit.Money]}
	}
	return billed
}

// bills returns the outcome for the limit m: with the price for a limit of money, unchanged for
// others.
func (s *sent) bills(m *paceline.Limit, o, billed limit.Outcome) limit.Outcome {
	if i := s.way.index(m); i >= 0 && s.way.nodes[i].money.Load() {
		o.Metered, o.Actual = true, billed.Actual
	}
	return o
}

// spends lets the client's own limit of money tell how much is used.
func (s *sent) spends() {
	for _, n := range s.way.nodes[:s.way.count] {
		if n.in().Scope == ScopeClient && n.money.Load() {
			n.spent(s.cost[limit.Money])
		}
	}
}

// A limit of money is told of when mostly is used, and when all is: no request as dear as the latest
// fits. It is told of anew after the use was below hardly.
const hardly, mostly = 0.5, 0.8

// spent logs once each that mostly and all of the money is used. cost is that of the latest request.
func (n *node) spent(cost int64) {
	var most limit.Usage
	news := false
	n.t.group.Update(func(now mono.Time) {
		level, used := 0, 0.0
		for _, u := range limit.AppendUsage(nil, n.stack.Own(), now) {
			if u.Unit != limit.Money || u.Allowed <= 0 {
				continue
			}
			share, at := float64(u.Used)/float64(u.Allowed), 0
			switch {
			case u.Used+cost > u.Allowed:
				at = 2
			case share >= mostly:
				at = 1
			}
			if used = max(used, share); at > level {
				level, most = at, u
			}
		}
		if used < hardly {
			n.told = 0
		}
		if news = level > n.told; news {
			n.told = level
		}
	})
	if !news {
		return
	}
	said := "a client has used most of its money"
	if most.Used+cost > most.Allowed {
		said = "a client has used its money: no other request of that cost fits"
	}
	n.t.log.Warn(said, "client", n.in().Client, "limit", most.Limit, "used_usd", float64(most.Used)/1e6, "of_usd",
		float64(most.Allowed)/1e6)
}
