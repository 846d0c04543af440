package transport

import "github.com/paceline-go/paceline/limit"

// NewRule returns what stands in the Gate of a partition, for the laws of limiters.
func NewRule(own limit.Limiter) limit.Limiter {
	r, err := newRule(own, own == nil)
	if err != nil {
		panic(err)
	}
	return r
}

// Active returns how many requests hold a partition.
func Active(t *Transport) (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leaves {
		n += l.active.Load()
	}
	return n
}
