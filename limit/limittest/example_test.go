package limittest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// pair is a limiter of one's own: no more than two requests at once.
type pair struct {
	open int
	last mono.Time // of a change: an earlier now counts as this one
}

func (p *pair) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if p.open < 2 {
		return max(now, p.last)
	}
	return limit.AfterSettle
}

func (p *pair) Admit(s *limit.Sent) {
	p.last = max(s.At, p.last)
	p.open++
}

func (p *pair) Settle(now mono.Time, _ *limit.Sent, _ *limit.Outcome) {
	p.last = max(now, p.last)
	p.open--
}

// atMostTwo is the rule of its server.
func atMostTwo() limittest.Spec {
	return limittest.Spec{New: func() limit.Limiter { return &pair{last: mono.Min} }}
}

// TestPair and FuzzPair are what the author of a limiter writes. They are run with the tests of this
// package.
func TestPair(t *testing.T) { limittest.Laws(t, atMostTwo()) }

func FuzzPair(f *testing.F) { limittest.Fuzz(f, atMostTwo()) }

// counted is a wrapper of one's own: it counts what its limiter lets go.
type counted struct {
	limit.Limiter
	sent *int
}

func (p counted) Admit(s *limit.Sent) {
	*p.sent++
	p.Limiter.Admit(s)
}

func (p counted) Unwrap() []limit.Limiter { return []limit.Limiter{p.Limiter} }

func (p counted) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	return limit.ReadyAfter(p.Limiter, now, first, cost)
}

func (p counted) NotBefore(now mono.Time, n int, ahead, cost limit.Cost) mono.Time {
	return limit.NotBefore(p.Limiter, now, n, ahead, cost)
}

// Every question to a wrapper must reach the limiter inside.
func TestCounted(t *testing.T) {
	limittest.Wraps(t, func(l limit.Limiter) limit.Limiter { return counted{l, new(int)} })
}

// A limiter of one's own obeys the laws, or the error says which it breaks. TestPair tries many
// programs, and FuzzPair looks for one.
func ExampleRun() {
	program := []byte("three bytes are a step of the program")
	fmt.Println(limittest.Run(atMostTwo(), program))

	none := atMostTwo()
	none.Promise = func(arrivals []limittest.Arrival) error {
		return fmt.Errorf("%d arrivals, and none is allowed", len(arrivals))
	}
	fmt.Println(limittest.Run(none, program) != nil)
	// Output:
	// <nil>
	// true
}

// Three requests arrive at one instant. Which servers that take two a second would refuse one?
func ExampleArrival() {
	three := make([]limittest.Arrival, 3)
	for i := range three {
		three[i] = limittest.Arrival{At: mono.Time(900 * time.Millisecond), Cost: limit.One}
	}
	for _, server := range []struct {
		name  string
		keeps func([]limittest.Arrival) error
	}{
		{"rolling window", limittest.Rolling(2, time.Second, limit.Requests)},
		{"bucket of three", limittest.Bucket(2, time.Second, 3, limit.Requests)},
	} {
		fmt.Printf("%s: %t\n", server.name, server.keeps(three) != nil)
	}
	// Output:
	// rolling window: true
	// bucket of three: false
}
