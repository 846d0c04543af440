package limittest

import (
	"fmt"
	"sync/atomic"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// number counts the requests of all tests of a process, for Sent.Number.
var number atomic.Uint64

// Admit admits a request to a limiter that the test drives itself. The test settles the Sent.
func Admit(l limit.Limiter, now mono.Time, cost limit.Cost) *limit.Sent {
	s := &limit.Sent{Cost: cost}
	Again(l, now, s)
	return s
}

// Again admits a request with a Sent whose own request is settled. It allocates nothing.
func Again(l limit.Limiter, now mono.Time, s *limit.Sent) {
	s.At, s.Number = now, number.Add(1)
	l.Admit(s)
}

// lent returns a copy of s, and spoils s. Only the copy is right for a limiter that kept s.
func lent(s *limit.Sent) *limit.Sent {
	own := *s
	*s = limit.Sent{At: limit.Never}
	return &own
}

// settleLent settles a request with copies, and checks law 16.
func settleLent(l limit.Limiter, now mono.Time, s *limit.Sent, o limit.Outcome) error {
	one, two := *s, o
	l.Settle(now, &one, &two)
	if one != *s || two != o {
		return fmt.Errorf("law 16: of %v and %+v Settle made %v and %+v", *s, o, one, two)
	}
	one, two = limit.Sent{At: limit.Never}, limit.Outcome{Result: limit.Unsent}
	return nil
}
