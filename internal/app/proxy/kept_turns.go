package proxy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/text/rate"
)

// turn is a change by a user: its words, and the settings that it changed.
type turn struct {
	said  string
	knobs []knobName
}

// knobName names a setting that Turn can change: by the upstream, whom it is for, and what it is.
type knobName struct{ server, of, what string }

// knob is such a setting, in the memory of its Config.
type knob struct {
	limits   []*rate.Limit
	inFlight *int
	weight   *float64
}

// knobs are all of c, which must own their memory.
func (c *Config) knobs() map[knobName]*knob {
	parts, all := c.parts(), map[knobName]*knob{}
	for _, x := range parts {
		all[knobName{x.name, "", "in flight"}] = &knob{inFlight: x.inFlight}
	}
	for _, l := range c.rates(parts) {
		name := knobName{l.server, l.of, "limits " + l.only}
		if all[name] == nil {
			all[name] = &knob{}
		}
		all[name].limits = append(all[name].limits, l.Limit)
	}
	for i := range c.Clients.List {
		all[knobName{"", "client " + c.Clients.List[i].Name, "weight"}] = &knob{weight: &c.Clients.List[i].Weight}
	}
	all[knobName{"", "client " + otherClients, "weight"}] = &knob{weight: &c.Clients.Default.Weight}
	return all
}

// is reports whether two settings have the same value.
func (k *knob) is(o *knob) bool {
	switch {
	case k.inFlight != nil:
		return *k.inFlight == *o.inFlight
	case k.weight != nil:
		return cmp.Or(*k.weight, 1) == cmp.Or(*o.weight, 1)
	}
	return slices.EqualFunc(k.limits, o.limits, func(a, b *rate.Limit) bool { return *a == *b })
}

// take takes over the value of a setting of the same name, where both have as many limits.
func (k *knob) take(o *knob) {
	switch {
	case k.inFlight != nil:
		*k.inFlight = *o.inFlight
	case k.weight != nil:
		*k.weight = *o.weight
	}
	for i := range k.limits {
		*k.limits[i] = *o.limits[i]
	}
}

// changed names the settings that differ in two configurations.
func (c Config) changed(next Config) (names []knobName) {
	c.own()
	next.own()
	was := c.knobs()
	for name, k := range next.knobs() {
		if former := was[name]; former != nil && !former.is(k) {
			names = append(names, name)
		}
	}
	return names
}

// renamed returns the name of a setting of c in next, where a key may have another name.
func (c *Config) renamed(name knobName, next *Config) knobName {
	keysOf := func(c *Config) (keys []Key) {
		for _, x := range c.parts() {
			if x.name == name.server {
				keys = x.keys
			}
		}
		return keys
	}
	for _, k := range keysOf(c) {
		for _, to := range keysOf(next) {
			if name.of == "key "+k.Name && to.Secret == k.Secret {
				name.of = "key " + to.Name
				return name
			}
		}
	}
	return name
}

// keep makes changes by a user hold in a configuration that takes the place of base. now is base with them. Where next
// states another value than base, or has no such setting, the change ends.
func (base Config) keep(now, next Config, turns []turn) (kept Config, held []turn, ended []string) {
	base.own()
	now.own()
	next.own()
	was, is, to := base.knobs(), now.knobs(), next.knobs()
	lost := map[knobName]bool{}
	for name, k := range is {
		former := was[name]
		if former == nil || former.is(k) {
			continue
		}
		if goes := to[base.renamed(name, &next)]; goes != nil && goes.is(former) {
			goes.take(k)
		} else {
			lost[name] = true
		}
	}
	for _, t := range turns {
		if slices.ContainsFunc(t.knobs, func(name knobName) bool { return lost[name] }) {
			ended = append(ended, t.said)
			continue
		}
		for i, name := range t.knobs {
			t.knobs[i] = base.renamed(name, &next)
		}
		held = append(held, t)
	}
	return next, held, ended
}

// said are changes in words.
func said(turns []turn) (all []string) {
	for _, t := range turns {
		all = append(all, t.said)
	}
	return all
}

// tellEnded says which changes by a user do not hold any more.
func (p *Proxy) tellEnded(ended []string) {
	if len(ended) > 0 {
		p.latest.Load().config.Log.Warn("what its user changed holds no more, since the configuration states another value now",
			"changes", strings.Join(ended, "; "))
	}
}
