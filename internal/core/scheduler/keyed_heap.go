package scheduler

import "math"

// heap is a heap of things that know their spot in it, so that any can be moved or taken out. Each
// entry has its key, so that a comparison touches neither thing: with a thousand lanes they are not
// in the cache. A method of the things would also be called through a dictionary.
//
// It is four wide. The ticket that goes is the first, and most often becomes the last. Four
// children per node halve the steps down.
type heap[T any] struct {
	all []entry[T]
}

const wide = 4

// key is the order of entries: the first number that differs decides.
type key [4]int64

type entry[T any] struct {
	key  key
	spot *int32 // where it is; -1: not in the heap
	x    T
}

func (a *key) before(b *key) bool {
	// Neither a loop nor a switch compiles to plain jumps.
	return a[0] < b[0] || a[0] == b[0] && (a[1] < b[1] || a[1] == b[1] && (a[2] < b[2] || a[2] == b[2] && a[3] < b[3]))
}

// first returns the first of a heap that is not empty.
func (h *heap[T]) first() T { return h.all[0].x }

func (h *heap[T]) push(x T, spot *int32, k key) {
	*spot = int32(len(h.all))
	h.all = append(h.all, entry[T]{k, spot, x})
	if len(h.all) > 1 {
		h.up(len(h.all) - 1)
	}
}

// fix gives the entry at spot another key. If it is not there, nothing happens.
func (h *heap[T]) fix(spot *int32, k key) {
	i := int(*spot)
	if i < 0 {
		return
	}
	h.all[i].key = k
	if len(h.all) > 1 && h.up(i) == i {
		h.down(i)
	}
}

// remove takes the entry at spot out, if it is there.
func (h *heap[T]) remove(spot *int32) {
	i, last := int(*spot), len(h.all)-1
	if i < 0 {
		return
	}
	*spot = -1
	if i < last {
		h.put(i, &h.all[last])
	}
	h.all[last] = entry[T]{}
	h.all = h.all[:last]
	if i < last && h.up(i) == i {
		h.down(i)
	}
}

// up and down move other entries to make room for the entry at i, which is put down once.

func (h *heap[T]) up(i int) int {
	e, from := h.all[i], i
	for i > 0 {
		parent := (i - 1) / wide
		if !e.key.before(&h.all[parent].key) {
			break
		}
		h.put(i, &h.all[parent])
		i = parent
	}
	if i != from {
		h.put(i, &e)
	}
	return i
}

func (h *heap[T]) down(i int) {
	e, from, all := h.all[i], i, h.all
	for k := wide*i + 1; k < len(all); k = wide*i + 1 {
		at, least := k, &all[k]
		for end := min(k+wide, len(all)); k+1 < end; k++ {
			if below := &all[k+1]; below.key.before(&least.key) {
				at, least = k+1, below
			}
		}
		if i == from && !least.key.before(&e.key) {
			return
		}
		h.put(i, least) // e is not compared: most often it goes to the end
		i = at
	}
	if i != from {
		h.put(i, &e)
		h.up(i)
	}
}

func (h *heap[T]) put(i int, e *entry[T]) {
	h.all[i] = *e
	*e.spot = int32(i)
}

// byWake orders limits by the instant to look at them.
func (m *Limit) byWake() key { return key{int64(m.wake)} }

// byPlace orders limits by their first waiting ticket. Limits of one lane have the same first
// ticket, and are in the order of its choice.
func (m *Limit) byPlace() key {
	w := m.parked.first()
	chosen := w.byChoice()
	return key{int64(w.place), w.seq, chosen[0], chosen[1]}
}

// byRank orders the ways that wait for m: by place, or at a fair limit by virtual time and then by
// place. The bits of a float64 that is not negative are in its order, and those of -Inf before all.
func (w *Way) byRank(m *Limit) key {
	if m.fair == nil {
		return key{int64(w.place), w.seq}
	}
	return key{int64(math.Float64bits(w.start)), int64(w.place), w.seq}
}

// byChoice orders the ready ways of a lane: the first that was ready goes first, and equals take
// turns.
func (w *Way) byChoice() key { return key{int64(w.ready), w.used<<waysBits | int64(w.Index)} }

const waysBits = 20

// turns are the ready ways of a lane, byChoice. It is a list, since the latest way to be asked is
// among the last.
type turns struct{ first, last *Way }

func (r *turns) insert(w *Way) {
	at, k := r.last, w.byChoice()
	for at != nil {
		other := at.byChoice()
		if !k.before(&other) {
			break
		}
		at = at.prev
	}
	if w.prev = at; at == nil {
		w.next, r.first = r.first, w
	} else {
		w.next, at.next = at.next, w
	}
	if w.next == nil {
		r.last = w
	} else {
		w.next.prev = w
	}
}

func (r *turns) remove(w *Way) {
	if w.prev == nil {
		r.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		r.last = w.prev
	} else {
		w.next.prev = w.prev
	}
}
