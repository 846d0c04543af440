package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Questions about the configured limit have an empty answer without one, and the limit's answer
// otherwise.
func TestWithAndWithoutALimit(t *testing.T) {
	bare := plain(stack.Config{})
	bare.Follow(at(time.Second))
	ability.State(bare, at(time.Second), []limit.Rule{{Burst: 3}})
	if bare.Misfits() != nil || bare.Lessons() != nil || bare.Learned() != 0 || bare.Own() != nil || limit.AppendUsage(nil, bare, 0) != nil || limit.Retreats(bare, 0) != nil {
		t.Error("without a limit something is known of it")
	}
	limit.Trust(bare, 0)
	if got := bare.Ready(0, limit.One); got != 0 {
		t.Errorf("after a Follow of nothing it is ready at %v", got)
	}

	// Of 10 a second the server refuses every sixth: that is found out, and the limit heeded again
	// after a Trust.
	l := limit.MustRolling(10, time.Second)
	g := plain(stack.Config{Limiter: l, Pause: backoff.Policy{Base: -1}})
	now := at(0)
	for range 5 {
		for i := range 6 {
			now = max(now, g.Ready(now, limit.One))
			result := limit.Accepted
			if i == 5 {
				result = limit.Limited
			}
			g.Settle(now.Add(ms), limittest.Admit(g, now, limit.One), &limit.Outcome{Result: result})
		}
		now = now.Add(2 * time.Second)
	}
	wrong := g.Misfits()
	if len(wrong) != 1 || wrong[0].N != 10 || wrong[0].Refusals != 5 || len(g.Lessons()) != 1 || g.Learned() == 0 {
		t.Fatalf("%+v, %+v", wrong, g.Lessons())
	}
	if all := limit.AppendUsage(nil, g, now); len(all) != 1 || all[0].Allowed != 10 || all[0].Fits != wrong[0].Fits {
		t.Errorf("used are %+v", all)
	}
	if n := limit.Unsettled(g); n != 0 {
		t.Errorf("%d are open", n)
	}
	limit.Trust(g, now)
	if all := g.Misfits(); len(all) > 0 {
		t.Errorf("trusted, and wrong is %+v", all)
	}
}

// The changes of a limiter that varies are known after a Follow, also that the server counts output
// as it is produced.
func TestFollows(t *testing.T) {
	output := must(limit.NewProduced(limit.ProducedConfig{Limit: 1000, Window: time.Minute}))
	for _, follows := range []bool{false, true} {
		v := limit.NewVarying(limit.MustRolling(100, time.Second))
		g := plain(stack.Config{Limiter: v})
		v.Change(0, output)
		want := at(time.Minute) // 5 tokens are left, and 300 are asked for
		if follows {
			g.Follow(0)
			want = at(10 * ms) // of which one has to be there
		}
		o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Output}
		o.Remaining[limit.Output], o.Reset[limit.Output] = 5, time.Minute-10*ms
		g.Settle(at(10*ms), limittest.Admit(g, 0, limit.Cost{limit.Output: 1}), &o)
		if got := g.Ready(at(10*ms), limit.Cost{limit.Output: 300}); got != want {
			t.Errorf("followed %v: ready at %v, want %v", follows, got, want)
		}
		v.Change(at(10*ms), limit.MustRolling(5, time.Second))
	}
	v := limit.NewVarying(limit.MustRolling(100, time.Second))
	g := plain(stack.Config{Limiter: v, Use: 0.5})
	v.Change(0, must(limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second})))
	g.Follow(0) // half of the bucket, too
	n := 0
	for now := range 100 {
		n += goes(g, at(time.Duration(now)*200*ms), fine)
	}
	if n < 200 || n > 212 {
		t.Errorf("%d of 400 go in 20 s, want half and a burst", n)
	}
}

// A stack has several bounds on its requests in flight and its pace. By a bound in flight no
// request may pass another.
func TestSeveralRules(t *testing.T) {
	g := plain(stack.Config{Limiter: limit.MustRolling(3, time.Second), InFlight: 2, Gap: 10 * ms})
	limittest.Admit(g, 0, limit.One)
	if got := g.Ready(0, limit.One); got != at(10*ms) {
		t.Errorf("after a gap: %v", got)
	}
	if got := g.ReadyAfter(0, limit.One, limit.One); got != limit.AfterSettle {
		t.Errorf("the third in flight: %v", got)
	}
	only := plain(stack.Config{InFlight: 2})
	limittest.Admit(only, 0, limit.One)
	if got := only.ReadyAfter(0, limit.One, limit.One); got != limit.AfterSettle {
		t.Errorf("the third of two in flight: %v", got)
	}
	if got := only.Ready(0, limit.One); got != 0 {
		t.Errorf("the second of two in flight: %v", got)
	}
	blind := plain(stack.Config{Limiter: hidden{limit.MustRolling(3, time.Second)}})
	if got := blind.ReadyAfter(0, limit.One, limit.One); got != limit.Never {
		t.Errorf("over a limiter that does not foresee somebody may pass at %v", got)
	}
	if got := plain(stack.Config{}).ReadyAfter(at(time.Second), limit.One, limit.One); got != at(time.Second) {
		t.Errorf("without any limit: %v", got)
	}
}

// hidden is a limiter without any optional interface.
type hidden struct{ limit.Limiter }

