package classify

import (
	"net/http"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/provider"
)

// Every row of package provider's table says whom refusals concern, by names that stand behind no "*".
func TestTableHasEveryName(t *testing.T) {
	for _, p := range provider.Providers() {
		for i, n := range p.Refusers {
			if n.Scope != "" && width(n.Scope) < 0 {
				t.Errorf("%s: %q concerns %q, which is no scope", p.Name, n.Pattern, n.Scope)
			}
			if n.Scope == "" && n.Pattern != "*" {
				t.Errorf("%s: nothing is said of %q", p.Name, n.Pattern)
			}
			if n.Pattern == "*" && i < len(p.Refusers)-1 {
				t.Errorf("%s: names after * are never looked at", p.Name)
			}
		}
		if width(p.Limited) < 0 || width(p.Banned) < 0 {
			t.Errorf("%s: limits concern %q, bans %q", p.Name, p.Limited, p.Banned)
		}
	}
	var refusals []provider.Refusal
	for _, k := range kinds {
		refusals = append(refusals, k.refusal)
	}
	want := append(provider.Refusals(), provider.None)
	slices.Sort(want)
	slices.Sort(refusals)
	if !slices.Equal(refusals, want) {
		t.Errorf("the table has the refusals %q, there are %q", refusals, want)
	}
}

