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

// Remembered returns how many partitions, clients and nodes there are.
func Remembered(t *Transport) (leaves, clients, nodes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients.mu.Lock()
	defer t.clients.mu.Unlock()
	nodes = len(t.nodes)
	for _, c := range t.clients.byName {
		if c.own != nil {
			nodes++
		}
	}
	return len(t.leaves), len(t.clients.byName), nodes
}

// Frozen returns how many partitions and clients are frozen.
func Frozen(t *Transport) (partitions, clients int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients.mu.Lock()
	defer t.clients.mu.Unlock()
	return t.cold.Len(), t.clients.cold.Len()
}

// Shapes enters n shapes that no request has, and returns how many are remembered, and whether the
// first one is.
func Shapes(t *Transport, n int) (size int, first bool) {
	for id := range n {
		f, _, _, _ := t.shapes.enter(uint64(id))
		t.shapes.learn(f, f.of.cost)
		t.shapes.ends(f)
	}
	return len(t.shapes.all), t.shapes.all[0] != nil
}

// RenamePath gives the model in a path another name.
var RenamePath = renamePath

// Repacked returns a partition as it comes back from its name in a FrozenStore.
func Repacked(p Partition) Partition { return unpacked(p.packed()) }
