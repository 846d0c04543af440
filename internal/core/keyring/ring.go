package keyring

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Key is the index of a key in its Ring, in the order of Add.
type Key int

// Config describes a Ring.
type Config struct {
	// Away says how long a key stays away after so many denials, or bad nonces, in a row. proven
	// means that those are denials, and that the key has served a request before. If nil, requests
	// cannot wait for a key: it is out at once if it is at fault, and no request is at fault while
	// another key can be asked.
	Away func(row int, proven bool) time.Duration
}

// Ring is the keys of one front end: in use or out, and how often each denied requests. New makes
// it. Not safe for concurrent use.
type Ring struct {
	config   Config
	keys     []key
	accounts []account
	in       int // how many keys are in use

	// row is the number of requests in a row that all keys denied, with nothing served between. own
	// counts requests that were denied again after others were served: the first denial of each was
	// not a key's fault.
	row, own int
	served   uint64 // requests that all keys together have served
}

type key struct {
	account    int
	out        bool
	why        string // why it is out
	era        uint64 // how often it came back
	denials    int    // requests in a row that it denied
	misordered int    // nonces in a row that it refused although they were in order
	proven     bool   // it has served a request
	stayed     mono.Time
}

type account struct {
	keys []Key
	next int // the one whose turn it is
	in   int
}

// New returns a Ring without keys.
func New(c Config) *Ring { return &Ring{config: c} }

// Account begins an account, and returns its index.
func (r *Ring) Account() int {
	r.accounts = append(r.accounts, account{})
	return len(r.accounts) - 1
}

// Add puts a key in use, in an account.
func (r *Ring) Add(account int) Key {
	k := Key(len(r.keys))
	r.keys = append(r.keys, key{account: account})
	a := &r.accounts[account]
	a.keys = append(a.keys, k)
	a.in++
	r.in++
	return k
}

// InUse returns how many keys are in use.
func (r *Ring) InUse() int { return r.in }

// Left returns how many keys of an account are in use.
func (r *Ring) Left(account int) int { return r.accounts[account].in }

// Out returns why a key is out; ok is false while it is in use.
func (r *Ring) Out(k Key) (why string, ok bool) { return r.keys[k].why, r.keys[k].out }

// Era returns the present era of a key, which an attempt notes: see Ban.
func (r *Ring) Era(k Key) uint64 { return r.keys[k].era }

// Ban takes a key out of use until Return, by the answer to an attempt of that era. It reports
// whether that is news. An attempt that was sent before the key came back proves nothing.
func (r *Ring) Ban(k Key, era uint64, why string) bool {
	y := &r.keys[k]
	if y.out || y.era != era {
		return false
	}
	y.out, y.why = true, why
	r.in--
	r.accounts[y.account].in--
	return true
}

// Return puts a key back into use, and forgets its denials: somebody says that it is in order. It
// reports whether the key was out.
func (r *Ring) Return(k Key) bool {
	y := &r.keys[k]
	if !y.out {
		return false
	}
	y.out, y.why = false, ""
	y.denials, y.misordered = 0, 0
	y.era++
	r.in++
	r.accounts[y.account].in++
	return true
}

// Pick returns the key of an account for the next attempt of a request. Keys in use that have not
// denied the request take turns. If there is none now, any key is returned, and ok is false.
func (r *Ring) Pick(account int, d *Denials) (k Key, ok bool) {
	a := &r.accounts[account]
	for range a.keys {
		k = a.keys[a.next%len(a.keys)]
		a.next++
		if r.asks(k, d) {
			return k, true
		}
	}
	return k, false
}

// Has reports whether an account has a key in use that has not denied the request.
func (r *Ring) Has(account int, d *Denials) bool {
	return slices.ContainsFunc(r.accounts[account].keys, func(k Key) bool { return r.asks(k, d) })
}

func (r *Ring) asks(k Key, d *Denials) bool { return !r.keys[k].out && !slices.Contains(d.by, k) }
