// Package shared provides a [window.Keyed] behind a lock, so that many goroutines may use it at
// once. A Keyed counts the recent events of each key, for example the orders of each account in the
// last second.
package shared

import (
	"sync"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// Keyed is a window.Keyed that goroutines share, with the same laws about memory, the bound on keys
// and time. One counter that goroutines share is a Keyed with one key.
//
// Goroutines read their clocks before they get the lock, so their instants may come in another
// order. A now before the last one counts as the last one: that is late by no more than a wait for
// the lock.
//
// Safe for concurrent use. Use NewKeyed; the zero Keyed is not ready.
type Keyed[K comparable, C window.Counter[C]] struct {
	mu    sync.Mutex
	keyed *window.Keyed[K, C]
}

// NewKeyed returns a Keyed without keys. Its arguments and errors are those of window.NewKeyed.
func NewKeyed[K comparable, C window.Counter[C]](keys int, like C) (*Keyed[K, C], error) {
	k, err := window.NewKeyed[K](keys, like)
	if err != nil {
		return nil, err
	}
	return &Keyed[K, C]{keyed: k}, nil
}

// Do calls f with the counter of a key, and returns what f returns. It returns false without a call
// if the key is new and as many keys as NewKeyed allows are in use.
//
// No other goroutine uses a counter meanwhile. So what f decides and what it counts belong together,
// such as Full and Add. f must be quick. It must not keep the counter, and must not call k.
func (k *Keyed[K, C]) Do(now mono.Time, key K, f func(C) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.keyed.Get(now, key)
	return ok && f(c)
}

// Len returns how many keys are in use or not forgotten yet.
func (k *Keyed[K, C]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keyed.Len()
}

// Each calls f for each key that is in use or not forgotten yet, until f returns false. The key
// used least recently is the first. The rules for f are those of Do.
func (k *Keyed[K, C]) Each(f func(K, C) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keyed.All()(f)
}
