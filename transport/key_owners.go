package transport

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Only an answer shows to which organization a key belongs. Until its first answer, a key is a
// newcomer, if its provider lets keys of one organization share limits and another key was at the
// host before. It counts in the limits of that key. The answer confirms that, or the newcomer moves
// (decision 26).

// mostAccounts is the most accounts to which a newcomer is taken to belong at once.
const mostAccounts = 8

// owners is what is known of the keys of one host. The Transport's lock guards it.
type owners struct {
	*keyring.Owners
	newcomers map[string]*newcomer
}

// ownersLocked returns what is known of the keys of a host; nil: there are too many hosts.
func (t *Transport) ownersLocked(host string) *owners {
	o := t.owners[host]
	if o == nil && len(t.owners) < t.mostKeys() {
		o = &owners{newcomers: map[string]*newcomer{}, Owners: keyring.NewOwners(keyring.OwnersConfig{
			Most: mostAccounts, MaxKeys: t.mostKeys(), FirstNames: true})}
		t.owners[strings.Clone(host)] = o
	}
	return o
}

// meetLocked is keyring.Owners.Meet. It logs once that the owners of some keys are not remembered.
func (t *Transport) meetLocked(o *owners, key string) bool {
	met := o.Meet(key)
	if !met && !t.crowded.Swap(true) {
		t.log.Warn("more keys than MaxPartitions and MaxFrozen allow to remember: each further one counts by itself",
			"keys", t.mostKeys())
	}
	return met
}

// mostKeys is of how many keys the owner is remembered, at some 250 bytes each. It takes a quarter of
// MaxFrozen, besides. A key beyond that counts by itself until its answer names the owner.
func (t *Transport) mostKeys() int {
	return max(t.config.MaxPartitions, int(min(t.config.MaxFrozen/1024, math.MaxInt32)))
}

// belongs takes in what an answer says of the owner of its key: an organization, or nothing.
func (t *Transport) belongs(l *leaf, resp *http.Response) {
	k := l.server.known.Load()
	if l.belongs.Load() || k == nil || k.row.Organization == "" || len(t.targets) > 0 {
		return
	}
	host, key := l.partition.Host, l.partition.Key
	name := Partition{Host: host, Key: resp.Header.Get(k.row.Organization)}.bounded().own().Key
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.ownersLocked(host)
	if o == nil {
		return
	}
	met := name != "" && t.meetLocked(o, key)
	switch {
	case met:
		if l.newcomer == nil { // if it was not met, it counted by itself
			o.Alone(key)
		}
		t.followLocked(o, host, o.Named(key, name))
	case name == "" && resp.StatusCode < 500:
		t.followLocked(o, host, o.Unnamed(key, resp.StatusCode < 300))
	}
	// Not earlier: other answers of the key, at the same time, must not be settled before its owner
	// is known.
	l.belongs.Store(name != "" && (!met || o.Known(key) != nil))
}

// followLocked makes keys count where they belong by now.
func (t *Transport) followLocked(o *owners, host string, moves []string) {
	for len(moves) > 0 {
		key := moves[0]
		moves = moves[1:]
		g, in, known := o.newcomers[key], o.CountsIn(key), o.Known(key)
		switch {
		case known == nil && !g.shares():
		case known != nil || len(in) == 1 && in[0].Home != g.home:
			t.moveLocked(o, Partition{Host: host, Key: key}, in[0].Home)
			if in[0].Home != key {
				t.log.Info("keys share limits", "partition", Partition{Host: host, Key: key}, "with", in[0].Home,
					"organization", in[0].Name)
			}
		case in[0].Home != g.home:
			o.Alone(key)
			moves = append(moves, key)
		case len(in) > 1: // it may belong elsewhere as well
			t.suspectLocked(g, in[1:])
		}
	}
}

// moveLocked takes a key to the limits of a key, which may be itself: its requests that wait go
// there, and what it sent counts there. Of a newcomer in another key's limits that is its own requests.
// For any other key it is the usage of its limits.
func (t *Transport) moveLocked(o *owners, key Partition, home string) {
	g := o.newcomers[key.Key]
	delete(o.newcomers, key.Key)
	from := t.departLocked(key, home)
	var changed []*paceline.Limit
	for _, l := range from {
		to := l.moved.Load()
		changed = slices.Concat(changed, l.limits(&l.way), to.limits(&to.way))
	}
	if g != nil {
		changed = append(changed, g.limit)
	}
	var carried []*node
	t.group.Update(func(now mono.Time) {
		if g != nil {
			g.door.single, g.door.closed = false, g.shares() || home != key.Key
		}
		for _, l := range from {
			for i, n := range l.moved.Load().nodes[:l.count] {
				switch old := l.nodes[i]; {
				case old == n || slices.Contains(carried, old):
				case l.newcomer.shares():
					l.join(now, n)
					for _, one := range l.past {
						keyring.Count(now, t.group.Number(), n.stack, one.Cost, limit.Unknown)
					}
				default:
					t.group.Join(now, []*paceline.Limit{old.limit}, n.limit)
					keyring.Carry(now, t.group.Number, old.stack.Own(), n.stack.Own())
					old.stack.Close()
					carried = append(carried, old)
				}
			}
		}
	}, changed...)
	for _, l := range from {
		l.quietLocked()
	}
}

// departLocked takes the leaves of a key out of use, and returns them. Each has moved to one of the
// limits of home.
func (t *Transport) departLocked(key Partition, home string) (from []*leaf) {
	for _, l := range t.leavesLocked(key) {
		if !l.newcomer.shares() && home == key.Key {
			continue
		}
		from = append(from, l)
		t.recent.remove(l)
		delete(t.leaves, l.partition) // the next leaf of this partition has other limits
		to, err := t.leafLocked(l.partition, home)
		if err != nil {
			t.log.Error("what a key has sent is not counted", "partition", l.partition, "err", err)
			to = &leaf{partition: l.partition, way: l.way}
		}
		to.active.Add(1) // until the last request from there has ended
		l.moved.Store(to)
	}
	return from
}

// leavesLocked returns the leaves of a key at a host, in an order that does not change.
func (t *Transport) leavesLocked(key Partition) (all []*leaf) {
	for p, l := range t.leaves {
		if p.Host == key.Host && p.Key == key.Key {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *leaf) int { return strings.Compare(a.partition.packed(), b.partition.packed()) })
	return all
}
