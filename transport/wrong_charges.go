package transport

import (
	"fmt"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// notice looks at what an answer states of the use of limits. A wrong charge is logged once, with the line of a
// file that mends it.
func (s *sent) notice() {
	if s.first && s.verdict.Result == limit.Accepted {
		s.t.shapes.Learn(s.finds, s.cost)
	}
	is := s.charged()
	if !s.t.notices.Answered(&s.seen, is, &s.verdict, &s.cost, s.first) {
		return
	}
	cost, _ := s.t.notices.Taught(is)
	var worth limit.Cost
	if s.row != nil {
		worth = classify.CostOf(s.row.Cost)
	}
	s.tell(is.Mends(), worth, cost)
}

// charged is the requests that have the charge of this one.
func (s *sent) charged() costs.Charged {
	return costs.Charged{Host: s.leaf.partition.Host, Route: routeOf(s.req), On: s.on()}
}

// apply changes what a request costs, and where it counts, by the lessons.
func (c *call) apply(p *Partition, resource *string) {
	cost, other := c.t.notices.Taught(costs.Charged{Host: p.Host, Route: routeOf(c.req), On: c.on()})
	for u, n := range cost {
		c.worth[u] = max(c.worth[u], n)
	}
	switch {
	case other == "":
	case provider.OfAddress(*resource): // there it has this name, as answers do not say
		*resource = ofAddress + other
	default:
		*resource = other
	}
}

// on is the requests of the charge; empty: none fits.
func (p *priced) on() string {
	if p.row == nil {
		return ""
	}
	return p.row.On
}

// tell logs what requests cost that their charge says wrong, and the line that mends it. worth is what
// the charge says, and cost what was found.
func (s *sent) tell(on string, worth, cost limit.Cost) {
	is, not := costs.Words(worth, cost)
	line := fmt.Sprintf("{on: %q, cost: %q", on, is)
	if s.row != nil && s.row.Resource != "" {
		line += fmt.Sprintf(", resource: %q", s.row.Resource)
	}
	s.t.log.Warn("a request costs more than its charge says", "request", on, "costs", is, "not", not,
		"add_to_charges", line+"}")
}

// elsewhere moves the route to the resource that its answer names in place of its own.
func (s *sent) elsewhere(resource string) {
	is := s.charged()
	if !s.rows || s.stated || !s.t.notices.Moves(is, resource) {
		return
	}
	s.t.log.Warn("a request counts in another resource than its charge says", "request", is.Route, "counts_in", resource,
		"not", s.leaf.partition.Resource, "add_to_charges", fmt.Sprintf("{on: %q, resource: %q}", is.Mends(), resource))
}
