package verdict

import (
	"slices"

	"github.com/paceline-go/paceline/quota"
)

// whom says, of a kind of refusal, whose requests it concerns.
type whom uint8

const (
	named     whom = iota // what refused has a name, or shows by what is used up
	theKey                // that of the request
	theServer             // everybody, or everybody who wants the model
	theBanned             // the key or the address, as the provider does it
	itself                // this request alone
)

// kinds has a row for each quota.Refusal.
var kinds = []struct {
	refusal quota.Refusal
	limits  bool // a limit refused it: limit.Limited
	whom    whom
}{
	{quota.None, false, itself},
	{quota.RateLimited, true, named},
	{quota.QuotaExhausted, true, named},
	{quota.TooMany, true, named},
	{quota.Banned, true, theBanned},
	{quota.Overloaded, true, theServer}, // if it says for how long
	{quota.Unpaid, false, theKey},
	{quota.Misordered, false, theKey},
	{quota.TooLarge, false, itself},
	{quota.Conflict, false, itself},
}

// row is whom the refusals of one provider concern, by its documentation: see package quota.
type row struct {
	dialect string
	limited quota.Scope // where neither a name nor what is used up says it
	banned  quota.Scope
	names   []name
}

// name is what refused, and in whose limit. The zero Scope: that of the policy of this name, or what is used up, as if there
// were no name.
type name struct {
	pattern quota.Pattern
	scope   quota.Scope
}

var (
	families  = []name{{"RPM", quota.Model}, {"TPM", quota.Model}, {"RPD", quota.Model}, {"TPD", quota.Model}, {"*", ""}}
	theirOwn  = []name{{"*", ""}}
	elsewhere = row{limited: quota.Key, banned: quota.Key, names: theirOwn} // a dialect of somebody's own
)

// table is the one place that says whom a refusal concerns. It has a row for each dialect of package quota, and in it each
// name that the dialect can give: an overlooked one fails a test.
var table = []row{
	{"anthropic", quota.Model, quota.Key, nil},
	{"atlassian", quota.Key, quota.Key, []name{{"*-quota-*", quota.Key}, {"*-burst-*", quota.Route}, {"*-per-issue-*", quota.Route}, {"*", ""}}},
	{"azure-openai", quota.Model, quota.Key, families},
	{"binance", quota.IP, quota.IP, nil},
	{"binance-futures", quota.IP, quota.IP, nil},
	{"binance-spot", quota.IP, quota.IP, nil},
	{"bybit", quota.Route, quota.IP, []name{{"address", quota.IP}}},
	{"cloudflare", quota.Key, quota.Key, nil},
	{"coinbase", quota.Key, quota.Key, []name{{"address", quota.IP}, {"key", quota.Key}}},
	{"discord", quota.Route, quota.IP, []name{{"global", quota.Key}, {"shared", quota.Route}}},
	{"gemini", quota.Model, quota.Key, []name{{"*PerModel*", quota.Model}, {"*", ""}}},
	{"generic", quota.Key, quota.Key, theirOwn},
	{"github", quota.Key, quota.Key, []name{{"secondary", quota.Key}}},
	{"groq", quota.Model, quota.Key, families},
	{"heroku", quota.Key, quota.Key, nil},
	{"ietf", quota.Key, quota.Key, theirOwn},
	// Orders are counted per pair: support.kraken.com, "Trading rate limits".
	{"kraken", quota.Key, quota.Key, []name{{"EOrder:*", quota.Route}, {"EAPI:*", quota.Key}, {"EGeneral:*", quota.Key}, {"EService:*", quota.Key}, {"*", ""}}},
	{"notion", quota.Key, quota.Key, []name{{"public_api_request_*", quota.Key}, {"*", ""}}},
	{"okta", quota.Route, quota.Key, nil},
	{"okx", quota.Route, quota.Key, []name{{"endpoint", quota.Route}, {"sub-account orders", quota.Key}}},
	{"openai", quota.Model, quota.Key, families},
	{"reddit", quota.Key, quota.Key, nil},
	{"shopify", quota.Key, quota.Key, nil},
	{"slack", quota.Route, quota.Key, nil},
	{"stripe", quota.Key, quota.Key, []name{{"global-*", quota.Key}, {"endpoint-*", quota.Route}, {"resource-specific", quota.Route}, {"*", ""}}},
	{"x", quota.Route, quota.Key, []name{{"usage cap*", quota.Key}}},
	{"x-ratelimit-epoch", quota.Key, quota.Key, theirOwn},
	{"x-ratelimit-seconds", quota.Key, quota.Key, theirOwn},
}

// widths are the scopes, narrowest first.
var widths = []quota.Scope{quota.Route, quota.Model, quota.Key, quota.IP, quota.All}

func known(s quota.Scope) bool { return slices.Contains(widths, s) }

func rowOf(dialect string) *row {
	for i := range table {
		if table[i].dialect == dialect {
			return &table[i]
		}
	}
	return &elsewhere
}

// limits tells whether a limit refused. An overload is one if the server says for how long: only then is it sure that it did
// not begin to work.
func limits(o *quota.Observation) bool {
	for _, k := range kinds {
		if k.refusal == o.Refusal {
			return k.limits && (o.Refusal != quota.Overloaded || o.RetryAfter > 0)
		}
	}
	return true // a word of somebody's own dialect
}

// scopeOf says whose requests a refusal concerns.
func scopeOf(o *quota.Observation, model bool) quota.Scope {
	r := rowOf(o.Dialect)
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
		return r.banned
	case itself:
		return ""
	}
	for _, by := range o.RefusedBy {
		if s := r.of(by, o); s != "" {
			return s
		}
	}
	// Whatever is used up; of several, the widest.
	spent := -1
	for _, l := range o.Limits {
		if l.Remaining.OK && l.Remaining.N == 0 {
			spent = max(spent, slices.Index(widths, l.Scope))
		}
	}
	if spent >= 0 {
		return widths[spent]
	}
	return r.limited
}

// of returns the scope of what refused, by its name or else its policy's. Empty: neither says it.
func (r *row) of(by string, o *quota.Observation) quota.Scope {
	for _, n := range r.names {
		if n.scope != "" && n.pattern.Match(by) {
			return n.scope
		}
	}
	if p, ok := o.Policy(by); ok && known(p.Scope) {
		return p.Scope
	}
	return ""
}
