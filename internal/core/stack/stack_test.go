package stack_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

const ms = time.Millisecond

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// steady has no jitter: 1 s, 2 s, 4 s …
var steady = backoff.Policy{Base: time.Second, Jitter: -1}

func plain(c stack.Config) *stack.Stack {
	if c.Pause == (backoff.Policy{}) {
		c.Pause = steady
	}
	return must(stack.New(c))
}

// rollingSpec: the limit in a stack keeps its promise under all answers. Refusals ask for pauses
// four times as long as MaxPause, so that there are probes.
var rollingSpec = limittest.Spec{
	New: func() limit.Limiter {
		return must(stack.New(stack.Config{
			Limiter: limit.MustRolling(5, time.Second), MaxPause: 30 * ms, Rand: rand.New(rand.NewPCG(1, 2)),
		}))
	},
	Promise:    limittest.Rolling(5, time.Second, limit.Requests),
	ClosedLoop: true,
	Burst:      1 << 20, // unsent requests may be sent again; the promise bounds the rest
}

// aloneSpec is a stack without a limit, which only follows the answers.
var aloneSpec = limittest.Spec{
	New:        func() limit.Limiter { return must(stack.New(stack.Config{Slow: true, MaxPause: 30 * ms})) },
	ClosedLoop: true,
	Burst:      1 << 20,
}

// keySpec is the stack of a key with nonces: a limit, a bound on requests in flight, and a gap.
var keySpec = limittest.Spec{
	New: func() limit.Limiter {
		return must(stack.New(stack.Config{Limiter: limit.MustRolling(5, time.Second), InFlight: 3, Gap: 10 * ms, MaxPause: -1}))
	},
	Promise:    limittest.Rolling(5, time.Second, limit.Requests),
	ClosedLoop: true,
	Burst:      1 << 20, // an unsent request gives its place back
}

// adaptiveSpec has a bound that adapts, beside the limit.
var adaptiveSpec = limittest.Spec{
	New: func() limit.Limiter {
		return must(stack.New(stack.Config{Limiter: limit.MustRolling(5, time.Second), Adapt: &limit.AdaptiveConfig{Initial: 3}, MaxPause: 30 * ms}))
	},
	Promise:    limittest.Rolling(5, time.Second, limit.Requests),
	ClosedLoop: true,
	Burst:      1 << 20,
}

// Three of which all are refused because the server is overloaded leave room for two.
func TestAdapts(t *testing.T) {
	g := must(stack.New(stack.Config{Adapt: &limit.AdaptiveConfig{Initial: 3}}))
	var leases []*limit.Sent
	for range 3 {
		leases = append(leases, limittest.Admit(g, 0, limit.One))
	}
	if got := g.Ready(0, limit.One); got != limit.AfterSettle {
		t.Errorf("a fourth is ready at %v", got)
	}
	for _, l := range leases {
		g.Settle(0, l, &limit.Outcome{Result: limit.Failed, Overloaded: true})
	}
	limittest.Admit(g, 0, limit.One)
	if got := g.Ready(0, limit.One); got != 0 {
		t.Errorf("a second is ready at %v", got)
	}
	limittest.Admit(g, 0, limit.One)
	if got := g.Ready(0, limit.One); got != limit.AfterSettle {
		t.Errorf("a third is ready at %v", got)
	}
	if _, err := stack.New(stack.Config{Adapt: &limit.AdaptiveConfig{Min: -1}}); err == nil {
		t.Error("a bound of -1 is accepted")
	}
}

func TestLaws(t *testing.T) {
	limittest.Laws(t, adaptiveSpec)
	limittest.Laws(t, rollingSpec)
	limittest.Laws(t, aloneSpec)
	limittest.Laws(t, keySpec)
}

func FuzzLaws(f *testing.F) { limittest.Fuzz(f, rollingSpec) }

func FuzzAlone(f *testing.F) { limittest.Fuzz(f, aloneSpec) }

