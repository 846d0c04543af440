package run

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// newPools makes the groups, and a Pool for each of them.
func (r *Run) newPools() error {
	r.lessons.epoch, r.denials.epoch = r.epoch, r.epoch
	if err := r.divide(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for _, g := range r.groups {
		if err := g.newPool(); err != nil {
			return err
		}
	}
	return nil
}

const (
	// firstWindow is for how long the first requests of a key with a small limit go few at a time: see
	// docs/decisions/0103.
	firstWindow = time.Second
	// small is the largest limit that is found out by fewer than ten refusals if it is twice too high.
	small = 40
	// crowd is how many requests in flight may be sent at once before anything is known. If more may, the first goes
	// alone: its answer may show that the server counts more than the limit does, and a crowd would be refused together.
	crowd = 32
)

// first returns for how long the first requests of a key go few at a time. What is not configured is found out
// otherwise.
func (g *group) first() time.Duration {
	c := &g.r.c
	if c.Share == nil && c.Strangers == nil && c.Auto == nil && slices.ContainsFunc(g.limits(), func(l format.Rate) bool {
		return l.Unit == limit.Requests && l.N <= small
	}) {
		return firstWindow
	}
	return 0
}

// newPool makes the group's Pool. It first replays the history into the limiters, since the sends
// of an earlier process still count.
func (g *group) newPool() error {
	r := g.r
	g.apart = r.c.prices.usual(r.intake.homes) != ""
	keys := make([]pool.Key, len(r.c.Keys))
	for i, k := range r.c.Keys {
		keys[i] = pool.Key{Name: k.Name, Limiter: g.of[i].fitted, Gap: r.c.Gap, Slow: g.knowsNothing(),
			Use: r.c.Use, Ramp: r.c.Ramp}
		keys[i].Resource, keys[i].Apart = g.of[i].shared.Resource, g.apart
		if r.organizations.together || keys[i].Apart {
			keys[i].Limiter, keys[i].Resource, keys[i].Shared = nil, nil, g.shares(i)
		}
		if keys[i].Limiter != nil {
			keys[i].First = g.first()
		}
		if len(keys) > 1 || r.flights.Most() > crowd && !g.knowsNothing() {
			keys[i].Trial = trialPatience
		}
		if r.c.nonces {
			keys[i].Nonce = &pool.NonceConfig{Unit: r.c.NonceUnit, After: r.store.History.Nonces[k.Name]}
		}
	}
	for _, of := range g.allowances {
		g.replay(0, of)
		g.fills(0, of)
	}
	g.recall()
	onExpiry := pool.End
	if r.c.Renew {
		onExpiry = pool.Retry
	}
	var err error
	g.pool, err = pool.New(pool.Config{
		Keys: keys, Send: g.send, EndedAll: r.writer.ended, InFlight: r.flights.Most(), Backoff: r.c.Backoff, Log: r.c.Log,
		Epoch: r.epoch,
		Queue: pool.QueueConfig{MaxLen: r.c.Queue, MaxAttempts: r.c.Attempts, KeepDead: -1, Host: goesTo,
			OnExpiry: onExpiry, Decay: r.c.Decay},
		AnswerTime: r.c.AnswerTime, Slow: r.hosts.slow, MaxOutage: r.c.MaxOutage, Outage: r.hosts.outage, Learned: g.learned,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		for name, until := range r.store.History.Holds {
			if i, ours := g.key(name); ours && until > r.epoch.UnixNano() {
				r.TellHold(g.called(i), time.Unix(0, until), "by an answer to the run before")
				d.Hold(now, i, mono.Time(until-r.epoch.UnixNano()))
			}
		}
	})
	return nil
}

// history returns the sends of earlier runs with some keys, and since when these are known.
func (g *group) history(counts func(key int) bool) (sends []limit.Past, since mono.Time) {
	r := g.r
	for _, s := range r.store.History.Sends {
		i, ours := g.key(s.Key)
		// No request arrives later than this after the epoch. If the clock was set back, the
		// journal may have a later time.
		at := mono.Time(min(s.Counts-r.epoch.UnixNano(), int64(journal.Late+r.c.Timeout)))
		if !ours || !counts(i) || at < mono.Time(-r.earlier.keep) {
			continue // no limit of this run counts so far back
		}
		sends = append(sends, limit.Past{At: at, Cost: s.Cost, Result: s.Result,
			Sent: mono.Time(s.Sent - r.epoch.UnixNano())})
	}
	if r.store.History.Last > 0 || r.earlier.others {
		return sends, mono.Time(-r.earlier.keep)
	}
	return sends, mono.Min
}

// Sharing says that strangers use the same limits. Each key then takes a fair share of each limit.
// fairshare.Fair finds it by the answers.
type Sharing struct {
	// Kind is how the server counts limits without a bucket. If zero, it is the kind that a limit
	// states, or is found out.
	Kind fairshare.Kind
	// Weight and Sharers are as in fairshare.FairConfig.
	Weight, Sharers float64
	// Strangers says that others use the quota, too. Otherwise stated limits are used in full.
	Strangers bool
	// Seed is the seed of the random numbers. If zero, it is drawn.
	Seed uint64
}

func (s *Sharing) limiter(l format.Rate) (limit.Limiter, error) {
	if l.Produced {
		return nil, fmt.Errorf("limit %s: output counts as it is produced, and no share of that is known to be fair "+
			"(--strangers)", l.Text)
	}
	if l.Zone != "" {
		return nil, fmt.Errorf("limit %s: a fair share is found in windows whose beginnings answers show, expected the "+
			"limit without its zone (--strangers)", l.Text)
	}
	c := fairshare.FairConfig{
		Kind: s.Kind, Limit: l.N, Window: l.Per, Capacity: l.Burst, Unit: l.Unit, Weight: s.Weight, Sharers: s.Sharers,
		Rng: rand.New(rand.NewPCG(cmp.Or(s.Seed, rand.Uint64()), uint64(l.Unit))),
	}
	if l.Bucket {
		c.Kind = fairshare.TokenBucket
	}
	f, err := fairshare.NewFair(c)
	if err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Text, err)
	}
	f.State(0, []limit.Rule{{Unit: l.Unit, N: l.N, Per: l.Per, Counts: l.Counts, Documented: true}})
	return f, nil
}

