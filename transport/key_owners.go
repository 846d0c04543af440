package transport

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
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

// tooManyKeys logs once that the owners of some keys are not remembered.
func (t *Transport) tooManyKeys() {
	if !t.crowded.Swap(true) {
		t.log.Warn("more keys than MaxPartitions and MaxFrozen allow to remember: each further one counts by itself",
			"keys", t.mostKeys())
	}
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
	host, key, home := l.partition.Host, l.partition.Key, l.partition.Key
	name := Partition{Host: host, Key: resp.Header.Get(k.row.Organization)}.bounded().own().Key
	t.mu.Lock()
	o := t.owners[host]
	if name != "" {
		o = t.ownersLocked(host)
	}
	named := name != ""
	if o != nil {
		switch _, known := o.Known(key); {
		case name == "" && resp.StatusCode < 500:
			t.followLocked(o, host, o.Unnamed(key, resp.StatusCode < 300))
		case name == "":
		case !o.Meet(key):
			t.tooManyKeys()
		default:
			if known { // if it was not met, it counted by itself
				o.Alone(key)
			}
			t.followLocked(o, host, o.Named(key, name))
			_, named = o.Known(key)
		}
		home = o.Home(key)
	}
	if t.mu.Unlock(); !named {
		return
	}
	// Not earlier: other answers of the key, at the same time, must not be settled before its owner
	// is known.
	if l.belongs.Store(true); home != key {
		t.log.Info("keys share limits", "partition", Partition{Host: host, Key: key}, "with", home, "organization", name)
	}
}

// followLocked makes keys count where they belong by now.
func (t *Transport) followLocked(o *owners, host string, moves []string) {
	for len(moves) > 0 {
		key := moves[0]
		moves = moves[1:]
		g, in := o.newcomers[key], o.CountsIn(key)
		switch _, known := o.Known(key); {
		case !known && !g.shares():
		case known || len(in) == 1 && in[0].Home != g.home:
			t.moveLocked(o, Partition{Host: host, Key: key}, in[0].Home)
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
	var changed, carried []*node
	for _, l := range from {
		changed = slices.Concat(changed, l.nodes[:l.count], l.moved.Load().nodes[:l.count])
	}
	var doors []*paceline.Limit
	if g != nil {
		doors = append(doors, g.limit)
	}
	update(t.group, func(now mono.Time) {
		if g != nil {
			g.door.single, g.door.closed = false, g.shares() || home != key.Key
		}
		for _, l := range from {
			for i, n := range l.moved.Load().nodes[:l.count] {
				switch old := l.nodes[i]; {
				case old == n || slices.Contains(carried, old):
				case l.newcomer.shares():
					l.join(now, n)
					l.spend(now, n)
				default:
					t.group.Join(now, []*paceline.Limit{old.limit}, n.limit)
					keyring.Carry(now, t.group.Number, old.stack.Own(), n.stack.Own())
					old.stack.Close()
					carried = append(carried, old)
				}
			}
		}
	}, changed, doors...)
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
