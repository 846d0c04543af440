package keyring

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Believes reports whether one more request is taken to be at fault itself.
func Believes(row, own int) bool { return (&Ring{row: row, own: own}).believes() }

// Len returns the number of keys.
func (r *Ring) Len() int { return len(r.keys) }

// Count makes the requests count in limits that are in use, as of now. Those that may still arrive
// count as of then. number is for limit.Sent.
func (p *Past) Count(now mono.Time, number func() uint64, l limit.Limiter) {
	count := func(cost limit.Cost, o limit.Outcome) {
		s := &limit.Sent{At: now, Number: number(), Cost: cost}
		l.Admit(s)
		l.Settle(now, s, &o)
	}
	var c limit.Cost
	for _, one := range *p {
		if one.At <= now {
			c = both(limit.Past{Cost: c}, one).Cost
			continue
		}
		count(one.Cost, limit.Outcome{Result: limit.Unknown, ArrivedAgo: now.Sub(one.At)})
	}
	if c != (limit.Cost{}) {
		count(c, limit.Outcome{Result: limit.Unknown})
	}
}
