package keyring

import "github.com/paceline-go/paceline/limit"

// maxPast is the most entries of a Past, at some 100 bytes each.
const maxPast = 64

// Past is the answered requests of a key, for the case that it moves. Beyond maxPast of them, the
// oldest two count as one at the later instant. That is never less than they count in any window.
type Past []limit.Past

// Add notes an answered request.
func (p *Past) Add(one limit.Past) {
	*p = append(*p, one)
	if all := *p; len(all) > maxPast {
		all[1] = both(all[0], all[1])
		*p = all[1:]
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
	next.At, next.Sent = max(one.At, next.At), min(one.Sent, next.Sent)
	return next
}
