package nodesim

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// copied is a copy of the store: a snapshot of its machine, a backup, or an old server that is still there.
type copied struct {
	at          mono.Time
	blob        []byte
	incarnation int
}

const (
	// oftenCopied is the time from one copy to the next. rewindLeast and rewindMost are how old a copy
	// is that the store goes back to.
	oftenCopied = 500 * time.Millisecond
	rewindLeast = 3 * time.Second
	rewindMost  = 40 * time.Second
)

// rewind makes copies of the store, and every so often has it go back to one. In one of three cases
// its clock goes back as well, as that of a machine does, and in one it had been replaced by
// another server meanwhile, which had all that it had, or nothing.
func (w *world) rewind() {
	if w.Rewind == 0 {
		return
	}
	var copies []copied
	var keep func()
	keep = func() {
		s := &w.store
		copies = append(copies, copied{w.now(), s.blob, s.incarnation})
		for len(copies) > 0 && w.now().Sub(copies[0].at) > rewindMost {
			copies = copies[1:]
		}
		w.after(oftenCopied, keep)
	}
	keep()
	back := func() {
		most := len(copies) - int(rewindLeast/oftenCopied)
		if most <= 0 {
			return
		}
		w.fault()
		c := copies[w.rng.IntN(most)]
		s := &w.store
		s.version = w.rng.Int()
		s.blob, s.incarnation = c.blob, c.incarnation
		if w.rng.IntN(3) == 0 {
			s.set -= w.now().Sub(c.at)
		}
	}
	w.every(w.Rewind, func() {
		if w.rng.IntN(3) > 0 {
			back()
			return
		}
		s := &w.store
		if w.incarnations++; w.rng.IntN(2) == 0 {
			s.blob, s.version = nil, w.rng.Int()
		}
		s.incarnation = w.incarnations
		w.after(rewindLeast+w.upTo(rewindMost-rewindLeast), back)
	})
}
