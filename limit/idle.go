package limit

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// An idle limiter has no request in flight. Its memory may then be kept in a few bytes, although
// not all of its parts are Keepers: a bound on requests in flight counts nothing.

// Most returns the largest cost in one unit that l ever lets go, all other units being 0. counts is
// false if l lets any cost in this unit go.
func Most(l Limiter, now mono.Time, u Unit) (n int64, counts bool) {
	never := func(n int64) bool {
		var c Cost
		c[u] = n
		return l.Ready(now, c) == Never
	}
	if !never(MaxCost) {
		return MaxCost, false
	}
	return int64(sort.Search(MaxCost, func(n int) bool { return never(int64(n) + 1) })), true
}

// CountsUntil returns the instant from which nothing that was settled counts in l any more. Then a
// new limiter like l decides as l does. It is not before now. known is false if a request is in
// flight, or if a part of l is of an unknown kind.
func CountsUntil(l Limiter, now mono.Time) (until mono.Time, known bool) {
	until, known = now, true
	for _, part := range Parts(l) {
		t := now
		switch part := part.(type) {
		case *Concurrency:
			if part.open > 0 {
				return now, false
			}
			if n := part.lingers.after(now); n > 0 {
				t = part.lingers.freed(part.lingers.total)
			}
		case *Rolling, *Calendar, *Anchored, *Bucket, *Weighted, *Produced, *Cooldown, *Spacing:
			t = wholly(part, now)
		default:
			return now, false
		}
		if t >= AfterSettle {
			return now, false
		}
		until = max(until, t)
	}
	return until, known
}

// wholly returns when the whole of a limit may go at once: nothing counts then.
func wholly(l Limiter, now mono.Time) (t mono.Time) {
	t = now
	for u := range units {
		var c Cost
		c[u] = MaxCost
		at := l.Ready(now, c)
		if at == Never {
			c[u], _ = Most(l, now, u)
			at = l.Ready(now, c)
		}
		t = max(t, at)
	}
	return t
}

// AppendIdle appends the memory of l to b, if no request is in flight in it. It is for the same
// process: the state is that of a Keeper, but parts that are none and count nothing at now are left
// out. ok is false if a request is in flight, or if a part remembers what no state has. A Fitted in
// l is part of it unless it has a lesson.
func AppendIdle(b []byte, l Limiter, now mono.Time) (state []byte, ok bool) {
	if Unsettled(l) > 0 {
		return b, false
	}
	for _, part := range idles(l) {
		switch {
		case Keeps(part) == nil:
		case countsNothing(part, now):
			continue
		default:
			return b, false
		}
		own := appendState(nil, part)
		b = binary.AppendUvarint(b, uint64(len(own))+1)
		b = append(append(b, unitOf(part)), own...)
	}
	for _, f := range fitteds(l) {
		own, ok := f.appendIdle(nil)
		if !ok {
			return b, false
		}
		b = binary.AppendUvarint(b, uint64(len(own))+1)
		b = append(append(b, ofFitted), own...)
	}
	return b, true
}

// countsNothing reports whether a part that is no Keeper may begin anew.
func countsNothing(part Limiter, now mono.Time) bool {
	switch part.(type) {
	case *Concurrency, *Spacing:
		until, known := CountsUntil(part, now)
		return known && until <= now
	}
	return false
}

var errIdle = errors.New("limit: the state is of no limit")

// idlePart is the memory of one part in a state.
type idlePart struct {
	unit   byte
	kind   byte
	window time.Duration // 0: it has none
	own    []byte
	taken  bool
}

// idleParts reads a state.
func idleParts(state []byte) (all []idlePart, err error) {
	for len(state) > 0 {
		n, size := binary.Uvarint(state)
		if size <= 0 || n < 3 || n > uint64(len(state)-size) {
			return nil, errIdle
		}
		part := idlePart{unit: state[size], kind: state[size+1], own: state[size+1 : size+int(n)]}
		state = state[size+int(n):]
		if part.unit < byte(units) { // it has an account
			part.window = time.Duration(reading("", part.kind, part.own).account().window)
		}
		all = append(all, part)
	}
	return all, nil
}

