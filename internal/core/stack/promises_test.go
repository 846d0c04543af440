package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// After a call at one instant, the stack asks its limiter about no earlier one.
func TestToldOfLater(t *testing.T) {
	later := at(5 * time.Second)
	for what, tell := range map[string]func(*stack.Stack){
		"Admit": func(g *stack.Stack) { limittest.Admit(g, later, limit.One) },
		"Settle": func(g *stack.Stack) {
			g.Settle(later, limittest.Admit(g, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
		},
		"Hold":    func(g *stack.Stack) { g.Hold(later, 0) },
		"Rest":    func(g *stack.Stack) { g.Rest(later, 0) },
		"Lift":    func(g *stack.Stack) { g.Lift(later) },
		"Begin":   func(g *stack.Stack) { g.Begin(later) },
		"Follow":  func(g *stack.Stack) { g.Follow(later) },
		"Contain": func(g *stack.Stack) { g.Contain(later, limit.Cost{limit.Requests: 7}, &limit.Outcome{}) },
	} {
		g := plain(stack.Config{Limiter: limit.MustRolling(5, time.Second)})
		tell(g)
		ready, _ := g.Explain(0, limit.One)
		for door, got := range map[string]mono.Time{
			"Ready": g.Ready(0, limit.One), "NotBefore": g.NotBefore(0, 0, limit.Cost{}, limit.One), "Explain": ready,
		} {
			if got != later {
				t.Errorf("after %s at %v: %s says %v", what, later, door, got)
			}
		}
		if what != "Begin" { // which lets one go first
			if got := g.ReadyAfter(0, limit.One, limit.One); got != later {
				t.Errorf("after %s at %v: after another one at %v", what, later, got)
			}
		}
	}
	g := plain(stack.Config{})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(0, "a", "b")
	l.ends(0, "a", asks(5*time.Second))
	l.ends(6*time.Second, "b", limit.Outcome{Result: limit.Accepted})
	if p, on := g.Paused(at(4 * time.Second)); on {
		t.Errorf("a pause that is over: %+v", p)
	}
}

// A slow beginning doubles while all are answered: one, two, four … and with a thousand in flight
// there is none any more.
func TestBeginningEnds(t *testing.T) {
	g := plain(stack.Config{})
	g.Begin(0)
	round := func(most int) (n int) {
		var open []*limit.Sent
		for ; n < most && g.Ready(0, limit.One) == 0; n++ {
			if after, last := g.ReadyAfter(0, limit.One, limit.One), n+1 == most; (after == 0) != !last {
				t.Fatalf("%d in flight of %d: after another one at %v", n, most, after)
			}
			open = append(open, limittest.Admit(g, 0, limit.One))
		}
		if got := g.Ready(0, limit.One); got != limit.AfterSettle {
			t.Errorf("%d in flight: %v", n, got)
		}
		for _, lease := range open {
			g.Settle(0, lease, &limit.Outcome{Result: limit.Accepted})
		}
		return n
	}
	for want := 1; want <= 1024; want *= 2 {
		if got := round(want); got != want {
			t.Fatalf("%d in flight, want %d", got, want)
		}
	}
	for range 5000 {
		limittest.Admit(g, 0, limit.One)
	}
	if got := g.ReadyAfter(0, limit.One, limit.One); got != 0 {
		t.Errorf("after a thousand: %v", got)
	}
}

// restless is a limiter with a clock of its own, as a Member over a store has: it never says the same twice.
type restless struct {
	limit.Limiter
	asked mono.Time
}

func (r *restless) Ready(now mono.Time, _ limit.Cost) mono.Time {
	r.asked++
	return now + 1000 - r.asked
}

// Its name stands for a wait that it causes, and not that of a slow beginning.
func TestExplainsARestlessLimiter(t *testing.T) {
	g := plain(stack.Config{Limiter: &restless{Limiter: limit.MustRolling(1, time.Second)}})
	if _, b := g.Explain(0, limit.One); b.Name == "beginning" {
		t.Errorf("it waits for %q", b.Name)
	}
}

// A slow beginning keeps all away until an answer comes, also where the first is on trial, and is
// named then.
func TestExplainsTheLatest(t *testing.T) {
	g := plain(stack.Config{Trial: time.Minute})
	g.Begin(0)
	limittest.Admit(g, 0, limit.One)
	if at, b := g.Explain(0, limit.One); at != limit.AfterSettle || b.Name != "beginning" {
		t.Errorf("%q at %v", b.Name, at)
	}
}

// The least time that a refusal can name counts as asked for, and not as guessed.
func TestAsksForANanosecond(t *testing.T) {
	g := plain(stack.Config{MaxPause: time.Second})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(0, "a", "b")
	for i, name := range []string{"a", "b"} { // the second is of the same refusal, and names it again
		now := time.Duration(i+1) * ms
		l.ends(now, name, asks(1))
		if p, on := g.Paused(at(now)); !on || p.Why != stack.Asked || p.Until != at(now+1) || p.Refusals != 1 {
			t.Errorf("%s: %+v, %v", name, p, on)
		}
	}
	g.Lift(at(10 * ms))
	l.sends(10*ms, "c")
	l.ends(10*ms, "c", asks(time.Hour))
	l.sends(10*ms+time.Second, "probe")
	l.ends(10*ms+time.Second, "probe", asks(1))
	if g.Refusals() != 1 {
		t.Errorf("a probe that is told to stay away on has found out nothing, and it is refusal %d", g.Refusals())
	}
}

// A request at the very end of a pause is no probe. If it is refused, that is another refusal.
func TestNoProbeAtTheEnd(t *testing.T) {
	g := plain(stack.Config{MaxPause: time.Second})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(0, "a")
	l.ends(0, "a", asks(time.Second))
	l.sends(time.Second, "b")
	l.ends(time.Second, "b", asks(time.Second))
	if p, on := g.Paused(at(time.Second)); !on || p.Refusals != 2 || p.Probes != 0 || g.Pauses() != 2 {
		t.Errorf("%+v, %v, %d pauses", p, on, g.Pauses())
	}
}

// Where the next probe would be beyond the end of time, none goes any more.
func TestProbesStop(t *testing.T) {
	const centuries = 200 * 365 * 24 * time.Hour
	g := plain(stack.Config{MaxPause: centuries})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(0, "a")
	l.ends(0, "a", asks(1<<63-1))
	l.ready(0, centuries)
	l.sends(centuries, "probe")
	l.ends(centuries, "probe", limit.Outcome{Result: limit.Limited})
	l.ready(centuries, time.Duration(mono.Max))
}

// A gap to be learned cannot be configured as well, and neither can a bound that would hide it. Two
// rules bound together.
func TestRulesTogether(t *testing.T) {
	for _, c := range []stack.Config{{LearnGap: true, Gap: 1}, {LearnGap: true, InFlight: 1}, {LearnGap: true, Gap: 1, InFlight: 1}} {
		if _, err := stack.New(c); err == nil || err.Error() != "LearnGap with Gap or InFlight" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []stack.Config{{}, {Ordered: true}, {LearnGap: true}, {LearnGap: true, Ordered: true}} {
		if _, err := stack.New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []stack.Config{{Gap: -1}, {Ordered: true, Gap: -1}, {InFlight: -1}, {Adapt: &limit.AdaptiveConfig{Min: -1}}} {
		if g, err := stack.New(c); err == nil || g != nil {
			t.Errorf("%+v is taken", c)
		}
	}
	g := plain(stack.Config{Limiter: limit.MustRolling(5, time.Second), InFlight: 1})
	limittest.Admit(g, 0, limit.One)
	if got := g.Ready(0, limit.One); got != limit.AfterSettle {
		t.Errorf("the second of one in flight: %v", got)
	}
}

// Remainders count for every unit. A repeated capacity changes nothing.
func TestAllIsTold(t *testing.T) {
	g := plain(stack.Config{})
	o := limit.Outcome{Result: limit.Accepted}
	cost := limit.Cost{}
	for u := range cost {
		cost[u] = 1
		o.Known |= 1 << u
		o.Reset[u] = time.Minute
	}
	g.Settle(0, limittest.Admit(g, 0, cost), &o)
	if got := g.Ready(0, cost); got != at(time.Minute) {
		t.Errorf("nothing is left of anything: %v", got)
	}

	g = plain(stack.Config{})
	full := limit.Cost{limit.Requests: 10}
	left := told(0, time.Minute)
	g.Settle(0, limittest.Admit(g, 0, limit.One), &left)
	g.Contain(0, full, &left)
	want := at(6 * time.Second) // a tenth of the bucket
	if got := g.Ready(0, limit.One); got != want {
		t.Fatalf("one of ten in a minute: %v, want %v", got, want)
	}
	for _, again := range []limit.Cost{full, {}} {
		g.Contain(0, again, &limit.Outcome{})
		if got := g.Ready(0, limit.One); got != want {
			t.Errorf("told %v of the bucket again: %v, want %v", again, got, want)
		}
	}
}

// InFlight ranges over all open requests, and the caller may stop early.
func TestInFlight(t *testing.T) {
	g := plain(stack.Config{})
	open := map[limit.Sent]bool{}
	for n := range int64(5) {
		open[*limittest.Admit(g, 0, limit.Cost{limit.Requests: n + 1})] = true
	}
	seen := 0
	for sent := range g.InFlight() {
		if !open[*sent] {
			t.Errorf("%+v was not admitted", *sent)
		}
		seen++
	}
	if seen != 5 {
		t.Errorf("%d of 5", seen)
	}
	for range g.InFlight() {
		seen++
		break
	}
	if seen != 6 {
		t.Errorf("%d more after the first", seen-6)
	}
	before := []limit.Usage{{Used: 1}}
	if all := limit.AppendUsage(before, g, 0); len(all) != 1 {
		t.Errorf("what is there already is lost: %v", all)
	}
}

// lapsing is a limiter that is supplied, and whose leave may lapse.
type lapsing struct {
	limit.Limiter
	fresh bool
}

func (l *lapsing) Fresh(*limit.Sent) bool { return l.fresh }

func (l *lapsing) Supply(again func(), waiting func() (n int, free float64), note func(kind, text string)) {
	if again == nil {
		return
	}
	if n, free := waiting(); n == 3 && free == 0.25 {
		note("kind", "text")
	}
}

// A limiter gets the functions of its driver when it becomes a stack's limiter, and again after a
// Follow. Fresh reaches it.
func TestSuppliedAndFresh(t *testing.T) {
	g := plain(stack.Config{Limiter: limit.MustRolling(5, time.Second)})
	if lease := limittest.Admit(g, 0, limit.One); ability.Lapses(g) || !ability.Fresh(g, lease) {
		t.Error("nothing lapses in a window")
	}
	l := &lapsing{Limiter: limit.MustRolling(5, time.Second)}
	v := limit.NewVarying(l)
	g = plain(stack.Config{Limiter: v, Pause: backoff.Policy{Base: -1}})
	lease := limittest.Admit(g, 0, limit.One)
	if !ability.Lapses(g) || ability.Fresh(g, lease) {
		t.Error("it has lapsed")
	}
	if l.fresh = true; !ability.Fresh(g, lease) {
		t.Error("it has not lapsed")
	}
	g.Follow(0) // nobody has supplied anything
	notes := 0
	g.Supply(func() {}, func() (int, float64) { return 3, 0.25 }, func(string, string) { notes++ })
	if notes != 1 {
		t.Errorf("told %d times", notes)
	}
	v.Change(0, &lapsing{Limiter: limit.MustRolling(6, time.Second)})
	if g.Follow(0); notes != 2 {
		t.Errorf("after a change told %d times", notes)
	}
	v.Change(0, limit.MustRolling(7, time.Second))
	if g.Follow(0); ability.Lapses(g) {
		t.Error("nothing lapses in a window")
	}
}
