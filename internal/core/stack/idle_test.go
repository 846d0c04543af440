package stack_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// stirred uses a stack until nothing is in flight. The server refuses, asks for pauses and says
// what is left.
func stirred(rng *rand.Rand, g *stack.Stack) (now mono.Time) {
	var open []*limit.Sent
	settle := func() {
		o := limit.Outcome{Result: limit.Accepted}
		switch rng.IntN(6) {
		case 0:
			o.Result = limit.Limited
		case 1:
			o.Result, o.RetryAfter = limit.Limited, time.Duration(rng.IntN(20))*time.Second
		case 2, 3:
			o.Known, o.Remaining[limit.Requests], o.Reset[limit.Requests] = 1, rng.Int64N(3), time.Duration(1+rng.IntN(20))*time.Second
		}
		g.Settle(now, open[0], &o)
		open = open[1:]
	}
	for range 1 + rng.IntN(20) {
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		if g.Ready(now, limit.One) <= now {
			open = append(open, limittest.Admit(g, now, limit.One))
		}
		if len(open) > 0 && rng.IntN(2) == 0 {
			settle()
		}
	}
	for len(open) > 0 {
		settle()
	}
	return now
}

// A stack that was put away and comes back goes on at the same instants. One that was forgotten
// when nothing counted any more is not earlier than the first request may be.
func TestIdleStackComesBack(t *testing.T) {
	configs := map[string]func() stack.Config{
		"limit": func() stack.Config { return stack.Config{Limiter: limit.MustRolling(5, 10*time.Second), Pause: steady} },
		"none":  func() stack.Config { return stack.Config{Pause: steady} },
		"probes": func() stack.Config {
			return stack.Config{Limiter: limit.MustRolling(5, 10*time.Second), Pause: steady, MaxPause: 3 * time.Second}
		},
	}
	for name, config := range configs {
		written, held, knew := 0, 0, 0
		for seed := range uint64(300) {
			g := plain(config())
			now := stirred(rand.New(rand.NewPCG(seed, 7)), g)
			idle, ok := g.Idle(now)
			if !ok {
				t.Fatalf("%s: seed %d: nothing is in flight, and it is not idle", name, seed)
			}
			if at := g.Ready(idle.Counts, limit.One); idle.State != nil && at != idle.Counts { // a lesson makes it slower still
				t.Errorf("%s: seed %d: nothing counts from %v on, and it is ready at %v", name, seed, idle.Counts, at)
			}
			if idle.Counts > now {
				held++
			}
			if idle.Knows {
				knew++
			}
			if idle.State == nil {
				continue
			}
			written++
			next := plain(config())
			if fits, err := next.Revive(idle.State); err != nil || !fits {
				t.Fatalf("%s: seed %d: it fits: %v, %v", name, seed, fits, err)
			}
			for d := time.Duration(0); d < 40*time.Second; d += 300 * time.Millisecond {
				for n := int64(1); n <= 5; n++ {
					c := limit.Cost{limit.Requests: n}
					if was, is := g.Ready(now.Add(d), c), next.Ready(now.Add(d), c); was != is {
						t.Fatalf("%s: seed %d: %v later %v is ready at %v, and was at %v", name, seed, d, c, is, was)
					}
				}
			}
			p, on := g.Paused(now)
			if again, is := next.Paused(now); is != on || again != p {
				t.Errorf("%s: seed %d: the pause %+v has become %+v", name, seed, p, again)
			}
			if was, is := g.Refusals(), next.Refusals(); was != is {
				t.Errorf("%s: seed %d: %d refusals in a row, and were %d", name, seed, is, was)
			}
		}
		if written < 100 || held < 100 || knew < 100 {
			t.Errorf("%s: %d were written, %d held requests back, %d knew something: the test shows little", name, written, held, knew)
		}
	}
}

func TestBusyStackIsNotIdle(t *testing.T) {
	g := plain(stack.Config{})
	lease := limittest.Admit(g, 0, limit.One)
	if _, ok := g.Idle(0); ok {
		t.Error("a request is in flight, and the stack is idle")
	}
	g.Settle(0, lease, &limit.Outcome{Result: limit.Accepted})
	if idle, ok := g.Idle(0); !ok || idle.Knows || idle.Counts != 0 {
		t.Errorf("%+v, %v", idle, ok)
	}
}

