package verdict

import (
	"slices"

	"github.com/paceline-go/paceline/quota"
)

// whom says whose requests a kind of refusal concerns.
type whom uint8

const (
	named     whom = iota // a name tells what refused, or what is used up does
	theKey                // all requests of the key
	theServer             // everybody's requests, or those of everybody who uses the model
	theBanned             // the requests of the key or of the address, depending on the provider
	itself                // this request alone
)

// kinds has a row for each quota.Refusal.
var kinds = []struct {
	refusal quota.Refusal
	limits  bool // a limit refused the request: limit.Limited
	whom    whom
}{
	{quota.None, false, itself},
	{quota.RateLimited, true, named},
	{quota.QuotaExhausted, true, named},
	{quota.TooMany, true, named},
	{quota.Banned, true, theBanned},
	{quota.Overloaded, true, theServer}, // only if it says for how long
	{quota.Unpaid, false, theKey},
	{quota.Misordered, false, theKey},
	{quota.TooLarge, false, itself},
	{quota.Conflict, false, itself},
}

// widths are the scopes, narrowest first.
var widths = []quota.Scope{quota.Route, quota.Model, quota.Key, quota.IP, quota.All}

func known(s quota.Scope) bool { return slices.Contains(widths, s) }

// limits reports whether a limit refused. An overload counts as one if the server says how long it lasts: only then is it sure that the
// server did not begin to work on the request.
func limits(o *quota.Observation) bool {
	for _, k := range kinds {
		if k.refusal == o.Refusal {
			return k.limits && (o.Refusal != quota.Overloaded || o.RetryAfter > 0)
		}
	}
	return true // the word of a dialect that is not of package quota
}

// scopeOf says whose requests a refusal concerns.
func scopeOf(o *quota.Observation, model bool) quota.Scope {
	limited, banned, names := quota.Whom(o.Dialect)
	who := named
	for _, k := range kinds {
		if k.refusal == o.Refusal {
			who = k.whom
		}
	}
	switch who {
	case theKey:
		return quota.Key
	case theServer:
		if model {
			return quota.Model
		}
		return quota.All
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
	// What is used up; if several limits are, the widest.
	spent := -1
	for _, l := range o.Limits {
		if l.Remaining.OK && l.Remaining.N == 0 {
			spent = max(spent, slices.Index(widths, l.Scope))
		}
	}
	if spent >= 0 {
		return widths[spent]
	}
	return limited
}

// of returns the scope of what refused, by its name or else its policy's. It is empty if neither says.
func of(names []quota.Refuser, by string, o *quota.Observation) quota.Scope {
	for _, n := range names {
		if n.Scope != "" && n.Pattern.Match(by) {
			return n.Scope
		}
	}
	if p, ok := o.Policy(by); ok && known(p.Scope) {
		return p.Scope
	}
	return ""
}
