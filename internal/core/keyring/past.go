package keyring

import (
	"cmp"
	"slices"

	"github.com/paceline-go/paceline/limit"
)

// maxPast is the most entries of a Past, at some 100 bytes each.
const maxPast = 64

// Past is the answered requests of a key, for the case that it moves. It has them in order of their
// arrival. Beyond maxPast of them, neighbours count as one at the later instant. That is never less
// than they count in any window. The zero value is empty.
type Past struct{ all []limit.Past }

// Add notes an answered request.
func (p *Past) Add(one limit.Past) {
	if one.Result == limit.Unsent {
		return
	}
	if len(p.all) >= maxPast {
		p.fold()
	}
	i, _ := slices.BinarySearchFunc(p.all, one, func(a, b limit.Past) int { return cmp.Or(cmp.Compare(a.At, b.At), -1) })
	p.all = slices.Insert(p.all, i, one)
}

// fold makes one of each two neighbours in the older half.
func (p *Past) fold() {
	kept := p.all[:0]
	for i := 0; i < len(p.all); i++ {
		one := p.all[i]
		if i+1 < maxPast/2 {
			i++
			one = both(one, p.all[i])
		}
		kept = append(kept, one)
	}
	p.all = kept
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
