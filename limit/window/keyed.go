package window

import (
	"fmt"
	"iter"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Counter is a *Log, a *Runs or a *Slots.
type Counter[C any] interface {
	*Log | *Runs | *Slots
	// fresh returns an empty counter of the same size.
	fresh() C
	// moveOn has the counter take a now before this one as this one. It reports whether the window
	// that ends at now is empty.
	moveOn(now mono.Time) (empty bool)
}

// Keyed has a counter for each key that is in use: for each symbol, account or address. A limit of
// N per key is a Keyed of Logs.
//
// Its memory is bounded. Keys whose window is empty are forgotten in the order of last use, two
// during each Get at most. The counter of a forgotten key serves a new key. So there are never more
// counters than there were keys in use at once.
//
// There is a bound on keys. Beyond it, Get has no counter for a new key, until a key is forgotten.
// No key in use loses its counter to a new one, so no count is ever too low.
//
// If now is before the last one, of any key, it counts as the last one. Use NewKeyed; the zero
// Keyed is not ready. Not safe for concurrent use: package shared has one that is.
type Keyed[K comparable, C Counter[C]] struct {
	like  C
	most  int
	last  mono.Time
	byKey map[K]*keyed[K, C]
	ends  keyed[K, C]    // of a ring: ends.newer is the key used least recently, ends.older the one used last
	spare []*keyed[K, C] // those of forgotten keys
}

// keyed is a key in use.
type keyed[K comparable, C any] struct {
	key          K
	counter      C
	older, newer *keyed[K, C]
}

// NewKeyed returns a Keyed without keys. At most so many keys are in use at once. Each has a counter
// of the same size as like, which itself stays as it is.
func NewKeyed[K comparable, C Counter[C]](keys int, like C) (*Keyed[K, C], error) {
	if keys < 1 || keys > maxLen {
		return nil, fmt.Errorf("window: NewKeyed: keys %d is not from 1 to %d", keys, maxLen)
	}
	if like == nil {
		return nil, fmt.Errorf("window: NewKeyed: like is nil")
	}
	k := &Keyed[K, C]{like: like.fresh(), most: keys, last: mono.Min, byKey: map[K]*keyed[K, C]{}}
	k.ends.older, k.ends.newer = &k.ends, &k.ends
	return k, nil
}

// Get returns the counter of a key, empty if the key is new. It reports false, with a nil counter,
// if the key is new and as many keys as NewKeyed allows are in use.
//
// Use the counter at once and with the same now. After the next Get it may be that of another key.
// Do not call OnLeave of it. Get takes the same time for any number of keys. It allocates only if
// more keys are in use than ever before, and where the map of Go does.
func (k *Keyed[K, C]) Get(now mono.Time, key K) (C, bool) {
	k.last = max(now, k.last)
	e := k.byKey[key]
	if e != nil {
		e.older.newer, e.newer.older = e.newer, e.older
	}
	k.forget()
	if e == nil {
		if len(k.byKey) >= k.most {
			return nil, false
		}
		e = k.unused()
		e.key = key
		k.byKey[key] = e
	}
	e.older, e.newer = k.ends.older, &k.ends
	e.older.newer, k.ends.older = e, e
	e.counter.moveOn(k.last)
	return e.counter, true
}

// forget forgets the two keys used least recently, if their windows are empty. Two are enough: a
// call adds one key at most.
func (k *Keyed[K, C]) forget() {
	for range 2 {
		e := k.ends.newer
		if e == &k.ends || !e.counter.moveOn(k.last) {
			return
		}
		delete(k.byKey, e.key)
		k.ends.newer, e.newer.older = e.newer, &k.ends
		var none K
		e.key = none // what it points to may go
		k.spare = append(k.spare, e)
	}
}

func (k *Keyed[K, C]) unused() *keyed[K, C] {
	last := len(k.spare) - 1
	if last < 0 {
		return &keyed[K, C]{counter: k.like.fresh()}
	}
	e := k.spare[last]
	k.spare = k.spare[:last]
	return e
}

// Len returns how many keys are in use or not forgotten yet.
func (k *Keyed[K, C]) Len() int { return len(k.byKey) }

// All returns the keys that are in use or not forgotten yet, with their counters. The key used least
// recently is the first. All forgets nothing. Do not call Get meanwhile.
func (k *Keyed[K, C]) All() iter.Seq2[K, C] {
	return func(yield func(K, C) bool) {
		for e := k.ends.newer; e != &k.ends; e = e.newer {
			if !yield(e.key, e.counter) {
				return
			}
		}
	}
}

// NewLog, NewRuns and NewSlots have accepted the sizes already.

func (l *Log) fresh() *Log {
	f, _ := NewLog(len(l.ends), time.Duration(l.span-1))
	return f
}

func (r *Runs) fresh() *Runs {
	f, _ := NewRuns(time.Duration(r.window), r.exact)
	return f
}

func (s *Slots) fresh() *Slots {
	window := s.rest + uint64(len(s.ring)-2)*s.precision
	f, _ := NewSlots(time.Duration(window), time.Duration(s.precision))
	return f
}

func (l *Log) moveOn(now mono.Time) bool {
	l.last = max(now, l.last)
	return l.at(len(l.ends)-1) <= l.last
}

func (r *Runs) moveOn(now mono.Time) bool { return r.Total(now) == 0 }

func (s *Slots) moveOn(now mono.Time) bool { return s.Total(now) == 0 }
