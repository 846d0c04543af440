package run

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
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
	field string // header field of answers that names the organization; empty: none does
	mu    sync.Mutex
	keys  []belonging  // empty: each key has all limits for itself
	heard []string     // with a store: organizations in answers, for keys that the user did not assign
	known atomic.Int64 // number of known organizations; it is read where other locks are held
	open  atomic.Int64 // number of keys whose organization is not known
}

type belonging struct {
	name string       // of its organization; empty: not known yet
	said bool         // from the user, and no answer corrected it
	past []limit.Past // answers from the time when it was not known
}

// alone begins the name of an organization of one key, if no answer to that key names one.
const alone = "\x00"

// allowance is the limits of one organization, in one group.
type allowance struct {
	name   string // empty: the first answer that names it decides
	home   int    // the first of its keys
	shared *pool.Shared
}

// newOrganizations finds out whether keys may have limits together, and takes in the user's own
// assignment. homes are the servers of the keys, as far as they are known.
func newOrganizations(c *Config, homes secret.Places) *organizations {
	o := &organizations{}
	if len(c.Keys) < 2 || len(c.Limits) == 0 {
		return o
	}
	if l, ok := c.Format.(*format.LLM); ok {
		row, _ := provider.LookupProvider(l.LimitsOf())
		if row.Name == "" {
			row, _ = provider.LookupProvider(l.Dialect().Name())
		}
		o.field = row.Organization
	} else if c.Provider != nil {
		row, _ := provider.LookupProvider(c.Provider.Name())
		o.field = row.Organization
	} else {
		for _, home := range homes {
			if d, ok := provider.ForHost(home.Host()); ok && o.field == "" {
				row, _ := provider.LookupProvider(d.Name())
				o.field = row.Organization
			}
		}
	}
	learns := o.field != "" && c.Share == nil // the names of limits in a store do not change while processes share them
	if c.Share != nil {
		o.heard = make([]string, len(c.Keys))
	}
	if !learns && len(c.Organizations) == 0 {
		return o
	}
	o.keys = make([]belonging, len(c.Keys))
	for i, k := range c.Keys {
		b := belonging{name: c.Organizations[k.Name], said: c.Organizations[k.Name] != ""}
		if !learns && !b.said {
			b = belonging{name: alone + k.Name, said: true}
		}
		o.keys[i] = b
	}
	o.counted()
	return o
}

// remember takes in the assignments that earlier runs learned.
func (o *organizations) remember(c *Config, whose map[string]string) {
	for i := range o.keys {
		if b := &o.keys[i]; b.name == "" {
			b.name = whose[c.Keys[i].Name]
		}
	}
	o.counted()
}

func (o *organizations) together() bool { return o != nil && len(o.keys) > 0 }

// home returns the first key that has the same limits as this one at the beginning.
func (o *organizations) home(key int) int {
	if !o.together() {
		return key
	}
	name := o.keys[key].name
	if name == "" { // any known one will do
		return max(slices.IndexFunc(o.keys, func(b belonging) bool { return b.name != "" }), 0)
	}
	return slices.IndexFunc(o.keys, func(b belonging) bool { return b.name == name })
}

// countsIn reports whether the sends of a key count for an organization, as far as that is known.
func (o *organizations) countsIn(key int, name string) bool {
	return name == "" || o.keys[key].name == "" || o.keys[key].name == name
}

