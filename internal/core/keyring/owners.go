package keyring

import "slices"

// OwnersConfig describes Owners.
type OwnersConfig struct {
	// Most is the most accounts in which a newcomer counts at once, at least 1.
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
	newcomers []string   // in the order in which they came
	accounts  []*Account // to which a newcomer may belong, in the order in which they began
	mute      bool       // a served answer named no organization: newcomers count by themselves
}

// Account is the limits of one or several keys. Home is the key that began it, and whose limits they
// are. A key may begin several, one after the other.
type Account struct {
	Home string
	Name string // of the organization; empty: not known, or none
	none bool   // an answer named none
}

type owned struct {
	in   *Account // nil: a newcomer
	self *Account // its own, until that has a name; then the next one that it may begin
	sure bool     // an answer has named its organization, or no answer is to
	own  bool     // a newcomer that counts by itself
	told string   // the organization of a newcomer that is named before the first key: see FirstNames
}

// NewOwners returns Owners that know no key.
func NewOwners(c OwnersConfig) *Owners {
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
	k := &owned{self: &Account{Home: key}}
	if o.keys[key] = k; len(o.keys) == 1 {
		if o.accounts = append(o.accounts, k.self); o.config.FirstNames {
			k.in = k.self
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

// Known returns the account of a key; nil: it is a newcomer, or not remembered.
func (o *Owners) Known(key string) *Account {
	if k := o.keys[key]; k != nil {
		return k.in
	}
	return nil
}

// CountsIn returns the accounts in which a key counts: one, or of a newcomer all that it may belong
// to, up to Most.
func (o *Owners) CountsIn(key string) []*Account {
	k := o.keys[key]
	switch {
	case k == nil:
		return []*Account{{Home: key}}
	case k.in != nil:
		return []*Account{k.in}
	case !o.shares(k) || len(o.accounts) == 0:
		return []*Account{k.self}
	}
	return slices.Clone(o.accounts[:min(len(o.accounts), o.config.Most)])
}

// Single reports whether a key may have only one request in flight: a newcomer that may belong to
// an account in which it does not count.
func (o *Owners) Single(key string) bool {
	k := o.keys[key]
	return k != nil && k.in == nil && !o.mute && (k.own || len(o.accounts) > o.config.Most)
}

// Named takes in the organization that an answer names for its key, and returns the keys that may count in
// other accounts from now on: first this one, whose account is known now. There are none if that is no news.
//
// With FirstNames, a newcomer in the account of the first key moves only when that key has a name.
func (o *Owners) Named(key, name string) []string {
	switch k := o.keys[key]; {
	case k == nil || k.sure:
	case o.config.FirstNames && o.shares(k) && o.first() != nil && o.named(name) == nil:
		k.told = name
	default:
		return o.moves(key, name)
	}
	return nil
}

// moves assigns a key, and newcomers whose names waited for this. Known keys come first, since newcomers may count in
// accounts that they begin.
func (o *Owners) moves(key, name string) []string {
	o.assign(key, name)
	for _, other := range o.newcomers {
		if told := o.keys[other].told; told != "" && o.first() == nil {
			return append([]string{key}, o.moves(other, told)...)
		}
	}
	return append([]string{key}, o.newcomers...)
}

// Unnamed takes in that an answer names no organization, and returns keys as Named does. The key of the answer
// then counts by itself. If it was served, so do newcomers: their answers will name none either.
func (o *Owners) Unnamed(key string, served bool) []string {
	k := o.keys[key]
	if k == nil || k.in != nil && (k.in.Name != "" || k.in.none) { // it shows nothing new
		return nil
	}
	o.mute = o.mute || served
	return o.moves(key, "")
}

// Alone makes a newcomer count by itself, with one request in flight: where it counts now it has no
// room, or none soon.
func (o *Owners) Alone(key string) {
	if k := o.keys[key]; k != nil && k.in == nil {
		k.own = true
	}
}

// shares reports whether a key is a newcomer that counts in the accounts of others.
func (o *Owners) shares(k *owned) bool { return k.in == nil && !k.own && !o.mute }

// assign puts a key into the account of an organization. Without a name, that is an account to
// which no newcomer may belong.
func (o *Owners) assign(key, name string) {
	k, in := o.keys[key], o.named(name)
	if in == nil {
		in = k.self
		if first := o.first(); first != nil && name != "" && !o.config.FirstNames {
			in = first
		}
		if in.Name, in.none = name, name == ""; name != "" {
			o.keys[in.Home].self = &Account{Home: in.Home}
		}
		if !slices.Contains(o.accounts, in) {
			o.accounts = append(o.accounts, in)
		}
	}
	k.in, k.own, k.sure = in, false, name != ""
	o.newcomers = slices.DeleteFunc(o.newcomers, func(other string) bool { return other == key })
	// Without FirstNames, newcomers may belong to those of none. Nobody will name an account that its key has left.
	o.accounts = slices.DeleteFunc(o.accounts, func(a *Account) bool {
		return a.none && o.config.FirstNames || a.Name == "" && a.Home == key && a != in
	})
}

// named returns the account of an organization; nil: it has none yet.
func (o *Owners) named(name string) *Account {
	return o.find(func(a *Account) bool { return name != "" && a.Name == name })
}

// first returns the first account, as long as nobody knows whether it has a name.
func (o *Owners) first() *Account {
	return o.find(func(a *Account) bool { return a.Name == "" && !a.none })
}

func (o *Owners) find(is func(*Account) bool) *Account {
	if i := slices.IndexFunc(o.accounts, is); i >= 0 {
		return o.accounts[i]
	}
	return nil
}
