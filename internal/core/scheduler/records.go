package scheduler

import (
	"iter"

	"github.com/paceline-go/paceline/limit"
)

// record is what a Scheduler keeps of an open pass.
type record struct {
	limit.Sent
	way     *Way
	skipped uint16 // the limits that were silent, and have no Admit, as bits
	metered bool   // spare holds
	open    bool
	next    uint32     // the next place to take, as records.free
	spare   limit.Cost // reserved beyond the cost that is surely used
}

// placeBits are the lower bits of a Number: the place of its record, counted from 1. So a record is
// found without a search, and a Number rises from one request to the next all the same. A Scheduler
// can have 16 million open requests, and a trillion requests in all.
const placeBits = 24

// records are the records of open passes. Memory grows with the largest number of open passes.
type records struct {
	all    []record
	free   uint32 // the next place to take, counted from 1; 0: there is none
	latest uint64 // counts the Numbers
}

// number returns a new Number for a request without a record.
func (r *records) number() uint64 {
	r.latest++
	return r.latest << placeBits
}

// take returns the record of a new pass with its Number. The caller writes all else: the memory holds
// an earlier request's values. The pointer holds until the next take.
func (r *records) take() *record {
	if r.free == 0 {
		r.grow()
	}
	k := &r.all[r.free-1]
	r.latest++
	k.Number, k.open = r.latest<<placeBits|uint64(r.free), true
	r.free = k.next
	return k
}

func (r *records) grow() {
	if len(r.all)+1 == 1<<placeBits {
		panic("paceline: 16 million requests are open: are all of them settled?")
	}
	r.all = append(r.all, record{})
	r.free = uint32(len(r.all))
}

// at returns the record of an open pass, or nil. The pointer holds until the next take.
func (r *records) at(number uint64) *record {
	if i := number&(1<<placeBits-1) - 1; i < uint64(len(r.all)) {
		if k := &r.all[i]; k.open && k.Number == number {
			return k
		}
	}
	return nil
}

// end ends a pass, and returns its record. The pointer holds until the next take.
func (r *records) end(number uint64) *record {
	if i := number&(1<<placeBits-1) - 1; i < uint64(len(r.all)) {
		if k := &r.all[i]; k.open && k.Number == number {
			k.open, k.next, r.free = false, r.free, uint32(i+1)
			return k
		}
	}
	panic("paceline: a request is settled twice, or was never admitted")
}

// each ranges over the records of open passes, in no order.
func (r *records) each() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for i := range r.all {
			if k := &r.all[i]; k.open && !yield(k) {
				return
			}
		}
	}
}
