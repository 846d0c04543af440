package transport

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit/mono"
)

// choice is the Keys of a configuration, and the ways that requests have with them. It does not change. With other
// Keys another one takes its place, and requests that wait go on there.
type choice struct {
	accounts []*account
	keys     []*key
	paths    []path
	keyless  bool // a path has no account
}

// errRewayed is the error of a lane whose requests go on in another one.
var errRewayed = errors.New("transport: the keys are others now")

// takeKeys takes the Keys of a configuration, and groups them by account.
func (c *choice) takeKeys(keys []Key, of *Config) error {
	names := map[string]bool{}
	for i, k := range keys {
		switch {
		case k.Name == "":
			return fmt.Errorf("transport: Keys[%d] has no Name", i)
		case names[k.Name]:
			return fmt.Errorf("transport: Keys[%d]: another has the Name %q, too", i, k.Name)
		case k.Apply == nil && !k.Away:
			return fmt.Errorf("transport: Keys[%d]: %q has no Apply", i, k.Name)
		case k.Gap < 0:
			return fmt.Errorf("transport: Keys[%d]: Gap %v is negative", i, k.Gap)
		case k.Gap > 0 && !k.Ordered:
			return fmt.Errorf("transport: Keys[%d]: %q has a Gap and is not Ordered", i, k.Name)
		case k.Gap > 0 && of.Fill > 0:
			return fmt.Errorf("transport: Keys[%d]: Fill %d: a Gap does not foresee", i, of.Fill)
		}
		names[k.Name] = true
		own := &key{Key: k, use: &use{in: keyring.Key(i)}}
		own.puts.Store(&k.Apply)
		if c.keys = append(c.keys, own); k.Away {
			continue
		}
		at := slices.IndexFunc(c.accounts, func(a *account) bool { return a.name == k.account() && a.target == k.Target })
		if at < 0 {
			at = len(c.accounts)
			c.accounts = append(c.accounts, &account{name: k.account(), target: k.Target})
		}
		a := c.accounts[at]
		if a.limit == nil {
			a.limit = k.Limit
		}
		a.ordered, a.alone, a.gap = a.ordered || k.Ordered, a.alone || k.Ordered && k.Gap == 0, max(a.gap, k.Gap)
		a.keys, own.account = append(a.keys, own), a
	}
	if len(keys) > 0 && of.Organization != nil {
		return errors.New("transport: Keys and Organization are set: whose a key is says its Account")
	}
	return nil
}

// key returns a key by its name; nil: there is none.
func (c *choice) key(name string) *key {
	if i := slices.IndexFunc(c.keys, func(k *key) bool { return k.Name == name }); i >= 0 {
		return c.keys[i]
	}
	return nil
}

// at returns a key by its place in the Ring; nil: it is gone.
func (c *choice) at(in keyring.Key) *key {
	if i := slices.IndexFunc(c.keys, func(k *key) bool { return k.in == in }); i >= 0 {
		return c.keys[i]
	}
	return nil
}

// isAway reports whether a partition is of a key that is Away.
func (c *choice) isAway(p Partition) bool {
	return p.Key != "" && slices.ContainsFunc(c.keys, func(k *key) bool { return k.Away && k.owns(p) })
}

// account is the name of the account of a key.
func (k *Key) account() string { return cmp.Or(k.Account, k.Name) }

// owner is whose limits are, as partitions name it: an account, and the only Target that it is for.
type owner struct{ name, target string }

func (k *Key) owner() owner { return owner{k.account(), k.Target} }

// owns reports whether the limits of a partition are those of a key.
func (k *Key) owns(p Partition) bool {
	return p.Key == k.account() && (k.Target == "" || k.Target == p.Target)
}

// formers finds which key of was each key of c goes on as; nil: it is new.
func (c *choice) formers(was *choice) (all []*key, err error) {
	all = make([]*key, len(c.keys))
	find := func(i int, name string) error {
		switch k, former := c.keys[i], was.key(name); {
		case former == nil && k.Was == "":
		case former == nil:
			return fmt.Errorf("transport: With the key %q, which was %q: there was no such key", k.Name, k.Was)
		case slices.Contains(all, former) && k.Was == "": // another key was this one, and k is new
		case slices.Contains(all, former):
			return fmt.Errorf("transport: With the key %q, which was %q, as another one was, too", k.Name, k.Was)
		default:
			all[i] = former
		}
		return nil
	}
	for i, k := range c.keys {
		if k.Was != "" {
			if err := find(i, k.Was); err != nil {
				return nil, err
			}
		}
	}
	for i, k := range c.keys {
		if k.Was == "" {
			_ = find(i, k.Name) // cannot fail without a Was
		}
	}
	return all, nil
}

