package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

// unserved are published limits that the provider's fake leaves out.
var unserved = map[string]string{
	"cloudflare:address": "its answers say nothing of it",
	"deribit:matching":   "the row knows no cost of orders",
	"coinbase:public":    "who has no key has this one in each of the fake's sets",
}

// differences compares package provider's limits of a preset with those that a fake enforces. Each
// difference is one line.
func differences(preset string, published, enforced []provider.Policy) (all []string) {
	for _, q := range published {
		if q.Unpublished() {
			continue // the fake's number is its own
		}
		i := slices.IndexFunc(enforced, func(p provider.Policy) bool { return p.Name == q.Name })
		if i < 0 {
			all = append(all, fmt.Sprintf("%s: quota has %q, the fake does not", preset, q.Name))
			continue
		}
		say := func(what string, q, p any) {
			if q != p {
				all = append(all, fmt.Sprintf("%s: %s: %s %v in quota, %v in the fake", preset, enforced[i].Name, what, q, p))
			}
		}
		p := enforced[i]
		say("limit", q.Limit, p.Limit)
		say("window", q.Window, p.Window)
		say("burst", q.Burst, p.Burst)
		say("unit", q.Unit, p.Unit)
		say("scope", q.Scope, p.Scope)
		if q.Rule != "" { // documented
			say("rule", q.Rule, p.Rule)
		}
	}
	return all
}

// TestServiceKnowsWhatQuotaKnows: package provider and this package read the same documentation
// independently. Both readings agree.
func TestServiceKnowsWhatQuotaKnows(t *testing.T) {
	compared, served := 0, map[string]bool{}
	for _, info := range service.All() {
		for _, name := range info.Presets {
			served[name] = true
			if published, ok := provider.LookupPreset(name); ok {
				compared++
				for _, d := range differences(name, published.Policies, newServer(t, service.Config{Provider: info.Name, Preset: name}).Limits()) {
					t.Error(d)
				}
			}
		}
	}
	for _, p := range provider.Presets() {
		vendor, _, _ := strings.Cut(p.Name, ":")
		fake := slices.ContainsFunc(service.All(), func(i service.Info) bool { return i.Name == vendor })
		if fake && !served[p.Name] && unserved[p.Name] == "" {
			t.Errorf("%s: quota has it, the fake does not, and nothing says why", p.Name)
		}
	}
	if compared < 20 {
		t.Errorf("%d compared", compared)
	}
	for name := range unserved {
		if _, ok := provider.LookupPreset(name); !ok || served[name] {
			t.Errorf("%s need not be left out", name)
		}
	}
}

// TestDifferencesAreFound: each changed fact is named.
func TestDifferencesAreFound(t *testing.T) {
	p := provider.Policy{Name: "requests", Unit: provider.Requests, Scope: provider.Key, Rule: provider.Bucket, Limit: 10, Window: sec, Burst: 20}
	for want, change := range map[string]func(*provider.Policy){
		"limit 10 in quota, 11 in the fake": func(p *provider.Policy) { p.Limit++ }, "window 1s in quota, 2s": func(p *provider.Policy) { p.Window *= 2 },
		"burst 20 in quota, 0": func(p *provider.Policy) { p.Burst = 0 }, "unit ": func(p *provider.Policy) { p.Unit = provider.Weight },
		"scope ": func(p *provider.Policy) { p.Scope = provider.IP }, "rule ": func(p *provider.Policy) { p.Rule = provider.Rolling },
		`quota has "requests", the fake does not`: func(p *provider.Policy) { p.Name = "x" },
	} {
		q := p
		change(&q)
		if all := differences("a", []provider.Policy{p}, []provider.Policy{q}); len(all) != 1 || !strings.Contains(all[0], want) {
			t.Errorf("%q, want %q", all, want)
		}
	}
	if all := differences("a", []provider.Policy{p}, []provider.Policy{p}); all != nil {
		t.Error(all)
	}
}
