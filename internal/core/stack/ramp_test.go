package stack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// goes returns how many requests a limiter lets go at once, and settles them with an outcome.
func goes(l limit.Limiter, now mono.Time, o limit.Outcome) (n int) {
	var open []*limit.Sent
	for l.Ready(now, limit.One) <= now && n < 1000 {
		open = append(open, limittest.Admit(l, now, limit.One))
		n++
	}
	for _, s := range open {
		l.Settle(now, s, &o)
	}
	return n
}

var fine = limit.Outcome{Result: limit.Accepted}

// A part of the limit is used, and of what the server says is left. A party that leaves more has less.
func TestUsesAPart(t *testing.T) {
	g := plain(stack.Config{Limiter: limit.MustRolling(40, time.Second), Use: 0.75})
	if at := g.ReadyLeaving(0, nil, limit.Cost{limit.Requests: 20}, 0.5); at != 0 {
		t.Errorf("half goes at %v, and leaves half", at)
	}
	if at := limit.ReadyLeaving(g, 0, nil, limit.Cost{limit.Requests: 21}, 0.5); at != 0 {
		t.Errorf("more than half goes at %v, though all is free", at)
	}
	if n := goes(g, 0, fine); n != 30 {
		t.Errorf("%d of 40 go, want three quarters", n)
	}

	g = plain(stack.Config{Use: 0.5})
	s := limittest.Admit(g, 0, limit.One)
	left := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	left.Remaining[limit.Requests], left.Reset[limit.Requests] = 20, time.Minute
	g.Settle(0, s, &left)
	for i := range 10 {
		if at := g.ReadyLeaving(0, nil, limit.One, 0.1); at != 0 {
			t.Errorf("%d of 20 are gone, half is used and a tenth left: the next goes at %v", i, at)
		}
		g.Settle(0, limittest.Admit(g, 0, limit.One), &fine)
	}
	if n := goes(g, 0, fine); n != 0 {
		t.Errorf("%d more than half of the 20 that are left go", n)
	}
	if at := g.ReadyLeaving(0, nil, limit.One, 0.9); at != mono.Time(time.Minute) {
		t.Errorf("with 0.9 to be left the next goes at %v, want the reset", at)
	}
	if _, rule := g.Explain(0, limit.One); rule.Name != "hint" {
		t.Errorf("it waits for %q", rule.Name)
	}
	if err := g.SetUse(0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if n := goes(g, 0, fine); n != 10 {
		t.Errorf("%d of the rest go, want all", n)
	}
	if _, err := stack.New(stack.Config{Use: -1}); err == nil || !strings.Contains(err.Error(), "Use -1") {
		t.Error(err)
	}
}

// After a refusal for a load that rose too quickly the load rises slowly, with a ramp or without, and
// beside requests in flight.
func TestSurged(t *testing.T) {
	for name, c := range map[string]stack.Config{
		"no ramp": {Limiter: limit.MustRolling(60, time.Second)},
		"a ramp":  {Limiter: limit.MustRolling(60, time.Second), Ramp: stack.DefaultRamp},
	} {
		g := plain(c)
		at := mono.Time(0)
		if c.Ramp > 0 { // that of the start is over
			goes(g, at, fine)
			at = mono.Time(stack.DefaultRamp)
		}
		before := limittest.Admit(g, at, limit.One)
		g.Surged(at)
		g.Settle(at, before, &fine)
		for _, second := range []int{10, 30, 59, 70} {
			now := at + mono.Time(second)*mono.Time(time.Second)
			if n, most := goes(g, now, fine), min(second, 60); n != most {
				t.Errorf("%s: %d go %d s later, want %d", name, n, second, most)
			}
		}
		rest := at + mono.Time(time.Hour)
		goes(g, rest, fine)
		want := map[bool]int{true: 2, false: 60}[c.Ramp > 0]
		if n := goes(g, rest+mono.Time(2*time.Second), fine); n != want {
			t.Errorf("%s: %d go after a rest, want %d", name, n, want)
		}
	}
	g := plain(stack.Config{Limiter: limit.MustRolling(60, time.Second)})
	goes(g, mono.Time(10*time.Second), fine)
	g.Surged(mono.Time(5 * time.Second)) // is noticed late
	if n := goes(g, mono.Time(12*time.Second), fine); n != 2 {
		t.Errorf("%d go 2 s after the last request, want 2: the load rises from there", n)
	}
	g = plain(stack.Config{})
	g.Surged(0)
	if s := limittest.Admit(g, 0, limit.One); g.Ready(0, limit.One) != limit.AfterSettle {
		t.Error("without a limit the load does not begin slowly")
	} else if g.Settle(0, s, &fine); g.Ready(0, limit.One) != 0 {
		t.Error("after an answer the next does not go")
	}
}
