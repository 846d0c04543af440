package transport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// notice looks at what an answer states of the use of limits. A wrong charge is logged once, with the line of a
// file that mends it.
func (s *sent) notice() {
	s.tellHigher()
	slow := false
	if s.seen.IsOpen() {
		slow = s.compares()
	} else {
		slow = s.t.notices.FirstUse(s.leaf.partition.Host, &s.verdict)
	}
	if slow {
		s.beginSlowly()
	}
	if !s.rows || !s.seen.IsOpen() {
		return
	}
	if s.first && s.verdict.Result == limit.Accepted {
		s.t.shapes.Learn(s.finds, s.cost)
	}
	is := s.charged()
	if !s.t.notices.Answered(s.seen, is, &s.verdict, &s.cost, s.first) {
		return
	}
	cost, _ := s.t.notices.Taught(is)
	var worth limit.Cost
	if s.row != nil {
		worth = classify.CostOf(s.row.Cost)
	}
	s.tell(is.Mends(), worth, cost)
}

// compares compares what the answer states as used with the configured limits. A limit that counts another
// thing is logged once.
func (s *sent) compares() (slow bool) {
	if !slices.ContainsFunc(s.verdict.Said.Limits, func(l provider.ServiceLimit) bool { return l.Used.OK }) {
		return false
	}
	wrong, slow := s.t.notices.Compares(s.seen, &s.verdict, s.way.configured())
	for i := range wrong {
		w := &wrong[i]
		said, charge := w.Says(), fmt.Sprintf("{on: %q, cost: %q}", s.charged().Mends(), w.Charge())
		s.t.log.Warn("a limit counts another thing than its server", "partition", s.leaf.partition, "limit", w.Limit(),
			"why", said, "put_into_limits", w.Mends(), "put_into_charges", charge,
			"now", "no more goes than answers say is left")
		s.t.note(observe.EventWrong, s.leaf.partition, said)
	}
	return slow
}

// tellHigher logs once that the server states a limit below a configured one. No more goes than answers say is left.
func (s *sent) tellHigher() {
	v := &s.verdict
	if len(v.Said.Policies) == 0 {
		return
	}
	news := int64(0) // what limits are stated, and whether their windows are known
	for i := range v.Said.Policies {
		p := &v.Said.Policies[i]
		news = news*31 + p.Limit + min(int64(p.Window), 1)
	}
	if s.way.server.stated.Swap(news) == news {
		return
	}
	for _, h := range costs.Highest(v, s.way.configured()) {
		said := h.Says()
		if p := s.leaf.partition; s.t.first(said, Partition{Host: p.Host, Key: p.Key}) {
			s.t.log.Warn("the server states a lower limit", "partition", p, "why", said, "put_into_limits", h.Mends(), "now",
				"no more goes than answers say is left")
			s.t.note(observe.EventWrong, p, said)
		}
	}
}

// beginSlowly lets few requests be in flight at first: the server counts more than we do, and why is not known yet.
func (s *sent) beginSlowly() {
	var all []*paceline.Limit
	for _, n := range s.way.nodes[:s.way.count] {
		if n.in().Scope != ScopeClient && n != s.t.shared {
			all = append(all, n.limit)
		}
	}
	s.t.group.Update(func(now mono.Time) {
		for _, n := range s.way.nodes[:s.way.count] {
			if own := n.stack.Own(); own != nil && n.in().Scope != ScopeClient && n != s.t.shared {
				n.stack.Begin(now)
			}
		}
	}, all...)
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

// refusedAgain is how long after a line about refusals of a partition the next one comes.
const refusedAgain = time.Minute

// refusals are those of a partition, under the Transport's lock.
type refusals struct {
	told  time.Time // the latest line of the log; zero: none
	count int       // since then
}

// tellRefused logs the first refusal of a partition at once, and further ones once a minute, with their number. pause
// is how long nothing goes; 0: it does not wait.
func (s *sent) tellRefused(at *node, pause time.Duration) {
	t := s.t
	t.mu.Lock()
	r := &at.refusals
	r.count++
	count, tells := r.count, r.told.IsZero() || s.headed.Sub(r.told) >= refusedAgain
	if tells {
		r.told, r.count = s.headed, 0
	}
	t.mu.Unlock()
	if !tells {
		return
	}
	var limits []string
	for _, of := range s.way.configured() {
		for i := range of.Rules {
			limits = append(limits, of.Rules[i].String())
		}
	}
	now := "the request waits"
	if pause > 0 {
		now = "nothing goes for " + text.Span(pause.Round(time.Millisecond))
	}
	t.log.Warn("the server refuses", "partition", *at.in(), "refusals", count,
		"configured", cmp.Or(strings.Join(limits, ", "), "no limit"),
		"server", classify.DescribeRefusal(s.headed, s.verdict.Status, s.verdict.Said), "now", now)
}
