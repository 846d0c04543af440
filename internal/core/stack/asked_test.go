package stack_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// A stack reports how many of its requests are not settled.
func TestUnsettled(t *testing.T) {
	g, err := stack.New(stack.Config{})
	if err != nil {
		t.Fatal(err)
	}
	says := func(n int) {
		t.Helper()
		if k := len(slices.Collect(g.InFlight())); k != n {
			t.Errorf("%d, want %d", k, n)
		}
	}
	says(0)
	a, b := limittest.Admit(g, at(time.Second), limit.One), limittest.Admit(g, at(3*time.Second), limit.One)
	says(2)
	g.Settle(at(4*time.Second), a, &limit.Outcome{Result: limit.Accepted})
	says(1)
	g.Settle(at(4*time.Second), b, &limit.Outcome{})
	says(0)
}

// The capacity of a bucket may be the first hint.
func TestContainComesFirst(t *testing.T) {
	l := newLine(t, stack.Config{})
	o := told(0, time.Minute)
	l.g.Contain(0, limit.Cost{60}, &o)
	l.ready(0, time.Second)
}
