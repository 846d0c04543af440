package transport

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// hostCharges is what requests to a host cost.
type hostCharges struct {
	host string
	*provider.Charges
}

// chargesOf returns what requests to a host cost: Config.Charges, and the rows of the provider.
func (t *Transport) chargesOf(host string) *provider.Charges {
	if t.preset.Name != "" || t.config.Provider != nil || len(t.targets) > 0 {
		return t.charges // those of one provider, whatever the host
	}
	if last := t.hostLast.Load(); last != nil && last.host == host { // most clients have one host
		return last.Charges
	}
	if known, ok := t.charged.Load(host); ok {
		last := known.(*hostCharges)
		t.hostLast.Store(last)
		return last.Charges
	}
	var row provider.Provider
	if k := t.runs(Partition{Host: host}); k != nil {
		row = k.row
	}
	c := t.chargesWith(row)
	if len(host) <= maxField && t.hosts.Add(1) <= int64(t.config.MaxPartitions) { // clients may choose hosts
		host = strings.Clone(host) // not a part of a whole URL
		t.charged.Store(host, &hostCharges{host, c})
	}
	return c
}

// chargesWith returns the charges of the configuration and, after them, those of a provider.
func (t *Transport) chargesWith(row provider.Provider) *provider.Charges {
	if len(t.config.Charges) == 0 {
		return provider.ChargesOf(row.Name)
	}
	c, err := provider.NewCharges(slices.Concat(t.config.Charges, row.Charges))
	if err != nil {
		panic(err) // checkCharges has made those of the configuration
	}
	return c
}

// checkCharges returns an error in Config.Charges.
func (c *Config) checkCharges() error {
	charges, err := provider.NewCharges(c.Charges)
	if err != nil {
		return fmt.Errorf("transport: Charges: %w", err)
	}
	if hidden, by, ok := charges.Hidden(); ok {
		return fmt.Errorf("transport: Charges[%d], on %q, is never used: Charges[%d], on %q, fits all of its requests", hidden,
			c.Charges[hidden].On, by, c.Charges[by].On)
	}
	return nil
}

// charge finds what the request costs, and the resource in which it counts. If the charge has
// expressions over the body, it reads the body.
func (c *call) charge(p *Partition) error {
	charges := c.t.chargesOf(p.Host)
	of := charges.Of
	if p.Key == "" && len(c.t.config.Keys) == 0 {
		of = charges.OfKeyless
	}
	var charge *provider.Charge
	var resource string
	if charges != nil {
		charge, resource = of(c.req)
	}
	c.row, c.rows, c.stated = charge, charges != nil, p.Resource != ""
	if charge != nil {
		c.worth = classify.CostOf(charge.Cost)
	}
	if c.rows {
		if err := c.introduce(p); err != nil {
			return err
		}
	}
	if c.rows && c.t.notices.HasTaught() {
		c.apply(p, &resource)
	}
	if !c.stated {
		p.Resource = resource
	}
	if charge == nil || charge.Body == nil && charge.Answer == nil {
		return nil
	}
	var raw []byte
	most, plain := c.t.config.MaxBody, c.req.Header.Get("Content-Encoding") == ""
	if plain && c.body != nil && c.body != http.NoBody && c.req.ContentLength <= most {
		var err error
		if raw, err = c.read(most); err != nil {
			return fmt.Errorf("transport: the body of the request: %w", err)
		}
	}
	c.t.count(&c.worth, charge, "body", charge.Body, raw)
	if charge.Answer != nil {
		return c.reserve(p.Host, raw)
	}
	return nil
}

// count sets the counts of a document that a charge's expressions find. An expression that finds none
// leaves the amount as it is, which is logged once. found reports whether one did find some.
func (t *Transport) count(cost *limit.Cost, row *provider.Charge, where string,
	all map[provider.Unit]provider.Expression, document []byte) (found bool) {
	for unit, e := range all {
		u, ok := classify.UnitOf(unit)
		if !ok {
			continue
		}
		n, err := e.Count(document)
		if err == nil {
			cost[u], found = min(n, limit.MaxCost), true
		} else if t.first(where, Partition{Route: row.On + " " + string(unit)}) {
			t.log.Warn("what a request costs is not in its "+where, "charge", row.On, "unit", string(unit), "why", err,
				"counted", cost[u])
		}
	}
	return found
}

// charges returns a cost with that of the request's charge, where its host has charges.
func (c *call) charges(cost limit.Cost) limit.Cost {
	for u, n := range c.worth {
		if n != 0 {
			cost[u], c.least[u] = n, n
		}
		if n != 0 && c.guessed {
			c.least[u] = 1
		}
	}
	return cost
}

// costs takes what the request cost from the text of its answer.
func (s *sent) costs(o *limit.Outcome, text []byte) {
	if !o.Metered {
		o.Metered, o.Actual = true, s.cost
	}
	if !s.t.count(&o.Actual, s.row, "answer", s.row.Answer, text) {
		s.t.shapes.Untold(s.finds)
		return
	}
	s.t.shapes.Learn(s.finds, o.Actual)
	s.t.notices.Exceeds(s.charged(), s.row, o.Actual)
	for unit, n := range s.row.Cost {
		u, ok := classify.UnitOf(unit)
		stated := s.row.Answer[unit] != nil && s.row.Body[unit] == nil
		if ok && stated && o.Actual[u] > n && s.t.first("cost", Partition{Route: s.row.On + " " + string(unit)}) {
			worth := s.worth
			worth[u] = n // what the charge says, whatever its shape has shown
			s.tell(s.row.On, worth, o.Actual)
		}
	}
}

// usual reports whether a partition's resource is that of most requests to its host: the answers of
// a server without charges would be of the key.
func (t *Transport) usual(p Partition) bool {
	return p.Resource != "" && bare(p.Resource) == t.chargesOf(p.Host).Usual()
}
