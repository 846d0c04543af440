package limit

import (
	"iter"
)

// Lease is the record of a request in flight: opened by Admit, closed by Settle. It is a value of
// 16 bytes. The zero Lease belongs to no limiter.
type Lease struct {
	book       *ledger
	index      uint32
	generation uint32
}

// ledger is the part of a Book that does not depend on its type T, so a Lease can point to it.
type ledger struct {
	free uint32 // the next slot to take, counted from 1; 0: there is none
	open int
}

// slot keeps the parts of a lease in one place. Apart, each would need a cache line.
type slot[T any] struct {
	kept       T
	generation uint32 // odd: open
	free       uint32 // as ledger.free, after this one
}

// Book issues leases and keeps a T for each open one. Every Limiter owns one. It allocates nothing
// more after its largest number of open leases. The zero Book is ready. Do not copy a Book after
// its first use.
type Book[T any] struct {
	ledger
	slots []slot[T]
}

// Open issues a lease and keeps v for it.
func (b *Book[T]) Open(v T) Lease {
	l, kept := b.Take()
	*kept = v
	return l
}

// Take is Open for a large T. The caller writes every field through the pointer, since the memory
// holds an earlier lease's value. The pointer holds until the next Open or Take.
func (b *Book[T]) Take() (Lease, *T) {
	if b.free == 0 {
		b.slots = append(b.slots, slot[T]{})
		b.free = uint32(len(b.slots))
	}
	i := b.free - 1
	s := &b.slots[i]
	b.free = s.free
	b.open++
	s.generation++
	return Lease{&b.ledger, i, s.generation}, &s.kept
}

// Close ends a lease and returns its T. It panics if the lease is not open in this book.
func (b *Book[T]) Close(l Lease) T { return *b.Return(l) }

// Return is Close for a large T. The pointer holds until the next Open or Take.
func (b *Book[T]) Return(l Lease) *T {
	if l.book != &b.ledger || b.slots[l.index].generation != l.generation {
		panic(b.wrong(l))
	}
	s := &b.slots[l.index]
	s.generation++
	s.free, b.free = b.free, l.index+1
	b.open--
	return &s.kept
}

// At returns the T of an open lease. The pointer holds until the next Open or Take. It panics if
// the lease is not open in this book.
func (b *Book[T]) At(l Lease) *T {
	if l.book != &b.ledger || b.slots[l.index].generation != l.generation {
		panic(b.wrong(l))
	}
	return &b.slots[l.index].kept
}

func (b *ledger) wrong(l Lease) string {
	switch l.book {
	case b:
		return "limit: lease settled twice"
	case nil:
		return "limit: settle of the zero Lease"
	}
	return "limit: settle of another limiter's lease"
}

// Len returns how many leases are open.
func (b *Book[T]) Len() int { return b.open }

// All ranges over the T of every open lease, in no order. Do not use the book meanwhile.
func (b *Book[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range b.slots {
			if s := &b.slots[i]; s.generation&1 == 1 && !yield(&s.kept) {
				return
			}
		}
	}
}

// Leases is All with the lease of each.
func (b *Book[T]) Leases() iter.Seq2[Lease, *T] {
	return func(yield func(Lease, *T) bool) {
		for i := range b.slots {
			if s := &b.slots[i]; s.generation&1 == 1 && !yield(Lease{&b.ledger, uint32(i), s.generation}, &s.kept) {
				return
			}
		}
	}
}