// renamed finds the new names of accounts. The error names a key whose limits could not go on.
func (c *choice) renamed(was *choice, formers []*key) (names map[owner]string, err error) {
	names = map[owner]string{}
	for i, k := range c.keys {
		former := formers[i]
		if former == nil {
			continue
		}
		to, known := names[former.owner()]
		a, b := k.account, former.account
		switch {
		case former.Target != k.Target:
			return nil, fmt.Errorf("transport: With the key %q of the Target %q: it was of %q", k.Name, k.Target, former.Target)
		case known && to != k.Key.account():
			return nil, fmt.Errorf("transport: With the key %q of another Account than others of its Account", k.Name)
		case a != nil && b != nil && (a.ordered != b.ordered || a.alone != b.alone || a.gap != b.gap):
			return nil, fmt.Errorf("transport: With the key %q: it is Ordered, or has a Gap, as it was not", k.Name)
		}
		names[former.owner()] = k.Key.account()
	}
	for from, to := range names {
		if from.name == to {
			continue
		}
		for _, former := range was.keys {
			own := former.owner()
			if _, goes := names[own]; own == (owner{to, from.target}) && !goes {
				return nil, fmt.Errorf("transport: With %q in place of %q, which is gone: expected that one to be Away, by another Name", from.name, to)
			}
		}
		for other, name := range names {
			if name == to && other != from && other.target == from.target {
				return nil, fmt.Errorf("transport: With %q and %q in one Account, where they were in two", from.name, other.name)
			}
		}
	}
	return names, nil
}

// successor is a choice after another one.
type successor struct {
	*choice
	was     *choice
	formers []*key           // which key of was each of its keys goes on as; nil: it is new
	names   map[owner]string // the names of accounts of was
}

// after makes c the successor of a choice. It changes nothing.
func (c *choice) after(was *choice) (s successor, err error) {
	if c.keyless != was.keyless || len(c.keys) == 0 != (len(was.keys) == 0) {
		return s, errors.New("transport: With or without Keys, where it was the other")
	}
	s = successor{choice: c, was: was}
	if s.formers, err = c.formers(was); err == nil {
		s.names, err = c.renamed(was, s.formers)
	}
	return s, err
}

// same reports whether requests go with the same keys as before.
func (c *choice) same(was *choice) bool {
	return slices.EqualFunc(c.keys, was.keys, func(k, former *key) bool {
		return k.use == former.use && k.Name == former.Name && k.Key.account() == former.Key.account() && k.Away == former.Away
	})
}

// chooseLocked lets requests go with the keys of another choice, also those that wait. next is the Transport of the
// new configuration, which has the state of t.
func (t *Transport) chooseLocked(c successor, next *Transport) {
	for i, k := range c.keys {
		if former := c.formers[i]; former != nil {
			if k.use = former.use; !k.Away { // an attempt that begins just now has the credential of before
				k.puts.Store(&k.Apply)
			}
		} else {
			k.in = t.ring.Add()
		}
	}
	for i, p := range c.paths {
		if p.target != nil {
			c.paths[i].target = t.targets[p.target.in] // these stay
		}
	}
	t.renameLocked(c.names)
	t.choice.Store(c.choice)
	if c.same(c.was) {
		return
	}
	next.rewayLocked(c)
	for _, a := range c.accounts {
		t.closeAccountLocked(a)
	}
	for i, k := range c.keys {
		if former := c.formers[i]; !k.Away && (former == nil || former.Away) {
			t.keysServeLocked(k.Target)
		}
	}
}

