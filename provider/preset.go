package provider

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Preset is the published limits of a provider, under a name: "heroku", "openai:tier1". The part
// after a colon is a tier, a market or a mode. Published limits change, and an account may have
// others, so a response's own statements are to be preferred.
type Preset struct {
	Name  string
	About string
	// Source is the page with the limits. AsOf is the year, or the year and month, of the last look
	// at it.
	Source, AsOf string
	// Policies have the Source Documented.
	Policies []Policy
}

// Presets returns all presets, sorted by name.
func Presets() []Preset {
	var all []Preset
	for _, d := range rows() {
		for _, p := range d.Published {
			all = append(all, p.own())
		}
	}
	return order(all, func(p Preset) string { return p.Name })
}

// LookupPreset returns the preset of a name.
func LookupPreset(name string) (Preset, bool) {
	if name == "" { // the first look makes the table
		return Preset{}, false
	}
	for _, d := range rows() {
		for _, p := range d.Published {
			if p.Name == name {
				return p.own(), true
			}
		}
	}
	return Preset{}, false
}

// PerSecond returns the preset with, in addition, a second's part of each limit per minute. It
// returns false if the provider does not say that its limits per minute may also hold per second.
func (p Preset) PerSecond() (Preset, bool) {
	who, _ := Publisher(p.Name)
	p = p.own()
	for _, minute := range p.Policies {
		if second, ok := minute.PerSecond(); ok {
			p.Policies = append(p.Policies, second)
		}
	}
	return p, who.PerSecond
}

// PerSecond returns the part of one second of a limit per minute, which may hold too, according to
// OpenAI. For 60,000 it is 1,000, rounded down to a whole number, but at least 1. The part is a
// bucket of that size; a request for more goes alone.
func (p Policy) PerSecond() (Policy, bool) {
	if p.Window != time.Minute || p.Rule != Bucket {
		return Policy{}, false
	}
	p.Name, p.Limit, p.Window, p.Burst, p.Alone = p.Name+" per second", max(p.Limit/60, 1), time.Second, 0, true
	return p, true
}

// Unpublished reports whether a published limit has no number: the documentation names the limit, and
// only answers state how many, if at all.
func (p Policy) Unpublished() bool { return p.Limit == 0 }

// Fits reports whether the limits are those of the model. About names no model, or begins with the
// model's name, with or without the date of a snapshot.
func (p Preset) Fits(model string) bool {
	named, _, more := strings.Cut(p.About, ",")
	if !more || !strings.ContainsAny(named, "0123456789") || !slices.ContainsFunc(p.Policies, func(l Policy) bool { return l.Scope == Model }) {
		return true
	}
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	model = SharedModel("openai", model) // drops the date and -latest, which all providers write alike
	return model == strings.ReplaceAll(strings.ToLower(named), " ", "-")
}

// Plain returns the preset for a program that counts in no resources. The limits of the usual
// resource (see Charges.Usual) are then the key's, and those of others are left out.
func (p Preset) Plain() Preset {
	p = p.own()
	who, _ := Publisher(p.Name)
	usual := ChargesOf(who.Name).Usual()
	all := p.Policies[:0]
	for _, l := range p.Policies {
		if l.Scope == Resource {
			if !l.Covers(usual) {
				continue
			}
			l.Scope, l.Resource = Key, ""
		}
		all = append(all, l)
	}
	p.Policies = all
	return p
}

// Publisher returns the row of the provider that publishes the preset of a name.
func Publisher(preset string) (Provider, bool) {
	if preset == "" { // the first look makes the table
		return Provider{}, false
	}
	for _, d := range rows() {
		if slices.ContainsFunc(d.Published, func(p Preset) bool { return p.Name == preset }) {
			return d.Provider.own(), true
		}
	}
	return Provider{}, false
}

func (p Preset) own() Preset {
	p.Policies = slices.Clone(p.Policies)
	return p
}

// documented returns the policies of a preset, which must exist.
func documented(name string) []Policy {
	p, ok := LookupPreset(name)
	if !ok {
		panic("provider: no preset " + name)
	}
	return p.Policies
}

// per makes a Policy, for the rows below.
func per(limit int64, unit Unit, window time.Duration, rule Rule, scope Scope) Policy {
	return Policy{Name: string(unit), Unit: unit, Scope: scope, Rule: rule, Limit: limit, Window: window, Source: Documented, WindowSource: Documented}
}

// bucket makes the Policy of a bucket whose size differs from its flow per window.
func bucket(burst, limit int64, unit Unit, window time.Duration, scope Scope) Policy {
	p := per(limit, unit, window, Bucket, scope)
	p.Burst = burst
	return p
}

// named gives a policy its own name.
func named(name string, p Policy) Policy {
	p.Name = name
	return p
}

// of makes a policy that of the resources whose names fit a pattern.
func of(resource string, p Policy) Policy {
	p.Scope, p.Resource = Resource, resource
	return p
}

// ofClasses makes a policy for each class of endpoints, "20/2s": each of its resources has that.
func ofClasses(rule Rule, window time.Duration, classes ...string) (all []Policy) {
	for _, class := range classes {
		n, _, _ := strings.Cut(class, "/")
		limit, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			panic("provider: the class " + class + " has no number")
		}
		all = append(all, of(class+" *", named(class, per(limit, Requests, window, rule, Resource))))
	}
	return all
}

// local gives a policy the clock of a place.
func local(zone string, p Policy) Policy {
	p.Zone = zone
	return p
}

const day = 24 * time.Hour
