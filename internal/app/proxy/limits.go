package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/transport"
)

// limits are the configured limits of a partition.
type limits struct {
	rates    []rate.Limit
	inFlight int                                 // 0: any number
	auto     bool                                // limits are not known, or not all
	known    []limit.Rule                        // those that are, for an Auto
	alone    bool                                // nobody else uses them
	kept     func(*fairshare.Auto) limit.Limiter // keeps what the Auto finds; nil: no memory
	arrivals limit.Arrivals
	epoch    time.Time // the zero of the instants, where limiters are changed
}

// of returns the limits of a partition, without those of the Preset.
func (u *Upstream) of(p transport.Partition) limits {
	if i := u.targetOf(p); i >= 0 {
		p.Target = ""
		return u.at(i).of(p)
	}
	all := limits{arrivals: u.Arrivals}
	if p.Scope == provider.Key {
		all.inFlight, all.auto, all.alone = u.InFlight, u.Auto, !u.Strangers
		if u.Auto {
			all.known = u.known()
		}
		if i := slices.IndexFunc(u.Keys, func(k Key) bool { return k.Name == p.Key && len(k.Limits) > 0 }); i >= 0 {
			all.rates = u.Keys[i].Limits // in place of those of each key
			return all
		}
	}
	for _, l := range u.Limits {
		if l.Scope == p.Scope && l.applies(p, u.Limits) {
			all.rates = append(all.rates, l.Limit)
		}
	}
	return all
}

// known returns the limits beside an Auto, of any scope: each bounds what all requests need.
func (u *Upstream) known() (all []limit.Rule) {
	preset, _ := provider.LookupPreset(u.Preset)
	for _, policy := range preset.Policies {
		if unit, ok := classify.UnitOf(policy.Unit); ok {
			all = append(all, limit.Rule{Unit: unit, N: policy.Limit, Per: policy.Window})
		}
	}
	for _, l := range u.Limits {
		all = append(all, limit.Rule{Unit: l.Unit, N: l.N, Per: l.Per})
	}
	return all
}

// of returns the limits of a client, by its name.
func (c *Clients) of(name string) limits {
	if i := slices.IndexFunc(c.List, func(k Client) bool { return k.Name == name }); i >= 0 {
		return limits{rates: c.List[i].Limits, inFlight: c.List[i].InFlight}
	}
	return limits{rates: c.Default.Limits, inFlight: c.Default.InFlight}
}

// boundsInFlight reports whether requests of a client in flight are bounded.
func (c *Clients) boundsInFlight() bool {
	return c.Default.InFlight > 0 || slices.ContainsFunc(c.List, func(k Client) bool { return k.InFlight > 0 })
}

// limiter makes one limiter of all limits; nil: there are none.
func (all limits) limiter() limit.Limiter {
	made := all.exchange(mono.Min, nil)
	switch len(made) {
	case 0:
		return nil
	case 1:
		return made[0]
	}
	return limit.NewAll(made...)
}

// held makes one limiter of all limits. If live, change can change it later.
func (all limits) held(live bool) limit.Limiter {
	if live {
		return limit.NewVarying(all.exchange(mono.Min, nil)...)
	}
	return all.limiter()
}

// change puts these limits into v from now on. A limit that v has already goes on with its counts,
// even with another number or another window.
func (all limits) change(now mono.Time, v *limit.Varying) {
	all.epoch = v.Epoch()
	v.Change(now, all.exchange(now, limit.Parts(v))...)
}

// exchange returns limiters for all limits. Each is the one in had of the same kind, or else a new
// one.
func (all limits) exchange(now mono.Time, had []limit.Limiter) []limit.Limiter {
	remember := had
	had = slices.Clone(had)
	found := make([]limit.Limiter, len(all.rates))
	for _, sameTime := range []bool{true, false} { // those of the same window first: they remember all of it
		for i, l := range all.rates {
			for j := range had {
				if found[i] == nil && had[j] != nil && l.Turn(now, had[j], sameTime) {
					found[i], had[j] = had[j], nil
				}
			}
		}
	}
	var named []limit.Limiter
	for i, l := range all.rates {
		if found[i] == nil {
			found[i] = all.remembering(now, l, remember)
		}
		named = append(named, limit.Named(nameOf(l), found[i]))
	}
	if all.auto {
		named = append(named, all.automatic(had))
	}
	if all.inFlight > 0 {
		named = append(named, limit.Named(inFlightName(all.inFlight), all.atOnce(now, had)))
	}
	return named
}

