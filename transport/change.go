package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Change calls f for each limiter that Config.Limit and Client.Limit have made, under its lock. f
// may change it by SetLimit, SetWindow, or Varying.Change. p is the limiter's partition. Waiting
// requests go by the new limits at once, and stay in line.
//
// A limiter that Config.Limit makes meanwhile may or may not be among them. So Config.Limit must
// return the new limits before the call of Change. f must be quick and must not use the Transport.
// With Config.Clients, clients' limits are not among them: see Clients.Change.
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
	t.cold.change(t.at(), t, t.made, f)
	if t.config.Clients == nil {
		t.clients.Change(f)
	}
}

// change calls f for the limiters of nodes.
func change(j *paceline.Group, f func(now mono.Time, p Partition, l limit.Limiter), changed []*node) {
	update(j, func(now mono.Time) {
		for _, n := range changed {
			f(now, *n.in(), n.stack.Own())
			n.stack.Follow(now)
			n.weigh(n.stack.Own())
		}
	}, changed)
}

// With returns a Transport that is configured by c and shares all else with t: lanes, limits,
// pauses, known facts about servers. So a configuration changes while requests are under way.
// Requests of t end by the old configuration, and both together stay within the limits.
//
// Some settings stay as in t. c.Limiter must be nil. c.Keys may be others, if there were some and are some.
// Requests of t that wait go with c.Keys, too, and keep their places. A key goes on as it was if it has the same Name,
// or by Key.Was. If a key is gone, what it has sent still counts when the Name comes back. With Key.Away, it goes
// on as it was then. A key stays Ordered or not, in its Account and for its Target.
// c.Adaptive, c.Fill, c.MaxWaiting, c.Clients and c.Client must not change. c.Limit makes the
// limiters of new partitions alone. Change changes the existing limiters, which keep their Backoff
// and MaxPause.
func (t *Transport) With(c Config) (*Transport, error) {
	switch {
	case c.Limiter != nil:
		return nil, errors.New("transport: With a Limiter: the one there is goes on")
	case c.Fill != t.config.Fill || c.MaxWaiting != t.config.MaxWaiting:
		return nil, fmt.Errorf("transport: With Fill %d, MaxWaiting %d: they were %d and %d", c.Fill, c.MaxWaiting,
			t.config.Fill, t.config.MaxWaiting)
	case (c.Client == nil) != (t.config.Client == nil) || (c.Adaptive == nil) != (t.config.Adaptive == nil):
		return nil, errors.New("transport: With or without Client or Adaptive, where it was the other")
	}
	if c.Clients != t.config.Clients {
		return nil, errors.New("transport: With other Clients")
	}
	if !slices.EqualFunc(c.Targets, t.targets, func(g Target, was *target) bool { return g.Name == was.Name }) {
		return nil, errors.New("transport: With other Targets than there are")
	}
	if (c.Affinity.Session == nil) != (t.config.Affinity.Session == nil) {
		return nil, errors.New("transport: With or without Affinity, where it was the other")
	}
	next, err := New(c)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	keys, err := next.choice.Load().after(t.choice.Load())
	if err != nil {
		return nil, err
	}
	if c.Tokens == nil && next.config.Tokens != nil && t.config.Tokens != nil {
		next.config.Tokens = t.config.Tokens // what it has learned stays
	}
	next.state, next.slow = t.state, t.slow
	t.latest.Store(next)
	if c.Clients == nil {
		t.clients.set(next.config.clients())
	}
	t.cold.Bound(next.config.MaxFrozen)
	t.chooseLocked(keys, next)
	return next, t.useLocked(&next.config)
}

// useLocked changes the part that is used of each limit at hand, and the ramps.
func (t *Transport) useLocked(c *Config) (err error) {
	changed := slices.Collect(maps.Values(t.nodes))
	if t.shared != nil {
		changed = append(changed, t.shared)
	}
	update(t.group, func(now mono.Time) {
		for _, n := range changed {
			err = errors.Join(err, n.stack.SetUse(now, c.Use, c.Ramp))
		}
	}, changed)
	return err
}

// Retire takes a Transport out of the Clients that it shares. Its partitions are forgotten, now or
// when the last request there has ended. Requests under way, or later ones, go as before. Sent
// requests still count in the clients' own limits. A Transport without Config.Clients does not need
// Retire.
func (t *Transport) Retire() {
	t.retired.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked()
}

// drains is the state of Transport.Drain.
type drains struct {
	on    atomic.Bool
	begun chan struct{} // closed when on is true
	news  chan struct{} // capacity 1: something has ended since
}

// look wakes a Drain, if there is one.
func (d *drains) look() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// Drain stops sending, for good. Requests that wait, and later ones, fail with ErrDrained. If a waiting
// request was refused by the server before, its caller gets that answer. Requests in flight end as ever,
// and Drain returns when none is left, or with the cause of the end of ctx. A request is in flight until
// its answer; with UntilBody, Tokens or Charge.Answer until the answer's body has been read or closed.
// Transports that With made are drained together.
func (t *Transport) Drain(ctx context.Context) error {
	if !t.drains.on.Swap(true) {
		close(t.drains.begun)
		t.view.Drain(ErrDrained)
	}
	defer t.drains.look() // there may be another Drain
	for t.underway() > 0 {
		select {
		case <-t.drains.news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// underway counts the uses of partitions: requests, and attempts that are not settled.
func (t *Transport) underway() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leaves {
		n += l.active.Load()
	}
	return n
}

// sweepLocked forgets the partitions that no request needs.
func (t *Transport) sweepLocked() {
	for _, l := range t.leaves {
		if l.active.Load() == 0 {
			t.dropLocked(l)
		}
	}
}