// line is a stack whose verdicts are checked one by one.
type line struct {
	*testing.T
	g    *stack.Stack
	open map[string]*limit.Sent
}

func newLine(t *testing.T, c stack.Config) *line {
	return &line{t, plain(c), map[string]*limit.Sent{}}
}

func (l *line) sends(now time.Duration, names ...string) {
	l.Helper()
	for _, name := range names {
		if t := l.g.Ready(at(now), limit.One); t != at(now) {
			l.Errorf("%v: %s may go at %v", now, name, t)
		}
		l.open[name] = limittest.Admit(l.g, at(now), limit.One)
	}
}

func (l *line) ends(now time.Duration, name string, o limit.Outcome) {
	l.g.Settle(at(now), l.open[name], &o)
	delete(l.open, name)
}

func (l *line) ready(now, want time.Duration) {
	l.Helper()
	if t := l.g.Ready(at(now), limit.One); t != at(want) {
		l.Errorf("%v: ready at %v, want %v", now, t, at(want))
	}
}

var (
	served    = limit.Outcome{Result: limit.Accepted}
	failed    = limit.Outcome{Result: limit.Failed}
	refused   = limit.Outcome{Result: limit.Limited}
	elsewhere = limit.Outcome{Result: limit.Limited, Elsewhere: true}
	unsent    = limit.Outcome{Result: limit.Unsent}
	lost      = limit.Outcome{}
)

func asks(d time.Duration) limit.Outcome {
	return limit.Outcome{Result: limit.Limited, RetryAfter: d}
}

const (
	afterSettle = time.Duration(limit.AfterSettle)
	never       = time.Duration(limit.Never)
)

// Requests that were in flight together are refused together.
func TestRefusedTogether(t *testing.T) {
	l := newLine(t, stack.Config{})
	l.sends(0, "a", "b", "c", "d", "e")
	l.ends(100*ms, "a", refused)
	l.ready(100*ms, 1100*ms)
	l.ends(200*ms, "b", refused) // it tells nothing new
	l.ready(200*ms, 1100*ms)
	l.ends(300*ms, "c", asks(3*time.Second)) // this does
	l.ready(300*ms, 3300*ms)
	l.ends(400*ms, "d", asks(time.Second))
	l.ready(400*ms, 3300*ms)
	l.ends(500*ms, "e", served) // it was there before the first refusal
	l.ready(500*ms, 3300*ms)
	if n := l.g.Pauses(); n != 1 {
		t.Errorf("%d pauses", n)
	}
	l.sends(3300*ms, "f", "g")
	l.ends(3400*ms, "f", refused) // the second in a row that names no time
	l.ready(3400*ms, 5400*ms)
	l.sends(5400*ms, "h")
	l.ends(5500*ms, "g", served) // sent before the present pause
	l.ends(5500*ms, "h", refused)
	l.ready(5500*ms, 9500*ms)
	l.sends(9500*ms, "i")
	l.ends(9600*ms, "i", failed) // an answer too ends the row
	l.sends(9600*ms, "j")
	l.ends(9700*ms, "j", refused)
	l.ready(9700*ms, 10700*ms)
	if n := l.g.Pauses(); n != 4 {
		t.Errorf("%d pauses", n)
	}
}

// An answer ends a row of refusals. A lost or unsent request does not, nor does a refusal by
// another limit, which makes no pause either.
func TestWhatEndsARow(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    limit.Outcome
		want time.Duration
	}{{"served", served, 1}, {"failed", failed, 1}, {"lost", lost, 2}, {"unsent", unsent, 2}, {"elsewhere", elsewhere, 2}} {
		l := newLine(t, stack.Config{})
		l.sends(0, "a")
		l.ends(0, "a", refused)
		l.sends(time.Second, "b")
		l.ends(time.Second, "b", tc.o)
		l.sends(time.Second, "c")
		l.ends(time.Second, "c", refused)
		if got := l.g.Ready(at(time.Second), limit.One); got != at(time.Second+tc.want*time.Second) {
			t.Errorf("%s: ready at %v", tc.name, got)
		}
	}
}

