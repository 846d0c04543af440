package keyring

import "slices"

// OwnersConfig describes Owners.
type OwnersConfig struct {
	// Most is the most accounts in which a newcomer counts at once. If zero, 1.
	Most int
	// MaxKeys bounds the keys that are known, and so their accounts. A key beyond it counts by itself.
	MaxKeys int
	// FirstNames means that the limits of an account stay those of its first key. So the first
	// account is the first key's for certain, and only the answer of that key names it. Otherwise
	// the first answer that names an organization names the first account, and the first key is a
	// newcomer like all others.
	FirstNames bool
}

// Owners finds out in which account each key of a host counts. Only an answer shows it: it names
// the organization of its key, or none. The keys of one organization have one account. The first
// name that answers give a key is final. NewOwners makes it. Not safe for concurrent use.
type Owners struct {
	config    OwnersConfig
	keys      map[string]*owned
	newcomers []string // in the order in which they came
	accounts  []*owner // to which a newcomer may belong, in the order in which they began
	mute      bool     // a served answer named no organization: newcomers count by themselves
}

// Account is the limits of one or several keys. Home is the key that began it, and whose limits they
// are. A key may begin several, one after the other; Nth distinguishes them.
type Account struct {
	Home string
	Nth  int
}

type owner struct {
	Account
	name string // of the organization; empty: not known, or none
	none bool   // an answer named none
}

type owned struct {
	in    *owner // nil: a newcomer
	sure  bool   // an answer has named its organization, or no answer is to
	own   bool   // a newcomer that counts by itself
	told  string // the organization of a newcomer that is named before the first key: see FirstNames
	begun int    // accounts
}

// NewOwners returns Owners that know no key.
func NewOwners(c OwnersConfig) *Owners {
	c.Most = max(c.Most, 1)
	return &Owners{config: c, keys: map[string]*owned{}}
}

// Meet notes that a key is used. The first one begins the first account. Meet reports whether there
// was room to remember the key.
func (o *Owners) Meet(key string) bool {
	switch {
	case o.keys[key] != nil:
		return true
	case len(o.keys) >= o.config.MaxKeys:
		return false
	}
	k := &owned{}
	if o.keys[key] = k; len(o.keys) == 1 {
		if first := o.begin(key, k); o.config.FirstNames {
			k.in = first
			return true
		}
	}
	o.newcomers = append(o.newcomers, key)
	return true
}

// Say assigns a key to an organization before its first answer. If it is sure, no answer corrects
// that.
func (o *Owners) Say(key, name string, sure bool) {
	if o.Meet(key) {
		o.assign(key, name)
		o.keys[key].sure = sure
	}
}

// Known returns the organization of a key, if it has one. ok means that its account is known.
func (o *Owners) Known(key string) (name string, ok bool) {
	k := o.keys[key]
	if k == nil || k.in == nil {
		return "", k == nil
	}
	return k.in.name, true
}

// Home returns the home of the account of a key that is known, and the name of any other key.
func (o *Owners) Home(key string) string {
	if k := o.keys[key]; k != nil && k.in != nil {
		return k.in.Home
	}
	return key
}

// CountsIn returns the accounts in which a key counts: one, or of a newcomer all that it may belong
// to, up to Most.
func (o *Owners) CountsIn(key string) []Account {
	k := o.keys[key]
	switch {
	case k == nil:
		return []Account{{Home: key}}
	case k.in != nil:
		return []Account{k.in.Account}
	case k.own || o.mute || len(o.accounts) == 0:
		if first := o.first(); first != nil && first.Home == key {
			return []Account{first.Account}
		}
		return []Account{{key, k.begun}}
	}
	all := make([]Account, min(len(o.accounts), o.config.Most))
	for i := range all {
		all[i] = o.accounts[i].Account
	}
	return all
}

// Single reports whether a key may have only one request in flight: a newcomer that may belong to
// an account in which it does not count.
func (o *Owners) Single(key string) bool {
	k := o.keys[key]
	return k != nil && k.in == nil && !o.mute && (k.own || len(o.accounts) > o.config.Most)
}