// counted notes how many organizations are known.
func (o *organizations) counted() {
	var names []string
	open := 0
	for i := range o.keys {
		switch name := o.keys[i].name; {
		case name == "":
			open++
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	o.known.Store(int64(len(names)))
	o.open.Store(int64(open))
}

// count returns how many times over n keys have the limits. It is a lower bound while some
// organizations are not known; sure says that all are.
func (o *organizations) count(n int) (least int, sure bool) {
	if !o.together() {
		return n, true
	}
	return max(int(o.known.Load()), 1), o.open.Load() == 0
}

// quotas returns how many times over the keys have the limits, as far as that is known.
func (r *Run) quotas() int {
	n, _ := r.organizations.count(len(r.c.Keys))
	return n
}

// apart reports once that keys share limits while the store has these limits for each key.
func (r *Run) apart(j *job) {
	o := r.organizations
	name := strings.TrimSpace(j.res.Header.Get(o.field))
	if o.heard == nil || o.field == "" || name == "" || r.c.Organizations[r.c.Keys[j.keyIndex].Name] != "" {
		return
	}
	o.mu.Lock()
	other := slices.Index(o.heard, name)
	o.heard[j.keyIndex] = name
	o.mu.Unlock()
	if other >= 0 && other != j.keyIndex && r.IsFirst("apart") {
		a, b := r.c.Keys[other].Name, r.c.Keys[j.keyIndex].Name
		r.Say("keys %s and %s belong to one organization (%s), and in the store each has all of its limits: "+
			"--organization %s=NAME,%s=NAME has them share", a, b, o.field, a, b)
	}
}

// named takes in the organization that an answer names for its key. The attempt is still in flight.
func (r *Run) named(j *job, ans *pool.Answer) {
	o := r.organizations
	r.apart(j)
	if !o.together() || o.keys[j.keyIndex].said || j.hop.Foreign || j.res.Status == 0 || ans.Banned || ans.Denied {
		r.unnamed(j, ans)
		return
	}
	name, served := strings.TrimSpace(j.res.Header.Get(o.field)), ans.Result == limit.Accepted
	o.mu.Lock()
	b := &o.keys[j.keyIndex]
	if name == "" && (!served || b.name != "") || name != "" && name == b.name {
		o.mu.Unlock()
		r.unnamed(j, ans)
		return
	}
	isNews := name != ""
	b.name = cmp.Or(name, alone+r.c.Keys[j.keyIndex].Name)
	var err error
	for _, g := range r.groups {
		if err = g.join(j.keyIndex, b.name); err != nil {
			break
		}
	}
	b.past = nil
	o.counted()
	var all []string
	for i, k := range r.c.Keys {
		if o.keys[i].name == b.name {
			all = append(all, k.Name)
		}
	}
	o.mu.Unlock()
	if len(all) > 1 {
		last := len(all) - 1
		r.Say("keys %s and %s belong to one organization (%s): they share its limits", strings.Join(all[:last], ", "),
			all[last], o.field)
	}
	if isNews && r.store.Journal != nil && err == nil {
		if err = r.store.Journal.Belongs(r.c.Keys[j.keyIndex].Name, name); err == nil {
			r.store.Wake()
		}
	}
	if err != nil {
		r.fail(err)
	}
}

// unnamed keeps an answer that does not name the organization of its key, until that is known.
func (r *Run) unnamed(j *job, ans *pool.Answer) {
	o := r.organizations
	if !o.together() || ans.Result == limit.Unsent {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := &o.keys[j.keyIndex]; b.name == "" {
		at := j.res.Ended
		if ans.Result == limit.Unknown {
			at = at.Add(journal.Late)
		}
		b.past = append(b.past, limit.Past{At: mono.Time(at.Sub(r.epoch)), Cost: j.r.Cost, Result: ans.Result, Sent: j.at})
	}
}

// allow makes the first allowances of the group, from the limits of their first keys.
func (g *group) allow() {
	o := g.r.organizations
	for i := range o.keys {
		if o.home(i) == i {
			g.allowances = append(g.allowances,
				&allowance{name: o.keys[i].name, home: i, shared: &pool.Shared{Name: g.name(i), Limiter: g.fitted[i]}})
		}
	}
}

// shares returns the limits in which a key counts: those of its organization, or all if that is not
// known. It returns at most the first pool.MaxShared.
func (g *group) shares(key int) (all []*pool.Shared) {
	for _, a := range g.allowances {
		if g.r.organizations.countsIn(key, a.name) && len(all) < pool.MaxShared {
			all = append(all, a.shared)
		}
	}
	return all
}

// join adds a key to the limits of its organization. If the key is its first, these limits are
// made. The lock of organizations is held.
func (g *group) join(key int, name string) (err error) {
	of := func(name string) int {
		return slices.IndexFunc(g.allowances, func(a *allowance) bool { return a.name == name })
	}
	mine := of(name)
	if mine < 0 {
		mine = of("") // limits whose organization was not known yet
	}
	limiters, fitted := []limit.Limiter(nil), (*limit.Fitted)(nil)
	isNew := mine < 0
	if isNew {
		if limiters, fitted, err = g.newLimits(key); err != nil {
			return err
		}
		g.allowances = append(g.allowances, &allowance{home: key, shared: &pool.Shared{Name: g.name(key), Limiter: fitted}})
		mine = len(g.allowances) - 1
	}
	a := g.allowances[mine]
	a.name = name
	g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		if isNew {
			g.replayTo(now, key, name, fitted)
		} else {
			limiters, fitted = g.limiters[a.home], g.fitted[a.home]
		}
		g.limiters[key], g.fitted[key] = limiters, fitted
		for i := range g.r.c.Keys {
			if err == nil {
				err = d.Share(now, i, g.shares(i)...)
			}
		}
	})
	if isNew {
		g.more(g.pool.Now(), limiters)
	}
	return err
}

// replayTo replays the earlier sends of its keys into limits that are made during the run.
func (g *group) replayTo(now mono.Time, key int, name string, fitted *limit.Fitted) {
	o := g.r.organizations
	if g.r.c.Strangers == nil {
		all, since := g.history(func(i int) bool { return o.countsIn(i, name) })
		for i := range o.keys {
			if o.countsIn(i, name) {
				all = append(all, o.keys[i].past...)
			}
		}
		slices.SortStableFunc(all, func(a, b limit.Past) int { return cmp.Compare(a.At, b.At) })
		limit.Replay(fitted, now, since, all)
	}
	g.recallTo(key, fitted)
}

// more adds the content of the buckets of new limits to the group's rooms.
func (g *group) more(now mono.Time, limiters []limit.Limiter) {
	g.r.tally.Mu.Lock()
	defer g.r.tally.Mu.Unlock()
	for n, rate := range g.limits {
		if rate.Bucket {
			g.rooms[n] += rate.Room(limiters[n], now)
		}
	}
}
