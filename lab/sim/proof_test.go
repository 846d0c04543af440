package sim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// What each opt-in buys on the path it is for, at 20 a second (100 a second is what five keys with that limit have), and
// what it costs when its premise fails.
func TestOptIns(t *testing.T) {
	var clock limit.ServerClock
	stamped := func(o *limit.Outcome, sent, arrived, now mono.Time) {
		const ahead = mono.Time(17*time.Minute + 400*time.Microsecond)
		stamp := arrived + ahead
		stamp -= stamp % mono.Time(ms)
		o.ArrivedAgo = clock.ArrivedAgo(sent, now, stamp)
	}
	uniform := sim.Symmetric(latency.Uniform(0, 50*ms))
	steady := sim.Symmetric(latency.Exponential(ms, 10*ms))
	for _, c := range []struct {
		name     string
		arrivals limit.Arrivals
		path     sim.Path
		know     func(*limit.Outcome, mono.Time, mono.Time, mono.Time)
		rate     float64 // at least
		refused  int     // at most, of 20,000
	}{
		{"nothing known", limit.Arrivals{}, uniform, nil, 95.1, 0},
		{"largest latency known", limit.Arrivals{OneWayMax: 50 * ms}, uniform, nil, 95.85, 0},
		{"server's stamps", limit.Arrivals{}, uniform, stamped, 97.1, 0},
		{"nothing known, steady path", limit.Arrivals{}, steady, nil, 97.6, 0},
		{"lead learned, steady path", limit.Arrivals{LearnLead: true}, steady, nil, 99.3, 0},
		{"lead learned, and the path becomes quicker", limit.Arrivals{LearnLead: true},
			sim.Steps(steady, sim.Symmetric(latency.Constant(2*ms)), 500*time.Second), nil, 98, 4},
	} {
		server, err := rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		limiter, err := limit.NewRolling(limit.RollingConfig{Limit: 20, Window: time.Second, Arrivals: c.arrivals})
		if err != nil {
			t.Fatal(err)
		}
		got := sim.Proof{Limiter: limiter, Servers: []sim.ProofServer{{Server: server}}, Path: c.path, Know: c.know, Requests: 20_000, Seed: 1}.Run()
		rate := 5 * 20_000 / got.End.Sub(0).Seconds()
		t.Logf("%s: %.2f a second with five keys, %d refused", c.name, rate, got.Rejected)
		if rate < c.rate || got.Rejected > c.refused {
			t.Errorf("want at least %.2f, and at most %d refused", c.rate, c.refused)
		}
	}
}

func TestProofIsRepeatable(t *testing.T) {
	kind, path := sim.ProofKinds()[0], sim.ProofPaths()[3]
	a, ap := kind.Prove(path, 3000, 7, nil)
	b, bp := kind.Prove(path, 3000, 7, nil)
	c, _ := kind.Prove(path, 3000, 8, nil)
	if a != b || ap != bp || a == c {
		t.Errorf("%+v, then %+v; with another seed %+v", a, b, c)
	}
}