// Named takes in the organization that an answer names for its key, and returns the keys that move: those
// that count in other accounts from now on, or whose account is known now. The known ones come first,
// since a newcomer may count in accounts that they begin.
func (o *Owners) Named(key, name string) []string {
	k := o.keys[key]
	if k == nil || k.sure {
		return nil
	}
	if k.in == nil && !k.own && o.awaits(key) && o.named(name) == nil {
		k.told = name
		return nil
	}
	return o.moves(key, func() {
		o.assign(key, name)
		for _, other := range slices.Clone(o.newcomers) {
			if told := o.keys[other].told; told != "" && !o.awaits(other) {
				o.assign(other, told)
			}
		}
	})
}

// awaits reports whether a newcomer counts in the account of the first key, and only that key's
// answer gives it a name.
func (o *Owners) awaits(key string) bool {
	return o.config.FirstNames && !o.mute && len(o.accounts) > 0 && o.accounts[0].name == "" && o.accounts[0].Home != key
}

// Unnamed takes in that an answer names no organization. Its key then counts by itself. If it was
// served, so do newcomers: their answers will name none either.
func (o *Owners) Unnamed(key string, served bool) []string {
	k := o.keys[key]
	if k == nil || k.in != nil && (k.in.name != "" || k.in.none) { // it shows nothing new
		return nil
	}
	return o.moves(key, func() {
		o.mute = o.mute || served
		o.assign(key, "")
	})
}

// Alone makes a newcomer count by itself, with one request in flight: where it counts now it has no
// room, or none soon.
func (o *Owners) Alone(key string) []string {
	k := o.keys[key]
	if k == nil || k.in != nil {
		return nil
	}
	return o.moves(key, func() {
		if k.told != "" {
			o.assign(key, k.told)
		} else {
			k.own = true
		}
	})
}

// moves changes something at a key, and returns the keys that move: it, and newcomers.
func (o *Owners) moves(key string, change func()) (known []string) {
	keys := slices.Clone(o.newcomers)
	if o.keys[key].in != nil {
		keys = append(keys, key)
	}
	from := make([][]Account, len(keys))
	for i, k := range keys {
		from[i] = o.CountsIn(k)
	}
	newcomers := len(o.newcomers)
	change()
	var unknown []string
	for i, k := range keys {
		switch same := slices.Equal(from[i], o.CountsIn(k)); {
		case o.keys[k].in == nil && !same:
			unknown = append(unknown, k)
		case o.keys[k].in != nil && (i < newcomers || !same):
			known = append(known, k)
		}
	}
	return append(known, unknown...)
}

// assign puts a key into the account of an organization. Without a name, that is an account to
// which no newcomer may belong.
func (o *Owners) assign(key, name string) {
	k, in := o.keys[key], o.named(name)
	if in == nil {
		in = k.in
		if first := o.first(); first != nil && (first.Home == key || name != "" && !o.config.FirstNames) {
			in = first
		}
		if in == nil || in.name != "" {
			in = o.begin(key, k)
		} else if !slices.Contains(o.accounts, in) {
			o.accounts = append(o.accounts, in)
		}
		in.name, in.none = name, name == ""
	}
	k.in, k.told, k.own, k.sure = in, "", false, name != ""
	o.newcomers = slices.DeleteFunc(o.newcomers, func(other string) bool { return other == key })
	o.accounts = slices.DeleteFunc(o.accounts, func(a *owner) bool { // without FirstNames, newcomers may belong to those of none
		return a.none && o.config.FirstNames || a.name == "" && a.Home == key && a != in // nobody will give that a name
	})
}

// named returns the account of an organization; nil: it has none yet.
func (o *Owners) named(name string) *owner {
	return o.find(func(a *owner) bool { return name != "" && a.name == name })
}

// first returns the first account, as long as nobody knows whether it has a name.
func (o *Owners) first() *owner {
	return o.find(func(a *owner) bool { return a.name == "" && !a.none })
}

func (o *Owners) find(is func(*owner) bool) *owner {
	if i := slices.IndexFunc(o.accounts, is); i >= 0 {
		return o.accounts[i]
	}
	return nil
}

// begin makes an account.
func (o *Owners) begin(key string, k *owned) *owner {
	a := &owner{Account: Account{key, k.begun}}
	k.begun++
	o.accounts = append(o.accounts, a)
	return a
}
