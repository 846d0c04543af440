package batch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
	"github.com/paceline-go/paceline/quota"
)

// group is what counts in limits of its own on every key: the requests of one model, or all of them.
type group struct {
	r        *Run
	index    int
	model    string            // as quota.SharedModel has it; empty: all; otherModels: those that have no limits of their own
	limits   []Rate            // of Config.Limits
	limiters [][]limit.Limiter // of each key, one per limit of its
	fitted   []*limit.Fitted   // of each key, over all of them
	rooms    []int64           // of each limit, what the buckets of all keys held at the epoch
	pool     *paceline.Pool
	waits    waits
	served   []servings // of each key
}

// use is what a group costs. The tally has it.
type use struct {
	remaining limit.Cost // that is still to go, if checked
	spent     limit.Cost // of the sends
}

// mostGroups bounds how often the input is read: each group reads it for itself, lest one that is sorted by model leave all but
// the first with nothing to send.
const mostGroups = 16

// eachModel returns the names of limits that the models of the input count in, in order, and what goes in each; none where the limits
// are for all together, or nobody knows. expected: by what answers have taught to expect.
func (r *Run) eachModel(expected bool) (names []string, costs map[string]*limit.Cost) {
	l, ok := r.c.Format.(*LLM)
	if !ok || !r.planning.again || r.numbered || r.c.Gap > 0 || len(r.c.Limits) == 0 {
		return nil, nil
	}
	row, known := quota.LookupProvider(l.c.LimitsOf)
	each := known && row.Limited == quota.Model && !slices.ContainsFunc(r.c.Limits, func(l Rate) bool { return l.Model == "" && !l.EachModel })
	if !each && !r.namesModels() {
		return nil, nil
	}
	const longest = 256
	costs = map[string]*limit.Cost{}
	for _, m := range r.planning.models {
		name := l.sharedModel(m.Model)
		if name == "" || len(name) > longest || m.Model == otherModels {
			return nil, nil
		}
		if !each && !hasOwn(r.c.Limits, name) {
			name = otherModels
		}
		if costs[name] == nil {
			names, costs[name] = append(names, name), new(limit.Cost)
		}
		add(costs[name], l.likely(m, expected), 1)
	}
	if len(names) > mostGroups {
		return nil, nil
	}
	slices.Sort(names)
	return names, costs
}

// namesModels tells whether limits are those of models that are named.
func (r *Run) namesModels() bool {
	return slices.ContainsFunc(r.c.Limits, func(l Rate) bool { return l.Model != "" })
}

// HasOwnLimits tells whether a model has limits of its own, that were named for it.
func (r *Run) HasOwnLimits(model string) bool {
	l, ok := r.c.Format.(*LLM)
	return ok && hasOwn(r.c.Limits, l.sharedModel(model))
}

// hasOwn tells whether limits are those of a model.
func hasOwn(all []Rate, model string) bool {
	return model != "" && slices.ContainsFunc(all, func(l Rate) bool { return l.Model == model })
}

// limitsOf are those that a model's requests count in: its own, or else those of no model.
func limitsOf(all []Rate, model string) (its []Rate) {
	if !slices.ContainsFunc(all, func(l Rate) bool { return l.Model != "" }) {
		return all
	}
	if !hasOwn(all, model) {
		model = ""
	}
	for _, l := range all {
		if l.Model == model {
			its = append(its, l)
		}
	}
	return its
}

