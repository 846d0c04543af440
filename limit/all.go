package limit

import (
	"fmt"
	"strings"
	"time"

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

// AppendState implements Keeper.
func (a *All) AppendState(b []byte) []byte {
	mustKeep(a)
	w := begun(b, 'a')
	w.instant(a.last)
	w.number(int64(len(a.each)))
	for _, l := range a.each {
		part := l.(Keeper).AppendState(nil)
		w.number(int64(len(part)))
		w = append(w, part...)
	}
	return w
}

// Restore implements Keeper.
func (a *All) Restore(b []byte) error {
	if err := Keeps(a); err != nil {
		return err
	}
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
		if err := l.(Keeper).Restore(part); err != nil {
			return fmt.Errorf("limit: All: limit %d of %d: %w", i+1, len(a.each), err)
		}
	}
	a.last = max(a.last, last)
	return r.end()
}

// Configuration implements Keeper.
func (a *All) Configuration() string {
	var parts []string
	for _, l := range a.each {
		parts = append(parts, configuration(l))
	}
	return "All [" + strings.Join(parts, "; ") + "]"
}

// Span implements Keeper: the longest of all.
func (a *All) Span() (most time.Duration) {
	for _, l := range a.each {
		most = max(most, span(l))
	}
	return most
}

// ReadyAfter implements Forecaster.
func (a *All) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	t := max(now, a.last)
	for _, l := range a.each {
		t = max(t, ReadyAfter(l, now, first, cost))
	}
	return t
}

// NotBefore implements Forecaster: the latest of all.
func (a *All) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	t := max(now, a.last)
	for _, l := range a.each {
		t = max(t, NotBefore(l, now, n, ahead, cost))
	}
	return t
}
