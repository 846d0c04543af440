package run

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// organizations assigns keys to organizations. Keys of one organization have its limits together.
// The assignment comes from the user, an earlier run, or the first answer to each key.
//
// Until then a key counts in the limits of every known organization, or in those of the first key
// if none is known. Safe for concurrent use once the run is open: field and the number of keys no
// longer change then.
type organizations struct {
	c        *Config
	store    *output.Store
	teller   *telling.Teller
	course   *course
	field    string            // header field of answers that names the organization; empty: none does
	learns   bool              // from answers
	said     map[string]string // by the user; nil if keys have no limits to share
	together bool              // keys may have limits together
	mu       sync.Mutex
	owner    *keyring.Owners // decides what keys do not say
	pasts    []keyring.Past  // of each key, answers from the time when its organization was not known
	heard    []string        // with a store: organizations in answers, for keys that the user did not assign
	known    atomic.Int64    // number of known organizations; it is read where other locks are held
	open     atomic.Bool     // the organization of a key is not known
}

// allowance is the limits of one account, in one group.
type allowance struct {
	account  *keyring.Account
	key      int             // the index of its home
	limiters []limit.Limiter // one for each limit
	fitted   *limit.Fitted   // over all of them
	auto     *fairshare.Auto // finds out what is not known, and is in fitted, too; nil: there is none
	shared   *pool.Shared    // for keys that may share limits
	past     []limit.Past    // what its limits, and those of its resources, begin with
	since    mono.Time       // from when on that is known
	// joined are the limits in the store of the resources that the input is known to have.
	joined map[string]limit.Limiter
}

// newOrganizations finds out whether keys may have limits together, and takes in the user's own
// assignment. homes are the servers of the keys, as far as they are known.
func newOrganizations(r *Run, homes secret.Places) *organizations {
	o := &organizations{c: &r.c, store: r.store, teller: r.Teller, course: r.course,
		pasts: make([]keyring.Past, len(r.c.Keys)), heard: make([]string, len(r.c.Keys))}
	if len(r.c.Keys) > 1 && len(r.c.Limits)+len(r.c.Resources) > 0 {
		o.field = fieldOf(&r.c, homes)
		// The names of limits in a store do not change while processes share them.
		o.learns, o.said = o.field != "" && r.c.Share == nil, r.c.Organizations
		o.together = o.learns || len(o.said) > 0
	}
	o.assign(nil)
	return o
}

// fieldOf returns the header field of answers that names the organization; empty: none does.
func fieldOf(c *Config, homes secret.Places) string {
	var row provider.Provider
	if l := c.Meter; l != nil {
		row, _ = provider.LookupProvider(l.Divides())
	} else if c.Provider != nil {
		row, _ = provider.LookupProvider(c.Provider.Name())
	} else {
		for _, home := range homes {
			if d, ok := provider.ForHost(home.Host()); ok && row.Organization == "" {
				row, _ = provider.LookupProvider(d.Name())
			}
		}
	}
	return row.Organization
}

// assign takes in what is known before the run: what the user says, and then what earlier runs learned, in
// whose. The others then count with the first of those keys.
func (o *organizations) assign(whose map[string]string) {
	most := pool.MaxShared
	if len(o.c.Resources) > 0 { // accounts have limits of resources, too
		most /= 2
	}
	o.owner = keyring.NewOwners(keyring.OwnersConfig{Most: most, MaxKeys: len(o.c.Keys)})
	for _, k := range o.c.Keys {
		name := o.said[k.Name]
		sure := name != "" || !o.learns
		if !sure {
			name = whose[k.Name]
		}
		if name != "" || sure {
			o.owner.Say(k.Name, name, sure)
		}
	}
	for _, k := range o.c.Keys {
		o.owner.Meet(k.Name)
	}
	o.counted()
}

// counted notes how many organizations are known.
func (o *organizations) counted() {
	known := map[*keyring.Account]bool{}
	for _, k := range o.c.Keys {
		known[o.owner.Known(k.Name)] = true
	}
	o.open.Store(known[nil])
	delete(known, nil)
	o.known.Store(int64(len(known)))
}

// count returns how many times over the keys have the limits. It is a lower bound while some
// organizations are not known; sure says that all are.
func (o *organizations) count() (least int, sure bool) {
	return max(int(o.known.Load()), 1), !o.open.Load()
}

// apart reports once that keys share limits while the store has these limits for each key.
func (o *organizations) apart(j *job, name string) {
	if o.c.Share == nil || name == "" || o.c.Organizations[o.c.Keys[j.keyIndex].Name] != "" {
		return
	}
	o.mu.Lock()
	other := slices.Index(o.heard, name)
	o.heard[j.keyIndex] = name
	o.mu.Unlock()
	if other >= 0 && other != j.keyIndex && o.teller.IsFirst("apart") {
		a, b := o.c.Keys[other].Name, o.c.Keys[j.keyIndex].Name
		o.teller.Say("keys %s and %s belong to one organization (%s), and in the store each has all of its limits: "+
			"--organization %s=NAME,%s=NAME has them share", a, b, o.field, a, b)
	}
}

