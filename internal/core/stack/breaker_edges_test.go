package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// fails has one request at now that does not get there.
func fails(h *stack.Breaker, now time.Duration) {
	h.Settle(at(now), limittest.Admit(h, at(now), limit.One), &limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable})
}

// A host is down, is probed and comes back; its News; and when it goes down again.
func TestAnOutageAfterAnother(t *testing.T) {
	for apart, first := range map[time.Duration]time.Duration{600*ms - 1: 500 * ms, 600 * ms: 250 * ms} { // as long as the last one took
		h := down(t) // since 0; the first probe goes at 450 ms
		limittest.Admit(h, at(450*ms), limit.One)
		if s := h.State(at(450 * ms)); !s.Probing || s.Next != at(450*ms) || s.Since != 0 {
			t.Errorf("%+v", s)
		}
		h = down(t)
		if s := h.State(0); s.Probing || s.Next != at(450*ms) {
			t.Errorf("%+v", s)
		}
		probe := limittest.Admit(h, at(450*ms), limit.One)
		h.Settle(at(600*ms), probe, &limit.Outcome{Result: limit.Accepted})
		if s := h.State(at(700 * ms)); s.Down || s.Since != at(600*ms) || s.Lasted != 600*ms || s.Next != 0 {
			t.Errorf("%+v", s)
		}
		now := 600*ms + apart
		for range 3 {
			fails(h, now-100*ms) // at one instant, and so for too short a time
		}
		fails(h, now)
		if s := h.State(at(now)); !s.Down || s.Next != at(now+first) || s.Since != at(now-100*ms) {
			t.Errorf("%v after it came back: %+v, want a probe after %v", apart, s, first)
		}
	}
}

// One answer in the place of the server is enough, whatever is on its way. Where the first probe is served,
// any number goes at once: it was an accident. After a failed probe, or soon after the last outage, the
// load begins slowly.
func TestOneAnswerForAServerThatIsAway(t *testing.T) {
	h := steadyBreaker()
	end := func(now time.Duration, saw limit.Link) {
		t.Helper()
		if r := h.Ready(at(now), limit.One); r != at(now) {
			t.Fatalf("at %v the next one may go at %v", now, r)
		}
		h.Settle(at(now), limittest.Admit(h, at(now), limit.One), &limit.Outcome{Result: limit.Failed, Link: saw})
	}
	next := func(now, want mono.Time, by string) { // the next one but one
		t.Helper()
		one := limittest.Admit(h, now, limit.One)
		if r, rule := h.Explain(now, limit.One); r != want || r > now && rule.Name != by {
			t.Errorf("at %v the next but one waits until %v for %+v, want %v", now, r, rule, want)
		}
		h.Settle(now, one, &limit.Outcome{Result: limit.Unsent})
	}
	for range 5 {
		limittest.Admit(h, 0, limit.One)
	}
	end(0, limit.Broken)
	end(0, limit.Away)
	if s := h.State(0); !s.Down || s.Next != at(250*ms) || s.Kind != limit.Away {
		t.Fatalf("%+v", s)
	}
	next(at(250*ms), limit.AfterSettle, "outage")
	end(250*ms, limit.Working)
	next(at(250*ms), at(250*ms), "")

	end(10*time.Second, limit.Away)
	end(10*time.Second+250*ms, limit.Away)
	end(10*time.Second+750*ms, limit.Working)
	next(at(10*time.Second+750*ms), limit.AfterSettle, "beginning")

	end(11*time.Second, limit.Away) // sooner than the last outage took
	if s := h.State(at(11 * time.Second)); s.Next != at(12*time.Second) {
		t.Errorf("%+v", s)
	}
	end(12*time.Second, limit.Working)
	next(at(12*time.Second), limit.AfterSettle, "beginning")
}

// A request was served before a probe was due. From then on no request waits for the probe.
func TestNothingIsForetoldOfAnEnd(t *testing.T) {
	h := steadyBreaker()
	by := []*limit.Sent{limittest.Admit(h, 0, limit.One), limittest.Admit(h, 0, limit.One), limittest.Admit(h, 0, limit.One), limittest.Admit(h, 0, limit.One)}
	for i, l := range by[:3] {
		h.Settle(at(time.Duration(i)*100*ms), l, &limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable})
	}
	next := h.State(at(200 * ms)).Next
	h.Settle(at(250*ms), by[3], &limit.Outcome{Result: limit.Accepted})
	if got := h.NotBefore(at(250*ms), 0, limit.Cost{}, limit.One); next <= at(250*ms) || got != at(250*ms) {
		t.Errorf("the probe would have gone at %v: not before %v", next, got)
	}
}

// Requests that were sent after one failure and have ended are not on their way, however they
// ended: the next failures decide.
func TestWhoIsOnTheWay(t *testing.T) {
	for ended, want := range map[int]bool{7: true, 2: true, 1: false} {
		h := steadyBreaker()
		fails(h, 0)
		var open []*limit.Sent
		for range 10 {
			open = append(open, limittest.Admit(h, at(10*ms), limit.One))
		}
		for _, l := range open[:ended] {
			h.Settle(at(50*ms), l, &limit.Outcome{Result: limit.Unsent})
		}
		for _, l := range open[ended : ended+2] {
			h.Settle(at(100*ms), l, &limit.Outcome{Result: limit.Failed, Link: limit.Unreachable})
		}
		if s := h.State(at(100 * ms)); s.Down != want { // three have failed, and no more than six may be on their way
			t.Errorf("with %d on their way: %+v", 8-ended, s)
		}
	}
}

// The bound on files is forgotten after ten minutes, and until then grows by one every ten seconds;
// also before the zero of the clock.
func TestFilesTimeline(t *testing.T) {
	const struck = -time.Hour
	h := steadyBreaker()
	open := []*limit.Sent{limittest.Admit(h, at(struck), limit.One), limittest.Admit(h, at(struck), limit.One), limittest.Admit(h, at(struck), limit.One)}
	h.Settle(at(struck), open[0], &limit.Outcome{Result: limit.Unsent, Link: limit.NoFiles})
	h.Settle(at(struck), open[1], &limit.Outcome{Result: limit.Accepted})
	if got := h.Ready(at(struck), limit.One); got != at(struck) {
		t.Errorf("there is room for one: ready at %v", got)
	}
	if got := h.ReadyAfter(at(struck), limit.One, limit.One); got != at(struck+10*time.Second) {
		t.Errorf("for two: ready at %v", got)
	}
	another := func(now time.Duration) {
		h.Settle(at(now), limittest.Admit(h, at(now), limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	another(struck + 30*time.Second)
	for _, now := range []time.Duration{struck, struck + 30*time.Second} {
		if s := h.State(at(now)); s.Most != 5 {
			t.Errorf("at %v: %+v", now, s)
		}
	}
	another(struck + 10*time.Minute - 1)
	if s := h.State(at(struck + 10*time.Minute - 1)); s.Most != 2+59 {
		t.Errorf("%+v", s)
	}
	another(struck + 10*time.Minute)
	if s := h.State(at(struck + 10*time.Minute)); s.Most != 0 {
		t.Errorf("%+v", s)
	}
}
