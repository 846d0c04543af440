package fairshare

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// counted is a Fair whose unit of cost is so many tokens.
type counted struct {
	*Fair
	unit   float64
	leases []*limit.Sent
}

func (c *counted) cost(units float64) limit.Cost {
	return limit.Cost{limit.Tokens: int64(math.Round(units * c.unit))}
}

// The law reckons in units of cost. Let another quota have a hundred times as many tokens, and a
// unit a hundred times as many of them. Then its sharer goes at the same instants, with any costs,
// any corrections, and any requests in flight.
func TestFairReckonsInUnits(t *testing.T) {
	for name, q := range map[string]struct {
		kind   Kind
		silent bool
	}{
		"bucket": {TokenBucket, false}, "window": {FixedWindow, false}, "rolling": {RollingWindow, false},
		"silent bucket": {TokenBucket, true}, "silent window": {FixedWindow, true}, "unknown": {UnknownKind, false}, "silent": {UnknownKind, true},
	} {
		var both [2]*counted
		units := [2]float64{1e6, 1e8}
		if q.silent { // otherwise the half that servers round off is more of a small unit
			units = [2]float64{8, 8e6}
		}
		for i, unit := range units {
			both[i] = &counted{unit: unit, Fair: fairOf(t, FairConfig{
				Kind: q.kind, Limit: int64(600 * unit), Capacity: int64(150 * unit), Window: 10 * time.Minute, Unit: limit.Tokens, MeanCost: unit,
			})}
		}
		a, b := both[0], both[1]
		rng, now, level, last := rng(3), mono.Time(0), 40.0, mono.Time(0)
		for step := range 400 {
			units := []float64{0.5, 1, 1, 2.5}[rng.IntN(4)]
			at := a.Ready(now, a.cost(units))
			if off := b.Ready(now, b.cost(units)).Sub(at); off.Abs() > time.Millisecond || (a.Sleep()-b.Sleep()).Abs() > time.Millisecond {
				t.Errorf("%s: in step %d, in larger figures the next goes %v later, and it plans %v and not %v between two", name, step, off, b.Sleep(), a.Sleep())
				break
			}
			if len(a.leases) == 0 || len(a.leases) < 4 && rng.IntN(2) == 0 {
				now = max(now, at)
				for _, c := range both {
					c.leases = append(c.leases, limittest.Admit(c, now, c.cost(units)))
				}
				continue
			}
			now = now.Add(time.Duration(rng.IntN(900)+100) * time.Millisecond)
			level = min(150, level+now.Sub(last).Seconds())
			last = now
			ends := mono.Time(600e9).Sub(now % mono.Time(600e9))
			answer(both[:], rng, now, units, &level, ends, q.silent)
		}
	}
}

// answer settles one request in flight: with the remainder of level, and an actual cost now and
// then.
func answer(all []*counted, rng *rand.Rand, now mono.Time, units float64, level *float64, ends time.Duration, silent bool) {
	refused, metered, k := *level < units || rng.IntN(40) == 0, rng.IntN(3) == 0, 0
	if rng.IntN(4) == 0 {
		k = rng.IntN(len(all[0].leases))
	}
	if !refused {
		*level -= units
	}
	for _, c := range all {
		o := limit.Outcome{Result: limit.Accepted, Metered: metered, Actual: c.cost(units * 1.5)}
		if refused {
			o.Result = limit.Limited
		}
		if !silent {
			o.Known, o.Remaining = 1<<limit.Tokens, c.cost(*level+0.5)
			o.Reset[limit.Tokens] = ends
		}
		c.Settle(now, c.leases[k], &o)
		c.leases = append(c.leases[:k], c.leases[k+1:]...)
	}
}
