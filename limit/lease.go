package limit

// Lease is a permit in use: opened by Admit, closed by Settle. It is a value of 16 bytes; the zero Lease is none.
type Lease struct {
	book       *ledger
	index      uint32
	generation uint32
}

// ledger is the part of a Book that a Lease can point to whatever the Book keeps.
type ledger struct {
	generations []uint32 // odd: open
	free        []uint32
}

// Book issues leases and keeps a T for each open one. Every Limiter owns one. Once it has seen its largest number of
// open leases it allocates no more. The zero Book is ready; it must not be copied once used.
type Book[T any] struct {
	ledger
	kept []T
}

// Open issues a lease and keeps v for it.
func (b *Book[T]) Open(v T) Lease {
	var i uint32
	if n := len(b.free); n > 0 {
		i = b.free[n-1]
		b.free = b.free[:n-1]
		b.kept[i] = v
	} else {
		i = uint32(len(b.kept))
		b.kept = append(b.kept, v)
		b.generations = append(b.generations, 0)
	}
	b.generations[i]++
	return Lease{&b.ledger, i, b.generations[i]}
}

// Close ends a lease and returns what was kept for it. It panics if the lease is not open in this book.
func (b *Book[T]) Close(l Lease) T {
	if l.book != &b.ledger {
		if l.book == nil {
			panic("limit: settle of the zero Lease")
		}
		panic("limit: settle of another limiter's lease")
	}
	if b.generations[l.index] != l.generation {
		panic("limit: lease settled twice")
	}
	b.generations[l.index]++
	b.free = append(b.free, l.index)
	return b.kept[l.index]
}

// Len returns how many leases are open.
func (b *Book[T]) Len() int { return len(b.kept) - len(b.free) }
