package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
)

// A stack reports how many of its requests are not settled, and since when the first is in flight.
func TestUnsettled(t *testing.T) {
	g, err := stack.New(stack.Config{})
	if err != nil {
		t.Fatal(err)
	}
	says := func(n int, since time.Duration) {
		t.Helper()
		want := at(since)
		if n == 0 {
			want = limit.Never
		}
		if k, first := g.Unsettled(); k != n || first != want {
			t.Errorf("%d since %v, want %d since %v", k, first, n, want)
		}
	}
	says(0, 0)
	a, b := g.Admit(at(time.Second), limit.One), g.Admit(at(3*time.Second), limit.One)
	says(2, time.Second)
	g.Settle(at(4*time.Second), a, limit.Outcome{Result: limit.Accepted})
	says(1, 3*time.Second)
	g.Settle(at(4*time.Second), b, limit.Outcome{})
	says(0, 0)
}

// The capacity of a bucket may be the first hint.
func TestContainComesFirst(t *testing.T) {
	l := newLine(t, stack.Config{})
	o := told(0, time.Minute)
	l.g.Contain(0, limit.Cost{60}, &o)
	l.ready(0, time.Second)
}
