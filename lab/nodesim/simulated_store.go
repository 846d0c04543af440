// Package nodesim simulates, in virtual time, nodes (processes) that share a limit by package
// internal/core/node. The simulated store fails at times: it cannot be reached, loses what was
// written, or repeats a write. In the simulation, somebody sets clocks wrong, the network delays
// messages, and nodes are suspended for a while or killed. A simulated server of package rule
// judges every arrival.
package nodesim

import (
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit/mono"
)

// Store is a simulated store, of one limit. The zero Store is new, and its clock is Base at instant 0.
type Store struct {
	blob        []byte
	version     int
	set         time.Duration // by how much somebody set its clock
	incarnation int
	steady      bool
	accept      func(blob []byte) // is told of each before it is put, if not nil
	undo        func()            // is called after each put, if not nil
}

// Base is the store's clock at the beginning.
const Base = mono.Time(500_000 * 3600 * 1e9)

// reading is what the store says at an instant of the run, and which version that is.
func (s *Store) reading(now mono.Time) (node.Reading, int) {
	clock := int64(Base.Add(now.Sub(0)).Add(s.set))
	return node.Reading{Clock: clock, Wall: clock, Incarnation: fmt.Sprint(s.incarnation), Steady: s.steady,
		Blob: s.blob}, s.version
}

// put puts a blob unless somebody put since that version was read.
func (s *Store) put(blob []byte, version int) bool {
	if s.version != version {
		return false
	}
	if s.accept != nil {
		s.accept(blob)
	}
	s.blob = blob
	s.version++
	if s.undo != nil {
		s.undo()
	}
	return true
}

// Inhabited reports whether a node is in the book of a blob.
func Inhabited(blob []byte) bool {
	b, err := node.Decode(blob)
	return err == nil && slices.ContainsFunc(b.Nodes, func(e node.Entry) bool { return e.Turn > 0 })
}

// Rest puts a book in which nothing counts and nobody is, as if the store had been there for long:
// nodes so configured need not be quiet.
func (s *Store) Rest(c node.Config) {
	r, _ := s.reading(0)
	s.put(node.Rested(c, &r), s.version)
}