// renameLocked gives limits the new names of their accounts.
func (t *Transport) renameLocked(names map[owner]string) {
	maps.DeleteFunc(names, func(o owner, name string) bool { return o.name == name })
	if len(names) == 0 {
		return
	}
	of := func(p Partition) (q Partition, ok bool) {
		for _, o := range [...]owner{{p.Key, p.Target}, {p.Key, ""}} {
			if name, ok := names[o]; ok && p.Key != "" {
				p.Key = name
				return p, true
			}
		}
		return p, false
	}
	var all []*node
	rename := func(n *node, q Partition) {
		n.is.Store(&q)
		for _, m := range n.limits() {
			t.group.Rename(m, q.whose())
		}
	}
	for p, n := range t.nodes {
		if q, ok := of(p); ok {
			delete(t.nodes, p)
			rename(n, q)
			all = append(all, n)
		}
	}
	for _, n := range all {
		t.nodes[*n.in()] = n
	}
	t.cold.Rename(func(name string, m *keyring.FrozenMemory[remembered]) string {
		q, ok := of(unpacked(name))
		if ok && m.Whole != nil && m.Whole.node != nil {
			rename(m.Whole.node, q)
		}
		return q.packed()
	})
	rests := map[string]mono.Time{}
	for key, until := range t.rests.until {
		for o, name := range names {
			if o.name == key {
				key = name
				break
			}
		}
		rests[key] = until
	}
	t.rests.until = rests
}

// rewayLocked gives each leaf its ways by the latest choice. Requests that wait go on there, in their places. What was
// sent by a way that is gone counts where it did.
func (t *Transport) rewayLocked(c successor) {
	var all, moved []*leaf
	for l := t.recent.root.prev; l != &t.recent.root; l = l.prev { // they keep their order
		all = append(all, l)
	}
	for _, l := range all {
		to, err := t.newLeafLocked(l.partition, nil, false)
		if err != nil {
			t.log.Error("requests go on with the keys of before", "partition", l.partition, "err", err)
			continue
		}
		to.active.Add(1) // until the last request from there has ended
		to.used = l.used
		t.recent.remove(l)
		t.recent.front(to)
		l.rewayed = true
		l.moved.Store(to)
		moved = append(moved, l)
	}
	t.countLikeLocked(c) // before anything goes
	for _, l := range moved {
		l.lane.Drain(errRewayed)
		for lane := range l.asides {
			lane.Drain(errRewayed)
		}
		l.quietLocked()
	}
}

// countLikeLocked makes what keys have sent count in the limits of new keys, too: see Key.Like.
func (t *Transport) countLikeLocked(c successor) {
	for i, k := range c.keys {
		like := c.key(k.Like)
		if like == nil || c.formers[i] != nil {
			continue
		}
		of := func(p Partition) (q Partition, ok bool) {
			q = p
			q.Key = k.Key.account()
			return q, like.owns(p)
		}
		count := func(from *node, q Partition) {
			to := t.nodes[q]
			if to == nil || from.limit == nil {
				return
			}
			update(t.group, func(now mono.Time) {
				t.group.Join(now, from.limits(), to.limit)
				if own, fresh := from.stack.Own(), to.stack.Own(); own != nil && fresh != nil {
					keyring.Copy(now, t.group.Number, own, fresh)
				}
			}, []*node{from, to})
		}
		for p, from := range t.nodes {
			if q, ok := of(p); ok {
				count(from, q)
			}
		}
		t.cold.Copy(t.at(), func(name string, m *keyring.FrozenMemory[remembered]) (string, bool) {
			q, ok := of(unpacked(name))
			if ok && m.Whole != nil && m.Whole.node != nil {
				count(m.Whole.node, q)
			}
			return q.packed(), ok && m.Whole == nil && t.nodes[q] == nil
		})
	}
}

// joined reports whether the key of a leaf counts elsewhere by now, and with it all that was sent from there.
func (l *leaf) joined() bool { return l.moved.Load() != nil && !l.rewayed }

func (l *leaf) asideEnds(lane *paceline.Lane) {
	t := l.server.t
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(l.asides, lane)
}

// aside notes a lane that some request of a leaf has for itself.
func (l *leaf) aside(lane *paceline.Lane) {
	t := l.server.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.asides == nil {
		l.asides = map[*paceline.Lane]struct{}{}
	}
	l.asides[lane] = struct{}{}
}
