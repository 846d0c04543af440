package run

import (
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// ResourceLimit is a limit of the resources whose names fit a pattern, of each by itself.
type ResourceLimit struct {
	Resource provider.Pattern
	format.Rate
	Published bool // by the provider: not where keys or processes share limits
}

// apart is the resource of a request if it is not the usual one.
func apart(q *format.Request) string {
	if q == nil || q.Usual {
		return ""
	}
	return q.Resource
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

// ofResource returns what makes the limits of a resource for a key. What the key sent in earlier runs
// counts in each resource, since the journal does not say in which.
func (g *group) ofResource(key int) func(name string) limit.Limiter {
	return func(name string) limit.Limiter {
		var all []limit.Limiter
		for _, l := range g.r.c.Resources {
			if !l.Resource.Match(name) {
				continue
			}
			made, err := g.r.c.made(l.Rate)
			if err != nil {
				panic(err) // Config.check has made it
			}
			all = append(all, made)
		}
		if len(all) == 0 {
			return nil
		}
		made := limit.NewAll(all...)
		limit.SetEpoch(made, g.r.epoch)
		past, since := g.history(func(i int) bool { return i == key })
		limit.Replay(made, g.pool.Now(), since, past)
		return made
	}
}

// divide gives the resource of a request what an answer says of it, and leaves the rest to the key.
func (r *judge) divide(j *job, v *classify.Verdict, ans *pool.Answer) {
	name := apart(j.r)
	if name == "" { // a refusal of the usual resource is no news of the key
		if v.Result == limit.Limited && v.Scope == provider.Resource && j.group != nil && j.group.apart {
			all := ans.Outcome
			ans.Outcome.Elsewhere, ans.Outcome.RetryAfter, ans.Resource = true, 0, &all
		}
		return
	}
	if other := v.OfResource(strings.TrimPrefix(name, "address ")); other != "" {
		on := j.r.Method + " " + j.r.URL.Path
		if r.teller.IsFirst("resource of " + on) {
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
