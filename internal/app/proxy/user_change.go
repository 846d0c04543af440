package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// turns are what a user has changed while the proxy runs. They change under common.applying, too, which a
// handover holds for seconds.
type turns struct {
	mu    sync.Mutex
	base  Config              // without the changes
	made  []turn              // the changes that hold
	rests map[pause]time.Time // pauses, by their ends; the zero Time: none. They outlive base
}

// pause is whom a user has paused. Without a key it is all of an upstream.
type pause struct{ upstream, key string }

// Turn makes a change that a user wants, for all requests from now on, and says it in words. It needs
// Config.Live. Limits, weights and bounds in flight hold until Apply states another value, and pauses until their end.
func (p *Proxy) Turn(t daemon.Turn) (said string, err error) {
	p.applying.Lock()
	defer p.applying.Unlock()
	if t.Knob == daemon.Pause || t.Knob == daemon.Resume {
		if err := p.restLocked(t); err != nil {
			return "", err
		}
		return t.Words("all requests"), nil
	}
	c := p.latest.Load().config
	next, _, said, err := c.Turned(t, &p.turns.base)
	if err != nil {
		return "", err
	}
	next, err = p.checked(next)
	if err == nil {
		err = p.applyLocked(next)
	}
	if err != nil {
		if bad, is := errors.AsType[*ConfigError](err); is {
			err = bad.Err
		}
		return "", err
	}
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	p.turns.made = append(p.turns.made, turn{said, c.changed(next)})
	return said, nil
}

// restLocked begins or ends a pause.
func (p *Proxy) restLocked(t daemon.Turn) error {
	all := p.latest.Load().routes
	var whom []pause
	names := []string{}
	for _, u := range all {
		if names = append(names, u.Name); t.Name == "" || t.Name == u.Name {
			whom = append(whom, pause{u.Name, ""})
			continue
		}
		s := u.transport.Snapshot()
		for _, k := range s.Keys {
			if names = append(names, k.Name); k.Name == t.Name {
				whom = append(whom, pause{u.Name, k.Name})
			}
		}
	}
	if len(whom) == 0 {
		c, client := p.latest.Load().config, strings.TrimPrefix(t.Name, "client ")
		if known, _ := c.clientNamed(client); known != nil {
			return fmt.Errorf("%q is a client, and pauses are of keys and upstreams; expected paceline ctl limit 'client %s' 1/d to stop it, "+
				"and none in place of 1/d to end that", client, client)
		}
		slices.Sort(names)
		return fmt.Errorf("no key or upstream %q, expected %s, or no name for all requests", t.Name,
			strings.Join(slices.Compact(names), " or "))
	}
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	if p.turns.rests == nil {
		p.turns.rests = map[pause]time.Time{}
	}
	for _, x := range whom {
		p.turns.rests[x] = t.Until
		if t.Knob == daemon.Resume {
			delete(p.turns.rests, x)
		}
		for _, u := range slices.Concat(all, p.formerRoutes()) { // requests may wait at a way of before
			switch {
			case u.Name != x.upstream:
			case t.Knob == daemon.Resume:
				u.transport.Resume(x.key)
			default:
				u.transport.Rest(x.key, t.Until)
			}
		}
	}
	return nil
}

// restAgainLocked pauses ways that have come for those that were paused: another server of an upstream.
func (p *Proxy) restAgainLocked(was, next routes) {
	for _, u := range next {
		if slices.ContainsFunc(was, func(o *upstream) bool { return o.governed == u.governed }) {
			continue
		}
		for x, until := range p.turns.rests {
			if x.upstream == u.Name && (until.IsZero() || time.Now().Before(until)) {
				u.transport.Rest(x.key, until)
			}
		}
	}
}

// rename gives keys of an upstream other names, by the former ones.
func (t *turns) rename(upstream string, names map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[pause]time.Time{}
	for x, until := range t.rests {
		if name, is := names[x.key]; is && x.upstream == upstream {
			x.key = name
		}
		next[x] = until
	}
	t.rests = next
}

// Settings are what a user can change, as it is now.
type Settings struct {
	Limits   []string        // by their names for Turn
	InFlight []InFlight      // where there is a bound
	Clients  []ClientSetting // of the configuration
	Pauses   []PauseSetting
	Changes  []string // that hold now, in words; pauses are not among them
}

// InFlight is how many requests of each key of an upstream may be in flight.
type InFlight struct {
	Upstream string `json:"upstream"`
	Most     int    `json:"most"`
}

