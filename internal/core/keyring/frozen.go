package keyring

import (
	"container/heap"
	"maps"
	"math"

	"github.com/paceline-go/paceline/limit/mono"
)

// FrozenMemory is what one partition remembers.
type FrozenMemory[W any] struct {
	// State has it in bytes. Whole is for what no bytes have: an object that Size bytes belong to.
	State string
	Whole *W
	Size  int
	// Counts is the instant from which nothing of it counts any more. Until Useful it is worth
	// keeping, if there is room.
	Counts, Useful mono.Time
}

// FrozenStore has the memories of idle partitions by name, in a few bytes each, until nothing of them
// counts any more. It forgets nothing that counts: its owner asks before it adds a partition that is
// new. NewFrozenStore makes it. Not safe for concurrent use.
type FrozenStore[W any] struct {
	all    map[string]*frozenEntry[W]
	counts frozenEnds[W] // those that count, by Counts
	useful frozenEnds[W] // the others, by Useful
	bytes  int64
	most   int64
	high   bool // more than warnAt is in use, and that was said
}

type frozenEntry[W any] struct {
	name string
	FrozenMemory[W]
	at    int32 // its place in counts or useful
	spare bool  // it is in useful
}

// NewFrozenStore returns an empty FrozenStore for so many bytes.
func NewFrozenStore[W any](most int64) *FrozenStore[W] {
	s := &FrozenStore[W]{all: map[string]*frozenEntry[W]{}, most: most}
	s.useful.spare = true
	return s
}

// Each memory takes this much besides its name and its State: the entry, its place in a map that is
// two thirds full, and its place in a heap that is three quarters full.
const frozenOverhead = 96 + 44 + 11

// size returns how many bytes an entry takes. Allocations are in steps of 16 bytes.
func (e *frozenEntry[W]) size() int64 {
	up := func(n int) int64 { return int64(n+15) &^ 15 }
	return frozenOverhead + up(len(e.name)) + up(len(e.State)) + int64(e.Size)
}

// Put keeps a memory, in place of an earlier one of the same name. It does so beyond the bound,
// too: what counts must not be lost. Nothing is kept that neither counts nor is useful.
func (s *FrozenStore[W]) Put(now mono.Time, name string, m FrozenMemory[W]) {
	s.remove(s.all[name])
	if m.Counts <= now && (m.Useful <= now || s.bytes >= s.most) {
		return
	}
	e := &frozenEntry[W]{name: name, FrozenMemory: m}
	s.all[name] = e
	s.bytes += e.size()
	s.add(now, e)
	s.sweep(now)
}

func (s *FrozenStore[W]) add(now mono.Time, e *frozenEntry[W]) {
	if e.spare = e.Counts <= now; e.spare {
		heap.Push(&s.useful, e)
	} else {
		heap.Push(&s.counts, e)
	}
}

// Take removes the memory of a name, and returns it. ok is false if there is none.
func (s *FrozenStore[W]) Take(name string) (m FrozenMemory[W], ok bool) {
	e := s.all[name]
	if e == nil {
		return m, false
	}
	s.remove(e)
	return e.FrozenMemory, true
}

func (s *FrozenStore[W]) remove(e *frozenEntry[W]) {
	if e == nil {
		return
	}
	if e.spare {
		heap.Remove(&s.useful, int(e.at))
	} else {
		heap.Remove(&s.counts, int(e.at))
	}
	s.drop(e)
}

func (s *FrozenStore[W]) drop(e *frozenEntry[W]) {
	delete(s.all, e.name)
	s.bytes -= e.size()
}

// thawnAtOnce is how many memories are forgotten at once. Many may end at the same instant, and nobody
// is to wait for all of them.
const thawnAtOnce = 32