// Time that goes back counts as time that stands still, in every call.
func TestTimeGoesBack(t *testing.T) {
	g := plain(stack.Config{})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(time.Second, "a")
	l.ends(2*time.Second, "a", asks(3*time.Second))
	for _, now := range []time.Duration{0, 2 * time.Second} {
		p, on := g.Paused(at(now))
		if want := (stack.Pause{Since: at(2 * time.Second), Until: at(5 * time.Second), Next: at(5 * time.Second), Why: stack.Asked, Refusals: 1}); !on || p != want {
			t.Errorf("at %v: %+v, want %+v", now, p, want)
		}
		if got := g.NotBefore(at(now), 0, limit.Cost{}, limit.One); got != at(5*time.Second) {
			t.Errorf("at %v: not before %v", now, got)
		}
	}
	if p, on := g.Paused(at(5 * time.Second)); on {
		t.Errorf("at its end: %+v", p)
	}
	if p, on := g.Paused(at(5*time.Second - 1)); !on || p.Next != at(5*time.Second) {
		t.Errorf("before its end: %+v", p)
	}
}

// Lift forgets all hints, and leaves nothing to wait for. A request at a stack without any
// knowledge waits for nothing.
func TestLiftLeavesNothing(t *testing.T) {
	g := plain(stack.Config{})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(0, "a")
	l.ends(10*ms, "a", told(0, time.Minute))
	l.ready(10*ms, 10*ms+time.Minute)
	if at, b := g.Explain(at(10*ms), limit.One); b.Name != "hint" || at == 0 {
		t.Errorf("%v, %+v", at, b)
	}
	g.Lift(at(11 * ms))
	l.ready(11*ms, 11*ms)
	l.sends(15*ms, "b")
	g.Lift(at(20 * ms))
	l.ends(30*ms, "b", limit.Outcome{Result: limit.Limited}) // it was sent before the Lift
	l.ready(30*ms, 30*ms)
	if g.Refusals() != 0 || g.Pauses() != 0 {
		t.Errorf("%d refusals, %d pauses", g.Refusals(), g.Pauses())
	}
	l.sends(40*ms, "c")
	l.ends(50*ms, "c", limit.Outcome{Result: limit.Limited})
	l.ready(50*ms, 50*ms+time.Second)
	if g.Refusals() != 1 || g.Pauses() != 1 {
		t.Errorf("%d refusals, %d pauses", g.Refusals(), g.Pauses())
	}
}

// Under a policy without a pause no request has to wait, and no refusal counts as a pause.
func TestNoPause(t *testing.T) {
	g := plain(stack.Config{Pause: backoff.Policy{Base: -1}, Slow: true})
	l := &line{t, g, map[string]*limit.Sent{}}
	l.sends(0, "a")
	l.ends(10*ms, "a", limit.Outcome{Result: limit.Limited})
	l.ready(10*ms, 10*ms)
	l.sends(10*ms, "b", "c") // nor does load begin slowly
	if _, on := g.Paused(at(10 * ms)); on || g.Pauses() != 0 || g.Refusals() != 1 {
		t.Errorf("on %v, %d pauses, %d refusals", on, g.Pauses(), g.Refusals())
	}
}

// Refused again and again, probes are further and further apart: twice as far each time, up to the
// end of time.
func TestProbesForEver(t *testing.T) {
	g := plain(stack.Config{MaxPause: time.Hour})
	l := &line{t, g, map[string]*limit.Sent{}}
	const century = 100 * 365 * 24 * time.Hour
	l.sends(0, "a")
	l.ends(0, "a", asks(2*century))
	now := time.Hour
	for k := range 18 {
		l.ready(0, now)
		l.sends(now, "probe")
		l.ends(now, "probe", limit.Outcome{Result: limit.Limited})
		if p, on := g.Paused(at(now)); !on || p.Probes != k+1 {
			t.Fatalf("after %d probes: %+v", k, p)
		}
		now += time.Hour << (k + 1)
	}
}

// Explain gives the reason of a wait: the answer to the first request, and then a beginning.
func TestExplainTrialAndBeginning(t *testing.T) {
	g := plain(stack.Config{Trial: time.Minute, Slow: true})
	says := func(now time.Duration, want string, ready time.Duration) {
		t.Helper()
		if got, b := g.Explain(at(now), limit.One); b.Name != want || ready > 0 && got != at(ready) {
			t.Errorf("at %v: %q at %v, want %q at %v", now, b.Name, got, want, ready)
		}
	}
	lease := limittest.Admit(g, 0, limit.One)
	says(0, "trial", time.Minute)
	g.Settle(at(10*ms), lease, &limit.Outcome{Result: limit.Limited})
	says(10*ms, "pause", 10*ms+time.Second)
	limittest.Admit(g, at(2*time.Second), limit.One)
	says(2*time.Second, "beginning", 0)
	if got := g.Ready(at(2*time.Second), limit.One); got != limit.AfterSettle {
		t.Errorf("the second of a slow beginning: %v", got)
	}
	g.Close()
	says(2*time.Second, "pause", 0)
}

// A Stack hides nothing of the limiter that it is configured with.
func TestWraps(t *testing.T) {
	limittest.Wraps(t, func(l limit.Limiter) limit.Limiter { return plain(stack.Config{Limiter: l}) })
}
