package classify

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

func everybody(provider.Scope) bool { return true }

// For returns the Outcome for a limiter of some scopes: has reports whether a scope is one of them.
// The limiter learns what is left in those scopes alone. It learns RetryAfter only if a limit of
// those scopes refused, or a part; otherwise the refusal was Elsewhere.
func (v *Verdict) For(has func(provider.Scope) bool) limit.Outcome {
	o := v.Outcome
	o.Known, o.Remaining, o.Reset = 0, limit.Outcome{}.Remaining, limit.Outcome{}.Reset
	v.hints(has, &o)
	o.Elsewhere = v.Result == limit.Limited && !has(v.Scope)
	if v.Result != limit.Limited && !(v.Said.Partly && has(v.Scope)) || o.Elsewhere {
		o.RetryAfter = 0
	}
	return o
}

// OfResource drops statements about other resources than that of the request: they are no news of this
// one, nor of the key. A refusal by such a limit concerns the route alone. If the answer speaks of one
// limit, of another resource, that is where the request counts.
func (v *Verdict) OfResource(own string) (other string) {
	another := func(scope provider.Scope, resource string) bool {
		return scope == provider.Resource && resource != "" && resource != own
	}
	said := &v.Said
	if l := said.Limits; len(l) == 1 && another(l[0].Scope, l[0].Resource) {
		other = l[0].Resource
	}
	limits := len(said.Limits)
	said.Limits = slices.DeleteFunc(said.Limits, func(l provider.ServiceLimit) bool { return another(l.Scope, l.Resource) })
	said.Policies = slices.DeleteFunc(said.Policies, func(p provider.Policy) bool { return another(p.Scope, p.Resource) })
	if len(said.Limits) == limits {
		return other
	}
	v.rehint()
	if v.Scope == provider.Resource {
		v.Scope = provider.Route
	}
	return other
}

// Add lets the answer state a limit more.
func (v *Verdict) Add(l provider.ServiceLimit) {
	v.Said.Limits = append(v.Said.Limits, l)
	v.rehint()
}

// rehint finds what is left from changed statements.
func (v *Verdict) rehint() {
	all := v.For(everybody)
	v.Known, v.Remaining, v.Reset = all.Known, all.Remaining, all.Reset
}

// hints adds the remainders of limits to an outcome, for the scopes that has reports. For each unit
// it is the limit with the least left. A limit with a known reset goes before one without, which
// would hide it from a limiter that needs a reset.
func (v *Verdict) hints(has func(provider.Scope) bool, o *limit.Outcome) {
	for i := range v.Said.Limits {
		l := &v.Said.Limits[i]
		u, ok := UnitOf(l.Unit)
		if !ok || !l.Remaining.OK || !has(l.Scope) {
			continue
		}
		left := min(max(l.Remaining.N, 0), limit.MaxCost)
		reset := time.Duration(0)
		if !l.Reset.IsZero() {
			reset = min(max(l.Reset.Sub(v.now), 0), provider.MaxWait)
		}
		if o.Known>>u&1 == 1 {
			switch dated, was := reset > 0, o.Reset[u] > 0; {
			case was && !dated:
				continue
			case dated && !was:
			case left > o.Remaining[u] || left == o.Remaining[u] && reset <= o.Reset[u]:
				continue
			}
		}
		o.Known |= 1 << u
		o.Remaining[u], o.Reset[u] = left, reset
	}
}

// Policies returns the limits that the answer states in the scopes that has reports. Inferred
// limits are left out, since they differ a little each time. capacity is the size of the stated
// buckets whose resets say when they are full (see fairshare.HintsConfig).
func (v *Verdict) Policies(has func(provider.Scope) bool) (stated []provider.Policy, capacity limit.Cost) {
	for _, p := range v.Said.Policies {
		if p.Limit <= 0 || !has(p.Scope) {
			continue
		}
		if p.WindowSource == provider.Inferred {
			p.Window, p.WindowSource = 0, ""
		}
		stated = append(stated, p)
		u, ok := UnitOf(p.Unit)
		for _, l := range v.Said.Limits {
			if ok && p.Rule == provider.Bucket && l.Policy == p.Name && l.Whole {
				capacity[u] = min(max(p.Limit, p.Burst), limit.MaxCost)
			}
		}
	}
	return stated, capacity
}

// Stated converts policies to limit.Rules, for limiters that learn. Those in no unit of a Cost are
// left out. An unknown window is 0.
func Stated(policies []provider.Policy) (all []limit.Rule) {
	for i := range policies {
		p := &policies[i]
		u, ok := UnitOf(p.Unit)
		if !ok || p.Limit <= 0 {
			continue
		}
		window := max(p.Window, 0)
		if p.WindowSource == provider.Inferred {
			window = 0
		}
		s := limit.Rule{Name: p.Name, Unit: u, N: p.Limit, Per: window, Counts: Counts(p.Rule), Burst: p.Burst, Documented: p.Source == provider.Documented}
		all = append(all, s)
	}
	return all
}

// Counts converts a server's way of counting to limit.Counting.
func Counts(r provider.Rule) limit.Counting {
	switch r {
	case provider.Bucket:
		return limit.CountsBucket
	case provider.Calendar, provider.Anchored:
		return limit.CountsWindow
	case provider.Rolling:
		return limit.CountsRolling
	}
	return limit.CountsSomehow
}

// asked returns how long a refusal asks to stay away, by its Retry-After or by resets. 0: not
// stated. A limit of 0 asks for the longest time.
func asked(now time.Time, said *provider.Observation) time.Duration {
	if said.Refusal == provider.NoQuota {
		return provider.MaxWait
	}
	at, ok := said.ComeBack(now)
	if !ok {
		return 0
	}
	return min(max(at.Sub(now), 0), provider.MaxWait)
}

// sure reports whether every wait of more than an hour in an answer is vouched for.
func sure(now time.Time, said *provider.Observation) bool {
	const long = time.Hour
	longest := said.RetryAfter
	for i := range said.Limits {
		longest = max(longest, said.Limits[i].Reset.Sub(now)) // far below 0 for the zero Time
	}
	return longest > long && said.Vouched(longest) || longest > 0 && said.Sure || said.Refusal == provider.NoQuota
}

// CostOf returns amounts by unit as a cost. Units that no limit counts are left out.
func CostOf(amounts map[provider.Unit]int64) (cost limit.Cost) {
	for unit, n := range amounts {
		if u, ok := UnitOf(unit); ok {
			cost[u] = n
		}
	}
	return cost
}

// UnitOf returns the unit of a Cost for a server's unit.
func UnitOf(u provider.Unit) (limit.Unit, bool) {
	switch u {
	case provider.Requests:
		return limit.Requests, true
	case provider.Weight:
		return limit.Weight, true
	case provider.Orders:
		return limit.Orders, true
	case provider.Input:
		return limit.Input, true
	case provider.Output:
		return limit.Output, true
	case provider.Tokens:
		return limit.Tokens, true
	}
	return 0, false // the unit of money is the caller's choice; bytes and the others have none
}
