package transport

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// known is the provider of a host: a row of the table in package provider.
type known struct {
	row provider.Provider
	// sure means that the provider is configured, known by the host, or proven by an answer with
	// something that only this provider sends. Header fields that others send too prove nothing:
	// they show the server's format, not how it counts.
	sure bool
}

// runs returns the provider of a partition's host, by the configuration and the host's name; nil:
// unknown.
func (t *Transport) runs(p Partition) *known {
	named, _ := provider.ForHost(p.Host)
	for _, d := range []provider.Dialect{t.dialectAt(p.Target), named} { // the configuration goes before the host's name
		if d == nil {
			continue
		}
		if row, ok := provider.LookupProvider(d.Name()); ok {
			return &known{row: row, sure: true}
		}
	}
	if g := t.target(p.Target); g != nil && g.Preset != "" {
		return &known{row: g.publisher, sure: true}
	}
	if t.config.Preset != "" {
		return &known{row: t.publisher, sure: true}
	}
	return nil
}

// reads returns the dialect in which a host is known to answer: that of its Target, of its name, or of
// whoever publishes its limits. Config.Provider goes before it, where there are no Targets.
func (t *Transport) reads(p Partition) (d provider.Dialect, ok bool) {
	g := t.target(p.Target)
	if g != nil && t.dialectAt(p.Target) != nil {
		return t.dialectAt(p.Target), true
	}
	if d, ok = provider.ForHost(p.Host); !ok && g != nil {
		d, ok = provider.Lookup(g.publisher.Name)
	}
	if !ok {
		d, ok = provider.Lookup(t.publisher.Name)
	}
	return d, ok
}

// learn records a server's dialect (d, unless that is nil), and the evidence of an answer about its
// provider.
func (n *node) learn(d provider.Dialect, h http.Header) {
	k := n.known.Load()
	if d != nil {
		if row, ok := provider.LookupProvider(d.Name()); ok && (k == nil || k.row.Name != row.Name) {
			k = &known{row: row, sure: row.Organization == ""}
			n.known.Store(k)
		}
	}
	if k != nil && !k.sure && h.Get(k.row.Organization) != "" {
		n.known.Store(&known{row: k.row, sure: true})
	}
}

// counts returns how the server counts tokens; tokens.Documented: it is not known.
func (n *node) counts() (c tokens.Counting) {
	if k := n.known.Load(); k != nil && k.sure {
		c, _ = tokens.ParseCounting(k.row.Tokens)
	}
	return c
}

// Published returns, for Config.Limit, the limits that a provider publishes, by the name of a
// provider.Preset: "heroku", "openai:tier1". Each key, model, route or address gets its own limits.
//
// A provider's bucket is taken to be full at the start. If the provider counts otherwise, or does
// not say, no span of the window holds more than the limit; that is right for intervals too. Days of a
// place (provider.Policy.Zone) end at its midnight; import time/tzdata where machines may have no
// table of zones. If the
// provider counts output as it is produced, limit.Produced follows it. Then max_tokens, which is
// the estimate with Tokens.Overrun at zero, reserves nothing.
//
// Limits of tokens need Config.Tokens, and limits of weight or orders need Config.Cost. A limit
// does not apply to a request without a cost in its unit.
//
// With PerSecond, limits per minute also hold per second.
//
// Published limits change, and an account may have others; Config.Adopt receives what the server
// states. A limit without a number (provider.Policy.Unpublished) is left out here, and with
// Config.Preset an Auto of package fairshare that reads the answers. The error lists similar names.
//
// Some limits are of a resource, as those of searches are (see Config.Charges). The limits of the
// resource of most requests are then those of the key, so that they hold for a host that no table
// knows. With Config.Preset they are of that resource alone.
func Published(name string, variants ...Variant) (func(Partition) limit.Limiter, error) {
	return published(name, false, false, variants)
}

