package tiktoken

// merger counts the tokens of a piece. It keeps its memory between pieces. The zero value is ready.
// Not safe for concurrent use.
type merger struct {
	parts []part
	heap  []candidate
}

// part is a run of bytes from its own index to next. next and prev skip parts that were merged
// away.
type part struct {
	prev, next int
	rank       int // rank of this part and the next one as one token; unmergeable if they are no token
}

type candidate struct{ rank, at int }

const unmergeable = int(^uint(0) >> 1)

// count merges two neighbours that are a token together, until there are no such two. It takes the
// two whose token has the lowest rank, and the leftmost of equals. It takes n log n of the piece's
// length, because the number of letters in a row has no bound.
func (m *merger) count(ranks map[string]int, piece string) int {
	m.parts, m.heap = m.parts[:0], m.heap[:0]
	for i := range len(piece) + 1 {
		m.parts = append(m.parts, part{prev: i - 1, next: i + 1, rank: unmergeable})
	}
	for i := range len(piece) - 1 {
		m.look(ranks, piece, i)
	}
	left := len(piece)
	for len(m.heap) > 0 {
		top := m.pop()
		p := &m.parts[top.at]
		if p.rank != top.rank { // merged since
			continue
		}
		gone := &m.parts[p.next]
		gone.rank = unmergeable
		p.next = gone.next
		m.parts[p.next].prev = top.at
		left--
		m.look(ranks, piece, top.at)
		if p.prev >= 0 {
			m.look(ranks, piece, p.prev)
		}
	}
	return left
}

// look finds the rank of the part at i together with the next part.
func (m *merger) look(ranks map[string]int, piece string, i int) {
	p := &m.parts[i]
	p.rank = unmergeable
	if p.next == len(piece) {
		return
	}
	if rank, ok := ranks[piece[i:m.parts[p.next].next]]; ok {
		p.rank = rank
		m.push(candidate{rank, i})
	}
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// push and pop keep the heap; container/heap would allocate for each candidate.
func (m *merger) push(c candidate) {
	m.heap = append(m.heap, c)
	for i := len(m.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.heap[i].before(m.heap[up]) {
			return
		}
		m.heap[i], m.heap[up] = m.heap[up], m.heap[i]
		i = up
	}
}

func (m *merger) pop() candidate {
	h := m.heap
	top, n := h[0], len(h)-1
	h[0], m.heap = h[n], h[:n]
	for i := 0; ; {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if h[child].before(h[first]) {
				first = child
			}
		}
		if first == i {
			return top
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}
