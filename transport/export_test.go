package transport

import (
	"slices"
	"time"
	"unsafe"

	"github.com/paceline-go/paceline/limit/mono"
)

// AttemptSize is the memory that an attempt takes: its fields, and eight bytes of the runtime.
const AttemptSize = unsafe.Sizeof(sent{}) + 8

// Bounded returns a partition with short fields.
func Bounded(p Partition) Partition { return p.bounded() }

// Active returns how many requests hold a partition.
func Active(t *Transport) (n int64) { return t.underway() }

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

// ShutAndOpen shuts each limit, as a pause does that is too long to wait for, and opens it at once.
func ShutAndOpen(t *Transport) {
	for _, yes := range []bool{true, false} {
		t.mu.Lock()
		for _, n := range t.nodes {
			update(t.group, func(mono.Time) { n.shutIf(yes) }, []*node{n})
		}
		t.mu.Unlock()
	}
}

// Homes lets sessions of one bucket be served, one a second, and returns which of them are remembered
// then.
func Homes(served ...int) (remembered []int) {
	var s sessions
	name := func(session int) uint64 { return uint64(session*manySessions/inBucket)<<1 | 1 }
	for at, session := range served {
		s.served(name(session), 0, time.Duration(at)*time.Second)
	}
	for session := range slices.Max(served) + 1 {
		if _, ok := s.home(name(session), time.Duration(len(served))*time.Second); ok {
			remembered = append(remembered, session)
		}
	}
	return remembered
}

// RenamePath gives the model in a path another name.
var RenamePath = renamePath

// Repacked returns a partition as it comes back from its name in a FrozenStore.
func Repacked(p Partition) Partition { return unpacked(p.packed()) }