// A time that is named again and again, and is never enough, is believed twenty times. From the
// second refusal on one goes first.
func TestNeverServed(t *testing.T) {
	l := newLine(t, stack.Config{SlowAgain: true})
	now := time.Duration(0)
	refuse := func(name string, want time.Duration) {
		t.Helper()
		l.ends(now, name, asks(2*time.Second))
		now += want
		l.ready(now-want, now)
	}
	l.sends(now, "a", "b")
	refuse("a", 2*time.Second)
	l.sends(now, "c", "d")
	refuse("c", 2*time.Second)
	for i := range 18 {
		l.sends(now, fmt.Sprint(i))
		l.ready(now, afterSettle)
		refuse(fmt.Sprint(i), 2*time.Second)
	}
	for _, want := range []time.Duration{2, 2, 4, 8} {
		l.sends(now, fmt.Sprint(want, now))
		refuse(fmt.Sprint(want, now), want*time.Second)
	}
	if l.g.Refusals() != 24 {
		t.Errorf("%d refusals in a row", l.g.Refusals())
	}
	l.sends(now, "served")
	l.ends(now, "served", served)
	l.sends(now, "e", "f")
	if l.g.Refusals() != 0 {
		t.Errorf("%d refusals in a row after one was served", l.g.Refusals())
	}
}

// A time that is shorter than any pause that is guessed is believed as often, and not once less.
func TestShortTimesAreBelieved(t *testing.T) {
	l := newLine(t, stack.Config{SlowAgain: true})
	now := time.Duration(0)
	for i := range 22 {
		want := 10 * time.Millisecond
		if i >= 20 {
			want = time.Second << (i - 20) // the first and second of those that are guessed
		}
		name := fmt.Sprint(i)
		l.sends(now, name)
		l.ends(now, name, asks(10*time.Millisecond))
		l.ready(now, now+want)
		now += want
	}
}

// A server that asks for a day is asked again after an hour, and two, and four; everybody else
// stays away.
func TestProbes(t *testing.T) {
	const day = 24 * time.Hour
	l := newLine(t, stack.Config{Slow: true})
	l.sends(0, "a", "b")
	l.ends(0, "a", asks(day))
	l.ready(0, time.Hour)
	l.ends(time.Minute, "b", asks(day)) // of the same time: the probe goes when it would have
	l.ready(time.Minute, time.Hour)
	l.sends(time.Hour, "probe")
	l.ready(time.Hour, afterSettle)
	l.ends(time.Hour+time.Second, "probe", asks(day))
	l.ready(time.Hour+time.Second, 3*time.Hour+time.Second)
	p, ok := l.g.Paused(at(time.Hour + time.Second))
	if want := (stack.Pause{Until: at(day + time.Hour + time.Second), Next: at(3*time.Hour + time.Second), Why: stack.Asked, Refusals: 1, Probes: 1}); !ok || p != want {
		t.Errorf("paused: %+v, %v", p, ok)
	}
	l.sends(3*time.Hour+time.Second, "unsent")
	l.ends(3*time.Hour+2*time.Second, "unsent", unsent) // it never was one
	l.sends(3*time.Hour+2*time.Second, "lost")
	l.ends(3*time.Hour+10*time.Second, "lost", lost) // unknown outcome: again after as long
	l.ready(3*time.Hour+10*time.Second, 5*time.Hour+10*time.Second)
	l.sends(5*time.Hour+10*time.Second, "second")
	l.ends(5*time.Hour+10*time.Second, "second", refused) // without a time: the server's earlier word stands
	l.ready(5*time.Hour+10*time.Second, 9*time.Hour+10*time.Second)
	l.sends(9*time.Hour+10*time.Second, "third")
	l.ends(9*time.Hour+10*time.Second, "third", served)
	l.sends(9*time.Hour+10*time.Second, "after", "and") // one was served, so two
	l.ready(9*time.Hour+10*time.Second, afterSettle)
	if _, ok := l.g.Paused(at(9*time.Hour + 10*time.Second)); ok || l.g.Pauses() != 1 {
		t.Error("still paused, or more than one pause:", l.g.Pauses())
	}
}