// Each thing that a stack may have learned is enough to keep it for.
func TestIdleStackKnows(t *testing.T) {
	for name, learn := range map[string]func(g *stack.Stack, l *line){
		"a reset": func(g *stack.Stack, l *line) { l.ends(ms, "a", told(0, time.Minute)) },
		"a refusal": func(g *stack.Stack, l *line) {
			l.ends(ms, "a", limit.Outcome{Result: limit.Limited})
		},
		"a beginning": func(g *stack.Stack, l *line) {
			g.Begin(at(ms))
			l.ends(ms, "a", unsent)
		},
		"a capacity": func(g *stack.Stack, l *line) {
			l.ends(ms, "a", limit.Outcome{Result: limit.Accepted})
			g.Contain(at(2*ms), limit.Cost{60}, &limit.Outcome{})
		},
	} {
		g := plain(stack.Config{Pause: steady})
		l := &line{t, g, map[string]*limit.Sent{}}
		l.sends(0, "a")
		learn(g, l)
		if idle, ok := g.Idle(at(time.Hour)); !ok || !idle.Knows {
			t.Errorf("after %s: %+v, %v", name, idle, ok)
		}
	}
}

// strange is a limiter of a kind that nobody knows.
type strange struct{ limit.Limiter }

// A stack holds nothing back once its limit counts nothing more. Where nobody knows when that is, it is a day after
// the last change.
func TestIdleStackCountsUntil(t *testing.T) {
	rolling := func() limit.Limiter {
		l, err := limit.NewRolling(limit.RollingConfig{Limit: 5, Window: 10 * time.Second, Margin: -1})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, c := range []struct {
		limiter limit.Limiter
		want    mono.Time
	}{{rolling(), mono.Time(11 * time.Second)}, {strange{rolling()}, mono.Time(24*time.Hour + time.Second)}} {
		g := plain(stack.Config{Limiter: c.limiter, Pause: steady})
		g.Settle(mono.Time(time.Second), limittest.Admit(g, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
		if idle, ok := g.Idle(mono.Time(2 * time.Second)); !ok || idle.Counts != c.want {
			t.Errorf("%T: it counts until %v, %v; want %v", c.limiter, idle.Counts, ok, c.want)
		}
	}
}

// Damaged states are errors, and no panics.
func FuzzRevive(f *testing.F) {
	config := func() stack.Config { return stack.Config{Limiter: limit.MustRolling(5, 10*time.Second), Pause: steady} }
	for seed := range uint64(5) {
		g := plain(config())
		if idle, ok := g.Idle(stirred(rand.New(rand.NewPCG(seed, 7)), g)); ok && idle.State != nil {
			f.Add(idle.State)
		}
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		g := plain(config())
		if _, err := g.Revive(state); err == nil {
			g.Settle(0, limittest.Admit(g, 0, limit.One), &limit.Outcome{})
			g.Ready(0, limit.One)
		}
	})
}

// A stack that begins slowly is idle, but is not written: its state has no place for that.
func TestABeginningIsNotWritten(t *testing.T) {
	g := plain(stack.Config{Limiter: limit.MustRolling(5, 10*time.Second), Pause: steady})
	if idle, ok := g.Idle(0); !ok || idle.State == nil {
		t.Errorf("new: %+v, %v", idle, ok)
	}
	g.Begin(0)
	if idle, ok := g.Idle(0); !ok || !idle.Knows || idle.State != nil {
		t.Errorf("at a beginning: %+v, %v", idle, ok)
	}
}

// A state that ends too early is an error: with the numbers that are missing taken for 0, a pause would be over.
func TestCutStateIsAnError(t *testing.T) {
	g := plain(stack.Config{Pause: steady})
	g.Hold(0, mono.Time(time.Hour))
	idle, ok := g.Idle(mono.Time(time.Second))
	if !ok || len(idle.State) < 4 {
		t.Fatalf("the state of a paused stack is %v", idle.State)
	}
	for n := range idle.State {
		if _, err := plain(stack.Config{Pause: steady}).Revive(idle.State[:n]); err == nil {
			t.Errorf("the first %d bytes of %v are a state", n, idle.State)
		}
	}
}

// What is withheld has no probe, and an earlier instant does not take back a later one.
func TestWithheldHasNoProbe(t *testing.T) {
	g := plain(stack.Config{Pause: steady, MaxPause: 3 * time.Second})
	for _, c := range []struct{ until, ready time.Duration }{
		{30 * time.Minute, 30 * time.Minute}, {time.Hour, time.Hour}, {15 * time.Minute, time.Hour},
	} {
		g.Withhold(0, at(c.until))
		if got := g.Ready(0, limit.One); got != at(c.ready) {
			t.Errorf("withheld until %v, it is ready at %v, want %v", c.until, got, c.ready)
		}
	}
}
