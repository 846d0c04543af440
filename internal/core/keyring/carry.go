package keyring

import (
	"sort"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Carry makes what a limiter has used count in another, to, with its own limits in own. It is for a
// key whose requests nobody noted one by one. The usage is one request in flight until end, which
// settles it with the final amount. Usage that still counts in the day may no longer count in the
// minute, so each part of the limits gets what its counterpart has used. number is for limit.Sent.
func Carry(now mono.Time, number func() uint64, from, to, own limit.Limiter) (end func(now mono.Time)) {
	var ends []func(now mono.Time)
	carry := func(l limit.Limiter, result limit.Result, used func(now mono.Time) limit.Cost) {
		s := &limit.Sent{At: now, Number: number(), Cost: used(now)}
		l.Admit(s)
		ends = append(ends, func(now mono.Time) {
			l.Settle(now, s, &limit.Outcome{Result: result, Metered: true, Actual: used(now)})
		})
	}
	carry(to, limit.Accepted, func(now mono.Time) limit.Cost { return used(from, now) })
	olds, news := limit.Parts(from), limit.Parts(own)
	for i, part := range news {
		old := olds // if the two are not made of the same parts, each replaces all
		if len(olds) == len(news) {
			old = olds[i : i+1]
		}
		carry(part, limit.Accepted, func(now mono.Time) limit.Cost { return beyond(from, old, now) })
		if p, ok := part.(*limit.Produced); ok {
			for _, was := range old {
				if was, ok := was.(*limit.Produced); ok {
					ends = append(ends, was.CarryTo(now, p))
				}
			}
			continue
		}
		for range open(old) - 2 { // the whole and this part are two requests in flight already
			carry(part, limit.Unsent, func(mono.Time) limit.Cost { return limit.Cost{} })
		}
	}
	return func(now mono.Time) {
		for _, end := range ends {
			end(now)
		}
	}
}

// open returns how many requests are in flight, for limits that count each as one, whatever it costs.
func open(parts []limit.Limiter) (n int) {
	for _, part := range parts {
		n = max(n, limit.Unsettled(part))
	}
	return n
}

// beyond returns what parts of a limiter have used that is not in the usage of the whole.
func beyond(all limit.Limiter, parts []limit.Limiter, now mono.Time) (more limit.Cost) {
	whole := used(all, now)
	for _, part := range parts {
		for u, n := range used(part, now) {
			more[u] = max(more[u], n-whole[u])
		}
	}
	return more
}

// used returns, in each unit, how much of a limiter's limits is not available at once, because of
// recent usage or requests in flight.
func used(l limit.Limiter, now mono.Time) (c limit.Cost) {
	if l == nil {
		return c
	}
	for u := range c {
		alone := func(n int64) (c limit.Cost) { c[u] = n; return c }
		ever, counts := limit.Most(l, now, limit.Unit(u))
		if !counts {
			continue
		}
		room := sort.Search(int(ever), func(n int) bool { return l.Ready(now, alone(int64(n)+1)) > now })
		c[u] = ever - int64(room)
	}
	return c
}