// The scopes of limits and policies are those of package provider, in all published limits and in
// all answers of the corpus. If a refusal names a policy with a scope, that scope counts.
func TestPoliciesHaveScopes(t *testing.T) {
	check := func(where string, p provider.Policy) {
		if p.Scope != "" && width(p.Scope) < 0 {
			t.Errorf("%s: policy %q is of %q, which is no scope", where, p.Name, p.Scope)
		}
		o := provider.Observation{Dialect: "generic", Refusal: provider.RateLimited, RefusedBy: []string{p.Name}, Policies: []provider.Policy{p}}
		want := p.Scope
		if want == "" {
			want = provider.Key
		}
		if got := scopeOf(&o, false); got != want {
			t.Errorf("%s: refused by %q of %q: concerns %q", where, p.Name, p.Scope, got)
		}
	}
	for _, p := range provider.Presets() {
		for _, policy := range p.Policies {
			check(p.Name, policy)
		}
	}
	n := 0
	for _, name := range provider.Names() {
		d, _ := provider.Lookup(name)
		for _, s := range corpus.Load(t, "../testdata", name) {
			o := d.Read(s.Now, s.Response)
			for _, p := range o.Policies {
				n++
				check(s.Name, p)
			}
			for _, l := range o.Limits {
				if l.Scope != "" && width(l.Scope) < 0 {
					t.Errorf("%s: limit %q is of %q, which is no scope", s.Name, l.Policy, l.Scope)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("the corpus has %d policies: some were lost", n)
	}
}

func TestWhomARefusalConcerns(t *testing.T) {
	spent := func(scopes ...provider.Scope) (l []provider.ServiceLimit) {
		for _, s := range scopes {
			l = append(l, provider.ServiceLimit{Unit: provider.Requests, Scope: s, Remaining: provider.Count{N: 0, OK: true}})
		}
		return l
	}
	by := func(names ...string) []string { return names }
	for _, c := range []struct {
		dialect string
		refusal provider.Refusal
		by      []string
		limits  []provider.ServiceLimit
		model   bool
		want    provider.Scope
	}{
		{"okx", provider.RateLimited, by("endpoint"), nil, false, provider.Route},
		{"okx", provider.RateLimited, by("sub-account orders"), nil, false, provider.Key}, // it paused a route once
		{"okx", provider.RateLimited, nil, nil, false, provider.Route},
		{"kraken", provider.RateLimited, by("EAPI:Rate limit exceeded"), nil, false, provider.Key},
		{"kraken", provider.RateLimited, by("EOrder:Rate limit exceeded"), nil, false, provider.Route},
		{"kraken", provider.Banned, by("EGeneral:Temporary lockout"), nil, false, provider.Key},
		{"kraken", provider.Misordered, by("EAPI:Invalid nonce"), nil, false, provider.Key},
		{"bybit", provider.RateLimited, by("address"), spent(provider.Route), false, provider.IP},
		{"bybit", provider.Banned, nil, nil, false, provider.IP},
		{"coinbase", provider.RateLimited, by("address"), nil, false, provider.IP},
		{"coinbase", provider.RateLimited, by("key"), nil, false, provider.Key},
		{"stripe", provider.RateLimited, by("global-rate"), nil, false, provider.Key},
		{"stripe", provider.TooMany, by("endpoint-concurrency"), nil, false, provider.Route},
		{"stripe", provider.RateLimited, by("resource-specific"), nil, false, provider.Route},
		{"stripe", provider.RateLimited, by("a new reason"), nil, false, provider.Key},
		{"stripe", provider.Conflict, nil, nil, false, ""},
		{"atlassian", provider.QuotaExhausted, by("jira-quota-tenant-based"), nil, false, provider.Key},
		{"atlassian", provider.RateLimited, by("jira-burst-based"), nil, false, provider.Route},
		{"atlassian", provider.RateLimited, by("jira-per-issue-on-write"), nil, false, provider.Route},
		{"atlassian", provider.RateLimited, by("jira-new-based"), spent(provider.Route), false, provider.Route},
		{"discord", provider.RateLimited, by("shared"), nil, false, provider.Route},
		{"discord", provider.RateLimited, by("global"), spent(provider.Route), false, provider.Key},
		{"discord", provider.Banned, nil, nil, false, provider.IP},
		{"github", provider.RateLimited, by("secondary"), spent(provider.IP), false, provider.Key},
		{"github", provider.RateLimited, nil, spent(provider.IP), false, provider.IP},
		{"x", provider.QuotaExhausted, by("usage cap Monthly"), nil, false, provider.Key},
		{"x", provider.RateLimited, nil, spent(provider.Route, provider.Key), false, provider.Key},
		{"x", provider.RateLimited, nil, spent(provider.Key, provider.Route), false, provider.Key},
		{"x", provider.RateLimited, nil, nil, false, provider.Route},
		{"gemini", provider.QuotaExhausted, by("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), nil, true, provider.Model},
		{"openai", provider.RateLimited, by("TPM"), nil, true, provider.Model},
		{"openai", provider.Unpaid, nil, nil, true, provider.Key},
		{"openai", provider.TooLarge, by("TPM"), nil, true, ""},
		{"openai", provider.Overloaded, nil, nil, true, provider.Model},
		{"openai", provider.Overloaded, nil, nil, false, provider.All},
		{"binance", provider.Banned, nil, nil, false, provider.IP},
		{"ietf", provider.RateLimited, by("address"), nil, false, provider.Key}, // that server's word, and not ours
		{"ietf", provider.RateLimited, by("burst"), spent(""), false, provider.Key},
		{"a stranger's", provider.RateLimited, by("?"), spent(provider.Route), false, provider.Route},
		{"a stranger's", provider.RateLimited, nil, spent("planet"), false, provider.Key},
		{"a stranger's", "a stranger's", nil, nil, false, provider.Key},
	} {
		o := provider.Observation{Dialect: c.dialect, Refusal: c.refusal, RefusedBy: c.by, Limits: c.limits}
		if got := scopeOf(&o, c.model); got != c.want {
			t.Errorf("%s, %s by %q: concerns %q, want %q", c.dialect, c.refusal, c.by, got, c.want)
		}
	}
}

// The Outcome of an overloaded server says so, with or without a stated time. The Outcome of a
// refusal by a limit does not.
func TestOverloaded(t *testing.T) {
	var p Policy
	for _, c := range []struct {
		status int
		fields []string
		want   bool
	}{
		{529, nil, true}, {503, []string{"Retry-After", "7"}, true}, {429, []string{"Retry-After", "7"}, false}, {500, nil, false}, {200, nil, false},
	} {
		h := http.Header{}
		for i := 0; i < len(c.fields); i += 2 {
			h.Set(c.fields[i], c.fields[i+1])
		}
		if v := p.Of(&Evidence{Status: c.status, Header: h}); v.Overloaded != c.want {
			t.Errorf("%d %v: overloaded %v", c.status, c.fields, v.Overloaded)
		}
	}
}

// A limit of which the server does not say what is left is not used up, nor is one that has some left.
func TestWhatIsUsedUp(t *testing.T) {
	left := func(s provider.Scope, n int64, ok bool) provider.ServiceLimit {
		return provider.ServiceLimit{Unit: provider.Requests, Scope: s, Remaining: provider.Count{N: n, OK: ok}}
	}
	for _, wider := range []provider.ServiceLimit{left(provider.IP, 0, false), left(provider.IP, 5, true)} {
		for _, limits := range [][]provider.ServiceLimit{{left(provider.Route, 0, true), wider}, {wider, left(provider.Route, 0, true)}} {
			o := provider.Observation{Dialect: "x", Refusal: provider.RateLimited, Limits: limits}
			if got := scopeOf(&o, false); got != provider.Route {
				t.Errorf("%+v: concerns %q", limits, got)
			}
		}
	}
}