// RestoreIdle reads the memory that AppendIdle wrote into l, which is new. If the limits in l are
// others meanwhile, each takes the memory of one of its kind and unit, and of its window if there
// is such a one. fits is false if l has a limit without a memory, and the state has a memory of its
// unit that no limit takes. After an error, do not use l.
func RestoreIdle(l Limiter, state []byte) (fits bool, err error) {
	had, err := idleParts(state)
	if err != nil {
		return false, err
	}
	parts := idles(l)
	parts = slices.DeleteFunc(parts, func(part Limiter) bool { return Keeps(part) != nil })
	for _, sameWindow := range []bool{true, false} {
		for i, part := range parts {
			if part == nil {
				continue
			}
			for j := range had {
				h := &had[j]
				if h.taken || h.unit != unitOf(part) || h.kind != appendState(nil, part)[0] || sameWindow && h.window != windowOf(part) {
					continue
				}
				if err := Restore(part, h.own); err != nil {
					return false, err
				}
				h.taken, parts[i] = true, nil
				break
			}
		}
	}
	for _, f := range fitteds(l) {
		for j := range had {
			if h := &had[j]; h.unit == ofFitted && !h.taken {
				if h.taken = true; !f.restoreIdle(h.own) {
					return false, errIdle
				}
				break
			}
		}
	}
	for _, part := range parts {
		if part != nil && slices.ContainsFunc(had, func(h idlePart) bool { return !h.taken && h.unit == unitOf(part) }) {
			return false, nil
		}
	}
	return true, nil
}

func windowOf(l Limiter) time.Duration {
	if rates, _ := Rates(l); len(rates) > 0 {
		return rates[0].Per
	}
	return 0
}

// unitOf returns the unit of a limiter without parts. One without a unit has the number after all.
func unitOf(l Limiter) byte {
	if rates, _ := Rates(l); len(rates) > 0 {
		return byte(rates[0].Unit)
	}
	return byte(units)
}

// idles returns the parts of l whose memories together are that of l. A wrapper of an unknown kind
// is a part itself.
func idles(l Limiter) (parts []Limiter) {
	made, ok := inside(l)
	if !ok {
		return []Limiter{l}
	}
	for _, part := range made {
		parts = append(parts, idles(part)...)
	}
	return parts
}

// ofFitted stands in place of a unit where the memory is that of a Fitted, without its Limiter.
const ofFitted = byte(units) + 1

// fitteds returns the Fitteds in l.
func fitteds(l Limiter) (all []*Fitted) {
	visit(l, nil, func(l Limiter, _ *string) bool {
		if f, is := l.(*Fitted); is {
			all = append(all, f)
		}
		return false
	})
	return all
}

// appendIdle appends the evidence of a Fitted that has no lesson: when it began, and what was
// accepted in the last window. ok is false if there is a lesson.
func (f *Fitted) appendIdle(b []byte) (state []byte, ok bool) {
	if len(f.Lessons()) > 0 || f.bound || f.open > 0 {
		return b, false
	}
	w := begun(b, 'f')
	w.instant(f.last)
	w.before(f.last, f.began)
	w.before(f.last, f.asked)
	for i := range f.fits {
		t := &f.fits[i]
		g := &t.ledger.settled
		g.forget(f.last.Add(-t.ledger.span))
		w = append(w, byte(t.rate.Unit))
		w.number(int64(t.rate.Per))
		w.before(f.last, t.answered)
		w.number(int64(g.n))
		for k := range g.n {
			w.instant(f.last - g.at(k).at)
			w.number(g.upTo(k+1) - g.upTo(k))
		}
	}
	return w, true
}

// restoreIdle reads that evidence into a new Fitted. It reports whether the state is whole.
func (f *Fitted) restoreIdle(b []byte) bool {
	r := reading("Fitted", 'f', b)
	f.last = r.instant("the last change")
	f.began, f.asked = r.before(f.last), r.before(f.last)
	for r.err == nil && r.at < len(b) {
		unit := Unit(b[r.at])
		r.at++
		per := time.Duration(r.number("the window", 1, math.MaxInt64))
		i := slices.IndexFunc(f.fits, func(t fit) bool { return t.rate.Unit == unit && t.rate.Per == per && t.ledger.settled.n == 0 })
		answered, g := r.before(f.last), newLog()
		for range r.number("the number of arrivals", 0, int64(len(b))) {
			at := f.last - r.instant("an arrival")
			if cost := r.number("what it counts", 1, MaxCost); r.err == nil {
				g.add(at, cost)
			}
		}
		if i >= 0 && r.err == nil {
			f.fits[i].answered, f.fits[i].ledger.settled, f.fits[i].ledger.last = answered, g, f.last
		}
	}
	return r.err == nil
}

// before writes an instant as its distance from last; mono.Min, which is no instant, as 1.
func (w *state) before(last, t mono.Time) {
	if t == mono.Min {
		*w = append(*w, 1)
		return
	}
	*w = binary.AppendVarint(append(*w, 0), int64(last-t))
}

func (r *reader) before(last mono.Time) mono.Time {
	if r.err == nil && r.at < len(r.all) {
		if r.at++; r.all[r.at-1] == 1 {
			return mono.Min
		}
	}
	return last - r.instant("an instant before")
}