// The end that the server stated comes before the next probe.
func TestProbeBeforeTheEnd(t *testing.T) {
	l := newLine(t, stack.Config{})
	l.sends(0, "a")
	l.ends(0, "a", asks(90*time.Minute))
	l.sends(time.Hour, "probe")
	l.ends(time.Hour, "probe", asks(30*time.Minute))
	l.ready(time.Hour, 90*time.Minute)
	l.sends(90*time.Minute, "b", "c")
	l = newLine(t, stack.Config{MaxPause: -1})
	l.sends(0, "a")
	l.ends(0, "a", asks(1000*time.Hour))
	l.ready(0, 1000*time.Hour)
}

// Where the server's time is Sure, no probe goes: it would make a lockout longer.
func TestNoProbeWhereItIsSure(t *testing.T) {
	const day = 24 * time.Hour
	l := newLine(t, stack.Config{})
	surely := asks(day)
	surely.Sure = true
	l.sends(0, "a", "b", "c")
	l.ends(0, "a", asks(day))
	l.ends(0, "b", surely)
	l.ready(0, day)
	l.ends(0, "c", asks(2*day)) // the second day is not Sure
	l.ready(0, day)
	l.sends(day, "probe")
	l.ready(day, 2*day)

	l = newLine(t, stack.Config{})
	left := told(0, day)
	left.Sure = true
	l.sends(0, "a")
	l.ends(0, "a", left)
	l.ready(0, day)
}

// An old probe neither ends nor prolongs a pause that began since.
func TestLateProbe(t *testing.T) {
	l := newLine(t, stack.Config{MaxPause: time.Second})
	l.sends(0, "a")
	l.ends(0, "a", asks(2*time.Second))
	l.sends(time.Second, "probe")
	l.sends(2*time.Second, "b")
	l.ends(2*time.Second, "b", asks(10*time.Second))
	l.ready(2*time.Second, 3*time.Second)
	l.ends(2500*ms, "probe", served)
	l.ready(2500*ms, 3*time.Second)
	l.sends(3*time.Second, "another")
	l.ready(3*time.Second, 12*time.Second)
}

// After an hour one request also tests the hint of a daily limit.
func TestProbesOfWhatIsTold(t *testing.T) {
	l := newLine(t, stack.Config{})
	l.sends(0, "a", "b")
	l.ends(0, "a", told(500, 24*time.Hour))
	l.ends(0, "b", told(0, 24*time.Hour))
	l.ready(0, time.Hour)
	l.sends(time.Hour, "probe")
	l.ready(time.Hour, afterSettle)
	l.ends(time.Hour, "probe", told(0, 23*time.Hour))
	l.ready(time.Hour, 2*time.Hour)
	l.sends(2*time.Hour, "second")
	l.ends(2*time.Hour, "second", told(300, 22*time.Hour))
	l.sends(2*time.Hour, "c", "d", "e")

	l = newLine(t, stack.Config{MaxPause: 10 * time.Minute})
	l.sends(0, "a")
	l.ends(0, "a", told(0, 24*time.Hour))
	l.ready(0, 10*time.Minute)
}

func told(remaining int64, reset time.Duration) limit.Outcome {
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	o.Remaining[limit.Requests], o.Reset[limit.Requests] = remaining, reset
	return o
}

