package limit

import (
	"cmp"
	"fmt"
	"slices"
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
	open  Book[Sent]
	epoch time.Time // the zero of the scale, for limiters that come later
}

// NewVarying returns the conjunction of limiters, which belong to it from now on, as with NewAll.
// Their number and kinds may change later.
func NewVarying(limiters ...Limiter) *Varying { return &Varying{All: *NewAll(limiters...)} }

// Admit implements Limiter.
func (v *Varying) Admit(s *Sent) {
	v.All.Admit(s)
	v.open.Open(s.Number, *s)
}

// Settle implements Limiter.
func (v *Varying) Settle(now mono.Time, s *Sent, o *Outcome) {
	v.open.Return(s.Number)
	v.All.Settle(now, s, o)
}

// Change replaces the limiters from now on. A limiter that was there before goes on, also under
// another name (Named). Its limit may change, too, by SetLimit or SetWindow. A new limiter counts
// the requests in flight from now on, but no requests answered before. A limiter that is no longer
// in the list must not be used again. Change panics as NewAll does.
//
// As after SetLimit, call Ready again. A Fitted around it needs Follow.
func (v *Varying) Change(now mono.Time, limiters ...Limiter) {
	next := NewAll(limiters...)
	is := make([]bool, len(next.each)) // it was there before
	for i, l := range next.each {
		for _, was := range v.each {
			is[i] = is[i] || bare(was) == bare(l)
		}
		for j := range i {
			if bare(next.each[j]) == bare(l) {
				panic(fmt.Sprintf("limit: Varying: limiters %d and %d are the same", j, i))
			}
		}
	}
	SetEpoch(next, v.epoch)
	v.last = max(now, v.last)
	sent := v.inFlight()
	for i, l := range next.each {
		if is[i] {
			continue
		}
		for k := range sent {
			l.Admit(&sent[k])
		}
	}
	v.each = next.each
}

// inFlight returns the open requests, in the order of their Admit.
func (v *Varying) inFlight() (all []Sent) {
	for s := range v.open.All() {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Sent) int { return cmp.Compare(a.Number, b.Number) })
	return all
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
