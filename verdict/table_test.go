package verdict

import (
	"net/http"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/internal/corpus"
	"github.com/paceline-go/paceline/quota"
)

// Every row of package quota's table says whom refusals concern, by names that stand behind no "*".
func TestTableHasEveryName(t *testing.T) {
	for _, p := range quota.Providers() {
		for i, n := range p.Refusers {
			if n.Scope != "" && !known(n.Scope) {
				t.Errorf("%s: %q concerns %q, which is no scope", p.Name, n.Pattern, n.Scope)
			}
			if n.Scope == "" && n.Pattern != "*" {
				t.Errorf("%s: nothing is said of %q", p.Name, n.Pattern)
			}
			if n.Pattern == "*" && i < len(p.Refusers)-1 {
				t.Errorf("%s: names after * are never looked at", p.Name)
			}
		}
		if !known(p.Limited) || !known(p.Banned) {
			t.Errorf("%s: limits concern %q, bans %q", p.Name, p.Limited, p.Banned)
		}
	}
	var refusals []quota.Refusal
	for _, k := range kinds {
		refusals = append(refusals, k.refusal)
	}
	want := append(quota.Refusals(), quota.None)
	slices.Sort(want)
	slices.Sort(refusals)
	if !slices.Equal(refusals, want) {
		t.Errorf("the table has the refusals %q, there are %q", refusals, want)
	}
}

