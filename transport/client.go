package transport

import (
	"cmp"
	"container/list"
	"slices"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
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
	// Limit makes its own limiter, for what it asks of all hosts together: of requests, tokens, money (Config.Cost says what a
	// request costs of that). It is called when the client's first request comes, and again if it was forgotten; each limiter must be a
	// new one. It is called under a lock and must not use the Transport. If it or what it returns is nil, none.
	Limit func() limit.Limiter
}

// ScopeClient is the Partition.Scope of a client's own limit. No server knows of it.
const ScopeClient quota.Scope = "client"

// client is a Client from whom a request has come.
type client struct {
	name  string
	share *paceline.Share
	// Guarded by the Transport's lock:
	is     paceline.ShareConfig
	own    *node         // the limit of its own; nil: it has none
	keep   time.Duration // for how long what it has used may count
	leaves int
	used   time.Duration // when its last request came
	idle   *list.Element // its place among those without leaves; nil: it has some
}

func (c *Client) share() paceline.ShareConfig {
	return paceline.ShareConfig{Weight: c.Weight, HeadStart: max(c.HeadStart, 0), MaxWaiting: max(c.MaxWaiting, 0)}
}

// clientLocked returns the client of a partition. who is what is said of it now.
func (t *Transport) clientLocked(p Partition, who *Client) (*client, error) {
	if c := t.clients[p.Client]; c != nil {
		return c, nil
	}
	c := &client{name: p.Client, is: who.share()}
	if who.Limit != nil {
		q := Partition{Scope: ScopeClient, Client: p.Client}
		if own := t.shareOf(q, who.Limit); own != nil {
			t.checkOwnLocked(q, own, nil)
			n, err := t.newNode(q, own)
			if err != nil {
				return nil, err
			}
			c.own, c.keep = n, longest(own)
			t.nodes[q] = n
			if canCompare(own) {
				t.owners[own] = n
			}
		}
	}
	c.share = t.junction.Share(c.is)
	t.clients[p.Client] = c
	return c, nil
}

// becomeLocked changes a client to what is said of it now.
func (c *client) becomeLocked(who *Client) {
	if is := who.share(); is != c.is {
		c.is = is
		c.share.Set(is)
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

// enterClientLocked counts one more leaf of a client.
func (t *Transport) enterClientLocked(c *client) {
	if c.leaves++; c.idle != nil {
		t.idle.Remove(c.idle)
		c.idle = nil
	}
}

// leaveClientLocked forgets a client without leaves, unless it has a limit in which something may still count.
func (t *Transport) leaveClientLocked(c *client, used time.Duration) {
	c.used = max(c.used, used)
	if c.leaves--; c.leaves > 0 {
		return
	}
	if c.own == nil {
		delete(t.clients, c.name)
		return
	}
	c.idle = t.idle.PushBack(c)
	over := t.idle.Len() > t.config.MaxPartitions
	const look = 8 // at most so many are looked at: a bounded price
	e := t.idle.Front()
	for range look {
		if e == nil {
			return
		}
		c := e.Value.(*client)
		e = e.Next()
		if over || t.now()-c.used >= max(c.keep, t.config.Idle) {
			over = false
			t.idle.Remove(c.idle)
			t.dropNodeLocked(c.own)
			delete(t.clients, c.name)
		}
	}
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