// named takes in the organization that an answer names for its key. The attempt is still in flight.
func (o *organizations) named(groups pools, epoch time.Time, j *job, ans *pool.Answer) {
	name := strings.TrimSpace(j.res.Header.Get(o.field))
	if o.apart(j, name); !o.together {
		return
	}
	key := o.c.Keys[j.keyIndex].Name
	o.mu.Lock()
	var moves []string
	switch {
	case j.hop.Foreign || j.res.Status == 0 || ans.Banned || ans.Denied:
	case name != "":
		moves = o.owner.Named(key, name)
	case ans.Result == limit.Accepted:
		moves = o.owner.Unnamed(key, false)
	}
	if len(moves) == 0 { // no news
		if o.owner.Known(key) == nil && ans.Result != limit.Unsent {
			at := j.res.Ended
			if ans.Result == limit.Unknown {
				at = at.Add(journal.Late)
			}
			o.pasts[j.keyIndex].Add(limit.Past{At: mono.Time(at.Sub(epoch)), Cost: j.r.Cost, Result: ans.Result,
				Sent: j.at})
		}
		o.mu.Unlock()
		return
	}
	var err error
	for _, g := range groups {
		err = cmp.Or(err, g.follow())
	}
	o.pasts[j.keyIndex] = nil
	o.counted()
	var all []string
	for _, k := range o.c.Keys {
		if in := o.owner.Known(k.Name); in != nil && name != "" && in.Name == name {
			all = append(all, k.Name)
		}
	}
	o.mu.Unlock()
	if last := len(all) - 1; last > 0 {
		o.teller.Say("keys %s and %s belong to one organization (%s): they share its limits", strings.Join(all[:last], ", "),
			all[last], o.field)
	}
	if name != "" && o.store.Journal != nil && err == nil {
		if err = o.store.Journal.Belongs(key, name); err == nil {
			o.store.Wake()
		}
	}
	if err != nil {
		o.course.fail(err)
	}
}

// allowance returns the limits of an account, and makes them if they are missing.
func (g *group) allowance(a *keyring.Account) (*allowance, error) {
	for _, of := range g.allowances {
		if of.account == a {
			return of, nil
		}
	}
	key := slices.IndexFunc(g.r.c.Keys, func(k format.Key) bool { return k.Name == a.Home })
	of := &allowance{account: a, key: key}
	if err := g.newLimits(of); err != nil {
		return nil, err
	}
	of.shared.Resource = g.ofResource(of)
	if err := g.joinResources(of); err != nil {
		return nil, err
	}
	if g.pool == nil {
		g.allowances = append(g.allowances, of)
		return of, nil
	}
	var now mono.Time
	g.pool.Update(func(at mono.Time, _ *pool.Queue, _ *pool.Dispatcher) {
		now, g.allowances = at, append(g.allowances, of)
		g.replay(now, of)
		g.recallTo(key, of.fitted)
	})
	g.fills(now, of)
	return of, nil
}

// countsIn reports whether the sends of a key count in an allowance, as far as that is known.
func (o *organizations) countsIn(key int, of *allowance) bool {
	return slices.Contains(o.owner.CountsIn(o.c.Keys[key].Name), of.account)
}

// shares returns the limits in which a key counts: those of its organization, or all in which it may
// count.
func (g *group) shares(key int) (all []*pool.Shared) {
	for _, of := range g.allowances {
		if g.r.organizations.countsIn(key, of) {
			all = append(all, of.shared)
		}
	}
	return all
}

// follow makes keys count in the limits of their accounts. The lock of organizations is held.
func (g *group) follow() (err error) {
	for _, k := range g.r.c.Keys {
		for _, a := range g.r.organizations.owner.CountsIn(k.Name) {
			if _, err := g.allowance(a); err != nil {
				return err
			}
		}
	}
	g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		for i, k := range g.r.c.Keys {
			g.of[i], _ = g.allowance(g.r.organizations.owner.CountsIn(k.Name)[0]) // it is there
			err = errors.Join(err, d.Share(now, i, g.shares(i)...))
		}
	})
	return err
}

// replay makes new limits count what their keys sent before, in earlier runs and in this one.
func (g *group) replay(now mono.Time, of *allowance) {
	limit.SetEpoch(of.fitted, g.r.epoch)
	if g.r.c.Strangers != nil || g.r.c.Share != nil {
		return
	}
	all, since := g.history(func(key int) bool { return g.r.organizations.countsIn(key, of) })
	for i, past := range g.r.organizations.pasts {
		if g.r.organizations.countsIn(i, of) {
			all = append(all, past...)
		}
	}
	slices.SortStableFunc(all, func(a, b limit.Past) int { return cmp.Compare(a.At, b.At) })
	of.past, of.since = all, since
	limit.Replay(of.fitted, now, of.since, of.past)
}

// fills adds the content of the buckets of new limits to the group's rooms.
func (g *group) fills(now mono.Time, of *allowance) {
	if g.r.c.Strangers != nil || g.r.c.Share != nil {
		return
	}
	g.r.tally.Mu.Lock()
	defer g.r.tally.Mu.Unlock()
	for n, rate := range g.limits() {
		if rate.Bucket {
			g.rooms[n] += rate.Room(of.limiters[n], now)
		}
	}
}