// made makes the limiter of a limit for one key.
func (c *Config) made(l format.Rate) (limit.Limiter, error) {
	if c.Strangers != nil {
		return c.Strangers.limiter(l)
	}
	return l.Limiter(c.Arrivals)
}

// join returns the limiter of a key, or of a resource of it, whose limits are shared with other processes.
func (g *group) join(key int, resource string) (limit.Limiter, error) {
	l, err := g.r.c.Share.Join(context.Background(), g.sharedName(key, resource), g.made(resource))
	if err != nil {
		return nil, fmt.Errorf("--share: %w", err)
	}
	return l, nil
}

// sharedName returns the name of a key's limits in the store, or of those of a resource. It comes from the
// key's organization, if the user names it. Without keys, it comes from the fixed headers or queries of all
// requests.
func (g *group) sharedName(key int, resource string) string {
	s, k := g.r.c.Share, g.r.c.Keys[key]
	place := sharestore.Place{Model: g.model, Resource: resource, Key: s.Key(k.Secret)}
	if k.Secret == "" {
		place.Key = s.KeyOf(fixed(g.r.c.Header, http.CanonicalHeaderKey),
			&url.URL{RawQuery: url.Values(fixed(g.r.c.Query, strings.Clone)).Encode()})
	}
	if name := g.r.c.Organizations[k.Name]; name != "" {
		place.Key = "organization " + name
	}
	return s.Name(place)
}

// made returns a function that makes the group's limiters for one key and the store, or those of a resource.
// Its results are alike.
func (g *group) made(resource string) func() limit.Limiter {
	c, rates := &g.r.c, g.limits()
	return sharestore.Rising(sharestore.Part(func() limit.Limiter {
		if resource != "" {
			return c.limitsOf(resource)
		}
		all := make([]limit.Limiter, len(rates))
		for i, l := range rates {
			all[i], _ = c.made(l) // it was made before
		}
		return limit.NewAll(all...)
	}, c.Use), c.Ramp)
}

// fixed returns the values of templates without placeholders. called makes the names of the map
// from theirs.
func fixed(all []format.Template, called func(string) string) map[string][]string {
	values := map[string][]string{}
	for _, t := range all {
		if text, ok := t.Fixed(); ok {
			values[called(t.Name())] = []string{text}
		}
	}
	return values
}

// Auto is for limits that the user does not know, or of which the user does not know all. A
// fairshare.Auto finds out how many requests each account may send.
type Auto struct {
	// Weight and Sharers are as in fairshare.AutoConfig.
	Weight, Sharers float64
	// Strangers says that others use the quota, too. Otherwise stated limits are used in full.
	Strangers bool
	// Seed is the seed of the random numbers. If zero, it is drawn.
	Seed uint64
}

// limiter makes the limiter of a key, beside the limits that are known.
func (a *Auto) limiter(known ...limit.Limiter) (*fairshare.Auto, error) {
	rules, _ := limit.Rates(limit.NewAll(known...))
	return fairshare.NewAuto(fairshare.AutoConfig{Weight: a.Weight, Sharers: a.Sharers, Alone: !a.Strangers,
		Known: rules,
		Rng:   rand.New(rand.NewPCG(cmp.Or(a.Seed, rand.Uint64()), 0))})
}

// knowsNothing reports whether the group has no limit, and finds none out.
func (g *group) knowsNothing() bool { return len(g.limits()) == 0 && g.r.c.Auto == nil }

// seeks makes the limiter that finds out the limit of an account, beside those that are known. The
// journal keeps its findings for the next run.
func (g *group) seeks(of *allowance, each []limit.Limiter) ([]limit.Limiter, error) {
	if g.r.c.Auto == nil {
		return each, nil
	}
	a, err := g.r.c.Auto.limiter(each...)
	if err != nil {
		return nil, fmt.Errorf("%w: --limit auto: %w", ErrConfig, err)
	}
	of.auto = a
	each = each[:len(each):len(each)]
	if g.r.store.Book == nil {
		return append(each, a), nil
	}
	return append(each, g.r.store.Book.Limiter(g.name(of.key), a, func(text string, _ bool) {
		who := "key " + g.called(of.key) + ": "
		if g.r.c.keyless {
			who = ""
		}
		g.r.Say("%s--limit auto %s", who, text)
	})), nil
}

// found returns the limits that the accounts have found.
func (p pools) found() (all []tally.Found) {
	for _, g := range p {
		if g.pool == nil {
			continue
		}
		g.pool.Update(func(mono.Time, *pool.Queue, *pool.Dispatcher) {
			for _, of := range g.allowances {
				if of.auto == nil {
					continue
				}
				f := of.auto.Found()
				all = append(all, tally.Found{
					Key: g.called(of.key), N: f.Rule.N, Seconds: f.Rule.Per.Seconds(), By: f.By, Soon: f.Soon, Later: f.Later,
					Text: f.String(),
				})
			}
		})
	}
	return all
}
