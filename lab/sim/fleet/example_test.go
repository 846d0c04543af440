package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// patient is a strategy of one's own: a thread that was refused sleeps a second before each try, twice as long with each
// refusal more, and a twentieth less with each success.
type patient struct{ sleep time.Duration }

func (p *patient) Send(now mono.Time) mono.Time { return now.Add(p.sleep) }

func (p *patient) Answer(_ mono.Time, a strategy.Answer) {
	if a.Limited {
		p.sleep = min(max(2*p.sleep, time.Second), time.Hour)
	} else {
		p.sleep -= p.sleep / 20
	}
}

func (p *patient) Sleep() time.Duration { return p.sleep }

// eachAlone makes threads that tell each other nothing.
type eachAlone struct{}

func (eachAlone) Thread(*rand.Rand) strategy.Thread { return &patient{} }

// A strategy of one's own compared with Fair: ten clients share a token bucket of 4,500 requests per hour for an hour, all by the
// one, then all by the other.
func ExampleFleet() {
	own := strategy.Strategy{Name: "patient", New: func(strategy.Params) (strategy.Process, error) { return eachAlone{}, nil }}
	fair := strategy.Strategy{Name: "fair", NewLimiter: func(_ strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		return fairshare.NewFair(fairshare.FairConfig{Limit: 4500, Window: time.Hour, Rng: rng})
	}}
	for _, law := range []strategy.Strategy{own, fair} {
		f, err := fleet.New(fleet.Scenario{
			Duration: time.Hour,
			Server:   fleet.Quota{Limit: 4500, Window: time.Hour},
			Groups:   []fleet.Group{{Strategy: law, Processes: 10, Link: latency.Uniform(20*time.Millisecond, 40*time.Millisecond)}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		f.Advance(time.Hour)
		r := f.Report()
		fmt.Printf("%s: %d served, %d refused, longest sleep %.0f s, the poorest has %.2f of a fair share\n",
			law.Name, r.Served, r.Limited, r.Sleep.Max, r.Shares.Least)
	}
	// Output:
	// patient: 4499 served, 376 refused, longest sleep 973 s, the poorest has 0.01 of a fair share
	// fair: 4379 served, 10 refused, longest sleep 13 s, the poorest has 1.00 of a fair share
}