// After a pause under an unknown limit one request goes first, and each that is answered makes room
// for one more. Requests that were sent before, a stream of hours, are no measure.
func TestSlowBeginning(t *testing.T) {
	l := newLine(t, stack.Config{Slow: true})
	l.sends(0, "stream", "a")
	l.ends(0, "a", asks(time.Second))
	l.sends(time.Second, "b")
	l.ready(time.Second, afterSettle)
	l.ends(1100*ms, "b", served)
	l.sends(1100*ms, "c", "d")
	l.ready(1100*ms, afterSettle)
	l.ends(1200*ms, "stream", served)
	l.ready(1200*ms, afterSettle)
	l.ends(1200*ms, "c", lost)
	l.ends(1200*ms, "d", failed)
	l.sends(1200*ms, "e", "f", "g")
	l.ready(1200*ms, afterSettle)
	if _, b := l.g.Explain(at(1200*ms), limit.One); b.Name != "beginning" {
		t.Errorf("the bound is %+v", b)
	}
	for i := range 2000 {
		name := fmt.Sprint(i)
		l.ends(2*time.Second, "e", served)
		l.sends(2*time.Second, "e", name)
	}
	l.ready(2*time.Second, 2*time.Second)

	l.g.Begin(at(3 * time.Second))
	l.sends(3*time.Second, "one")
	l.ready(3*time.Second, afterSettle)
}

// A rest ends at its time, or when its user says so. No answer ends it, no request tries whether it
// still holds, and a pause by an answer goes on beside it.
func TestRest(t *testing.T) {
	l := newLine(t, stack.Config{MaxPause: time.Minute})
	l.sends(0, "a", "b", "c")
	l.g.Rest(at(time.Second), at(5*time.Hour))
	l.ends(time.Second, "a", limit.Outcome{Result: limit.Accepted})
	l.ready(time.Second, 5*time.Hour)
	l.ready(5*time.Hour, 5*time.Hour)
	l.g.Rest(at(5*time.Hour), limit.Never)
	l.ready(5*time.Hour, afterSettle)
	l.ends(5*time.Hour, "b", asks(30*time.Second))
	l.ready(5*time.Hour, afterSettle)
	if _, rule := l.g.Explain(at(5*time.Hour), limit.One); rule.Name != "rest" {
		t.Errorf("it explains %v", rule)
	}
	if i, ok := l.g.Idle(at(6 * time.Hour)); ok {
		t.Errorf("it is idle with one in flight: %+v", i)
	}
	l.ends(5*time.Hour, "c", limit.Outcome{Result: limit.Accepted})
	if i, ok := l.g.Idle(at(6 * time.Hour)); !ok || i.State != nil || i.Said < limit.AfterSettle {
		t.Errorf("it would be forgotten: %+v, %v", i, ok)
	}
	l.g.Rest(at(5*time.Hour), mono.Min)
	l.ready(5*time.Hour, 5*time.Hour+30*time.Second)
	if until, on := l.g.Rests(at(5 * time.Hour)); on {
		t.Errorf("it rests until %v", until)
	}
}

// A pause can be looked at, prolonged and lifted.
func TestHoldAndLift(t *testing.T) {
	l := newLine(t, stack.Config{})
	if p, ok := l.g.Paused(0); ok {
		t.Errorf("paused: %+v", p)
	}
	l.g.Hold(at(time.Second), at(30*time.Minute))
	l.ready(time.Second, 30*time.Minute)
	l.g.Hold(at(time.Minute), at(100*time.Hour))
	l.ready(time.Minute, time.Hour+time.Second) // as if an answer had asked for it
	if p, ok := l.g.Paused(at(time.Minute)); !ok || p != (stack.Pause{Since: at(time.Second), Until: at(100 * time.Hour), Next: at(time.Hour + time.Second), Why: stack.Held}) {
		t.Errorf("paused: %+v, %v", p, ok)
	}
	l.g.Hold(at(time.Minute), at(time.Hour)) // an earlier one changes nothing
	l.ready(time.Minute, time.Hour+time.Second)
	l.g.Lift(at(time.Minute))
	l.sends(time.Minute, "a", "b", "c", "d")
	l.ends(time.Minute, "a", asks(10*time.Minute))
	l.ends(time.Minute, "d", told(10, 30*time.Minute))
	l.ends(time.Minute, "b", told(0, 30*time.Minute))
	l.ready(time.Minute, 31*time.Minute)
	l.g.Lift(at(2 * time.Minute))
	l.ready(time.Minute, 2*time.Minute) // an earlier instant counts as that of the last change
	l.ready(2*time.Minute, 2*time.Minute)
	l.ends(2*time.Minute, "c", refused) // of before
	l.ready(2*time.Minute, 2*time.Minute)
	l.sends(2*time.Minute, "d")
	l.ends(2*time.Minute, "d", refused)
	l.ready(2*time.Minute, 2*time.Minute+time.Second)
}

