package transport

import (
	"math"
	"net/http"
	"slices"
	"strings"

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
		}
		home = o.Home(key)
	}
	if t.mu.Unlock(); name == "" {
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
		case known || g.shares() && len(in) == 1:
			t.moveLocked(o, Partition{Host: host, Key: key}, in[0].Home)
		case g.shares() && in[0].Home == g.home: // it may belong elsewhere as well
			t.suspectLocked(g, in[1:])
		case g.shares():
			moves = append(moves, o.Alone(key)...)
		}
	}
}

// carried is the usage of a key's old limits, which counts as one request in those to which the key
// moves. That is in flight until the last earlier request is answered.
type carried struct {
	left int    // how many leaves of the old limits have requests under way; guarded by the Transport's lock
	end  func() // settles the usage with its final amount, under that lock
}

// moveLocked takes a key to the limits of a key, which may be itself: its requests that wait go
// there, and what it sent counts there. Of a newcomer in another key's limits that is request by
// request. For any other key it is the usage of its limits.
func (t *Transport) moveLocked(o *owners, key Partition, home string) {
	g := o.newcomers[key.Key]
	delete(o.newcomers, key.Key)
	m := &carried{}
	var from, joined []*leaf
	var pairs [][2]*node // the old and the new one of each limit
	for p, l := range t.leaves {
		if p.Host != key.Host || p.Key != key.Key || l.moved.Load() != nil || !l.newcomer.shares() && home == key.Key {
			continue
		}
		from = append(from, l)
		l.active.Add(1)
		if l.moved.Store(m); l.newcomer.shares() { // the next leaf of this partition has other limits
			t.recent.remove(l)
			delete(t.leaves, l.partition)
		} else {
			m.left++
		}
	}
	for _, l := range from {
		to, err := t.leafLocked(l.partition, home)
		switch {
		case err != nil:
			t.log.Error("what a key has sent is not counted", "partition", l.partition, "err", err)
		case l.newcomer.shares():
			t.departLocked(l, to)
		default:
			to.active.Add(1) // to prevent that it is forgotten meanwhile
			joined = append(joined, to)
			for i, n := range l.nodes[:l.count] {
				if p := [2]*node{n, to.nodes[i]}; p[0] != p[1] && !slices.Contains(pairs, p) {
					pairs = append(pairs, p)
				}
			}
		}
	}
	m.end = t.carryLocked(pairs, joined)
	if g != nil {
		t.group.Update(func(mono.Time) { g.door.single, g.door.closed = false, g.shares() || home != key.Key }, g.limit)
	}
	for _, l := range from {
		l.unuseLocked()
	}
}

// carryLocked makes the usage of old limits count in new ones, and moves the requests that wait
// at the old ones. A request that got a permit there before is part of that usage. One that gets a
// permit there afterwards sees that its key has moved. end settles the usage.
func (t *Transport) carryLocked(pairs [][2]*node, joined []*leaf) (end func()) {
	var changed []*node
	for _, p := range pairs {
		changed = append(changed, p[:]...)
	}
	var ends []func(now mono.Time)
	update(t.group, func(now mono.Time) {
		for _, p := range pairs {
			old, other := p[0].stack, p[1].stack
			ends = append(ends, keyring.Carry(now, t.group.Number, old.Own(), other, other.Own()))
			old.Close()
		}
	}, changed)
	return func() {
		update(t.group, func(now mono.Time) {
			for _, end := range ends {
				end(now)
			}
		}, changed)
		for _, l := range joined {
			l.unuseLocked()
		}
	}
}
