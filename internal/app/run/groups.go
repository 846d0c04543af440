package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// group is the requests that share limits of their own on every key: the requests of one model, or
// all.
type group struct {
	r     *Run
	index int
	model string                 // as in provider.SharedModel; empty: all models; otherModels: those without own limits
	steps atomic.Pointer[[]step] // its limits, and what a user made of them: see limits
	rooms []int64                // for each limit, the content of the buckets of all keys together at the epoch
	pool  *pool.Pool
	// allowances are the limits of all accounts, and of is the one of each key. Several keys may have
	// the same. Every change of these needs the locks of Run.organizations and of the Pool.
	allowances []*allowance
	of         []*allowance
	apart      bool // the limits are those of the usual resource alone
	waits      telling.Waits
	served     []telling.Servings // for each key
	// unsaid is the latest refusal that did not say when to come back, until a wait after it is
	// reported; nil: there is none.
	unsaid atomic.Pointer[string]
	// headAt is when watch last saw a head of the queue, or began. Only watch uses it.
	headAt time.Time
}

// pools are the groups of a run.
type pools []*group

// MostModels bounds how often the input is read, since each group reads all of it. With one reader
// for all groups and an input sorted by model, only one group at a time would have requests to
// send. A backlog has no more models with lanes of their own.
const MostModels = 16

// LongestModel is the longest name of a model that has limits of its own, in bytes.
const LongestModel = 256

// eachModel returns the models, and families of models, in the input that have limits of their own,
// sorted. It also returns the cost of the requests of each. Models without such limits are together
// under otherModels. It returns none if all models share the limits, or if that is not known. With
// expected set, the cost of output is an estimate from earlier answers.
func (p *planning) eachModel(expected bool) (names []string, costs map[string]*limit.Cost) {
	l := p.c.Meter
	each, some := p.c.divides()
	if !some || !p.again && p.c.Backlog == nil {
		return nil, nil
	}
	costs = map[string]*limit.Cost{}
	for _, m := range p.models {
		name := l.SharedModel(m.Model)
		if name == "" || len(name) > LongestModel || m.Model == tally.OtherModels {
			return nil, nil
		}
		if !each && !rate.HasOwn(p.c.Limits, name) {
			name = tally.OtherModels
		}
		if costs[name] == nil {
			names, costs[name] = append(names, name), new(limit.Cost)
		}
		tally.Add(costs[name], likely(l, m, expected), 1)
	}
	switch {
	case p.c.Backlog == nil && len(names) > MostModels:
		return nil, nil
	case p.c.Backlog != nil && !each && costs[tally.OtherModels] == nil: // requests to others may come
		names, costs[tally.OtherModels] = append(names, tally.OtherModels), new(limit.Cost)
	}
	slices.Sort(names)
	return names, costs
}

// divides reports whether each model has limits of its own, and whether some have: each, or those that the user
// named.
func (c *Config) divides() (each, some bool) {
	if c.Meter == nil || c.nonces || c.Gap > 0 || len(c.Limits) == 0 {
		return false, false
	}
	row, known := provider.LookupProvider(c.Meter.LimitsOf())
	each = known && row.Limited == provider.Model &&
		!slices.ContainsFunc(c.Limits, func(l format.Rate) bool { return l.Model == "" && !l.EachModel })
	return each, each || c.namesModels()
}

// Division says in words how a run divides its limits among models. Runs that share limits must divide them alike:
// what is divided otherwise has other names in the store, so the store cannot refuse it.
func (c *Config) Division() string {
	limits, named := c.Limits, []string(nil)
	if c.Meter != nil {
		limits = c.Meter.Drawn(limits)
	}
	for _, l := range limits {
		if l.Model != "" && !slices.Contains(named, l.Model) {
			named = append(named, l.Model)
		}
	}
	slices.Sort(named)
	switch each, some := c.divides(); {
	case len(c.Limits)+len(c.Resources) == 0:
		return "without a limit (--limit none)"
	case each:
		return "with limits of each model"
	case some:
		return "with limits of " + strings.Join(named, ", ") + " and of all others"
	}
	return "with limits"
}

