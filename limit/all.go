package limit

import (
	"fmt"

	"github.com/paceline-go/paceline/limit/mono"
)

// All holds several limiters at once. A cost is ready when each of them is ready. All of them admit
// it together, so nothing is undone. The limiters belong to the All from then on. Not safe for
// concurrent use.
type All struct {
	each []Limiter
	last mono.Time
}

// NewAll returns the conjunction of limiters. Each keeps its own unit and rule. It panics if one of
// them is nil or given twice. An All of none is always ready.
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
func (a *All) Admit(s *Sent) {
	a.last = max(s.At, a.last)
	for _, l := range a.each {
		l.Admit(s)
	}
}

// Settle implements Limiter.
func (a *All) Settle(now mono.Time, s *Sent, o *Outcome) {
	a.last = max(now, a.last)
	for _, l := range a.each {
		l.Settle(now, s, o)
	}
}

func (a *All) appendState(b []byte) []byte {
	w := begun(b, 'a')
	w.instant(a.last)
	w.number(int64(len(a.each)))
	for _, l := range a.each {
		part := appendState(nil, l)
		w.number(int64(len(part)))
		w = append(w, part...)
	}
	return w
}

func (a *All) restore(b []byte) error {
	r := reading("All", 'a', b)
	last := r.instant("the last change")
	if n := r.number("the number of limits", 0, int64(len(b))); r.err == nil && n != int64(len(a.each)) {
		return r.fail("it is of %d limits, not %d", n, len(a.each))
	}
	for i, l := range a.each {
		part := r.bytes("a limit")
		if r.err != nil {
			break
		}
		if err := Restore(l, part); err != nil {
			return fmt.Errorf("limit: All: limit %d of %d: %w", i+1, len(a.each), err)
		}
	}
	a.last = max(a.last, last)
	return r.end()
}