// The scopes of limits and policies are quota's, in all that is published and in all answers of the corpus; and whoever is
// refused by the name of a policy that says whom it concerns is believed.
func TestPoliciesHaveScopes(t *testing.T) {
	check := func(where string, p quota.Policy) {
		if p.Scope != "" && !known(p.Scope) {
			t.Errorf("%s: policy %q is of %q, which is no scope", where, p.Name, p.Scope)
		}
		o := quota.Observation{Dialect: "generic", Refusal: quota.RateLimited, RefusedBy: []string{p.Name}, Policies: []quota.Policy{p}}
		want := p.Scope
		if want == "" {
			want = quota.Key
		}
		if got := scopeOf(&o, false); got != want {
			t.Errorf("%s: refused by %q of %q: concerns %q", where, p.Name, p.Scope, got)
		}
	}
	for _, p := range quota.Presets() {
		for _, policy := range p.Policies {
			check(p.Name, policy)
		}
	}
	n := 0
	for _, name := range quota.Names() {
		d, _ := quota.Lookup(name)
		for _, s := range corpus.Load(t, "../quota/testdata", name) {
			o := d.Read(s.Now, s.Response)
			for _, p := range o.Policies {
				n++
				check(s.Name, p)
			}
			for _, l := range o.Limits {
				if l.Scope != "" && !known(l.Scope) {
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
	spent := func(scopes ...quota.Scope) (l []quota.ServiceLimit) {
		for _, s := range scopes {
			l = append(l, quota.ServiceLimit{Unit: quota.Requests, Scope: s, Remaining: quota.Count{N: 0, OK: true}})
		}
		return l
	}
	by := func(names ...string) []string { return names }
	for _, c := range []struct {
		dialect string
		refusal quota.Refusal
		by      []string
		limits  []quota.ServiceLimit
		model   bool
		want    quota.Scope
	}{
		{"okx", quota.RateLimited, by("endpoint"), nil, false, quota.Route},
		{"okx", quota.RateLimited, by("sub-account orders"), nil, false, quota.Key}, // it paused a route once
		{"okx", quota.RateLimited, nil, nil, false, quota.Route},
		{"kraken", quota.RateLimited, by("EAPI:Rate limit exceeded"), nil, false, quota.Key},
		{"kraken", quota.RateLimited, by("EOrder:Rate limit exceeded"), nil, false, quota.Route},
		{"kraken", quota.Banned, by("EGeneral:Temporary lockout"), nil, false, quota.Key},
		{"kraken", quota.Misordered, by("EAPI:Invalid nonce"), nil, false, quota.Key},
		{"bybit", quota.RateLimited, by("address"), spent(quota.Route), false, quota.IP},
		{"bybit", quota.Banned, nil, nil, false, quota.IP},
		{"coinbase", quota.RateLimited, by("address"), nil, false, quota.IP},
		{"coinbase", quota.RateLimited, by("key"), nil, false, quota.Key},
		{"stripe", quota.RateLimited, by("global-rate"), nil, false, quota.Key},
		{"stripe", quota.TooMany, by("endpoint-concurrency"), nil, false, quota.Route},
		{"stripe", quota.RateLimited, by("resource-specific"), nil, false, quota.Route},
		{"stripe", quota.RateLimited, by("a new reason"), nil, false, quota.Key},
		{"stripe", quota.Conflict, nil, nil, false, ""},
		{"atlassian", quota.QuotaExhausted, by("jira-quota-tenant-based"), nil, false, quota.Key},
		{"atlassian", quota.RateLimited, by("jira-burst-based"), nil, false, quota.Route},
		{"atlassian", quota.RateLimited, by("jira-per-issue-on-write"), nil, false, quota.Route},
		{"atlassian", quota.RateLimited, by("jira-new-based"), spent(quota.Route), false, quota.Route},
		{"discord", quota.RateLimited, by("shared"), nil, false, quota.Route},
		{"discord", quota.RateLimited, by("global"), spent(quota.Route), false, quota.Key},
		{"discord", quota.Banned, nil, nil, false, quota.IP},
		{"github", quota.RateLimited, by("secondary"), spent(quota.IP), false, quota.Key},
		{"github", quota.RateLimited, nil, spent(quota.IP), false, quota.IP},
		{"x", quota.QuotaExhausted, by("usage cap Monthly"), nil, false, quota.Key},
		{"x", quota.RateLimited, nil, spent(quota.Route, quota.Key), false, quota.Key},
		{"x", quota.RateLimited, nil, spent(quota.Key, quota.Route), false, quota.Key},
		{"x", quota.RateLimited, nil, nil, false, quota.Route},
		{"gemini", quota.QuotaExhausted, by("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), nil, true, quota.Model},
		{"openai", quota.RateLimited, by("TPM"), nil, true, quota.Model},
		{"openai", quota.Unpaid, nil, nil, true, quota.Key},
		{"openai", quota.TooLarge, by("TPM"), nil, true, ""},
		{"openai", quota.Overloaded, nil, nil, true, quota.Model},
		{"openai", quota.Overloaded, nil, nil, false, quota.All},
		{"binance", quota.Banned, nil, nil, false, quota.IP},
		{"ietf", quota.RateLimited, by("address"), nil, false, quota.Key}, // that server's word, and not ours
		{"ietf", quota.RateLimited, by("burst"), spent(""), false, quota.Key},
		{"a stranger's", quota.RateLimited, by("?"), spent(quota.Route), false, quota.Route},
		{"a stranger's", quota.RateLimited, nil, spent("planet"), false, quota.Key},
		{"a stranger's", "a stranger's", nil, nil, false, quota.Key},
	} {
		o := quota.Observation{Dialect: c.dialect, Refusal: c.refusal, RefusedBy: c.by, Limits: c.limits}
		if got := scopeOf(&o, c.model); got != c.want {
			t.Errorf("%s, %s by %q: concerns %q, want %q", c.dialect, c.refusal, c.by, got, c.want)
		}
	}
}

// What has too much to do says so to limits, whether it names a time or not; a limit that refuses does not.
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
		if v := p.Of(&Attempt{Status: c.status, Header: h}); v.Overloaded != c.want {
			t.Errorf("%d %v: overloaded %v", c.status, c.fields, v.Overloaded)
		}
	}
}

// A limit of which the server does not say what is left is not used up, nor is one that has some left.
func TestWhatIsUsedUp(t *testing.T) {
	left := func(s quota.Scope, n int64, ok bool) quota.ServiceLimit {
		return quota.ServiceLimit{Unit: quota.Requests, Scope: s, Remaining: quota.Count{N: n, OK: ok}}
	}
	for _, wider := range []quota.ServiceLimit{left(quota.IP, 0, false), left(quota.IP, 5, true)} {
		for _, limits := range [][]quota.ServiceLimit{{left(quota.Route, 0, true), wider}, {wider, left(quota.Route, 0, true)}} {
			o := quota.Observation{Dialect: "x", Refusal: quota.RateLimited, Limits: limits}
			if got := scopeOf(&o, false); got != quota.Route {
				t.Errorf("%+v: concerns %q", limits, got)
			}
		}
	}
}