// sweep forgets what is of no use any more, and beyond the bound all that does not count.
func (s *FrozenStore[W]) sweep(now mono.Time) {
	for n := 0; n < thawnAtOnce && len(s.counts.all) > 0 && s.counts.all[0].Counts <= now; n++ {
		e := heap.Pop(&s.counts).(*frozenEntry[W])
		if e.Useful > now {
			s.add(now, e)
		} else {
			s.drop(e)
		}
	}
	for n := 0; n < thawnAtOnce && len(s.useful.all) > 0 && (s.useful.all[0].Useful <= now || s.bytes > s.most); n++ {
		s.drop(heap.Pop(&s.useful).(*frozenEntry[W]))
	}
}

// Full reports whether there is no room for one more partition that counts, and when there will be:
// not before now.
func (s *FrozenStore[W]) Full(now mono.Time) (first mono.Time, full bool) {
	s.sweep(now)
	if s.bytes < s.most {
		return 0, false
	}
	if first = mono.Time(math.MaxInt64); len(s.counts.all) > 0 {
		first = max(now, s.counts.all[0].Counts)
	}
	return first, true
}

// Parts of the bound: at warnAt the owner is warned, once until less than calmAt is in use.
const (
	warnAt = 0.8
	calmAt = 0.6
)

// Warns reports, once, that most of the bound is in use.
func (s *FrozenStore[W]) Warns() bool {
	was := s.high
	switch used := float64(s.bytes) / float64(s.most); {
	case used >= warnAt:
		s.high = true
	case used < calmAt:
		s.high = false
	}
	return s.high && !was
}

// Len returns how many partitions the FrozenStore has. Bytes returns what they take, and Most the bound.
func (s *FrozenStore[W]) Len() int     { return len(s.all) }
func (s *FrozenStore[W]) Bytes() int64 { return s.bytes }
func (s *FrozenStore[W]) Most() int64  { return s.most }

// Bound changes the bound.
func (s *FrozenStore[W]) Bound(most int64) { s.most = most }

// Each replaces every memory by what change returns for it. It is for a change of limits.
func (s *FrozenStore[W]) Each(now mono.Time, change func(name string, m FrozenMemory[W]) FrozenMemory[W]) {
	was := s.all
	s.all, s.counts.all, s.useful.all, s.bytes = map[string]*frozenEntry[W]{}, nil, nil, 0
	for name, e := range was {
		s.Put(now, name, change(name, e.FrozenMemory))
	}
}

// Rename gives memories the names that f returns for them, no two the same.
func (s *FrozenStore[W]) Rename(f func(name string, m *FrozenMemory[W]) string) {
	was := s.all
	s.all, s.bytes = map[string]*frozenEntry[W]{}, 0
	for name, e := range was {
		e.name = f(name, &e.FrozenMemory)
		s.all[e.name] = e
		s.bytes += e.size()
	}
}

// Copy adds a copy of each memory for which f says so, by the name that f returns.
func (s *FrozenStore[W]) Copy(now mono.Time, f func(name string, m *FrozenMemory[W]) (string, bool)) {
	for name, e := range maps.Clone(s.all) {
		if to, ok := f(name, &e.FrozenMemory); ok {
			s.Put(now, to, e.FrozenMemory)
		}
	}
}

// frozenEnds is a heap of entries by the instant at which their part ends.
type frozenEnds[W any] struct {
	all   []*frozenEntry[W]
	spare bool
}

// Len implements sort.Interface.
func (h *frozenEnds[W]) Len() int { return len(h.all) }

// Less implements sort.Interface.
func (h *frozenEnds[W]) Less(i, j int) bool {
	if h.spare {
		return h.all[i].Useful < h.all[j].Useful
	}
	return h.all[i].Counts < h.all[j].Counts
}

// Swap implements sort.Interface.
func (h *frozenEnds[W]) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].at, h.all[j].at = int32(i), int32(j)
}

// Push implements heap.Interface.
func (h *frozenEnds[W]) Push(x any) {
	e := x.(*frozenEntry[W])
	e.at = int32(len(h.all))
	h.all = append(h.all, e)
}

// Pop implements heap.Interface.
func (h *frozenEnds[W]) Pop() any {
	last := len(h.all) - 1
	e := h.all[last]
	h.all[last] = nil
	h.all = h.all[:last]
	return e
}
