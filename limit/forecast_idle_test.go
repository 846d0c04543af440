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