// ClientSetting is a client's weight.
type ClientSetting struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
}

// PauseSetting is a pause by a user. Without a Key it is all of an upstream; without Until it goes on until
// it is ended.
type PauseSetting struct {
	Upstream string    `json:"upstream"`
	Key      string    `json:"key,omitempty"`
	Until    time.Time `json:"until,omitzero"`
}

// Settings returns what Turn can change.
func (p *Proxy) Settings() (s Settings) {
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	c := p.latest.Load().config
	parts := c.parts()
	for _, x := range parts {
		if *x.inFlight > 0 {
			s.InFlight = append(s.InFlight, InFlight{x.name, *x.inFlight})
		}
	}
	for _, l := range c.rates(parts) {
		if !slices.Contains(s.Limits, l.name()) {
			s.Limits = append(s.Limits, l.name())
		}
	}
	for _, k := range c.Clients.List {
		s.Clients = append(s.Clients, ClientSetting{k.Name, cmp.Or(k.Weight, 1)})
	}
	s.Clients = append(s.Clients, ClientSetting{otherClients, cmp.Or(c.Clients.Default.Weight, 1)})
	for x, until := range p.turns.rests {
		if until.IsZero() || time.Now().Before(until) {
			s.Pauses = append(s.Pauses, PauseSetting{x.upstream, x.key, until})
		}
	}
	slices.SortFunc(s.Pauses, func(a, b PauseSetting) int {
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Key, b.Key))
	})
	s.Changes = said(p.turns.made)
	return s
}

// String says who is paused, and until when.
func (s PauseSetting) String() string {
	t := daemon.Turn{Knob: daemon.Pause, Name: s.Upstream, Until: s.Until}
	if s.Key != "" {
		t.Name = "key " + s.Key + " at " + s.Upstream
	}
	return t.Words("")
}

// otherClients names the clients outside the list together.
const otherClients = "default"

// part is an upstream, or a target of one, with the settings that can be changed.
type part struct {
	name     string
	limits   []Limit
	keys     []Key
	inFlight *int
}

// parts has the settings in the memory of c: see own.
func (c *Config) parts() (all []part) {
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if len(u.Targets) == 0 {
			all = append(all, part{u.Name, u.Limits, u.Keys, &u.InFlight})
		}
		for j := range u.Targets {
			g := &u.Targets[j]
			all = append(all, part{u.Name + "/" + g.Name, g.Limits, g.Keys, &g.InFlight})
		}
	}
	return all
}

// own gives c memory of its own for what parts and rates return.
func (c *Config) own() {
	keys := func(all []Key) []Key {
		all = slices.Clone(all)
		for i := range all {
			all[i].Limits = slices.Clone(all[i].Limits)
		}
		return all
	}
	c.Upstreams = slices.Clone(c.Upstreams)
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		u.Limits, u.Keys, u.Targets = slices.Clone(u.Limits), keys(u.Keys), slices.Clone(u.Targets)
		for j := range u.Targets {
			g := &u.Targets[j]
			g.Limits, g.Keys = slices.Clone(g.Limits), keys(g.Keys)
		}
	}
	c.Clients.List = slices.Clone(c.Clients.List)
	for i := range c.Clients.List {
		c.Clients.List[i].Limits = slices.Clone(c.Clients.List[i].Limits)
	}
	c.Clients.Default.Limits = slices.Clone(c.Clients.Default.Limits)
}

// namedRate is a limit in a Config, by the words for it.
type namedRate struct {
	server string // the upstream; empty: a client's own
	sole   bool   // and it is the only one
	of     string // a key or a client
	only   string // the model, resource or route
	*rate.Limit
}

// place is where it stands: the shortest text that says so.
func (n *namedRate) place() string {
	if n.sole {
		return n.of
	}
	return n.whole()
}

// whole is place with the upstream.
func (n *namedRate) whole() string { return strings.TrimSpace(n.server + " " + n.of) }

func (n *namedRate) name() string { return n.nameAt(n.place()) }

func (n *namedRate) nameAt(place string) string {
	name := nameOf(*n.Limit)
	for _, before := range []string{n.only, place} {
		if before != "" {
			name = before + ": " + name
		}
	}
	return name
}

// is reports whether a user can mean n by a name.
func (n *namedRate) is(name string) bool {
	text := nameOf(*n.Limit)
	return name == n.name() || name == n.nameAt(n.whole()) || name == text || name == n.whole() ||
		name != "" && name == n.of || name == n.only+": "+text
}

