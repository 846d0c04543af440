package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

// patient is a strategy of one's own: a thread that was refused sleeps a second before each try, twice as long with each
// refusal more, and a twentieth less with each success.
type patient struct{ sleep time.Duration }

func (p *patient) Send(now mono.Time) mono.Time { return now.Add(p.sleep) }

func (p *patient) Answer(_ mono.Time, a throttle.Answer) {
	if a.Limited {
		p.sleep = min(max(2*p.sleep, time.Second), time.Hour)
	} else {
		p.sleep -= p.sleep / 20
	}
}

func (p *patient) Sleep() time.Duration { return p.sleep }

// eachAlone makes threads that tell each other nothing.
type eachAlone struct{}

func (eachAlone) Thread(*rand.Rand) throttle.Thread { return &patient{} }

// A strategy of one's own compared with Fair: ten clients share a token bucket of 4,500 requests per hour for an hour, all by the
// one, then all by the other.
func ExampleFleet() {
	own := throttle.Strategy{Name: "patient", New: func(throttle.Params) (throttle.Process, error) { return eachAlone{}, nil }}
	fair := throttle.Strategy{Name: "fair", NewLimiter: func(_ throttle.Params, rng *rand.Rand) (limit.Limiter, error) {
		return throttle.NewFair(throttle.FairConfig{Limit: 4500, Window: time.Hour, Rng: rng})
	}}
	for _, law := range []throttle.Strategy{own, fair} {
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
