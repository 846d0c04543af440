package line

// heap is a binary heap of things that know their spot in it, so that any can be moved or taken out.
type heap[T any, O order[T]] struct {
	all []T
}

// order is an empty type that says how a heap is ordered.
type order[T any] interface {
	before(a, b T) bool
	spot(a T) *int32 // where it is; -1: not in the heap
}

func (h *heap[T, O]) push(x T) {
	var o O
	*o.spot(x) = int32(len(h.all))
	h.all = append(h.all, x)
	if len(h.all) > 1 {
		h.up(len(h.all) - 1)
	}
}

// fix moves x, whose order has changed. If it is not there, nothing happens.
func (h *heap[T, O]) fix(x T) {
	if len(h.all) < 2 {
		return
	}
	var o O
	if i := int(*o.spot(x)); i >= 0 && h.up(i) == i {
		h.down(i)
	}
}

// remove takes x out, if it is there.
func (h *heap[T, O]) remove(x T) {
	var o O
	i, last := int(*o.spot(x)), len(h.all)-1
	if i < 0 {
		return
	}
	*o.spot(x) = -1
	y := h.all[last]
	var none T
	h.all[last] = none
	h.all = h.all[:last]
	if i < last {
		h.all[i] = y
		*o.spot(y) = int32(i)
		if h.up(i) == i {
			h.down(i)
		}
	}
}

func (h *heap[T, O]) up(i int) int {
	var o O
	x := h.all[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !o.before(x, h.all[parent]) {
			break
		}
		h.all[i] = h.all[parent]
		*o.spot(h.all[i]) = int32(i)
		i = parent
	}
	h.all[i] = x
	*o.spot(x) = int32(i)
	return i
}

func (h *heap[T, O]) down(i int) {
	var o O
	x := h.all[i]
	for {
		least := 2*i + 1
		if least >= len(h.all) {
			break
		}
		if r := least + 1; r < len(h.all) && o.before(h.all[r], h.all[least]) {
			least = r
		}
		if !o.before(h.all[least], x) {
			break
		}
		h.all[i] = h.all[least]
		*o.spot(h.all[i]) = int32(i)
		i = least
	}
	h.all[i] = x
	*o.spot(x) = int32(i)
}

// byWake orders limits by when they are to be looked at.
type byWake struct{}

func (byWake) before(m, n *Limit) bool { return m.wake < n.wake }
func (byWake) spot(m *Limit) *int32    { return &m.timer }

// byPlace orders limits by the first that waits for them, and those of one lane, whose first is the same, as a lane chooses.
type byPlace struct{}

func (byPlace) before(m, n *Limit) bool {
	v, w := m.parked.all[0], n.parked.all[0]
	if v.place != w.place || v.seq != w.seq {
		return v.earlier(w.place, w.seq)
	}
	return byChoice{}.before(v, w)
}
func (byPlace) spot(m *Limit) *int32 { return &m.due }

// byRank orders the ways that wait for a limit: where it is fair by virtual time, otherwise by place.
type byRank struct{}

func (byRank) before(v, w *Way) bool {
	if v.start != w.start { // 0 where it is not fair
		return v.start < w.start
	}
	return v.earlier(w.place, w.seq)
}
func (byRank) spot(w *Way) *int32 { return &w.spot }

// byChoice orders the ways of a lane that are ready: the one that was so first, and equals take turns.
type byChoice struct{}

func (byChoice) before(v, w *Way) bool {
	if v.ready != w.ready {
		return v.ready < w.ready
	}
	return v.used < w.used || v.used == w.used && v.Index < w.Index
}
func (byChoice) spot(w *Way) *int32 { return &w.spot }
