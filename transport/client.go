package transport

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// Client is one of several clients that share a Transport: see Config.Client. The zero Client has
// no name.
type Client struct {
	// Name distinguishes clients. Logs and errors show it, so it must not be a credential. All
	// clients without a name are one client.
	Name string
	// CountsAs is the Name of the client in whose own limit the requests count, too; Limit is then
	// that client's. So one client can have two lines, for instance one for requests in bulk, with a
	// Weight and a HeadStart each. A client with CountsAs has no limit of its own, and none counts as
	// it. If empty, none.
	CountsAs string
	// Weight is the client's part of each limit, relative to other waiting clients. If not above 0,
	// 1.
	Weight float64
	// HeadStart is the client's priority: its requests go as if they had come that much earlier. With
	// 10 s, they go before each request of others that has waited for less than 10 s. A client that
	// always has requests waiting uses its head start up. After its part of 10 s it gets its part by
	// Weight, as without one. So others lose 10 s at most, and never starve. If not above 0, none.
	HeadStart time.Duration
	// Reserve is the part of each limit that the client leaves free, from 0 to 1, so that others need
	// not wait for what it used: for requests in bulk beside interactive ones. It is less where a
	// client that leaves less waits: see paceline.ClassConfig. Its own Limit is used whole. If not
	// above 0, none.
	Reserve float64
	// MaxWaiting is the most requests of the client that may wait for their turn. Further ones fail
	// at once with paceline.ErrFull. If zero, there is no bound.
	MaxWaiting int
	// Limit makes the client's own limiter, for its requests to all hosts, through all Transports
	// with the same Clients. It may count requests, tokens or money; Config.Cost sets what a
	// request costs of these. It is called at the client's first request, and again if the client
	// was forgotten. Each limiter must be new. It is called under a lock and must not use the
	// Transport. If it is nil or returns nil, there is no limit.
	Limit func() limit.Limiter
}

// ScopeClient is the Partition.Scope of a client's own limit. Servers do not know it.
const ScopeClient provider.Scope = "client"

// Clients are the clients that several Transports have in common: see Config.Clients. A client's
// own limit and its MaxWaiting apply to its requests through all those Transports together.
// NewClients makes Clients. Safe for concurrent use.
type Clients struct {
	epoch time.Time
	group *paceline.Group // the Group of all these Transports

	mu     sync.Mutex // taken after a Transport's lock, if both are
	config ClientsConfig
	byName map[string]*client
	idle   list.List               // clients without a leaf, longest idle first
	cold   cold                    // what frozen clients remember
	owners map[limit.Limiter]*node // owners of comparable limiters, those of partitions too
}

// ClientsConfig describes Clients. The zero value is ready.
type ClientsConfig struct {
	// Most bounds how many idle clients with their own limits are at hand. Beyond it, the clients
	// idle for longest are frozen, as partitions are: see Config.MaxFrozen. If zero, 4096.
	Most int
	// Idle is how long an idle client is at hand before it is frozen. If zero, 1 h.
	Idle time.Duration
	// MaxFrozen is how many bytes frozen clients may take. Beyond it, a request of a new client with
	// its own limit fails with ErrFull. If zero, 64 MiB.
	MaxFrozen int64
}

// NewClients returns Clients that have seen no request. The error names the field and the value
// that make no sense.
func NewClients(c ClientsConfig) (*Clients, error) {
	if c.Most < 0 {
		return nil, fmt.Errorf("transport: Clients: Most %d is negative", c.Most)
	}
	if c.Idle < 0 {
		return nil, fmt.Errorf("transport: Clients: Idle %v is negative", c.Idle)
	}
	if c.MaxFrozen < 0 {
		return nil, fmt.Errorf("transport: Clients: MaxFrozen %d is negative", c.MaxFrozen)
	}
	return newClients(c, paceline.GroupConfig{})
}

func newClients(c ClientsConfig, of paceline.GroupConfig) (*Clients, error) {
	j, err := paceline.NewGroup(of)
	if err != nil {
		return nil, err
	}
	c.Most, c.Idle = cmp.Or(c.Most, defaultMaxPartitions), cmp.Or(c.Idle, defaultIdle)
	c.MaxFrozen = cmp.Or(c.MaxFrozen, defaultMaxFrozen)
	return &Clients{epoch: time.Now(), group: j, config: c, byName: map[string]*client{},
		owners: map[limit.Limiter]*node{}, cold: newCold(c.MaxFrozen)}, nil
}