// published is Published. apart means that requests have their resources: the provider is known. With
// stated, a limit without a number is one that answers state.
func published(name string, apart, stated bool, variants []Variant) (func(Partition) limit.Limiter, error) {
	preset, ok := provider.LookupPreset(name)
	if !ok {
		var names []string
		for _, p := range provider.Presets() {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("transport: no limits are published as %q%s the names are those of provider.Presets", name,
			cmp.Or(text.DidYouMean(name, names), ";"))
	}
	for _, v := range variants {
		if v != PerSecond {
			return nil, fmt.Errorf("transport: there is no Variant %d of published limits", v)
		}
		if preset, ok = preset.PerSecond(); !ok {
			return nil, fmt.Errorf("transport: PerSecond: whoever publishes %q does not say that limits per minute also hold "+
				"per second", name)
		}
	}
	if !apart {
		plain := preset.Plain().Policies
		for _, p := range preset.Policies {
			if p.Scope == provider.Resource && !p.Covers(usualOf(name)) {
				plain = append(plain, p)
			}
		}
		preset.Policies = plain
	}
	counts, zones := counting(name), map[string]*time.Location{}
	if !stated {
		preset.Policies = slices.DeleteFunc(preset.Policies, provider.Policy.Unpublished)
	}
	for _, p := range preset.Policies {
		if zone, err := time.LoadLocation(p.Zone); err == nil {
			zones[p.Zone] = zone
		}
		if _, err := limiter(p, counts, zones); err != nil {
			return nil, fmt.Errorf("transport: limits published as %q: %w", name, err)
		}
	}
	return func(p Partition) limit.Limiter {
		var all []limit.Limiter
		for _, policy := range preset.Policies {
			if policy.Scope == p.Scope && policy.Covers(p.Resource) {
				l, _ := limiter(policy, counts, zones) // it was made before
				all = append(all, l)
			}
		}
		switch len(all) {
		case 0:
			return nil
		case 1:
			return all[0]
		}
		return limit.NewAll(all...)
	}, nil
}

// Variant is another reading of published limits.
type Variant uint8

// PerSecond: limits per minute also hold per second, where the provider says that they may
// (OpenAI). 60,000 a minute acts as a bucket of 1,000, rounded down to a whole number, but at least
// 1.
//
// A request for more than a second's tokens goes when no other is under way and everything sent is
// refilled. The next request goes only when those tokens are refilled too. Requests under way
// count, so answers that take more than a part of a second delay the next requests.
const PerSecond Variant = 1

// MustPublished is Published for a name that is known to be right. It panics on an error.
func MustPublished(name string, variants ...Variant) func(Partition) limit.Limiter {
	f, err := Published(name, variants...)
	if err != nil {
		panic(err.Error())
	}
	return f
}

// usualOf returns the resource of most requests to the provider of a preset.
func usualOf(preset string) string {
	p, _ := provider.Publisher(preset)
	return provider.ChargesOf(p.Name).Usual()
}

// counting returns how the provider of a preset counts tokens.
func counting(preset string) string {
	p, _ := provider.Publisher(preset)
	return p.Tokens
}

// inZone returns a limiter for the days of a place. A machine without a table of zones cannot know
// when they begin. But none is longer than 25 hours.
func inZone(p provider.Policy, u limit.Unit, zone *time.Location) (limit.Limiter, error) {
	if zone == nil {
		return limit.NewRolling(limit.RollingConfig{Limit: p.Limit, Window: p.Window + time.Hour, Unit: u})
	}
	return limit.NewCalendar(limit.CalendarConfig{Limit: p.Limit, Window: p.Window, Unit: u, Zone: zone})
}

// limiter returns a limiter for a policy, under its name. zones has those that the machine knows.
func limiter(p provider.Policy, counts string, zones map[string]*time.Location) (l limit.Limiter, err error) {
	if p.Unpublished() {
		unit, _ := classify.UnitOf(p.Unit)
		rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		return fairshare.NewAuto(fairshare.AutoConfig{Unit: unit, Alone: true, Rng: rng})
	}
	if p.Rule == provider.Concurrency {
		l, err = limit.NewConcurrency(limit.ConcurrencyConfig{Limit: p.Limit})
	} else {
		u, ok := classify.UnitOf(p.Unit)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: nobody knows what a request costs in %s", p.Name, p.Unit)
		case p.Rule == provider.Bucket && u == limit.Output && counts == tokens.Produced.String():
			l, err = limit.NewProduced(limit.ProducedConfig{Limit: p.Limit, Window: p.Window, Burst: p.Burst})
		case p.Rule == provider.Bucket:
			l, err = limit.NewBucket(limit.BucketConfig{Limit: p.Limit, Window: p.Window, Burst: p.Burst, Unit: u,
				Alone: p.Alone})
		case p.Zone != "":
			l, err = inZone(p, u, zones[p.Zone])
		default:
			l, err = limit.NewRolling(limit.RollingConfig{Limit: p.Limit, Window: p.Window, Unit: u})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return limit.Named(p.Name, l), nil
}