// remembering makes a limiter for l that takes over the memory of one in had. It takes the one with
// the longest window among those that can become l. The one that it takes may be unusable
// afterwards.
func (all limits) remembering(now mono.Time, l rate.Limit, had []limit.Limiter) limit.Limiter {
	create := func(l rate.Limit) limit.Limiter {
		made, err := l.Limiter(all.arrivals)
		if err != nil {
			panic(err) // cannot fail: it was made before
		}
		limit.SetEpoch(made, all.epoch)
		return made
	}
	var longest limit.Rule
	var best limit.Limiter
	for _, h := range had {
		rates, ok := limit.Rates(h)
		if limit.Keeps(h) != nil || !ok || len(rates) != 1 || rates[0].Unit != l.Unit || rates[0].Per <= longest.Per {
			continue
		}
		like := l
		like.N, like.Per = rates[0].N, rates[0].Per
		if was, is := h.(*limit.Calendar); is != (l.Zone != "") || is && was.Zone().String() != l.Zone {
			continue // it counts by another clock
		}
		copied := create(like)
		if limit.Restore(copied, limit.AppendState(nil, h)) == nil && l.Turn(now, copied, like.Per == l.Per) {
			longest, best = rates[0], copied
		}
	}
	if best != nil {
		return best
	}
	made := create(l)
	count(now, made, l.Unit, had)
	return made
}

// count makes a new limiter count what counts in others now, of another kind or by another clock.
// When that arrived is not known, so all of it counts from now on.
func count(now mono.Time, made limit.Limiter, u limit.Unit, had []limit.Limiter) {
	var cost limit.Cost
	for _, h := range had {
		for _, used := range limit.AppendUsage(nil, h, now) {
			if used.Unit == u && !used.InFlight {
				cost[u] = max(cost[u], used.Used-used.Open) // open requests are admitted again
			}
		}
	}
	if cost[u] > 0 {
		countNow(now, made, cost)
	}
}

// countNow makes a limiter count what was sent before, at some time.
func countNow(now mono.Time, l limit.Limiter, cost limit.Cost) {
	sent := &limit.Sent{At: now, Cost: cost}
	l.Admit(sent)
	l.Settle(now, sent, &limit.Outcome{Result: limit.Accepted})
}

// automatic makes a limiter that finds out the server's limits.
func (all limits) automatic(had []limit.Limiter) limit.Limiter {
	for _, h := range had {
		if a, is := h.(interface{ Alone() bool }); is && a.Alone() == all.alone {
			return h
		}
	}
	made, err := fairshare.NewAuto(fairshare.AutoConfig{Alone: all.alone, Known: all.known,
		Rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
	if err != nil {
		panic(err) // cannot fail: the zero configuration is valid
	}
	if all.kept != nil {
		return all.kept(made)
	}
	return made
}

// atOnce bounds the requests in flight.
func (all limits) atOnce(now mono.Time, had []limit.Limiter) limit.Limiter {
	for _, h := range had {
		if c, is := h.(*limit.Concurrency); is && c.SetLimit(now, int64(all.inFlight)) == nil {
			return c
		}
	}
	made, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: int64(all.inFlight)})
	if err != nil {
		panic(err) // cannot fail: it is above 0
	}
	return made
}

// most is the largest cost that the limits of a partition let go at once.
func (u *Upstream) most(p transport.Partition) (cost limit.Cost) {
	for _, l := range u.of(p).rates {
		cost[l.Unit] = max(cost[l.Unit], l.Most())
	}
	if i := u.targetOf(p); i >= 0 {
		u = u.at(i)
	}
	preset, _ := provider.LookupPreset(u.Preset)
	for _, policy := range preset.Policies {
		if unit, ok := classify.UnitOf(policy.Unit); ok && policy.Scope == p.Scope {
			cost[unit] = max(cost[unit], policy.Limit, policy.Burst)
		}
	}
	return cost
}

// LimitNames are the limits of u, as they were given.
func (u *Upstream) LimitNames() (all []string) {
	if u.Preset != "" {
		all = append(all, u.Preset)
	}
	for _, l := range u.Limits {
		name := nameOf(l.Limit)
		if l.Only != "" {
			name = l.Only + ": " + name
		}
		all = append(all, name)
	}
	if u.InFlight > 0 {
		all = append(all, inFlightName(u.InFlight))
	}
	if u.Auto {
		all = append(all, "auto")
	}
	return all
}

func inFlightName(n int) string { return fmt.Sprintf("%d in flight", n) }

// nameOf is the name of a limit in reports about waiting.
func nameOf(l rate.Limit) string {
	if l.Text != "" {
		return l.Text
	}
	return limit.Rule{Unit: l.Unit, N: l.N, Per: l.Per}.String()
}