// clientsOf returns the Clients that a Transport shares, or its own.
func (c *Config) clientsOf() (*Clients, error) {
	switch {
	case c.Clients == nil:
		return newClients(c.clients(), paceline.GroupConfig{MaxWaiting: c.MaxWaiting})
	case c.Client == nil:
		return nil, errors.New("transport: Clients without Client, which says who asks")
	case c.MaxWaiting > 0:
		return nil, fmt.Errorf("transport: MaxWaiting %d with Clients: expected a bound of each, Client.MaxWaiting",
			c.MaxWaiting)
	}
	return c.Clients, nil
}

// clients is the configuration of a Transport's own Clients.
func (c *Config) clients() ClientsConfig {
	return ClientsConfig{Most: c.MaxPartitions, Idle: c.Idle, MaxFrozen: c.MaxFrozen}
}

func (k *Clients) set(c ClientsConfig) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.config = c
	k.cold.Bound(c.MaxFrozen)
}

// Change is Transport.Change for the limiters that Client.Limit has made.
func (k *Clients) Change(f func(now mono.Time, p Partition, l limit.Limiter)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var changed []*node
	for _, c := range k.byName {
		if c.own != nil && c.of == nil {
			changed = append(changed, c.own)
		}
	}
	change(k.group, f, changed)
	k.cold.change(mono.Of(k.group.Time(0), time.Now()), nil, nil, f)
}

// lift returns the node of a client's own limit; nil: it has none at hand. It then ends a pause
// that is frozen, and reports whether there was one.
func (k *Clients) lift(t *Transport, p Partition) (n *node, lifted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.byName[p.Client]; c != nil {
		return c.own, false
	}
	return nil, k.cold.lift(t, p, nil)
}

// client is a Client with at least one request. The lock of the Clients guards all but name and
// share.
type client struct {
	name   string
	share  *paceline.Class
	is     paceline.ClassConfig
	own    *node                // the client's own limit; nil: none
	of     *client              // the client whose limit own is; nil: itself
	made   func() limit.Limiter // makes that limit again
	leaves int
	used   time.Duration // when its last request came
	idle   *list.Element // its place among the idle; nil: it has leaves
}

func (c *Client) share() paceline.ClassConfig {
	return paceline.ClassConfig{Weight: c.Weight, HeadStart: max(c.HeadStart, 0), MaxWaiting: max(c.MaxWaiting, 0),
		Reserve: c.Reserve}
}

// enter returns the client of a partition, and counts one more leaf for it. who is its current
// description. t is the leaf's Transport, which makes the client's limit if it has none yet.
func (k *Clients) enter(p Partition, who *Client, t *Transport) (*client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.enterLocked(p, who, t)
}

func (k *Clients) enterLocked(p Partition, who *Client, t *Transport) (*client, error) {
	c := k.byName[p.Client]
	if c == nil {
		c = &client{name: p.Client, is: who.share()}
		switch {
		case who.CountsAs != "" && who.CountsAs != who.Name:
			first := Client{Name: who.CountsAs, Limit: who.Limit} // its lane, once there is one, knows the rest
			of, err := k.enterLocked(Partition{Client: strings.Clone(who.CountsAs)}, &first, t)
			if err != nil {
				return nil, err
			}
			c.own, c.of = of.own, of
		case who.Limit != nil:
			if err := k.limitLocked(c, who, t); err != nil {
				return nil, err
			}
		}
		c.share = k.group.Class(c.is)
		k.byName[p.Client] = c
	}
	if c.own != nil && t.config.Fill > 0 {
		var err error
		update(k.group, func(mono.Time) { err = t.fills(p, c.own.stack.Own()) }, nil) // requests are settled meanwhile
		if err != nil {
			return nil, err
		}
	}
	if c.leaves++; c.idle != nil {
		k.idle.Remove(c.idle)
		c.idle = nil
	}
	return c, nil
}

// limitLocked makes the client's own limit, or thaws it.
func (k *Clients) limitLocked(c *client, who *Client, t *Transport) error {
	p := Partition{Scope: ScopeClient, Client: c.name}
	limits := who.Limit // who is a part of the call
	c.made = func() limit.Limiter { return t.shareOf(p, limits) }
	_, full := k.cold.Full(t.at())
	n, err := k.cold.bring(t, p, full && k.idle.Len() >= k.config.Most, func() (limit.Limiter, error) {
		own := c.made()
		if own == nil {
			return nil, errNoLimit
		}
		k.checkOwnLocked(p, own)
		return own, nil
	})
	switch {
	case err == errNoLimit:
		return nil
	case err != nil:
		return err
	}
	c.own = n
	k.ownLocked(n)
	return nil
}