// ofBacklog are the models that have limits of their own before anything is read of a backlog.
func (c *Config) ofBacklog() map[string]*PlanModel {
	all := map[string]*PlanModel{}
	if c.Backlog == nil {
		return all
	}
	for _, name := range c.Models {
		all[name] = &PlanModel{Model: name}
	}
	for _, l := range c.Limits {
		if l.Model != "" {
			all[l.Model] = &PlanModel{Model: l.Model}
		}
	}
	return all
}

// lacks reports whether a request of a backlog is to a model that came after the groups were made, where each model has
// a group. Limits of its own would begin beside those that other processes keep for it.
func (f *feeder) lacks(q *format.Request) bool {
	model := q.Estimate.Model
	return f.groups.of(f.c.Meter, model).model != f.c.Meter.SharedModel(model)
}

// namesModels reports whether some limits are for models that the user named.
func (c *Config) namesModels() bool {
	return slices.ContainsFunc(c.Limits, func(l format.Rate) bool { return l.Model != "" })
}

// HasOwnLimits reports whether the user gave a model limits of its own.
func (r *Run) HasOwnLimits(model string) bool {
	l := r.c.Meter
	return l != nil && rate.HasOwn(r.c.Limits, l.SharedModel(model))
}

// tellModels fails if the limits of models cannot be kept. It warns of limits for models that the
// input does not have.
func (p *planning) tellModels(to *telling.Teller) error {
	if !p.c.namesModels() {
		return nil
	}
	l := p.c.Meter
	switch {
	case l == nil:
		return fmt.Errorf("%w: limits of a model (--limit-model) with requests that are for none, expected %s", ErrConfig,
			meter.Paths)
	case !p.again && p.c.Backlog == nil:
		return fmt.Errorf("%w: limits of a model (--limit-model) with a pipe or a compressed file, expected a plain file",
			ErrConfig)
	case p.c.nonces || p.c.Gap > 0:
		return fmt.Errorf("%w: limits of a model (--limit-model) with {nonce} or --nonce-gap, which are of all models",
			ErrConfig)
	}
	var has []string
	for _, m := range p.models {
		if name := l.SharedModel(m.Model); !slices.Contains(has, name) {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	if names, _ := p.eachModel(false); len(names) == 0 && len(has) > 0 {
		return fmt.Errorf("%w: limits of a model (--limit-model) with an input of more than %d models, or one whose "+
			"requests do not name theirs", ErrConfig, MostModels)
	}
	for _, l := range p.c.Limits {
		if l.Model != "" && !slices.Contains(has, l.Model) && to.IsFirst("no model "+l.Model) {
			to.Say("no request that is to be sent is for %s, which has limits of its own (--limit-model); those are for %s",
				l.Model, cmp.Or(text.Some(has, 5), "nobody"))
		}
	}
	return nil
}

// divide makes the groups.
func (r *Run) divide() error {
	if err := r.planning.tellModels(r.Teller); err != nil {
		return err
	}
	names, costs := r.planning.eachModel(false)
	if len(names) == 0 {
		names = []string{""}
	} else {
		r.tally.Uses = make([]tally.Use, len(names))
		for i, name := range names {
			r.tally.Uses[i].Remaining = *costs[name]
		}
	}
	ever := 0
	if len(names) > 1 {
		ever = r.c.mostEver()
	}
	r.flights = sending.NewFlights(r.c.inFlight, r.c.inFlightFor, len(r.c.Keys), ever)
	for i, name := range names {
		g := &group{r: r, index: i, model: name, served: make([]telling.Servings, len(r.c.Keys))}
		g.begin(rate.OfModel(r.c.Limits, name))
		if err := g.limit(); err != nil {
			return err
		}
		r.groups = append(r.groups, g)
	}
	r.gauge = &gauge{c: &r.c, tally: r.tally, groups: r.groups, flights: r.flights, organizations: r.organizations,
		epoch: r.epoch}
	return nil
}

// limit makes the limiters of the group.
func (g *group) limit() error {
	g.rooms = make([]int64, len(g.limits()))
	for _, k := range g.r.c.Keys {
		of, err := g.allowance(g.r.organizations.owner.CountsIn(k.Name)[0])
		if err != nil {
			return err
		}
		g.of = append(g.of, of)
	}
	return nil
}

// newLimits makes the limiters of an account: one for each limit, and one over all, also to be shared.
func (g *group) newLimits(of *allowance) (err error) {
	c, key := &g.r.c, of.key
	each := make([]limit.Limiter, len(g.limits()))
	for n, l := range g.limits() {
		if each[n], err = c.made(l); err != nil {
			return err
		}
	}
	all := each
	if c.Share != nil && len(each) > 0 {
		one, err := g.join(key, "")
		if err != nil {
			return err
		}
		all = []limit.Limiter{one}
	}
	if all, err = g.seeks(of, all); err != nil {
		return err
	}
	of.limiters, of.fitted = each, limit.NewFitted(limit.NewAll(all...))
	of.shared = &pool.Shared{Name: g.name(key), Limiter: of.fitted, Use: c.Use, Ramp: c.Ramp}
	return nil
}

// of returns the group of a model.
func (p pools) of(m *meter.Meter, model string) *group {
	if m != nil && len(p) > 1 {
		name := m.SharedModel(model)
		for _, g := range p {
			if g.model == name {
				return g
			}
		}
		for _, g := range p {
			if g.model == tally.OtherModels {
				return g
			}
		}
	}
	return p[0]
}

// name is the name of a key in the journal.
func (g *group) name(key int) string {
	name := g.r.c.Keys[key].Name
	if g.model != "" {
		name += "/" + g.model
	}
	return name
}

// called is the name of a key for people.
func (g *group) called(key int) string {
	if len(g.r.groups) > 1 {
		return g.name(key)
	}
	return g.r.c.Keys[key].Name
}

// key finds the key for a name in the journal, if sends under that name count in this group. A
// group for all models counts everything. A group for one model counts sends to that model. It also
// counts sends of a run that did not separate models.
func (g *group) key(name string) (key int, ours bool) {
	for i, k := range g.r.c.Keys {
		of, is := strings.CutPrefix(name, k.Name)
		if is && (of == "" || of[0] == '/' && g.counts(of[1:])) {
			return i, true
		}
	}
	return 0, false
}

// counts reports whether sends to a model count in this group. An earlier run may have separated
// models in another way.
func (g *group) counts(model string) bool {
	switch {
	case g.model == "" || model == g.model:
		return true
	case model == tally.OtherModels:
		return !rate.HasOwn(g.limits(), g.model)
	}
	return g.model == tally.OtherModels && !rate.HasOwn(g.r.c.Limits, model)
}

// banned bans a key in the other groups as well.
func (g *group) banned(key int, reason string) {
	if len(g.r.groups) == 1 {
		return
	}
	g.r.flights.Ban(key)
	for _, other := range g.r.groups {
		if other != g {
			other.pool.Update(func(_ mono.Time, _ *pool.Queue, d *pool.Dispatcher) { d.Ban(key, reason) })
		}
	}
}

// run runs the Pools until all groups have ended. If one of them fails, the others send no
// more either.
func (p pools) run(ctx context.Context) error {
	if len(p) == 1 {
		return p[0].pool.Run(ctx)
	}
	errs := make([]error, len(p))
	var all sync.WaitGroup
	for i, g := range p {
		all.Go(func() {
			if errs[i] = g.pool.Run(ctx); errs[i] != nil {
				p.drain()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p pools) drain() {
	for _, g := range p {
		g.pool.Drain()
	}
}

// waiting is how many requests wait, over all groups.
func (p pools) waiting() (n int) {
	for _, g := range p {
		n += g.pool.Counts().Waiting
	}
	return n
}

// ResourceLimit is a limit of the resources whose names fit a pattern, of each by itself.
type ResourceLimit struct {
	Resource provider.Pattern
	format.Rate
}

// usual returns the resource of most requests to the servers of the keys; empty: there is none.
func (k *charging) usual(homes secret.Places) string {
	if k.rows != nil {
		return k.rows.Usual()
	}
	for _, home := range homes {
		if usual := k.of(home.Host()).Usual(); usual != "" {
			return usual
		}
	}
	return ""
}

// limitsOf makes the limits of a resource; nil: it has none.
func (c *Config) limitsOf(resource string) limit.Limiter {
	var all []limit.Limiter
	for _, l := range c.Resources {
		if !l.Resource.Match(resource) {
			continue
		}
		made, err := c.made(l.Rate)
		if err != nil {
			panic(err) // Config.check has made it
		}
		all = append(all, made)
	}
	if len(all) == 0 {
		return nil
	}
	return limit.NewAll(all...)
}

// ofResource returns what makes the limits of a resource for the keys of an account; nil: no resource has any.
// What these keys sent in earlier runs counts in each resource, since the journal does not say in which.
func (g *group) ofResource(of *allowance) func(name string) limit.Limiter {
	c := &g.r.c
	if len(c.Resources) == 0 {
		return nil
	}
	return func(name string) limit.Limiter {
		if l := of.joined[name]; l != nil {
			return l
		}
		l := c.limitsOf(name)
		switch {
		case l == nil:
		case c.Share != nil:
			var err error
			if l, err = c.Share.Of(g.sharedName(of.key, name), g.made(name)); err != nil {
				panic(err) // Config.check has made the same
			}
		case c.Strangers == nil:
			limit.SetEpoch(l, g.r.epoch)
			limit.Replay(l, g.pool.Now(), of.since, of.past)
		}
		return l
	}
}

// joinResources joins the limits of resources in the store. They are those in the input, or, if that is not
// known, those with a name. Others begin with their first request.
func (g *group) joinResources(of *allowance) error {
	c := &g.r.c
	if c.Share == nil {
		return nil
	}
	names := slices.Collect(maps.Keys(g.r.planning.resources))
	if g.r.planning.plan.Requests == 0 {
		for _, l := range c.Resources {
			if name := string(l.Resource); !strings.Contains(name, "*") {
				names = append(names, name)
			}
		}
	}
	of.joined = map[string]limit.Limiter{}
	for _, name := range names {
		if of.joined[name] != nil || c.limitsOf(name) == nil {
			continue
		}
		var err error
		if of.joined[name], err = g.join(of.key, name); err != nil {
			return err
		}
	}
	return nil
}

// divide gives the resource of a request what an answer says of it, and leaves the rest to the key.
func (r *judge) divide(j *job, v *classify.Verdict, ans *pool.Answer) {
	name := j.r.Apart()
	if name == "" { // a refusal of the usual resource is no news of the key
		if v.Result == limit.Limited && v.Scope == provider.Resource && j.group != nil && j.group.apart {
			all := ans.Outcome
			ans.Outcome.Elsewhere, ans.Outcome.RetryAfter, ans.Resource = true, 0, &all
		}
		return
	}
	if other := v.OfResource(strings.TrimPrefix(name, "address ")); other != "" {
		is := charged(j.r)
		if on := is.Mends(); r.c.prices.notices.Moves(is, other) {
			r.teller.Say("%s counts in the resource %s, and not in %s, as its answer says: --charge '%s=resource %s'", on,
				other, name, on, other)
		}
	}
	has := func(s provider.Scope) bool { return s == provider.Resource || s == provider.Route }
	own, key := v.For(has), v.For(func(s provider.Scope) bool { return !has(s) })
	for _, o := range []*limit.Outcome{&own, &key} {
		o.Metered, o.Actual, o.ArrivedAgo = ans.Metered, ans.Actual, ans.ArrivedAgo
	}
	if ans.Result != limit.Limited { // a failure of the server concerns all of the key's requests
		key.RetryAfter = ans.RetryAfter
	}
	ans.Outcome, ans.Resource = key, &own
}
