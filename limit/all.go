package limit

import (
	"fmt"

	"github.com/paceline-go/paceline/mono"
)

// All holds several limiters at once: a cost is ready when each of them is ready, and admitted by all of them together,
// so nothing is ever undone. Not safe for concurrent use; the limiters now belong to it.
type All struct {
	each   []Limiter
	last   mono.Time
	book   Book[struct{}]
	leases []Lease // the leases that belong to lease i stand from i·len(each) on
}

// NewAll returns the conjunction of limiters, each of which keeps its own unit and rule. It panics if one of them is
// nil or given twice. All of none is always ready.
func NewAll(limiters ...Limiter) *All {
	for i, l := range limiters {
		if l == nil {
			panic(fmt.Sprintf("limit: All: limiter %d is nil", i))
		}
		for j := range i {
			if limiters[j] == l {
				panic(fmt.Sprintf("limit: All: limiters %d and %d are the same", j, i))
			}
		}
	}
	return &All{each: append([]Limiter(nil), limiters...), last: mono.Min}
}

// Ready implements Limiter: the latest of all.
func (a *All) Ready(now mono.Time, cost Cost) mono.Time {
	t := max(now, a.last)
	for _, l := range a.each {
		t = max(t, l.Ready(now, cost))
	}
	return t
}

// Admit implements Limiter.
func (a *All) Admit(now mono.Time, cost Cost) Lease {
	a.last = max(now, a.last)
	lease := a.book.Open(struct{}{})
	first := int(lease.index) * len(a.each)
	if end := first + len(a.each); end > len(a.leases) {
		a.leases = append(a.leases, make([]Lease, end-len(a.leases))...)
	}
	for i, l := range a.each {
		a.leases[first+i] = l.Admit(now, cost)
	}
	return lease
}

// Settle implements Limiter.
func (a *All) Settle(now mono.Time, lease Lease, o Outcome) {
	a.book.Close(lease)
	a.last = max(now, a.last)
	first := int(lease.index) * len(a.each)
	for i, l := range a.each {
		l.Settle(now, a.leases[first+i], o)
	}
}

// Parts returns the limiters that l is made of if it is an All or contains one. Ask them one by one what All cannot tell for all of them.
// They still belong to l.
func Parts(l Limiter) []Limiter {
	switch l := l.(type) {
	case nil:
		return nil
	case *All:
		var parts []Limiter
		for _, each := range l.each {
			parts = append(parts, Parts(each)...)
		}
		return parts
	case *Varying:
		return Parts(&l.All)
	case *named:
		return Parts(l.Limiter)
	case *Fitted:
		return Parts(l.own)
	}
	return []Limiter{l}
}
