package keyring

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Key is the index of a key in its Ring.
type Key int

// Away says how long a key stays away after so many denials, or bad nonces, in a row. proven
// means that those are denials, and that the key has served a request before. If nil, requests
// cannot wait for a key: Noted takes the place of Denied, and Served says which keys are at fault.
type Away func(row int, proven bool) time.Duration

// Ring is the keys of one front end: in use or out, and how often each denied requests. New makes
// it. Not safe for concurrent use.
type Ring struct {
	pause Away
	keys  []key
	in    int // how many keys are in use

	// row is the number of requests in a row that all keys denied, with nothing served between. own
	// counts requests that were denied again after others were served: the first denial of each was
	// not a key's fault.
	row, own int
	served   uint64 // requests that all keys together have served
}

type key struct {
	out        bool
	why        string // why it is out
	era        uint64 // how often it came back
	denials    int    // requests in a row that it denied
	misordered int    // nonces in a row that it refused although they were in order
	proven     bool   // it has served a request
	refused    bool   // it was denied after a limit refused it, and has served nothing since: see Banned
	stayed     mono.Time
}

// New returns a Ring of n keys that are in use.
func New(n int, pause Away) *Ring { return &Ring{pause: pause, keys: make([]key, n), in: n} }

// Add adds a key that is in use.
func (r *Ring) Add() Key {
	r.keys = append(r.keys, key{})
	r.in++
	return Key(len(r.keys) - 1)
}

// InUse returns how many keys are in use.
func (r *Ring) InUse() int { return r.in }

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
	return true
}

// Return puts a key back into use, and forgets its denials: somebody says that it is in order. It
// reports whether the key was out.
func (r *Ring) Return(k Key) bool {
	y := &r.keys[k]
	if !y.out {
		return false
	}
	*y = key{era: y.era + 1, proven: y.proven}
	r.in++
	return true
}

// Pick returns the one of some keys for the next attempt of a request. Keys in use that have not
// denied the request take turns: turn counts them. If there is none now, any key is returned.
func (r *Ring) Pick(keys []Key, turn *int, d *Denials) (k Key) {
	for range keys {
		k = keys[*turn%len(keys)]
		if *turn++; r.Asks(k, d) {
			break
		}
	}
	return k
}

// Asks reports whether a key is in use and has not denied the request.
func (r *Ring) Asks(k Key, d *Denials) bool { return !r.keys[k].out && !slices.Contains(d.by, k) }
