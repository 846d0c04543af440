package transport

import (
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
)

// rests are the pauses by a user. They outlive the partitions, which come and go.
type rests struct {
	until map[string]mono.Time // by key; "": of all requests
	any   bool                 // there was one
}

// byUser is the reason of such a pause.
const byUser = "by its user"

// Rest sends nothing with a key until then, whatever answers say; the zero Time: until Resume. Requests that
// can go with another key do so. Those in flight go on. key is the name of one of Config.Keys, with which the
// keys of its Account rest, or a Partition.Key. If key is empty, nothing is sent at all.
//
// A pause that the server asked for goes on beside it, and Lift does not end a Rest.
func (t *Transport) Rest(key string, until time.Time) {
	at, said := limit.AfterSettle, "paused "+byUser
	if !until.IsZero() {
		at = mono.Of(t.group.Time(0), until)
		said += " for " + text.Span(time.Until(until).Round(time.Second))
	}
	t.rest(key, at)
	t.note(observe.EventPaused, Partition{Key: key}, said)
}

// Resume ends a Rest with that key.
func (t *Transport) Resume(key string) {
	t.rest(key, mono.Min)
	t.note(observe.EventBack, Partition{Key: key}, "resumed "+byUser)
}

func (t *Transport) rest(name string, until mono.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.choice.Load().key(name); k != nil {
		name = k.Key.account()
	}
	if t.rests.any = true; t.rests.until == nil {
		t.rests.until = map[string]mono.Time{}
	}
	if t.rests.until[name] = until; until == mono.Min {
		delete(t.rests.until, name)
	}
	var changed []*node
	for p, n := range t.nodes {
		if p.Scope == provider.IP && name == "" || p.Scope == provider.Key && p.Key == name {
			changed = append(changed, n)
		}
	}
	update(t.group, func(now mono.Time) {
		for _, n := range changed {
			n.stack.Rest(now, until)
		}
	}, changed)
}

// restLocked gives a node that has just come what a user wants of it.
func (t *Transport) restLocked(n *node) {
	key := n.in().Key
	switch {
	case !t.rests.any:
		return
	case n.in().Scope == provider.IP:
		key = ""
	case n.in().Scope != provider.Key:
		return
	}
	until, on := t.rests.until[key]
	if !on {
		until = mono.Min // it may be an old one that was away when its pause ended
	}
	t.group.Update(func(now mono.Time) { n.stack.Rest(now, until) }, n.limit)
}

// rested returns the state of a key, as a user wants it.
func (t *Transport) rested(k observe.KeyState, key string) observe.KeyState {
	t.mu.Lock()
	defer t.mu.Unlock()
	until, on := t.rests.until[key]
	if !on || until <= t.at() || k.State != observe.KeyOK {
		return k
	}
	if k.State, k.Why = observe.KeyPaused, byUser; until < limit.AfterSettle {
		k.Until = t.group.Time(until)
	}
	return k
}

// rested returns the pause of a node by a user. It is called under the Group's lock.
func (n *node) rested(now mono.Time) (s observe.PauseState, on bool) {
	until, on := n.stack.Rests(now)
	if on && until < limit.AfterSettle {
		s.Until = n.t.group.Time(until)
	}
	s.Next, s.Why = s.Until, byUser
	return s, on
}
