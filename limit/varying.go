package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Varying is an All whose limiters may change while requests are in flight, as after a change of
// configuration. Limiters that stay keep their counts. Limiters that come count the requests in
// flight.
//
// Made by NewVarying. Not safe for concurrent use; the limiters in it belong to it.
type Varying struct {
	All
	costs []Cost    // of the open leases, by their index
	epoch time.Time // the zero of the scale, for limiters that come later
}

// NewVarying returns the conjunction of limiters, which belong to it from now on, as with NewAll.
// Their number and kinds may change later.
func NewVarying(limiters ...Limiter) *Varying { return &Varying{All: *NewAll(limiters...)} }

// Admit implements Limiter.
func (v *Varying) Admit(now mono.Time, cost Cost) Lease {
	lease := v.All.Admit(now, cost)
	if n := int(lease.index) + 1; n > len(v.costs) {
		v.costs = append(v.costs, make([]Cost, n-len(v.costs))...)
	}
	v.costs[lease.index] = cost
	return lease
}

// Change replaces the limiters from now on. A limiter that was there before goes on, also under
// another name (Named). Its limit may change, too, by SetLimit or SetWindow. A new limiter counts
// the requests in flight from now on, but no requests answered before. A limiter that is no longer
// in the list must not be used again. Change panics as NewAll does.
//
// As after SetLimit, call Ready again. A Fitted around it needs Follow.
func (v *Varying) Change(now mono.Time, limiters ...Limiter) {
	next := NewAll(limiters...)
	before := make([]int, len(next.each)) // the index of the same limiter, or -1
	for i, l := range next.each {
		before[i] = -1
		for j, was := range v.each {
			if bare(was) == bare(l) {
				before[i] = j
			}
		}
		for j := range i {
			if bare(next.each[j]) == bare(l) {
				panic(fmt.Sprintf("limit: Varying: limiters %d and %d are the same", j, i))
			}
		}
	}
	SetEpoch(next, v.epoch)
	v.last = max(now, v.last)
	leases := make([]Lease, len(v.book.slots)*len(next.each))
	for i := range v.book.slots {
		if v.book.slots[i].generation&1 == 0 {
			continue // not open
		}
		for k, l := range next.each {
			if j := before[k]; j >= 0 {
				leases[i*len(next.each)+k] = v.leases[i*len(v.each)+j]
			} else {
				leases[i*len(next.each)+k] = l.Admit(v.last, v.costs[i])
			}
		}
	}
	v.each, v.leases = next.each, leases
}

// Epoch returns the wall time that SetEpoch has passed on, of the zero of the driver's scale.
func (v *Varying) Epoch() time.Time { return v.epoch }

func (v *Varying) setEpoch(epoch time.Time) {
	v.epoch = epoch
	SetEpoch(&v.All, epoch)
}

// bare returns a limiter without the name from Named.
func bare(l Limiter) Limiter {
	for {
		n, ok := l.(*named)
		if !ok {
			return l
		}
		l = n.Limiter
	}
}

// VaryingIn returns the first Varying in l, also inside an All, Named or Fitted. It returns nil if
// there is none.
func VaryingIn(l Limiter) (first *Varying) {
	visit(l, nil, func(l Limiter, _ *string) bool {
		if v, ok := l.(*Varying); ok && first == nil {
			first = v
		}
		return first != nil
	})
	return first
}
