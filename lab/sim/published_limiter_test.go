package sim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

const us = time.Microsecond

// When two requests may follow two that were sent at 0.9 ms and 30 ms: times are whole milliseconds, rounded down.
func TestPublishedTimeline(t *testing.T) {
	for _, c := range []struct {
		name          string
		config        sim.PublishedConfig
		third, fourth time.Duration
	}{
		{"the ring alone", sim.PublishedConfig{}, 1001 * ms, 1031 * ms},
		{"a buffer", sim.PublishedConfig{Buffer: 50 * ms}, 1051 * ms, 1081 * ms},
		{"threads: inclusive", sim.PublishedConfig{Buffer: 40 * ms, Inclusive: true}, 1040 * ms, 1070 * ms},
		{"inclusive, no buffer", sim.PublishedConfig{Inclusive: true}, 1000 * ms, 1030 * ms},
		{"the original: a gap, strict", sim.PublishedConfig{Gap: 50 * ms}, 1001 * ms, 1052 * ms},
	} {
		c.config.Limit, c.config.Window = 2, time.Second
		p := sim.NewPublished(c.config)
		for _, at := range []time.Duration{900 * us, 30 * ms} {
			limittest.Admit(p, mono.Time(at), limit.One)
		}
		for i, want := range []time.Duration{c.third, c.fourth} {
			got := p.Ready(mono.Time(60*ms), limit.One)
			if got != mono.Time(want) {
				t.Errorf("%s: request %d may go at %v, want %v", c.name, i+3, got, want)
			}
			limittest.Admit(p, got, limit.One)
		}
		if now := mono.Time(time.Hour) + 1; p.Ready(now, limit.One) != now {
			t.Errorf("%s: nothing went for an hour, and now has to wait", c.name)
		}
	}

	p := sim.NewPublished(sim.PublishedConfig{Limit: 2, Window: time.Second, Gap: 50 * ms})
	if got := p.Ready(0, limit.One); got != 0 {
		t.Errorf("the first may go at %v", got)
	}
	limittest.Admit(p, mono.Time(7*ms), limit.One)
	if got := p.Ready(mono.Time(8*ms), limit.One); got != mono.Time(58*ms) {
		t.Errorf("with a gap of 50 ms after one at 7 ms: %v, want 58ms", got)
	}
}

// The buffer is 1.1 times the mean of the last 100 round trips in whole milliseconds, within its bounds.
func TestPublishedBufferAdapts(t *testing.T) {
	adaptive := sim.PublishedConfig{Limit: 1, Window: time.Second, Buffer: 50 * ms, Adaptive: true, BufferMin: 30 * ms, BufferMax: 150 * ms}
	printed := adaptive
	printed.Adaptive = false
	type trips struct {
		n      int
		took   time.Duration
		buffer time.Duration // afterwards
	}
	for _, c := range []struct {
		name   string
		config sim.PublishedConfig
		trips  []trips
	}{
		{"as described", adaptive, []trips{
			{0, 0, 50 * ms},
			{1, 100 * ms, 110 * ms},
			{1, 51*ms + 999*us, 83 * ms}, // 1.1 × (100 + 51) / 2 = 83.05
			{98, 50 * ms, 55 * ms},       // (151 + 98 × 50) / 100 = 50.51
			{1, 50 * ms, 55 * ms},        // the 100 is out: 50.01
			{1, 0, 54 * ms},              // and the 51: 49.5
			{99, 0, 30 * ms},             // the least
			{1, time.Second, 30 * ms},    // 10
			{13, time.Second, 150 * ms},  // 140: 154 is more than the most
			{98, 40 * ms, 65 * ms},       // two of the seconds are left: 59.2
			{1, 40 * ms, 54 * ms},        // one: 49.6
			{1, 40 * ms, 44 * ms},        // none: the last 100 are all
		}},
		{"as printed, round trips are not recorded", printed, []trips{{0, 0, 50 * ms}, {200, 100 * ms, 50 * ms}}},
	} {
		p, now := sim.NewPublished(c.config), mono.Time(0)
		for i, s := range c.trips {
			for range s.n {
				now = now.Add(time.Hour)
				p.Settle(now.Add(s.took), limittest.Admit(p, now, limit.One), &limit.Outcome{})
			}
			if s.n == 0 {
				limittest.Admit(p, now, limit.One)
			}
			if got := p.Ready(now, limit.One).Sub(now) - time.Second - ms; got != s.buffer {
				t.Errorf("%s, after %d (%d of %v): buffer %v, want %v", c.name, i, s.n, s.took, got, s.buffer)
			}
		}
	}
}
