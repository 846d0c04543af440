package classify

import (
	"slices"

	"github.com/paceline-go/paceline/provider"
)

// whom is whose requests a kind of refusal concerns.
type whom uint8

const (
	named     whom = iota // the refuser's name decides, or the used-up limit
	theKey                // all requests of the key
	theServer             // the requests of all clients, or of all clients of the model
	theBanned             // the requests of the key or of the address, depending on the provider
	itself                // this request alone
)

// kinds has a row for each provider.Refusal.
var kinds = []struct {
	refusal provider.Refusal
	limits  bool // a limit refused the request: limit.Limited
	whom    whom
}{
	{provider.None, false, itself},
	{provider.RateLimited, true, named},
	{provider.QuotaExhausted, true, named},
	{provider.TooMany, true, named},
	{provider.Banned, true, theBanned},
	{provider.Overloaded, true, theServer}, // only if it states for how long
	{provider.Unpaid, false, theKey},
	{provider.NoQuota, true, named},
	{provider.Misordered, false, theKey},
	{provider.TooLarge, false, itself},
	{provider.Conflict, false, itself},
}

// widths are the scopes, narrowest first.
var widths = provider.Scopes()

// width returns the place of a scope in widths; -1: it has none.
func width(s provider.Scope) int {
	return slices.IndexFunc(widths, func(row provider.ScopeInfo) bool { return row.Scope == s })
}

// limits reports whether a limit refused. An overload counts as a limit if the server states how
// long it lasts. Only then is it sure that the server did not begin to work on the request.
func limits(o *provider.Observation) bool {
	for _, k := range kinds {
		if k.refusal == o.Refusal {
			return k.limits && (o.Refusal != provider.Overloaded || o.RetryAfter > 0)
		}
	}
	return true // a dialect of another package decides by itself
}

// scopeOf returns the scope of a refusal.
func scopeOf(o *provider.Observation, model bool) provider.Scope {
	limited, banned, names := provider.Whom(o.Dialect)
	who := named
	for _, k := range kinds {
		if k.refusal == o.Refusal {
			who = k.whom
		}
	}
	switch who {
	case theKey:
		return provider.Key
	case theServer:
		if model {
			return provider.Model
		}
		return provider.All
	case theBanned:
		return banned
	case itself:
		return ""
	}
	for _, by := range o.RefusedBy {
		if s := of(names, by, o); s != "" {
			return s
		}
	}
	// The used-up limit; if there are several, the widest.
	spent := -1
	for _, l := range o.Limits {
		if l.Remaining.OK && l.Remaining.N == 0 {
			spent = max(spent, width(l.Scope))
		}
	}
	if spent >= 0 {
		return widths[spent].Scope
	}
	return limited
}

// of returns the scope of a refuser, by its name or else by its policy. It is empty if neither has
// one.
func of(names []provider.Refuser, by string, o *provider.Observation) provider.Scope {
	for _, n := range names {
		if n.Scope != "" && n.Pattern.Match(by) {
			return n.Scope
		}
	}
	if p, ok := o.Policy(by); ok && width(p.Scope) >= 0 {
		return p.Scope
	}
	return ""
}
