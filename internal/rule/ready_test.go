package rule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// TestReady: each Timed rule returns the first instant at which the request passes.
func TestReady(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		limit, window, tick := rng.Int64N(9)+1, time.Duration(rng.Int64N(5000)+1), []time.Duration{-1, 7, 100}[rng.IntN(3)]
		for name, open := range map[string]func() (rule.Timed, error){
			"rolling": func() (rule.Timed, error) {
				return rule.NewRolling(rule.RollingConfig{Limit: limit, Window: window, Tick: tick})
			},
			"bucket": func() (rule.Timed, error) {
				return rule.NewBucket(rule.BucketConfig{Limit: limit, Window: window, Capacity: limit + 3, Tick: tick})
			},
			"calendar": func() (rule.Timed, error) {
				return rule.NewCalendar(rule.CalendarConfig{Limit: limit, Window: window, Phase: mono.Time(seed), Tick: tick})
			},
			"anchored": func() (rule.Timed, error) {
				return rule.NewAnchored(rule.AnchoredConfig{Limit: limit, Window: window, Tick: tick})
			},
			"anchored, closed": func() (rule.Timed, error) {
				return rule.NewAnchored(rule.AnchoredConfig{Limit: limit, Window: window, Tick: tick, Closed: true})
			},
		} {
			r, err := open()
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(seed, 8))
			now := mono.Time(rng.Int64N(1000) - 500)
			for range 60 {
				now += mono.Time(rng.Int64N(int64(window)/3 + 2))
				cost := rng.Int64N(limit+4) + 1
				at, ok := r.Ready(now, cost)
				passes := r.Arrive(now, cost)
				most := limit
				if name == "bucket" {
					most += 3
				}
				if ok != (cost <= most) || ok && at < now || passes != (ok && at == now) {
					t.Fatalf("seed %d, %s: at %d a cost of %d: ready at %d, %v, and yet passes %v", seed, name, now, cost, at, ok, passes)
				}
				if !ok || passes {
					continue
				}
				if r.Fits(at-1, cost) {
					t.Fatalf("seed %d, %s: at %d a cost of %d: ready at %d, and a nanosecond before", seed, name, now, cost, at)
				}
				if !r.Arrive(at, cost) {
					t.Fatalf("seed %d, %s: at %d a cost of %d: ready at %d, and refused then", seed, name, now, cost, at)
				}
				now = at
			}
		}
	}
}