// A pause that is too long to wait for closes the line.
func TestClose(t *testing.T) {
	l := newLine(t, stack.Config{Limiter: limit.MustRolling(5, time.Second)})
	l.sends(0, "a")
	l.g.Close()
	l.ready(0, never)
	if at, b := l.g.Explain(0, limit.One); at != limit.Never || b.Name != "pause" {
		t.Errorf("at %v, %+v", at, b)
	}
	l.ends(0, "a", served)
	l.ready(0, never)
	l.g.Open()
	l.sends(0, "b")
	if tooLarge := l.g.Ready(0, limit.Cost{6}); tooLarge != limit.Never {
		t.Errorf("more than the limit is ready at %v", tooLarge)
	}
}

// A request that cannot make its deadline is refused at once. The latest of the configured limit, a
// pause and the hints decides, with any requests ahead.
func TestForecast(t *testing.T) {
	l := newLine(t, stack.Config{Limiter: limit.MustRolling(10, time.Minute), Slow: true})
	forecast := func(now time.Duration, n int, want time.Duration) {
		t.Helper()
		if got := l.g.NotBefore(at(now), n, limit.Cost{int64(n)}, limit.One); got != at(want) {
			t.Errorf("%v: with %d ahead not before %v, want %v", now, n, got, at(want))
		}
	}
	l.sends(0, "a", "b", "c")
	forecast(0, 0, 0)
	forecast(0, 26, 2*(time.Minute+7100*time.Microsecond))
	l.ends(0, "a", asks(30*time.Second))
	forecast(0, 0, 30*time.Second)
	l.ends(0, "b", told(2, 45*time.Second))
	forecast(0, 0, 30*time.Second) // of which there are two
	forecast(0, 2, 45*time.Second)
	forecast(0, 26, 2*(time.Minute+7100*time.Microsecond))
	l.g.Lift(0)
	forecast(0, 2, 0)
	l.ends(0, "c", asks(24*time.Hour))
	forecast(0, 0, time.Hour)
	l.sends(time.Hour, "probe")
	forecast(time.Hour, 0, time.Hour) // it may be served now
	l.g.Close()
	forecast(time.Hour, 0, never)
}

func TestExplain(t *testing.T) {
	l := newLine(t, stack.Config{Limiter: limit.Named("the rule", limit.MustRolling(2, time.Minute)), InFlight: 9})
	bound := func(now time.Duration, want string) {
		t.Helper()
		if _, b := l.g.Explain(at(now), limit.One); b.Name != want {
			t.Errorf("%v: the bound is %+v, want %s", now, b, want)
		}
	}
	l.sends(0, "a", "b")
	bound(0, "the rule")
	l.ends(time.Second, "a", asks(90*time.Second))
	bound(time.Second, "pause")
	l.ends(2*time.Second, "b", told(0, 100*time.Second))
	bound(2*time.Second, "hint")
	l.g.Hold(at(2*time.Second), at(110*time.Second))
	bound(2*time.Second, "pause")
}

