package transport

import (
	"slices"
	"strings"

	"github.com/paceline-go/paceline/quota"
)

// concerns says whose requests a refusal stops: what the caller says, else what the server said, else what the provider's
// documentation says, else the key.
func (c *call) concerns(o *quota.Observation) quota.Scope {
	p := c.leaf.partition
	if c.t.config.Scope != nil {
		if s := c.t.config.Scope(p, *o); s != "" {
			return s
		}
	}
	switch o.Refusal {
	case quota.Overloaded:
		if p.Model != "" {
			return quota.Model
		}
		return quota.All
	case quota.Banned:
		switch o.Dialect {
		case "binance", "binance-spot", "binance-futures", "bybit", "discord":
			return quota.IP
		}
		return quota.Key
	}
	for _, name := range o.RefusedBy {
		switch {
		case name == "address":
			return quota.IP
		case name == "shared", strings.HasPrefix(name, "endpoint"):
			return quota.Route
		case name == "key", name == "secondary", strings.HasPrefix(name, "global"), strings.HasPrefix(name, "usage cap"), strings.Contains(name, "-quota-"):
			return quota.Key
		}
		if v, ok := o.Policy(name); ok && v.Scope != "" {
			return v.Scope
		}
	}
	// Whatever is used up; of several, the widest.
	spent := quota.Scope("")
	for _, l := range o.Limits {
		if l.Remaining.OK && l.Remaining.N == 0 && (spent == "" || wider(l.Scope, spent)) {
			spent = l.Scope
		}
	}
	if spent != "" {
		return spent
	}
	switch o.Dialect {
	case "openai", "azure-openai", "anthropic", "groq", "gemini":
		return quota.Model
	case "slack", "discord", "okta", "okx", "x", "bybit":
		return quota.Route
	case "binance", "binance-spot", "binance-futures":
		return quota.IP
	}
	return quota.Key
}

func wider(a, b quota.Scope) bool {
	return slices.Index(scopes[:], a) > slices.Index(scopes[:], b)
}
