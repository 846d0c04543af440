package transport

// Active returns how many requests hold a partition.
func Active(t *Transport) (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leaves {
		n += l.active.Load()
	}
	return n
}
