package limit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

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
			if part.book.Len() > 0 {
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
// out. ok is false if a request is in flight, or if a part remembers what no state has.
func AppendIdle(b []byte, l Limiter, now mono.Time) (state []byte, ok bool) {
	if n, _ := Unsettled(l); n > 0 {
		return b, false
	}
	for _, part := range idles(l) {
		k, keeps := AsKeeper(part)
		switch {
		case keeps:
		case countsNothing(part, now):
			continue
		default:
			return b, false
		}
		own := k.AppendState(nil)
		b = binary.AppendUvarint(b, uint64(len(own))+1)
		b = append(append(b, unitOf(part)), own...)
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

var errIdle = errors.New("limit: the state is of other limits")

// RestoreIdle reads the memory that AppendIdle wrote into l, which is new and has the same
// configuration. After an error, do not use l.
func RestoreIdle(l Limiter, state []byte) error {
	for _, part := range idles(l) {
		k, keeps := AsKeeper(part)
		if !keeps {
			continue
		}
		n, size := binary.Uvarint(state)
		if size <= 0 || n == 0 || n > uint64(len(state)-size) {
			return errIdle
		}
		own := state[size : size+int(n)]
		state = state[size+int(n):]
		if own[0] != unitOf(part) {
			return fmt.Errorf("%w: %v, not %v", errIdle, Unit(own[0]), Unit(unitOf(part)))
		}
		if err := k.Restore(own[1:]); err != nil {
			return err
		}
	}
	if len(state) > 0 {
		return errIdle
	}
	return nil
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
	switch l := l.(type) {
	case *All, *Varying, *named, *Fitted:
		for _, part := range l.(wrapper).Unwrap() {
			parts = append(parts, idles(part)...)
		}
		return parts
	}
	return []Limiter{l}
}