// tellModels says which limits can not be kept for the models that they are of, and which are of no model of the input.
func (r *Run) tellModels() error {
	if !r.namesModels() {
		return nil
	}
	l, ok := r.c.Format.(*LLM)
	switch {
	case !ok:
		return fmt.Errorf("%w: limits of a model (--limit-model) with requests that are for none, expected a batch for language models", ErrConfig)
	case !r.planning.again:
		return fmt.Errorf("%w: limits of a model (--limit-model) with an input that can be read only once, expected a file", ErrConfig)
	case r.numbered || r.c.Gap > 0:
		return fmt.Errorf("%w: limits of a model (--limit-model) with {nonce} or --nonce-gap, which are of all models", ErrConfig)
	}
	var has []string
	for _, m := range r.planning.models {
		if name := l.sharedModel(m.Model); !slices.Contains(has, name) {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	if names, _ := r.eachModel(false); len(names) == 0 && len(has) > 0 {
		return fmt.Errorf("%w: limits of a model (--limit-model) with an input of more than %d models, or one whose requests do not name theirs", ErrConfig, mostGroups)
	}
	for _, l := range r.c.Limits {
		if l.Model != "" && !slices.Contains(has, l.Model) && r.notices.isFirst("no model "+l.Model) {
			r.tell("no request that is to be sent is for %s, which has limits of its own (--limit-model); those are for %s", l.Model, cmp.Or(shown.Some(has, 5), "nobody"))
		}
	}
	return nil
}

// sharedModel is the name of the limits that a model counts in.
func (l *LLM) sharedModel(model string) string {
	row, _ := quota.LookupProvider(l.c.LimitsOf)
	return quota.SharedModel(cmp.Or(row.Name, l.provider.Name()), model)
}

// divide makes the groups.
func (r *Run) divide() error {
	if err := r.tellModels(); err != nil {
		return err
	}
	names, costs := r.eachModel(false)
	if len(names) == 0 {
		names = []string{""}
	} else {
		r.tally.uses = make([]use, len(names))
		for i, name := range names {
			r.tally.uses[i].remaining = *costs[name]
		}
	}
	if len(names) > 1 {
		r.flights, r.bans = make(chan struct{}, r.c.Concurrency), make([]atomic.Bool, len(r.c.Keys))
	}
	for i, name := range names {
		g := &group{r: r, index: i, model: name, limits: limitsOf(r.c.Limits, name), served: make([]servings, len(r.c.Keys))}
		if err := g.limit(); err != nil {
			return err
		}
		r.groups = append(r.groups, g)
	}
	return nil
}

// limit makes the limiters.
func (g *group) limit() error {
	c := &g.r.c
	for range c.Keys {
		each := make([]limit.Limiter, len(g.limits))
		for n, l := range g.limits {
			var err error
			if each[n], err = c.made(l); err != nil {
				return err
			}
		}
		g.limiters = append(g.limiters, each)
		g.fitted = append(g.fitted, limit.NewFitted(limit.NewAll(each...)))
	}
	return nil
}

// of is the group of a request's model.
func (r *Run) of(model string) *group {
	if l, ok := r.c.Format.(*LLM); ok && len(r.groups) > 1 {
		name := l.sharedModel(model)
		for _, g := range r.groups {
			if g.model == name {
				return g
			}
		}
		for _, g := range r.groups {
			if g.model == otherModels {
				return g
			}
		}
	}
	return r.groups[0]
}

// name is that of a key in the journal.
func (g *group) name(key int) string {
	name := g.r.c.Keys[key].Name
	if g.model != "" {
		name += "/" + g.model
	}
	return name
}

// called is a key as people are told of it.
func (g *group) called(key int) string {
	if len(g.r.groups) > 1 {
		return g.name(key)
	}
	return g.r.c.Keys[key].Name
}

// key is which of the keys a name of the journal is of, if what it did counts here: in the limits of one model what was sent to that, or
// by a run that did not tell models apart; in those of all models everything.
func (g *group) key(name string) (key int, ours bool) {
	for i, k := range g.r.c.Keys {
		of, is := strings.CutPrefix(name, k.Name)
		if is && (of == "" || of[0] == '/' && g.counts(of[1:])) {
			return i, true
		}
	}
	return 0, false
}

// counts tells whether what was sent to a model counts here: a run before may have told models apart in another way.
func (g *group) counts(model string) bool {
	switch {
	case g.model == "" || model == g.model:
		return true
	case model == otherModels:
		return !hasOwn(g.limits, g.model)
	}
	return g.model == otherModels && !hasOwn(g.r.c.Limits, model)
}

// takeOff waits until an attempt may be in flight with those of the other groups, which land ends. False: it may not go any more.
func (r *Run) takeOff(ctx context.Context, key int) (land func(), ok bool) {
	if r.flights == nil {
		return func() {}, true
	}
	select {
	case r.flights <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if r.bans[key].Load() { // while it waited
		<-r.flights
		return nil, false
	}
	return func() { <-r.flights }, true
}

// banned has what a key is banned for hold in the other groups.
func (g *group) banned(key int, reason string) {
	if g.r.flights == nil {
		return
	}
	g.r.bans[key].Store(true)
	for _, other := range g.r.groups {
		if other != g {
			other.pool.Update(func(_ mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) { d.Ban(key, reason) })
		}
	}
}

// runPools runs until all groups have ended. What ends one of them ends all.
func (r *Run) runPools(ctx context.Context) error {
	if len(r.groups) == 1 {
		return r.groups[0].pool.Run(ctx)
	}
	errs := make([]error, len(r.groups))
	var all sync.WaitGroup
	for i, g := range r.groups {
		all.Go(func() {
			if errs[i] = g.pool.Run(ctx); errs[i] != nil {
				r.drainPools()
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

func (r *Run) drainPools() {
	for _, g := range r.groups {
		g.pool.Drain()
	}
}

// waiting is how many requests wait.
func (r *Run) waiting() (n int) {
	for _, g := range r.groups {
		n += g.pool.Counts().Waiting
	}
	return n
}

// feedAll feeds all groups until the input's end. Where it can be read from several places each reads it for itself.
func (r *Run) feedAll(ctx context.Context, name string, in io.Reader) {
	at, ok := in.(io.ReaderAt)
	if ok = ok && takesTurns(in); !ok && r.tally.checked && len(r.groups) > 1 {
		in = &io.LimitedReader{R: in, N: r.planning.plan.Bytes}
	}
	if !ok || len(r.groups) == 1 {
		r.feed(ctx, name, in, nil)
		return
	}
	from := int64(0)
	if s, ok := in.(io.Seeker); ok {
		from, _ = s.Seek(0, io.SeekCurrent)
	}
	var all sync.WaitGroup
	for _, g := range r.groups {
		all.Go(func() {
			r.feed(ctx, name, &io.LimitedReader{R: io.NewSectionReader(at, from, r.planning.plan.Bytes), N: r.planning.plan.Bytes}, g)
		})
	}
	all.Wait()
}

// takesTurns says that the input can be read by several at once, from its beginning.
func takesTurns(in io.Reader) bool {
	_, ok := in.(io.ReaderAt)
	s, seeks := in.(io.Seeker)
	if !ok || !seeks {
		return false
	}
	_, err := s.Seek(0, io.SeekCurrent) // a pipe has a file's methods, too
	return err == nil
}
