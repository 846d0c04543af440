package transport

import (
	"errors"
	"fmt"
	"slices"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Change calls f for each limiter that Config.Limit and Client.Limit have made, where it may be changed: by SetLimit, SetWindow, or Varying.Change. p is for whom
// it was made. Whoever waits goes by the new limits at once, and stays in line. A limiter that Config.Limit makes meanwhile may or may not be
// among them, so Config.Limit is to go by the new limits before Change is called. f must be quick and must not use the Transport. With
// Config.Clients, those of clients are not among them: see Clients.Change.
func (t *Transport) Change(f func(now mono.Time, p Partition, l limit.Limiter)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var changed []*node
	for _, n := range t.nodes {
		if n.stack.Own() != nil {
			changed = append(changed, n)
		}
	}
	change(t.group, f, changed)
	if t.config.Clients == nil {
		t.clients.Change(f)
	}
}

// change calls f for the limiters of nodes.
func change(j *paceline.Group, f func(now mono.Time, p Partition, l limit.Limiter), changed []*node) {
	update(j, func(now mono.Time) {
		for _, n := range changed {
			f(now, n.partition, n.stack.Own())
			n.stack.Follow(now)
			n.weigh(n.stack.Own())
		}
	}, changed)
}

// With returns a Transport that sends as c says and has all else in common with t: lines, limits, pauses, what is known of servers. So a
// configuration is changed while requests are under way: those of t end as c before had it, and nobody is sent more than the limits allow
// by both together.
//
// Some things stay as t has them: c.Limiter must be nil, c.Keys must have the same names, and c.Adaptive, c.Fill, c.MaxWaiting, c.Clients and
// c.Client must be as they were. c.Limit makes the limiters of new partitions alone; those that exist are changed by Change, and keep
// the Backoff and the MaxPause that they have.
func (t *Transport) With(c Config) (*Transport, error) {
	switch {
	case c.Limiter != nil:
		return nil, errors.New("transport: With a Limiter: the one there is goes on")
	case c.Fill != t.config.Fill || c.MaxWaiting != t.config.MaxWaiting:
		return nil, fmt.Errorf("transport: With Fill %d, MaxWaiting %d: they were %d and %d", c.Fill, c.MaxWaiting, t.config.Fill, t.config.MaxWaiting)
	case (c.Client == nil) != (t.config.Client == nil) || (c.Adaptive == nil) != (t.config.Adaptive == nil):
		return nil, errors.New("transport: With or without Client or Adaptive, where it was the other")
	}
	if c.Clients != t.config.Clients {
		return nil, errors.New("transport: With other Clients")
	}
	if !slices.EqualFunc(c.Keys, t.keys, func(k Key, was *key) bool { return k.Name == was.Name }) {
		return nil, errors.New("transport: With other Keys than there are")
	}
	next, err := New(c)
	if err != nil {
		return nil, err
	}
	next.state, next.slow = t.state, t.slow
	t.latest.Store(next)
	if c.Clients == nil {
		t.clients.set(next.config.clients())
	}
	return next, nil
}

// Retire takes a Transport out of the Clients that it has in common with others: what is remembered of its partitions is forgotten, now or
// when the last request there has ended. Requests that are under way, or come all the same, go as they would have. What clients have sent
// still counts in their own limits. A Transport without Config.Clients needs no such end.
func (t *Transport) Retire() {
	t.retired.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked()
}

// sweepLocked forgets what no request needs.
func (t *Transport) sweepLocked() {
	for _, l := range t.leaves {
		if l.active.Load() == 0 {
			t.dropLocked(l)
		}
	}
}
