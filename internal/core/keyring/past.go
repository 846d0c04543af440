package keyring

import (
	"cmp"
	"slices"

	"github.com/paceline-go/paceline/limit"
)

// maxPast is the most entries of a Past, at some 100 bytes each.
const maxPast = 64

// Past is the answered requests of a key, for the case that it moves. It has them in order of their
// arrival. Beyond maxPast of them, the oldest two count as one at the later instant. That is never
// less than they count in any window. The zero value is empty.
type Past struct{ all []limit.Past }

// Add notes an answered request.
func (p *Past) Add(one limit.Past) {
	if one.Result == limit.Unsent {
		return
	}
	i, _ := slices.BinarySearchFunc(p.all, one, func(a, b limit.Past) int { return cmp.Or(cmp.Compare(a.At, b.At), -1) })
	if p.all = slices.Insert(p.all, i, one); len(p.all) > maxPast {
		p.all[1] = both(p.all[0], p.all[1])
		p.all = slices.Delete(p.all, 0, 1)
	}
}

// both returns two requests as one that counts for at least as much, for as long.
func both(one, next limit.Past) limit.Past {
	for u, n := range one.Cost {
		next.Cost[u] = min(next.Cost[u]+n, limit.MaxCost)
	}
	if one.Result == limit.Accepted || next.Result == limit.Accepted {
		next.Result = limit.Accepted
	} else if one.Result != next.Result {
		next.Result = limit.Failed
	}
	next.Sent = min(next.Sent, one.Sent)
	return next
}

// Together returns requests, and those of several keys, in order of their arrival, for limit.Replay.
// It is for new limits, before anything counts there.
func Together(all []limit.Past, pasts ...*Past) []limit.Past {
	for _, p := range pasts {
		all = append(all, p.all...)
	}
	slices.SortStableFunc(all, func(a, b limit.Past) int { return cmp.Compare(a.At, b.At) })
	return all
}
