package nodesim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
)

// With about one fault a minute, what is sent in the seconds that are not within 7 s and a window of it is 97 % of what one process sends that
// has nobody beside it.
func TestFaultsPass(t *testing.T) {
	const near = 8 * time.Second
	c := base(rolling(200, time.Second), 8, 5)
	c.Length, c.Warm = 10*time.Minute, 20*time.Second
	one := nodesim.Alone(c)
	for _, x := range []struct {
		name    string
		trouble nodesim.Trouble
	}{
		{"kills", nodesim.Trouble{Kill: time.Minute}},
		{"pauses", nodesim.Trouble{Pause: time.Minute}},
		{"crashes", nodesim.Trouble{Crash: time.Minute}},
		{"all of these", nodesim.Trouble{Kill: 3 * time.Minute, Pause: 3 * time.Minute, Crash: 3 * time.Minute}},
	} {
		if !long && x.name != "all of these" {
			continue
		}
		c.Trouble = x.trouble
		r := nodesim.Run(c)
		seconds, sent := 0, 0
		for i := int(c.Warm / time.Second); i < int(c.Length/time.Second); i++ {
			at, calm := time.Duration(i)*time.Second, true
			for _, fault := range r.Faults {
				calm = calm && (fault >= at+time.Second || fault+near <= at)
			}
			if calm {
				seconds++
				sent += r.Seconds[i]
			}
		}
		of := float64(sent) / float64(seconds) / one.Rate
		t.Logf("%s: %d, %.1f %% of one process in the %d s that are not near, %.1f %% in all; %d refused", x.name, len(r.Faults), 100*of, seconds, 100*r.Rate/one.Rate, r.Refused)
		if of < 0.97 || r.Refused > 0 || len(r.Faults) < 4 || seconds < 240 {
			t.Errorf("%s: %.3f of one process, %d refused, %d faults", x.name, of, r.Refused, len(r.Faults))
		}
	}
}

// A store that crashes each six seconds, and is there again a second later, costs less than that second each time, as nodes have grants for a
// while and are back at once.
func TestCrashesPass(t *testing.T) {
	sent := [2]int{}
	for seed := range need.Fewer[uint64](1, 3) {
		for i, crash := range []time.Duration{0, 6 * time.Second} {
			c := base(rolling(200, time.Second), 8, seed)
			c.Length, c.Warm, c.Crash = 140*time.Second, 20*time.Second, crash
			r := nodesim.Run(c)
			sent[i] += r.Sent
			if r.Refused > 0 {
				t.Errorf("%d refused", r.Refused)
			}
		}
	}
	of := float64(sent[1]) / float64(sent[0])
	t.Logf("%.1f %% of what is sent without crashes", 100*of)
	if of < 0.84 {
		t.Errorf("%.3f of what is sent without crashes", of)
	}
}

// A store that restarts without what it kept, after a second, costs that second, of which nodes have grants for a part, and what is set aside for who did
// not come back: as if it had been away for so much longer each time.
func TestRestartsPass(t *testing.T) {
	seeds := need.Fewer(1, 2) // one restart more or less is a tenth of a second
	if long {
		seeds = 4
	}
	for _, x := range []struct {
		kind
		trouble nodesim.Trouble
		costs   time.Duration
	}{
		{rolling(200, time.Second), nodesim.Trouble{Restart: 20 * time.Second}, 1200 * time.Millisecond},
		{rolling(200, time.Second), nodesim.Trouble{Restart: 20 * time.Second, Kill: 10 * time.Second}, 1600 * time.Millisecond},
		{rolling(600, 10*time.Second), nodesim.Trouble{Restart: 20 * time.Second}, 1200 * time.Millisecond},
	} {
		if !long && x.trouble.Kill == 0 {
			continue // what a restart costs shows beside kills, too
		}
		sent, restarts := [2]int{}, 0
		for seed := range uint64(seeds) {
			for i := range sent {
				c := base(x.kind, 8, seed)
				c.Length, c.Warm, c.Trouble = 5*time.Minute, 20*time.Second, x.trouble
				if i == 0 {
					c.Restart = 0
				}
				r := nodesim.Run(c)
				sent[i] += r.Sent
				restarts += r.Restarts
				if r.Refused > 0 {
					t.Errorf("%s: %d refused", x.name, r.Refused)
				}
			}
		}
		cost := time.Duration(float64(seeds) * float64(5*time.Minute-20*time.Second) * (1 - float64(sent[1])/float64(sent[0])) / float64(restarts))
		t.Logf("%s, kills each %v: %d restarts, %.1f %% of what is sent without; each costs %v", x.name, x.trouble.Kill, restarts, 100*float64(sent[1])/float64(sent[0]), cost)
		if cost > x.costs {
			t.Errorf("%s: each of %d restarts costs %v", x.name, restarts, cost)
		}
	}
}

// Every 3 s a node is killed, or stopped for up to 9 s, and at every second of these, in the same instant, the store restarts without what it kept. Who
// is killed then is waited for once, and not for as long as there are restarts.
func TestRestartsAtKillsPass(t *testing.T) {
	for _, x := range []struct {
		struck bool
		least  float64
	}{{false, 170}, {true, 130}} {
		sent, refused, seconds := 0, 0, 0.0
		for seed := range uint64(3) {
			c := base(rolling(200, time.Second), 8, seed)
			c.Rested, c.Length, c.Warm, c.Crew, c.Struck = true, 75*time.Second, 15*time.Second, 3*time.Second, x.struck
			r := nodesim.Run(c)
			sent, refused, seconds = sent+r.Sent, refused+r.Refused, seconds+(c.Length-c.Warm).Seconds()
		}
		rate := float64(sent) / seconds
		t.Logf("restarts %v: %.1f a second, %d refused", x.struck, rate, refused)
		if refused > 0 || rate < x.least {
			t.Errorf("restarts %v: %.1f a second, %d refused", x.struck, rate, refused)
		}
	}
}