var errNoLimit = errors.New("transport: the client has no limit")

// become applies a client's current description.
func (k *Clients) become(c *client, who *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is := who.share(); is != c.is {
		c.is = is
		c.share.Set(is)
	}
}

// weight returns a client's part of each limit.
func (k *Clients) weight(c *client) float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.is.Weight
}

// leave removes a leaf of a client. A client without leaves and without its own limit is forgotten.
// One with a limit is at hand for a while, and then frozen.
func (k *Clients) leave(c *client, used time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaveLocked(c, used)
}

func (k *Clients) leaveLocked(c *client, used time.Duration) {
	c.used = max(c.used, used)
	if c.leaves--; c.leaves > 0 {
		return
	}
	if c.of != nil {
		delete(k.byName, c.name)
		k.leaveLocked(c.of, used)
		return
	}
	if c.own == nil {
		delete(k.byName, c.name)
		return
	}
	c.idle = k.idle.PushBack(c)
	now, over := time.Since(k.epoch), k.idle.Len() > k.config.Most
	const look = 8 // the most that are examined: a bounded price
	for range look {
		e := k.idle.Front()
		if e == nil {
			return
		}
		c := e.Value.(*client)
		if !over && now-c.used < k.config.Idle {
			return // the others were used later
		}
		over = false
		k.idle.Remove(c.idle)
		k.disownLocked(c.own)
		k.cold.put(c.own, c.made)
		delete(k.byName, c.name)
	}
}

// checkNew returns an error if the Limiter of a new Transport is that of another one with these Clients.
func (k *Clients) checkNew(own limit.Limiter) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if canCompare(own) && k.owners[own] != nil {
		return errors.New("transport: Limiter: another Transport with these Clients has it; expected: one Transport for each Limiter")
	}
	return nil
}

// checkOwn panics if a limiter already belongs to another partition, since it would miss this
// partition's requests.
func (k *Clients) checkOwn(p Partition, own limit.Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkOwnLocked(p, own)
}

func (k *Clients) checkOwnLocked(p Partition, own limit.Limiter) {
	if canCompare(own) && k.owners[own] != nil {
		panicOwned(*k.owners[own].in(), p)
	}
}

// panicOwned panics about a limiter that was made for one partition and again for another.
func panicOwned(one, other Partition) {
	if one.Scope == provider.All {
		panic("transport: Limit returns the Limiter that all requests share")
	}
	panic("transport: Limit returns one limiter for " + one.String() + " and for " + other.String())
}

// own and disown record the owner of a limiter.
func (k *Clients) own(n *node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ownLocked(n)
}

func (k *Clients) ownLocked(n *node) {
	if own := n.stack.Own(); canCompare(own) {
		k.owners[own] = n
	}
}

func (k *Clients) disown(n *node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.disownLocked(n)
}

func (k *Clients) disownLocked(n *node) {
	if own := n.stack.Own(); canCompare(own) {
		delete(k.owners, own)
	}
}

// uses returns what a cost uses of a node's limit, for the weights of clients. It is the time in
// which the limit lets that much through at its rates, for the unit that takes longest. A limit
// without known units counts requests.
func (n *node) uses(c limit.Cost) (long float64) {
	for u, each := range &n.takes {
		long = max(long, float64(c[u])*each)
	}
	return cmp.Or(max(long, 0), n.least)
}

// weigh finds the units that a node's limiter counts. If any rule is per hour or shorter, rules per
// day are left out. A limit per day binds only at the end of the day, and would hide the limit that
// binds before.
func (n *node) weigh(own limit.Limiter) {
	n.takes, n.least = takes{}, 1
	if own == nil {
		return
	}
	rates, _ := limit.Rates(own)
	n.money.Store(slices.ContainsFunc(rates, func(r limit.Rule) bool { return r.Unit == limit.Money }))
	short := slices.ContainsFunc(rates, func(r limit.Rule) bool { return r.Per <= time.Hour })
	for _, r := range rates {
		if each := r.Per.Seconds() / float64(max(r.N, 1)); r.Per > 0 && (r.Per <= time.Hour || !short) {
			n.takes[r.Unit] = max(n.takes[r.Unit], each)
			n.least = min(n.least, each)
		}
	}
}

// takes is, for each unit, in how many seconds a limit lets one through; 0: the unit is not
// counted.
type takes [len(limit.Cost{})]float64
