package proxy

import (
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/transport"
)

// ownKey is a key of an upstream by its name. Without targets, target is empty.
type ownKey struct{ target, name string }

// heldKey is a key that a way knows. It goes on under another name, and with another secret under its name. A key that
// is taken out stays for a while, since what it sent counts if it comes back.
type heldKey struct {
	ownKey
	Key
	secret KeyHash
	away   bool      // it is not in the configuration, and Key has its limits alone
	until  time.Time // if away, it is kept so long
	like   string    // the key that had its secret before, and has another one by now

	names   []string  // which it had before
	secrets []KeyHash // and the secrets
}

// heldKeys are the keys that a way knows: those of the configuration first.
type heldKeys []heldKey

// holds returns the keys of u, as a way has them that knows none.
func (u *Upstream) holds() (all heldKeys) {
	of := func(target string, keys []Key) {
		for _, k := range keys {
			all = append(all, heldKey{ownKey: ownKey{target, k.Name}, Key: k, secret: HashKey(string(k.Secret))})
		}
	}
	for i := range u.Targets {
		of(u.Targets[i].Name, u.Targets[i].Keys)
	}
	of("", u.Keys)
	return all
}

// after returns the keys of u as they go on from all. was has the former names of keys with another name, and fresh the
// keys with another secret. With a store, limits go by names alone.
func (all heldKeys) after(u *Upstream, byName bool, now time.Time, keep time.Duration) (next heldKeys, was map[ownKey]string,
	fresh []string) {
	next, was = u.holds(), map[ownKey]string{}
	formers := make([]*heldKey, len(next))
	left := slices.Clone(all)
	find := func(same func(k, former *heldKey) bool) {
		for i := range next {
			at := slices.IndexFunc(left, func(former heldKey) bool {
				return formers[i] == nil && next[i].target == former.target && same(&next[i], &former)
			})
			if at >= 0 {
				former := left[at]
				formers[i], left = &former, slices.Delete(left, at, at+1)
			}
		}
	}
	find(func(k, former *heldKey) bool { return k.secret == former.secret && k.ownKey == former.ownKey })
	if !byName {
		find(func(k, former *heldKey) bool { return k.secret == former.secret })
	}
	find(func(k, former *heldKey) bool { return k.ownKey == former.ownKey })
	for i, former := range formers {
		if former == nil {
			continue
		}
		k := &next[i]
		if k.goesOn(former); k.secret != former.secret {
			k.secrets = append(k.secrets, former.secret)
			fresh = append(fresh, k.ownKey.name)
		}
		if k.ownKey != former.ownKey {
			was[k.ownKey] = former.ownKey.name
		}
	}
	for _, former := range left {
		if !former.away {
			former.away, former.until = true, now.Add(keep)
		} else if now.After(former.until) {
			continue
		}
		k := former
		k.Secret = ""
		for n := 1; next.has(k.ownKey.name); n++ {
			k.ownKey.name = fmt.Sprintf("%s (before, %d)", former.ownKey.name, n)
		}
		if k.Name = k.ownKey.name; k.ownKey != former.ownKey {
			k.goesOn(&former)
			was[k.ownKey] = former.ownKey.name
		}
		next = append(next, k)
	}
	for i, former := range formers {
		if k := &next[i]; former == nil {
			at := slices.IndexFunc(next, func(o heldKey) bool { return o.target == k.target && slices.Contains(o.secrets, k.secret) })
			if at >= 0 {
				k.like = next[at].ownKey.name
				next[at].secrets = slices.DeleteFunc(next[at].secrets, func(s KeyHash) bool { return s == k.secret })
			}
		}
	}
	return next, was, fresh
}

// goesOn notes what a key was before.
func (k *heldKey) goesOn(former *heldKey) {
	k.secrets = slices.Clone(former.secrets)
	if k.names = slices.Clone(former.names); k.ownKey != former.ownKey && !slices.Contains(k.names, former.ownKey.name) {
		k.names = append(k.names, former.ownKey.name)
	}
}

func (all heldKeys) has(name string) bool {
	return slices.ContainsFunc(all, func(k heldKey) bool { return k.ownKey.name == name })
}

// apply adds to the keys of a transport's configuration how they go on.
func (all heldKeys) apply(t *transport.Config, was map[ownKey]string) {
	for i := range t.Keys {
		k := &t.Keys[i]
		k.Was = was[ownKey{k.Target, k.Name}]
		k.Like = all[slices.IndexFunc(all, func(h heldKey) bool { return h.ownKey.name == k.Name })].like
	}
	for _, k := range all {
		if k.away {
			t.Keys = append(t.Keys, transport.Key{Name: k.ownKey.name, Target: k.target, Was: was[k.ownKey], Away: true})
		}
	}
}

// withAway returns u with the keys that are away, whose limits stay.
func (all heldKeys) withAway(u *Upstream) *Upstream {
	own := *u
	own.Keys, own.Targets = slices.Clone(u.Keys), slices.Clone(u.Targets)
	for _, k := range all {
		if !k.away {
			continue
		}
		keys := &own.Keys
		for i := range own.Targets {
			if own.Targets[i].Name == k.target {
				keys = &own.Targets[i].Keys
				*keys = slices.Clone(*keys)
			}
		}
		*keys = append(*keys, k.Key)
	}
	return &own
}

// rename makes all else that goes by the name of a key of u go on under another name.
func (c *common) rename(u *Upstream, was map[ownKey]string, keys heldKeys) {
	names := map[string]string{} // by the former ones
	for k, former := range was {
		names[former] = k.name
	}
	c.numbers.rename(u.Name, names)
	c.turns.rename(u.Name, names)
	if c.state != nil {
		c.state.rename(u.Name, keys)
	}
}
