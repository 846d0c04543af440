package sending

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
)

// heldAnswers bounds what the bodies of answers take together until they are in the results.
const heldAnswers = 128 << 20

// memory bounds the bytes of all answers' bodies together. A reader takes bytes as its body grows.
// If none are left it waits, and so the server waits, too.
//
// One waiting reader may exceed the limit, so that one body can always end. All bodies together
// take no more than the limit and the longest of them. Safe for concurrent use.
type memory struct {
	limit int64

	mu      sync.Mutex
	held    int64
	over    bool // one reader goes on beyond the limit
	waiting []*share
	most    int64 // most bytes held at once
}

// share is the part of one answer.
type share struct {
	n    int64
	over bool
	asks int64
	let  chan struct{}
}

// take takes n more bytes for s, or fails with the error of ctx. It calls waits at the beginning
// and at the end of a wait.
func (m *memory) take(ctx context.Context, s *share, n int64, waits func(bool)) error {
	m.mu.Lock()
	s.asks = n
	if (len(m.waiting) == 0 || s.over) && m.letLocked(s) {
		m.mu.Unlock()
		return nil
	}
	s.let = make(chan struct{})
	m.waiting = append(m.waiting, s)
	m.mu.Unlock()
	waits(true)
	defer waits(false)
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.waiting, s); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
		m.nextLocked() // a reader with a smaller demand may not have to wait
	}
	return ctx.Err()
}

// letLocked grants a share its demand, if the limit allows it.
func (m *memory) letLocked(s *share) bool {
	if m.held+s.asks > m.limit && !s.over {
		if m.over {
			return false
		}
		m.over, s.over = true, true
	}
	m.held += s.asks
	s.n += s.asks
	m.most = max(m.most, m.held)
	return true
}

// Free gives back the bytes of an answer.
func (m *memory) Free(s *share) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held -= s.n
	if s.over {
		m.over = false
	}
	*s = share{}
	m.nextLocked()
}

// nextLocked lets waiting readers go on, in the order in which they came.
func (m *memory) nextLocked() {
	for len(m.waiting) > 0 && m.letLocked(m.waiting[0]) {
		close(m.waiting[0].let)
		m.waiting = slices.Delete(m.waiting, 0, 1) // no reference stays behind: it would keep the body
	}
}

// keptWaiting is how much of an answer is kept with a request that waits for another attempt.
const keptWaiting = 64 << 10

// Shorten cuts the body of a response to that length.
func (res *Response) Shorten() {
	if len(res.Body) > keptWaiting {
		res.Body, res.Cut = bytes.Clone(res.Body[:keptWaiting]), true
	}
}

const (
	// firstRead is how many bytes are taken at first for a body of unknown length. believed bounds
	// the bytes taken at first for a body whose length the server states.
	firstRead, believed = 4 << 10, 1 << 20
)

// read reads at most most bytes of a body. length is the length that the server states; -1: none.
func (m *memory) read(ctx context.Context, s *share, body io.Reader, length, most int64, waits func(bool)) (b []byte,
	err error) {
	size := int64(firstRead)
	if length >= 0 {
		size = min(length+1, believed) // with room to see the end
	}
	for ; ; size = 2 * int64(cap(b)) {
		if len(b) > 0 && length >= int64(len(b)) {
			size = length + 1
		}
		size = min(size, most)
		if err := m.take(ctx, s, size-int64(cap(b)), waits); err != nil {
			return b, err
		}
		b = append(make([]byte, 0, size), b...)
		for len(b) < cap(b) {
			n, err := body.Read(b[len(b):cap(b)])
			b = b[:len(b)+n]
			if err == io.EOF {
				return b, nil
			}
			if err != nil {
				return b, err
			}
		}
		if int64(len(b)) >= most {
			return b, nil
		}
	}
}
