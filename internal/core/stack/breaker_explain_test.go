package stack_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// Explain gives the reason of a wait: files for so many, an outage, or the beginning after it.
func TestBreakerExplains(t *testing.T) {
	h := steadyBreaker()
	says := func(now time.Duration, want limit.Rule) {
		t.Helper()
		ready := h.Ready(at(now), limit.One)
		if got, b := h.Explain(at(now), limit.One); got != ready || ready <= at(now) || b != want {
			t.Errorf("at %v: %v until %v, want %v until %v", now, b, got, want, ready)
		}
	}
	open := []*limit.Sent{limittest.Admit(h, 0, limit.One), limittest.Admit(h, 0, limit.One), limittest.Admit(h, 0, limit.One)}
	h.Settle(0, open[0], &limit.Outcome{Result: limit.Unsent, Link: limit.NoFiles})
	says(0, limit.Rule{Name: "files", N: 2, Counts: limit.CountsInFlight})
	for _, l := range open[1:] {
		h.Settle(0, l, &limit.Outcome{Result: limit.Accepted, Link: limit.Working})
	}
	now := time.Hour
	for !h.State(at(now)).Down {
		h.Settle(at(now+100*ms), limittest.Admit(h, at(now), limit.One), &limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable})
		now += time.Second
	}
	says(now-900*ms, limit.Rule{Name: "outage"})
	now = time.Duration(h.State(at(now)).Next)
	h.Settle(at(now), limittest.Admit(h, at(now), limit.One), &limit.Outcome{Result: limit.Accepted, Link: limit.Working})
	limittest.Admit(h, at(now), limit.One)
	for h.Ready(at(now), limit.One) <= at(now) {
		limittest.Admit(h, at(now), limit.One)
	}
	says(now, limit.Rule{Name: "beginning"})
}