// rates are all limits that can be changed.
func (c *Config) rates(parts []part) (all []namedRate) {
	for _, x := range parts {
		sole := len(parts) == 1
		for i := range x.limits {
			all = append(all, namedRate{x.name, sole, "", x.limits[i].Only, &x.limits[i].Limit})
		}
		for _, k := range x.keys {
			for i := range k.Limits {
				all = append(all, namedRate{x.name, sole, "key " + k.Name, "", &k.Limits[i]})
			}
		}
	}
	of := func(k *Client, name string) {
		for i := range k.Limits {
			all = append(all, namedRate{of: "client " + name, Limit: &k.Limits[i]})
		}
	}
	for i := range c.Clients.List {
		of(&c.Clients.List[i], c.Clients.List[i].Name)
	}
	of(&c.Clients.Default, otherClients)
	return all
}

// Turned returns c with a change. made is the change with the whole name of what it is for, and base has
// what a bound in flight of 0 stands for.
func (c Config) Turned(t daemon.Turn, base *Config) (next Config, made daemon.Turn, said string, err error) {
	c.own()
	switch t.Knob {
	case daemon.Limit:
		said, err = c.turnLimit(&t, base)
	case daemon.Concurrency:
		said, err = c.turnInFlight(&t, base)
	case daemon.Share:
		said, err = c.turnWeight(&t)
	default:
		err = fmt.Errorf("a proxy has no %s; expected pause, resume, limit, share or concurrency", t.Knob)
	}
	return c, t, said, err
}

// errShared says why a limit in a store cannot change.
var errShared = errors.New("the limits of --share belong to all its processes; expected a new start of all of them")

func (c *Config) turnLimit(t *daemon.Turn, base *Config) (said string, err error) {
	if c.Shared != nil {
		return "", errShared
	}
	if name, is := strings.CutPrefix(t.Name, "client "); is {
		if said, done, err := c.turnOwn(t, name, base); done || err != nil {
			return said, err
		}
	}
	found, err := c.meant(t.Name, t.Value)
	if err != nil {
		return "", err
	}
	was, whole := found[0].name(), found[0].nameAt(found[0].whole())
	for _, l := range found {
		if *l.Limit, err = l.Changed(t.Value); err != nil {
			return "", err
		}
	}
	t.Name = whole
	return fmt.Sprintf("limit %s is %s now", was, nameOf(*found[0].Limit)), nil
}

// NoLimit in place of a rate gives a client the limits of the configuration again, which may be none.
const NoLimit = "none"

// turnOwn gives a client a limit of its own, where it has none, or the limits of the configuration again. done is
// false if the change is one of a limit that is there.
func (c *Config) turnOwn(t *daemon.Turn, name string, base *Config) (said string, done bool, err error) {
	client, _ := c.clientNamed(name)
	if client == nil && t.Value != NoLimit {
		client = c.addClient(name)
	}
	switch {
	case client == nil && strings.Contains(name, ": "): // of one of its limits
		return "", false, nil
	case client == nil:
		_, err := c.clientNamed(name)
		return "", true, err
	case t.Value == NoLimit:
		client.Limits = nil
		if was, _ := base.clientNamed(name); was != nil {
			client.Limits = slices.Clone(was.Limits)
		}
		said = "client " + name + ": the limits of the configuration hold, which are "
		for i, l := range client.Limits {
			said += strings.Repeat(", ", min(i, 1)) + nameOf(l)
		}
		if len(client.Limits) == 0 {
			said += NoLimit
		}
		return said, true, nil
	case len(client.Limits) > 0:
		return "", false, nil
	}
	l, err := rate.ParseCounted(t.Value)
	if err != nil {
		return "", true, err
	}
	client.Limits = []rate.Limit{l}
	return fmt.Sprintf("client %s: its limit is %s now", name, nameOf(l)), true, nil
}

// clientNamed returns the settings of a client of the configuration, or an error that names all.
func (c *Config) clientNamed(name string) (*Client, error) {
	var names []string
	for i := range c.Clients.List {
		if c.Clients.List[i].Name == name {
			return &c.Clients.List[i], nil
		}
		names = append(names, c.Clients.List[i].Name)
	}
	if name == otherClients {
		return &c.Clients.Default, nil
	}
	return nil, fmt.Errorf("no client %q is in the configuration, expected %s", name,
		strings.Join(append(names, otherClients+" for each other one"), " or "))
}