// A reset of a bucket is when it will be full again. Its capacity may be learned while requests are
// in flight.
func TestContain(t *testing.T) {
	l := newLine(t, stack.Config{})
	l.sends(0, "a", "b")
	o := told(0, time.Minute)
	l.ends(0, "a", o)
	l.ready(0, afterSettle)
	l.g.Contain(0, limit.Cost{60}, &o)
	l.ready(0, 2*time.Second) // b may take the first
	l.g.Contain(0, limit.Cost{}, &o)
	l.g.Contain(0, limit.Cost{0, 9}, &o)
	l.ends(0, "b", unsent)
	l.ready(0, time.Second)
	l.g.Contain(0, limit.Cost{-1}, &o) // less than nothing is no capacity
	reset := told(5, time.Minute)
	plain(stack.Config{}).Contain(0, limit.Cost{-1}, &reset) // nor is it where there was no hint before
	l.ready(0, time.Second)
	l.g.Contain(0, limit.Cost{90}, &limit.Outcome{}) // what was read of another bucket says nothing of this one
	l.ready(0, 0)
}

// Every limiter reads what is left, with and without a reset. A Fair under a Stack shares by it
// like a bare one, and not like one without hints.
func TestWhatIsLeftReachesTheLimiter(t *testing.T) {
	fair := func() *fairshare.Fair {
		return must(fairshare.NewFair(fairshare.FairConfig{Kind: fairshare.TokenBucket, Limit: 10, Window: time.Second, Capacity: 100, Rng: rand.New(rand.NewPCG(7, 7))}))
	}
	bare := fair()
	under := fair()
	g := plain(stack.Config{Limiter: under})
	now := at(0)
	for left := int64(60); left > 20; left -= 3 { // of which it takes one
		now = max(g.Ready(now, limit.One), now.Add(time.Millisecond))
		if want := max(bare.Ready(now, limit.One), now); want != now {
			t.Fatalf("with %d left the guarded one goes at %v, the bare one at %v", left, now, want)
		}
		a, b := limittest.Admit(g, now, limit.One), limittest.Admit(bare, now, limit.One)
		now = now.Add(20 * ms)
		o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{left}}
		g.Settle(now, a, &o)
		bare.Settle(now, b, &o)
	}
	if got := under.Sleep(); got != bare.Sleep() || got < 100*ms {
		t.Errorf("it plans %v between requests, the bare one %v", got, bare.Sleep())
	}
	if g.Own() != limit.Limiter(under) {
		t.Error("Own is another")
	}
}

func (l *line) waitsFor(name string) {
	l.Helper()
	if _, r := l.g.Explain(at(0), limit.One); r.Name != name {
		l.Errorf("it waits for %q, want %q", r.Name, name)
	}
}

// Nonces arrive in order one at a time, or a gap apart until the first that comes late.
func TestOrdered(t *testing.T) {
	l := newLine(t, stack.Config{Ordered: true})
	l.sends(0, "a")
	l.ready(0, afterSettle)
	l.waitsFor("nonce order")
	l.ends(ms, "a", served)
	l.sends(ms, "b")
	l = newLine(t, stack.Config{Ordered: true, InFlight: 2})
	l.sends(0, "a", "b")
	l.ready(0, afterSettle)
	l.waitsFor("concurrency")
	l = newLine(t, stack.Config{Ordered: true, Gap: 10 * ms})
	l.sends(0, "a")
	l.ready(0, 10*ms)
	l.sends(10*ms, "b")
	l.ends(20*ms, "a", limit.Outcome{Result: limit.Failed, Misordered: true})
	l.ready(20*ms, 10*time.Minute+20*ms) // or when b is back
	l.ends(30*ms, "b", served)
	l.sends(30*ms, "c")
	l.ready(30*ms, 10*time.Minute+20*ms)
	if r := limit.Retreats(l.g, at(30*ms)); len(r) != 1 || r[0].Until != at(10*time.Minute+20*ms) {
		t.Errorf("retreats %+v", r)
	}
	limit.Trust(l.g, at(30*ms))
	l.ready(30*ms, 40*ms)
	l = newLine(t, stack.Config{Gap: 10 * ms}) // in no order: it is a gap and nothing else
	l.sends(0, "a")
	l.ends(0, "a", limit.Outcome{Result: limit.Failed, Misordered: true})
	l.ready(0, 10*ms)
}

