package costs

import (
	"fmt"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Higher is a configured limit that allows more than its server states.
type Higher struct {
	Rule   limit.Rule // as configured
	Stated limit.Rule
}

// Says is what the server states.
func (h *Higher) Says() string {
	return fmt.Sprintf("the server states a limit of %s, and %s is configured", h.Mends(), counted(&h.Rule, h.Rule.Unit))
}

// Mends returns the stated limit, as users write it.
func (h *Higher) Mends() string { return counted(&h.Stated, h.Stated.Unit) }

// Highest returns the configured limits that allow more than the answer states. A stated limit is compared if its
// window is known and not longer: a limit of a day says nothing of a minute. One that is only documented is not
// the server's word, and one of a route or a resource is not that of the key. Where several configured
// limits are in one unit, the strictest counts.
func Highest(v *classify.Verdict, all []Configured) (list []Higher) {
	for i := range v.Said.Policies {
		said := &v.Said.Policies[i]
		u, ok := classify.UnitOf(said.Unit)
		if !ok || said.Limit <= 0 || said.Window <= 0 || said.Source == provider.Documented || said.Source == provider.Inferred {
			continue
		}
		rule := strictest(all, said, u)
		if rule != nil && perNanosecond(rule.N, int64(rule.Per)) > perNanosecond(said.Limit, int64(said.Window)) {
			list = append(list, Higher{*rule, limit.Rule{Name: said.Name, Unit: u, N: said.Limit, Per: said.Window}})
		}
	}
	return list
}

func perNanosecond(n, d int64) float64 { return float64(n) / float64(d) }

// strictest returns the configured rule that allows the least in the window of a stated limit; nil: there is none.
func strictest(all []Configured, said *provider.Policy, u limit.Unit) (rule *limit.Rule) {
	for i := range all {
		if own := said.Scope == provider.Route || said.Scope == provider.Resource; own && said.Scope != all[i].Scope {
			continue
		}
		for k := range all[i].Rules {
			r := &all[i].Rules[k]
			if r.Unit != u || r.Per < said.Window {
				continue
			}
			if rule == nil || perNanosecond(r.N, int64(r.Per)) < perNanosecond(rule.N, int64(rule.Per)) {
				rule = r
			}
		}
	}
	return rule
}