// addClient adds a client that has no settings but the default ones: one that is known by its address, or by the
// field of Clients.Header. Others cannot be known: nil.
func (c *Config) addClient(name string) *Client {
	one := c.Clients.Default
	one.Name, one.Limits = name, nil
	if c.Clients.HasKeys() && !c.Open {
		return nil
	}
	if at, err := netip.ParseAddr(name); err == nil {
		one.Addresses = []netip.Prefix{netip.PrefixFrom(at, at.BitLen())}
	} else if c.Clients.Header == "" || strings.Contains(name, ": ") {
		return nil
	}
	c.Clients.List = append(c.Clients.List, one)
	return &c.Clients.List[len(c.Clients.List)-1]
}

// meant returns the limits that a user means: those of one name. Without a name, a client's own limits are
// not meant.
func (c *Config) meant(name, value string) (found []namedRate, err error) {
	all := c.rates(c.parts())
	var names []string
	for _, l := range all {
		names = append(names, l.name())
		if name == "" && l.server != "" || name != "" && l.is(name) {
			found = append(found, l)
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("no limit is in the configuration; expected a new start with --limit, or limits in the file")
	case len(found) == 0 && name == "":
		return nil, fmt.Errorf("%s for which limit? expected its name before it: %s", value, strings.Join(names, " or "))
	case len(found) == 0:
		return nil, fmt.Errorf("no limit %q, expected %s", name, strings.Join(names, " or "))
	}
	named := func(l namedRate) bool { return name == l.name() || name == l.nameAt(l.whole()) }
	if slices.ContainsFunc(found, named) { // and not only by a part of its name
		found = slices.DeleteFunc(found, func(l namedRate) bool { return !named(l) })
	}
	same := func(l namedRate) bool { return l.name() == found[0].name() }
	if !slices.ContainsFunc(found, func(l namedRate) bool { return !same(l) }) {
		return found, nil
	}
	to, err := rate.ParseCounted(value)
	if err != nil {
		return nil, err
	}
	names = nil
	for _, l := range found {
		names = append(names, l.name())
	}
	found = slices.DeleteFunc(found, func(l namedRate) bool { return l.Per != to.Per || l.Unit != to.Unit })
	if len(found) == 0 || slices.ContainsFunc(found, func(l namedRate) bool { return !same(l) }) {
		return nil, fmt.Errorf("%s may be for each of several limits; expected the name of one before it: %s", value,
			strings.Join(names, " or "))
	}
	return found, nil
}

func (c *Config) turnInFlight(t *daemon.Turn, base *Config) (said string, err error) {
	if c.Shared != nil {
		return "", errShared
	}
	n, err := strconv.Atoi(t.Value)
	if err != nil || n < 0 {
		return "", fmt.Errorf("%q requests in flight, expected 1 or more; or 0 for as many as at the start", t.Value)
	}
	parts := c.parts()
	var names []string
	for _, x := range parts {
		names = append(names, x.name)
	}
	at := slices.Index(names, t.Name)
	if t.Name == "" && len(parts) == 1 {
		at = 0
	}
	switch {
	case at < 0 && t.Name == "":
		return "", fmt.Errorf("%d in flight at which upstream? expected its name before it: %s", n, strings.Join(names, " or "))
	case at < 0:
		return "", fmt.Errorf("no upstream %q, expected %s", t.Name, strings.Join(names, " or "))
	}
	if n == 0 {
		for _, x := range base.parts() {
			if x.name == names[at] {
				n = *x.inFlight
			}
		}
	}
	ways := func() (all []route) {
		for i := range c.Upstreams {
			all = append(all, c.Upstreams[i].route())
		}
		return all
	}
	before := ways()
	if *parts[at].inFlight = n; !slices.Equal(before, ways()) { // the limits would begin anew
		return "", fmt.Errorf("%s has no limit of the configuration, so its bound in flight cannot come or go; "+
			"expected a new start", names[at])
	}
	t.Name = names[at]
	if n == 0 {
		return fmt.Sprintf("%s: any number of requests in flight", names[at]), nil
	}
	return fmt.Sprintf("%s: %d in flight at most for each key", names[at], n), nil
}

func (c *Config) turnWeight(t *daemon.Turn) (said string, err error) {
	weight, err := strconv.ParseFloat(t.Value, 64)
	if err != nil || !(weight > 0 && weight <= 1e6) {
		return "", fmt.Errorf("a weight of %q, expected above 0 and up to a million", t.Value)
	}
	to, err := c.clientNamed(t.Name)
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("client %s: weight %g is %g now", t.Name, cmp.Or(to.Weight, 1), weight)
	to.Weight = weight
	return said, nil
}
