package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// The first request goes alone until it is answered, or for the time of the Trial. If it had no
// answer, was refused, or proved nothing, another goes first.
func TestTrial(t *testing.T) {
	const patience = 3 * time.Second
	for _, c := range []struct {
		name   string
		end    limit.Result
		try    bool // the driver says that it proves nothing
		alone  bool // the next goes alone, too
		at     time.Duration
		before time.Duration // when a second one may go while the first is out
	}{
		{"served", limit.Accepted, false, false, time.Second, patience},
		{"failed", limit.Failed, false, false, time.Second, patience},
		{"denied", limit.Failed, true, true, time.Second, patience},
		{"never sent", limit.Unsent, false, true, time.Second, patience},
		{"refused", limit.Limited, false, true, time.Second, patience},
		{"lost", limit.Unknown, false, true, time.Second, patience},
	} {
		g, err := stack.New(stack.Config{Trial: patience})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.ReadyAfter(0, limit.One, limit.One); got != at(patience) {
			t.Errorf("%s: after a first one at %v", c.name, got)
		}
		first := limittest.Admit(g, 0, limit.One)
		if got := g.Ready(at(ms), limit.One); got != at(c.before) {
			t.Errorf("%s: a second one at %v, want %v", c.name, got, c.before)
		}
		if _, b := g.Explain(at(ms), limit.One); b.Name != "trial" {
			t.Errorf("%s: it waits for %q", c.name, b.Name)
		}
		if c.try {
			g.Try()
		}
		g.Settle(at(c.at), first, &limit.Outcome{Result: c.end})
		limittest.Admit(g, at(c.at), limit.One)
		want := at(c.at)
		if c.alone {
			want = at(c.at + patience)
		}
		if got := g.Ready(at(c.at), limit.One); got != want {
			t.Errorf("%s: then another at %v, want %v", c.name, got, want)
		}
	}
	// A server that takes long is not waited for, and its answer does not count as the first one
	// then.
	g, _ := stack.New(stack.Config{Trial: patience})
	first := limittest.Admit(g, 0, limit.One)
	limittest.Admit(g, at(patience), limit.One)
	if got := g.Ready(at(patience), limit.One); got != at(patience) {
		t.Errorf("after its patience a third one at %v", got)
	}
	g.Try()
	g.Settle(at(patience), first, &limit.Outcome{Result: limit.Unknown})
	limittest.Admit(g, at(patience), limit.One)
	if got := g.Ready(at(patience), limit.One); got != at(patience) {
		t.Errorf("a trial that is over begins again: %v", got)
	}
	// Only the first request's answer counts, not that of a request that went without a call of
	// Ready.
	g, _ = stack.New(stack.Config{Trial: patience})
	limittest.Admit(g, 0, limit.One)
	g.Settle(at(ms), limittest.Admit(g, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
	if got := g.Ready(at(ms), limit.One); got != at(patience) {
		t.Errorf("after the answer to another a second one at %v", got)
	}
	if _, err := stack.New(stack.Config{Trial: -1}); err == nil || err.Error() != "a Trial of -1ns is negative" {
		t.Errorf("%v", err)
	}
}

// The first requests go few at a time, and one more for each six that are served. After the time of First any number
// goes, with or without answers.
func TestFirst(t *testing.T) {
	g, err := stack.New(stack.Config{First: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var open []*limit.Sent
	fill := func(now time.Duration) int {
		for len(open) < 100 && g.Ready(at(now), limit.One) == at(now) {
			open = append(open, limittest.Admit(g, at(now), limit.One))
		}
		return len(open)
	}
	for served, want := range []int{5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7} {
		if n := fill(time.Duration(served) * ms); n != want {
			t.Errorf("%d were served, and %d go together, want %d", served, n, want)
		}
		if ready := g.Ready(at(time.Duration(served)*ms), limit.One); ready != at(time.Second) {
			t.Errorf("%d were served: the next one may go at %v without an answer, want after a second", served, ready)
		}
		g.Settle(at(time.Duration(served+1)*ms), open[0], &limit.Outcome{Result: limit.Accepted})
		open = open[1:]
	}
	if n := fill(time.Second); n != 100 {
		t.Errorf("after a second %d go together, want any number", n)
	}
}
