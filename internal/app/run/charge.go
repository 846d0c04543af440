package run

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// charging finds what requests cost besides the one: by Config.Charges, and then by the rows of the
// provider. It is safe for concurrent use.
type charging struct {
	own  *provider.Charges
	rows *provider.Charges // of Config.ChargedBy; nil: those of each host
	any  bool              // some limit counts another unit than requests and tokens

	mu    sync.Mutex
	hosts map[string]*provider.Charges
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
	k := &charging{own: own, hosts: map[string]*provider.Charges{}}
	if c.ChargedBy != "" { // the first look makes the table of providers
		k.rows = provider.ChargesOf(c.ChargedBy)
	}
	for _, l := range c.Limits {
		k.any = k.any || l.Unit == limit.Weight || l.Unit == limit.Orders
	}
	return k, nil
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
	c, _ := k.own.Of(r)
	if c == nil && k.any {
		c, _ = k.of(q.URL.Host).Of(r)
	}
	if q.Charge = c; c == nil {
		return
	}
	cost := classify.CostOf(c.Cost)
	for unit, e := range c.Body {
		u, ok := classify.UnitOf(unit)
		if n, err := e.Count(q.Body); ok && err == nil {
			cost[u] = min(n, limit.MaxCost)
		}
	}
	for u, n := range cost {
		if q.Cost[u] == 0 {
			q.Cost[u] = n
		}
	}
}

// fits returns why a request can never go; empty: it can. It lowers a cost that is a bound to what fits.
func (c *Config) fits(q *format.Request) string {
	for _, l := range c.Limits {
		if q.Charge != nil && q.Charge.Answer != nil { // it is a bound, and the answer has the last word
			q.Cost[l.Unit] = min(q.Cost[l.Unit], l.Most())
		}
		if n := q.Cost[l.Unit]; (l.Unit == limit.Weight || l.Unit == limit.Orders) && !l.Fits(n) {
			return fmt.Sprintf("cost %d %v can never go: limit %s allows %d at once", n, l.Unit, l.Text, l.Most())
		}
	}
	return ""
}

// states takes what the request cost from its answer, if its charge says where.
func states(j *job, ans *pool.Answer) {
	if j.r == nil || j.r.Charge == nil {
		return
	}
	c := j.r.Charge
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
	}
}
