package transport

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// Client is one of several who share a Transport: see Config.Client. The zero Client stands for nobody in particular.
type Client struct {
	// Name tells clients apart. It is shown in logs and errors, so it must not be a credential. All without a name are one client.
	Name string
	// Weight is its part of each limit, beside those of others who wait for it. If not above 0, 1.
	Weight float64
	// HeadStart is its priority. It may go ahead of others with as much as would have been its part in a time of that length, if it
	// has not used that part; and with any amount if nobody else was waiting that long ago. So interactive requests go before those
	// that come in bulk. Bulk never starves: a client that waits all the time gets its part by weight, with a head start or without,
	// so others lose no more than one span of that length. If not above 0, none.
	HeadStart time.Duration
	// MaxWaiting is the most of its requests that may wait for their turn; more fail at once with paceline.ErrFull. If zero, any number.
	MaxWaiting int
	// Limit makes its own limiter, for what it asks of all hosts together, through all Transports that have its Clients in common: of
	// requests, tokens, money (Config.Cost says what a request costs of that). It is called when the client's first request comes, and
	// again if it was forgotten; each limiter must be a new one. It is called under a lock and must not use the Transport. If it or what it
	// returns is nil, none.
	Limit func() limit.Limiter
}

// ScopeClient is the Partition.Scope of a client's own limit. No server knows of it.
const ScopeClient provider.Scope = "client"

// Clients are those who ask, for several Transports that have them in common: see Config.Clients. A client's own limit and its MaxWaiting
// are then of what it asks of all those Transports together. Made by NewClients. Safe for concurrent use.
type Clients struct {
	epoch time.Time
	group *paceline.Group // that all of the Transports have

	mu     sync.Mutex // taken after a Transport's, if both are
	config ClientsConfig
	byName map[string]*client
	idle   list.List               // of those without a leaf; those that have been so for longest are first
	owners map[limit.Limiter]*node // of limiters that can be compared, of partitions too
}

// ClientsConfig describes Clients. The zero value is ready.
type ClientsConfig struct {
	// Most bounds how many clients with limits of their own are remembered that ask for nothing. Beyond it those are forgotten that have
	// been idle for longest, and with them what still counts in their windows. If zero, 4096.
	Most int
	// Idle is how long one is remembered at least, and longer if what it has sent may count for longer. If zero, 1 h.
	Idle time.Duration
}

// NewClients returns Clients of whom none has asked for anything. The error names the field and value that make no sense.
func NewClients(c ClientsConfig) (*Clients, error) {
	if c.Most < 0 {
		return nil, fmt.Errorf("transport: Clients: Most %d is negative", c.Most)
	}
	if c.Idle < 0 {
		return nil, fmt.Errorf("transport: Clients: Idle %v is negative", c.Idle)
	}
	return newClients(c, paceline.GroupConfig{})
}

func newClients(c ClientsConfig, of paceline.GroupConfig) (*Clients, error) {
	j, err := paceline.NewGroup(of)
	if err != nil {
		return nil, err
	}
	c.Most, c.Idle = cmp.Or(c.Most, defaultMaxPartitions), cmp.Or(c.Idle, defaultIdle)
	return &Clients{epoch: time.Now(), group: j, config: c, byName: map[string]*client{}, owners: map[limit.Limiter]*node{}}, nil
}

// clientsOf returns the Clients of a Transport: those that it has in common with others, or its own.
func (c *Config) clientsOf() (*Clients, error) {
	switch {
	case c.Clients == nil:
		return newClients(c.clients(), paceline.GroupConfig{MaxWaiting: c.MaxWaiting})
	case c.Client == nil:
		return nil, errors.New("transport: Clients without Client, which says who asks")
	case c.MaxWaiting > 0:
		return nil, fmt.Errorf("transport: MaxWaiting %d with Clients: expected a bound of each, Client.MaxWaiting", c.MaxWaiting)
	}
	return c.Clients, nil
}

// clients is what a Transport's own Clients are like.
func (c *Config) clients() ClientsConfig { return ClientsConfig{Most: c.MaxPartitions, Idle: c.Idle} }

func (k *Clients) set(c ClientsConfig) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.config = c
}

// Change is Transport.Change for the limiters that Client.Limit has made.
func (k *Clients) Change(f func(now mono.Time, p Partition, l limit.Limiter)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var changed []*node
	for _, c := range k.byName {
		if c.own != nil {
			changed = append(changed, c.own)
		}
	}
	change(k.group, f, changed)
	for _, c := range k.byName {
		if c.own != nil {
			c.keep = longest(c.own.stack.Own())
		}
	}
}

// node returns that of a client's own limit; nil: it has none.
func (k *Clients) node(name string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.byName[name]; c != nil {
		return c.own
	}
	return nil
}

// client is a Client from whom a request has come. All but its name and share is guarded by the lock of the Clients.
type client struct {
	name   string
	share  *paceline.Class
	is     paceline.ClassConfig
	own    *node         // the limit of its own; nil: it has none
	keep   time.Duration // for how long what it has used may count
	leaves int
	used   time.Duration // when its last request came
	idle   *list.Element // its place among those without leaves; nil: it has some
}

