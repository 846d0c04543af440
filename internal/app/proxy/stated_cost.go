package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// FieldCost is in requests: what the request costs, and the resource in which it counts. Example: 25
// weight; resource=search. The proxy does not pass it on.
const FieldCost = "Paceline-Cost"

// stated is what the client of a request says of its cost.
type stated struct {
	cost     limit.Cost // 0: nothing
	resource string     // empty: nothing
}

// statedOf reads a FieldCost; nil: there is none. An error is about the field.
func statedOf(h http.Header) (*stated, error) {
	all := h[FieldCost]
	if len(all) == 0 {
		return nil, nil
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("%s is there twice, expected one", FieldCost)
	}
	cost, resource, err := charge.Said(shortened(all[0]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w, expected such as 25 weight; resource=search", FieldCost, err)
	}
	return &stated{classify.CostOf(cost), resource}, nil
}

// resource is what the client says of the resource. A request without a visit says nothing.
func (v *visit) resource() string {
	if v == nil || v.stated == nil {
		return ""
	}
	return v.stated.resource
}

// over returns a cost with what the client said. Only a client that may say it lowers a cost.
func (v *visit) over(cost limit.Cost) limit.Cost {
	if v.stated == nil {
		return cost
	}
	for u, n := range v.stated.cost {
		if n > cost[u] || n > 0 && v.client.MaySayCost {
			cost[u] = n
		}
	}
	return cost
}

// maySay refuses a request whose client may not choose its resource.
func (v *visit) maySay() *refusal {
	if v.resource() == "" || v.client.MaySayCost {
		return nil
	}
	return &refusal{status: http.StatusForbidden, kind: "may-not-say", title: "The client may not choose a resource",
		pointless: true,
		detail: fmt.Sprintf("%s names a resource, and the client %s may only raise a cost; expected may_say_cost: true for "+
			"it in the configuration", FieldCost, v.client.Name)}
}

// charges are those of the configuration and, after them, those of the provider.
func (u *Upstream) charges() (own, rows *provider.Charges) {
	own, err := provider.NewCharges(u.Charges)
	if err != nil {
		panic(err) // check has made them
	}
	if who, ok := provider.Publisher(u.Preset); ok {
		return own, provider.ChargesOf(who.Name)
	}
	return own, provider.ChargesOf(u.Seller())
}

// Route returns the upstream of a request, and the request's URL there; nil: there is none. c is
// checked.
func (c *Config) Route(r *http.Request) (*Upstream, *url.URL) {
	var all []*upstream
	for i := range c.Upstreams {
		all = append(all, &upstream{Upstream: c.Upstreams[i]})
	}
	found := newRoutes(all).find(r)
	if found == nil {
		return nil, nil
	}
	return &found.Upstream, found.outgoing(r.URL)
}

// Charge returns what a request costs at this upstream, and the resource in which it counts. index is
// that of Charges; -1: the charge is a row of the provider; nil: no charge fits. The URL of the request
// is that at the server.
func (u *Upstream) Charge(r *http.Request) (c *provider.Charge, resource string, index int) {
	own, rows := u.charges()
	if c, resource = own.Of(r); c != nil {
		return c, resource, slices.IndexFunc(u.Charges, func(o provider.Charge) bool { return o.On == c.On })
	}
	c, resource = rows.Of(r)
	return c, resource, -1
}

// checkCharges finds charges that fit nothing, and limits of resources that do not hold.
func (u *Upstream) checkCharges(c *Config) *ConfigError {
	for i := range u.Charges {
		if _, err := provider.NewCharges(u.Charges[i : i+1]); err != nil {
			return wrong(fmt.Sprintf(".Charges[%d]", i), "%s", charge.Reason(err))
		}
	}
	own, rows := u.charges()
	if hidden, by, ok := own.Hidden(); ok {
		return wrong(fmt.Sprintf(".Charges[%d]", hidden), "no request fits %q but those of the charge before it, on %q, "+
			"which holds for them; expected one charge with all of it, or the narrower one first", u.Charges[hidden].On,
			u.Charges[by].On)
	}
	may := func(k Client) bool { return k.MaySayCost }
	says := may(c.Clients.Default) || slices.ContainsFunc(c.Clients.List, may)
	for i, l := range u.Limits {
		if l.Scope != provider.Resource || l.Only == "" {
			continue
		}
		at := fmt.Sprintf(".Limits[%d]", i)
		if name := provider.Pattern(l.Only); !says && !own.Names(name) && !rows.Names(name) {
			return wrong(at, "no charge names the resource %q, so the limit holds for no request; expected one in charges, "+
				"such as {on: \"* /path/*\", resource: %s}", l.Only, l.Only)
		}
		for _, o := range u.Limits[:i] {
			if o.Scope == l.Scope && o.Only == l.Only && o.Unit == l.Unit && o.Per == l.Per && o.Zone == l.Zone {
				return wrong(at, "the resource %q has two limits in the same time, %s and %s; expected one", l.Only, o.Text,
					l.Text)
			}
		}
	}
	return nil
}
