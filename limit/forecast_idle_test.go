package limit_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// With nothing open and nothing ahead a forecast is the instant of Ready, whatever happened before.
func TestForecastWithNothingOpenIsReady(t *testing.T) {
	for name, kind := range specs {
		f := kind.New()
		if !limit.Forecasts(f) || strings.Contains(name, "lead") {
			continue
		}
		costs := kind.Costs
		if len(costs) == 0 {
			costs = []limit.Cost{limit.One}
		}
		scale := max(kind.Scale, time.Second)
		rng := rand.New(rand.NewPCG(7, 7))
		now := mono.Time(0)
		for range 60 {
			var open []*limit.Sent
			for range rng.IntN(6) {
				c := costs[rng.IntN(len(costs))]
				if at := f.Ready(now, c); at < limit.AfterSettle {
					now = at
					open = append(open, limittest.Admit(f, now, c))
					now = now.Add(time.Duration(rng.Int64N(int64(scale) / 8)))
				}
			}
			for _, l := range open {
				now = now.Add(time.Duration(rng.Int64N(int64(scale) / 8)))
				o := limit.Outcome{Result: limit.Accepted, ArrivedAgo: time.Duration(rng.Int64N(int64(scale) / 8))}
				if rng.IntN(4) == 0 {
					o = limit.Outcome{} // the outcome is unknown, and the request may arrive late
				}
				f.Settle(now, l, &o)
			}
			for _, c := range costs {
				if ready, said := f.Ready(now, c), limit.NotBefore(f, now, 0, limit.Cost{}, c); said != ready {
					t.Errorf("%s, at %v, cost %v: ready at %v, not before %v", name, now, c, ready, said)
				}
			}
			now = now.Add(time.Duration(rng.Int64N(int64(scale))))
		}
	}
}

// The part that a Headroom uses is in its forecasts: the one that comes next waits for it.
func TestForecastOfAHeadroom(t *testing.T) {
	inner, err := limit.NewRolling(limit.RollingConfig{Limit: 10, Window: time.Minute, Margin: -1})
	if err != nil {
		t.Fatal(err)
	}
	h, err := limit.NewHeadroom(limit.HeadroomConfig{Limiter: inner, Use: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		h.Settle(0, limittest.Admit(h, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	now := mono.Time(time.Second)
	if at := limit.NotBefore(h, now, 0, limit.Cost{}, limit.One); at != mono.Time(time.Minute) || h.Ready(now, limit.One) != at {
		t.Errorf("not before %v, and ready at %v; want both in a minute", at, h.Ready(now, limit.One))
	}
}