func TestNewRefuses(t *testing.T) {
	for want, c := range map[string]stack.Config{
		"InFlight -1 is negative":              {InFlight: -1},
		"Limit 1125899906842624 is not":        {InFlight: 1 << 50},
		"LearnGap with Gap or InFlight":        {LearnGap: true, Gap: 1},
		"gap -1ns is not positive":             {Gap: -1},
		"Pause: backoff: Max -1ns is negative": {Pause: backoff.Policy{Max: -1}},
	} {
		if _, err := stack.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	for name, g := range map[string]*stack.Stack{"calm": plain(stack.Config{}), "told": plain(stack.Config{Limiter: limit.MustRolling(1<<40, time.Second)})} {
		o, now, sent := served, mono.Time(0), limit.Sent{Cost: limit.One}
		if name == "told" {
			o = told(1000, time.Minute)
		}
		if n := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Millisecond)
			if g.Ready(now, limit.One) > now {
				t.Fatal("not ready")
			}
			limittest.Again(g, now, &sent)
			g.Settle(now, &sent, &o)
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkGuard is the cost of a request beside the bare limit. told: each answer has a hint.
func BenchmarkGuard(b *testing.B) {
	wide := func() limit.Limiter { return limit.MustRolling(1<<40, time.Millisecond) }
	for _, bc := range []struct {
		name string
		l    limit.Limiter
		o    limit.Outcome
	}{
		{"Nothing", plain(stack.Config{}), served},
		{"NothingTold", plain(stack.Config{}), told(1<<30, time.Minute)},
		{"Rolling", plain(stack.Config{Limiter: wide()}), served},
		{"RollingTold", plain(stack.Config{Limiter: wide()}), told(1<<30, time.Minute)},
		{"BareRolling", wide(), served},
	} {
		now := mono.Time(0)
		b.Run(bc.name+"/Ready", func(b *testing.B) {
			bc.l.Settle(now, limittest.Admit(bc.l, now, limit.One), &bc.o)
			for b.Loop() {
				now++
				bc.l.Ready(now, limit.One)
			}
		})
		b.Run(bc.name+"/AdmitSettle", func(b *testing.B) {
			b.ReportAllocs()
			sent := limit.Sent{Number: 1 << 32, Cost: limit.One}
			for b.Loop() {
				now += 1000
				sent.At = now
				sent.Number++
				bc.l.Admit(&sent)
				bc.l.Settle(now, &sent, &bc.o)
			}
		})
	}
}

// A hint of produced units covers only those produced so far. So a request needs one unit of it,
// however many it may produce.
func TestToldOfWhatIsCountedAsItIsProduced(t *testing.T) {
	own := must(limit.NewProduced(limit.ProducedConfig{Limit: 8000, Window: time.Minute}))
	g := plain(stack.Config{Limiter: limit.Named("output", limit.NewAll(own))})
	cost := limit.Cost{limit.Requests: 1, limit.Output: 4096}
	o := limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Output: 300}, Known: 1 << limit.Output}
	o.Remaining[limit.Output], o.Reset[limit.Output] = 2, 30*time.Second
	g.Settle(at(2*time.Second), limittest.Admit(g, 0, cost), &o)
	for i := range 2 {
		if ready := g.Ready(at(2*time.Second), cost); ready != at(2*time.Second) {
			t.Errorf("2 are left, request %d ready at %v", i, ready)
		}
		limittest.Admit(g, at(2*time.Second), cost)
	}
	if ready := g.Ready(at(2*time.Second), cost); ready <= at(2*time.Second) {
		t.Errorf("the third of 2 is ready at %v", ready)
	}
}
