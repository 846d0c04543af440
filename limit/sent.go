package limit

import (
	"iter"
	"math/bits"

	"github.com/paceline-go/paceline/limit/mono"
)

// Sent is the record of a request in flight. The driver makes it before Admit and keeps it until
// Settle. All limiters of the request read the same Sent, and none keeps the pointer.
type Sent struct {
	// At is the instant of Admit.
	At mono.Time
	// Number distinguishes the requests of one driver. A later request has a larger Number.
	Number uint64
	// Cost is the admitted cost. It counts in full until Settle.
	Cost Cost
	// Leaves is the part of each limit that the request leaves free for others: see ReadyLeaving.
	Leaves float64
}

// Book keeps a T for each open request, by its Number. A limiter has one if it must remember more
// than Sent; a driver has one for its Sents. It allocates nothing more after its largest number of
// open requests. The zero Book is ready. Not safe for concurrent use.
type Book[T any] struct {
	chains []uint32 // by the hash of Number: the first slot of a chain, counted from 1; 0: none
	shift  int      // of the hash
	slots  []slot[T]
	free   uint32 // the next slot to take, counted from 1; 0: there is none
	open   int
}

type slot[T any] struct {
	kept   T
	number uint64
	next   uint32 // of the chain, or of the free slots; as Book.free
	open   bool
}

// spread is the multiplier of Fibonacci hashing: the upper bits of the product spread evenly,
// whatever the distance between numbers.
const spread = 0x9E3779B97F4A7C15

// Open keeps v for a request.
func (b *Book[T]) Open(number uint64, v T) { *b.Take(number) = v }

// Take is Open for a large T. The caller writes every field through the pointer, since the memory
// holds an earlier request's value. The pointer holds until the next Open or Take.
func (b *Book[T]) Take(number uint64) *T {
	if b.free == 0 {
		b.grow()
	}
	i := b.free
	s := &b.slots[i-1]
	b.free = s.next
	b.open++
	chain := &b.chains[number*spread>>b.shift]
	s.number, s.open, s.next = number, true, *chain
	*chain = i
	return &s.kept
}

func (b *Book[T]) grow() {
	b.slots = append(b.slots, slot[T]{})
	b.free = uint32(len(b.slots))
	if len(b.slots) <= len(b.chains) {
		return
	}
	b.chains = make([]uint32, max(4, 2*len(b.chains)))
	b.shift = 64 - bits.TrailingZeros(uint(len(b.chains)))
	for i := range b.slots[:len(b.slots)-1] { // without a free slot, all are open
		s := &b.slots[i]
		chain := &b.chains[s.number*spread>>b.shift]
		s.next, *chain = *chain, uint32(i+1)
	}
}

// Close ends a request and returns its T. It panics if no such request is open.
func (b *Book[T]) Close(number uint64) T { return *b.Return(number) }

// Return is Close for a large T. The pointer holds until the next Open or Take.
func (b *Book[T]) Return(number uint64) *T {
	if b.open > 0 {
		for at := &b.chains[number*spread>>b.shift]; *at != 0; {
			s := &b.slots[*at-1]
			if s.number == number {
				*at, s.next, b.free = s.next, b.free, *at
				s.open = false
				b.open--
				return &s.kept
			}
			at = &s.next
		}
	}
	panic("limit: a request is settled twice, or was never admitted")
}

// At returns the T of an open request. The pointer holds until the next Open or Take. It is nil if
// no such request is open.
func (b *Book[T]) At(number uint64) *T {
	if b.open > 0 {
		for at := b.chains[number*spread>>b.shift]; at != 0; at = b.slots[at-1].next {
			if s := &b.slots[at-1]; s.number == number {
				return &s.kept
			}
		}
	}
	return nil
}

// Len returns how many requests are open.
func (b *Book[T]) Len() int { return b.open }

// All ranges over the T of every open request, in no order. Do not use the book meanwhile.
func (b *Book[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range b.slots {
			if s := &b.slots[i]; s.open && !yield(&s.kept) {
				return
			}
		}
	}
}
