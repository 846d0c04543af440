package keyring_test

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// blamed decides about denials as package dispatch did before there was a Ring, in other words: one
// record per request of the latest key and how often it denied, and one of each key.
type blamed struct {
	keys   []blamedKey
	alive  int
	denied map[int]denial
	row    int
	own    int
	served uint64
}

type blamedKey struct {
	denials int
	stayed  mono.Time
	banned  bool
	proven  bool
}

type denial struct {
	key, times int
	served     uint64
}

func newBlamed(keys int) *blamed {
	return &blamed{keys: make([]blamedKey, keys), alive: keys, denied: map[int]denial{}}
}

func (b *blamed) believes() bool { return b.row < min(2+2*b.own, 100) }

func (b *blamed) ban(key int) {
	if !b.keys[key].banned {
		b.keys[key].banned = true
		b.alive--
	}
}

// resume forgets denials, which the Dispatcher did not do.
func (b *blamed) resume(key int) {
	b.keys[key].banned, b.keys[key].denials = false, 0
	b.alive++
}

func (b *blamed) accepted(key, id int) {
	k := &b.keys[key]
	k.denials, k.proven = 0, true
	b.served++
	b.row = 0
	if _, was := b.denied[id]; was {
		b.own = 0
	}
	delete(b.denied, id)
}

func (b *blamed) isDenied(now mono.Time, key int, sent mono.Time, id int) (again bool, away time.Duration) {
	k := &b.keys[key]
	denies := func() {
		if k.denials >= 3 && sent <= k.stayed {
			return
		}
		if k.denials++; k.denials >= 3 {
			k.stayed, away = now, pause(k.denials-2, k.proven)
		}
	}
	before, was := b.denied[id]
	same := was && before.key == key
	agreed := was && !same || before.times >= 5 || b.alive < 2 || k.banned
	switch news := was && b.served > before.served; {
	case agreed && (news || b.believes()):
		if b.row++; was {
			k.denials, b.keys[before.key].denials = 0, 0
		}
		if news {
			b.own++
		}
		delete(b.denied, id)
		return false, 0
	case agreed && !(k.denials >= 3 && sent <= k.stayed):
		b.row++
		k.denials = max(k.denials, 2)
		denies()
	case !agreed && !was, k.denials >= 3:
		denies()
	}
	if !was {
		before.served = b.served
	}
	if !same {
		before.times = 0
	}
	b.denied[id] = denial{key, before.times + 1, before.served}
	return true, away
}
