package keyring

import (
	"sort"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Carry makes what a limiter has used count in another, to, with its own limits in own. It is for a
// key whose answered requests nobody noted one by one. Its requests in flight, at a cost of open together,
// have joined the other before. Usage that still counts in the day may no longer count in the minute, so
// each part of the limits gets what its counterpart has used. number is for limit.Sent.
func Carry(now mono.Time, number func() uint64, from, to, own limit.Limiter, open limit.Cost) {
	whole := used(from, now, open)
	carry := func(l limit.Limiter, c limit.Cost) {
		s := &limit.Sent{At: now, Number: number(), Cost: c}
		l.Admit(s)
		l.Settle(now, s, &limit.Outcome{Result: limit.Accepted})
	}
	carry(to, whole)
	olds, news := limit.Parts(from), limit.Parts(own)
	for i, part := range news {
		old := olds // if the two are not made of the same parts, each replaces all
		if len(olds) == len(news) {
			old = olds[i : i+1]
		}
		var more limit.Cost // what is not in the usage of the whole
		for _, was := range old {
			for u, n := range used(was, now, open) {
				more[u] = max(more[u], n-whole[u])
			}
			was, isOld := was.(*limit.Produced)
			if p, is := part.(*limit.Produced); is && isOld {
				was.CarryTo(now, p)(now)
			}
		}
		carry(part, more)
	}
}

// used returns, in each unit, how much of a limiter's limits is not available at once, because of
// recent usage. Requests in flight, which cost open, are left out.
func used(l limit.Limiter, now mono.Time, open limit.Cost) (c limit.Cost) {
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
		c[u] = max(ever-int64(room)-open[u], 0)
	}
	return c
}
