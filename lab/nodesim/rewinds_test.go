package nodesim

import (
	"slices"
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
// it had been replaced by another server meanwhile, which had all that it had, or nothing. In one of
// three its clock goes back as well, as that of a machine does.
func (w *world) rewind() {
	if w.Rewind == 0 {
		return
	}
	var copies []copied
	var keep func()
	keep = func() {
		s := &w.store
		if !w.Waken || Inhabited(s.blob) { // nothing could be found out from the copy
			copies = append(copies, copied{w.now(), s.blob, s.incarnation})
		}
		for len(copies) > 0 && w.now().Sub(copies[0].at) > rewindMost {
			copies = copies[1:]
		}
		w.after(oftenCopied, keep)
	}
	keep()
	back := func() {
		young := func(c copied) bool { return w.now().Sub(c.at) < rewindLeast }
		most := slices.IndexFunc(append(copies, copied{at: w.now()}), young)
		if most == 0 {
			return
		}
		w.fault()
		c := copies[w.rng.IntN(most)]
		s := &w.store
		s.version = w.rng.Int()
		s.blob, s.incarnation = c.blob, c.incarnation
		if w.rng.IntN(3) == 0 && !s.steady {
			s.set -= w.now().Sub(c.at)
		}
		if w.Waken {
			w.waken()
		}
	}
	w.every(w.Rewind, func() {
		if w.rng.IntN(3) > 0 {
			back()
			return
		}
		w.replace()
		w.after(rewindLeast+w.upTo(rewindMost-rewindLeast), back)
	})
}

// replace has another server take the store's place, with all that it had, or with nothing. The
// file of a store with a steady clock is removed.
func (w *world) replace() {
	s := &w.store
	if s.steady {
		s.lose(w.rng.Int())
		return
	}
	if w.incarnations++; w.rng.IntN(2) == 0 {
		s.lose(w.rng.Int())
	}
	s.incarnation = w.incarnations
}

// waken has a node without demand have some, before those that are busy come again. If each of them
// is busy, another process takes the place of one.
func (w *world) waken() {
	n := w.nodes[w.Busy+w.rng.IntN(w.Nodes-w.Busy)]
	w.after(w.upTo(100*time.Millisecond), func() {
		switch {
		case n == nil: // it comes later
		case n.on:
			n.dead = true
			w.start(n.place)
		default:
			n.on = true
			n.refill()
			n.serve()
		}
	})
}

// undo goes back to one of so many puts, which is undoLeast old at least.
const (
	undoMost  = 100
	undoLeast = 1200 * time.Millisecond
)

// undo notes a put. It has the store go back right after some puts, to one of the latest. That may be
// a put of a time that was undone. With Young it may be of a moment ago, or of a time when nobody was
// in the book.
func (w *world) undo() {
	if w.Undo == 0 {
		return
	}
	s := &w.store
	w.past = append(w.past, copied{w.now(), s.blob, s.incarnation})
	w.past = w.past[max(len(w.past)-undoMost, 0):]
	if w.puts++; w.puts%w.Undo != 0 || w.rng.IntN(2) == 0 {
		return
	}
	to := w.past[w.rng.IntN(len(w.past))]
	if !w.Young && (w.now().Sub(to.at) < undoLeast || !Inhabited(to.blob)) {
		return
	}
	w.fault()
	s.blob, s.version = to.blob, w.rng.Int()
}