func (c *Client) share() paceline.ClassConfig {
	return paceline.ClassConfig{Weight: c.Weight, HeadStart: max(c.HeadStart, 0), MaxWaiting: max(c.MaxWaiting, 0)}
}

// enter returns the client of a partition, and counts one more leaf of it. who is what is said of it now, t the Transport that the leaf is of,
// which makes its limit if it has none yet.
func (k *Clients) enter(p Partition, who *Client, t *Transport) (*client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.byName[p.Client]
	if c == nil {
		c = &client{name: p.Client, is: who.share()}
		if who.Limit != nil {
			if err := k.limitLocked(c, who, t); err != nil {
				return nil, err
			}
		}
		c.share = k.group.Class(c.is)
		k.byName[p.Client] = c
	}
	if c.own != nil {
		if err := t.fills(p, c.own.stack.Own()); err != nil {
			return nil, err
		}
	}
	if c.leaves++; c.idle != nil {
		k.idle.Remove(c.idle)
		c.idle = nil
	}
	return c, nil
}

// limitLocked makes the limit of a client's own.
func (k *Clients) limitLocked(c *client, who *Client, t *Transport) error {
	p := Partition{Scope: ScopeClient, Client: c.name}
	own := t.shareOf(p, who.Limit)
	if own == nil {
		return nil
	}
	k.checkOwnLocked(p, own)
	n, err := t.newNode(p, own)
	if err != nil {
		return err
	}
	c.own, c.keep = n, longest(own)
	k.ownLocked(n)
	return nil
}

// become changes a client to what is said of it now.
func (k *Clients) become(c *client, who *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is := who.share(); is != c.is {
		c.is = is
		c.share.Set(is)
	}
}

// weight is a client's part of each limit.
func (k *Clients) weight(c *client) float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.is.Weight
}

// leave takes away a leaf of a client, and forgets it without leaves, unless it has a limit in which something may still count.
func (k *Clients) leave(c *client, used time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.used = max(c.used, used)
	if c.leaves--; c.leaves > 0 {
		return
	}
	if c.own == nil {
		delete(k.byName, c.name)
		return
	}
	c.idle = k.idle.PushBack(c)
	now, over := time.Since(k.epoch), k.idle.Len() > k.config.Most
	const look = 8 // at most so many are looked at: a bounded price
	e := k.idle.Front()
	for range look {
		if e == nil {
			return
		}
		c := e.Value.(*client)
		e = e.Next()
		if over || now-c.used >= max(c.keep, k.config.Idle) {
			over = false
			k.idle.Remove(c.idle)
			k.disownLocked(c.own)
			delete(k.byName, c.name)
		}
	}
}

// checkOwn panics if a limiter belongs to another partition already, which would never hear of the requests of this one.
func (k *Clients) checkOwn(p Partition, own limit.Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkOwnLocked(p, own)
}

func (k *Clients) checkOwnLocked(p Partition, own limit.Limiter) {
	if canCompare(own) && k.owners[own] != nil {
		panicOwned(k.owners[own].partition, p)
	}
}

// panicOwned is for a limiter that was made for one partition and then again for another.
func panicOwned(one, other Partition) {
	if one.Scope == provider.All {
		panic("transport: Limit returns the Limiter that all requests share")
	}
	panic("transport: Limit returns one limiter for " + one.String() + " and for " + other.String())
}

// own and disown note whose limiter it is.
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

// unknownWindow is for how long what a client used is kept if its limiter cannot tell.
const unknownWindow = 24 * time.Hour

// longest returns the longest window of a limiter.
func longest(l limit.Limiter) (d time.Duration) {
	rates, ok := limit.Rates(l)
	if !ok {
		return unknownWindow
	}
	for _, r := range rates {
		d = max(d, r.Per)
	}
	return d
}

// uses returns what a cost uses of a node's limit, for clients to have their part of: how long the limit takes, at its rates, to let that much
// through, in the unit of which it takes longest. What is not known to count anything else counts requests.
func (n *node) uses(c limit.Cost) (long float64) {
	for u, each := range &n.takes {
		long = max(long, float64(c[u])*each)
	}
	return cmp.Or(max(long, 0), n.least)
}

// weigh finds out what a node's limiter counts. If anything is counted by the hour or in less, what is counted by the day is left out:
// a limit per day binds only at the end of the day, and would hide what binds before.
func (n *node) weigh(own limit.Limiter) {
	n.takes, n.least = takes{}, 1
	if own == nil {
		return
	}
	rates, _ := limit.Rates(own)
	n.money.Store(slices.ContainsFunc(rates, func(r limit.Rate) bool { return r.Unit == limit.Money }))
	short := slices.ContainsFunc(rates, func(r limit.Rate) bool { return r.Per <= time.Hour })
	for _, r := range rates {
		if each := r.Per.Seconds() / float64(max(r.N, 1)); r.Per > 0 && (r.Per <= time.Hour || !short) {
			n.takes[r.Unit] = max(n.takes[r.Unit], each)
			n.least = min(n.least, each)
		}
	}
}

// takes says, for each unit, in how many seconds a limit lets one through; 0: it does not count that unit.
type takes [len(limit.Cost{})]float64
