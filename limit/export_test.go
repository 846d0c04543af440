package limit

import "github.com/paceline-go/paceline/limit/mono"

// Entries returns how many entries the history of r has.
func Entries(r *Rolling) int { return r.settled.n }

// admitted is the Number of the latest request of the tests in this package. They run one by one.
var admitted uint64

func admit(l Limiter, now mono.Time, cost Cost) *Sent {
	admitted++
	s := &Sent{At: now, Number: admitted, Cost: cost}
	l.Admit(s)
	return s
}
