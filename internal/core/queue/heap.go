package queue

import "github.com/paceline-go/paceline/limit/mono"

// heap sorts items of the slab by an instant, then by a sequence number. It knows the place of each
// item, so that any can be removed. A node has four children: the heap is half as deep as with two,
// and the children of a node are neighbours. container/heap would box, and call through an
// interface.
type heap struct {
	entries []entry
	spots   *spots
}

// spots has, by the index of an item in the slab, its index in the heap's entries, or −1. Heaps
// that never contain the same item may share one.
type spots struct{ of []int32 }

// grow makes room for one more item of the slab.
func (s *spots) grow() { s.of = append(s.of, -1) }

// entry contains its sort key, so that sifting stays within the heap's memory.
type entry struct {
	at    mono.Time
	seq   uint64
	index uint32
}

func (e *entry) before(f *entry) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// first returns the first item. The heap has one.
func (h *heap) first() *entry { return &h.entries[0] }

func (h *heap) push(at mono.Time, seq uint64, index uint32) {
	e := entry{at, seq, index}
	h.entries = append(h.entries, e)
	h.up(len(h.entries)-1, e)
}

func (h *heap) remove(index uint32) {
	i := int(h.spots.of[index])
	h.spots.of[index] = -1
	n := len(h.entries) - 1
	e := h.entries[n]
	h.entries = h.entries[:n]
	if i < n {
		h.place(i, e)
	}
}

// move gives an item another instant and sequence number.
func (h *heap) move(at mono.Time, seq uint64, index uint32) {
	h.place(int(h.spots.of[index]), entry{at, seq, index})
}

// place puts e at i, or moves it from there to where it belongs.
func (h *heap) place(i int, e entry) {
	if i > 0 && e.before(&h.entries[(i-1)/4]) {
		h.up(i, e)
	} else {
		h.down(i, e)
	}
}

// up puts e at i, or as far above as it belongs.
func (h *heap) up(i int, e entry) {
	all, spot := h.entries, h.spots.of
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&all[up]) {
			break
		}
		all[i] = all[up]
		spot[all[i].index] = int32(i)
		i = up
	}
	all[i] = e
	spot[e.index] = int32(i)
}

// down puts e at i, or as far below as it belongs.
func (h *heap) down(i int, e entry) {
	all, spot := h.entries, h.spots.of
	for {
		least := 4*i + 1
		if least >= len(all) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(all)); c++ {
			if all[c].before(&all[least]) {
				least = c
			}
		}
		if !all[least].before(&e) {
			break
		}
		all[i] = all[least]
		spot[all[i].index] = int32(i)
		i = least
	}
	all[i] = e
	spot[e.index] = int32(i)
}
