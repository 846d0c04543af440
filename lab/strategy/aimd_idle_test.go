package strategy_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// Who comes late by up to as much again as was planned is credited with the plan, and who comes later was idle, which earns nothing.
func TestAIMDEarnsNothingByIdling(t *testing.T) {
	for gap, rate := range map[time.Duration]float64{
		100 * ms: 10.1, 150 * ms: 10.1, 200 * ms: 10.1, 200*ms + 1: 10.1, 200*ms + 2: 10, 250 * ms: 10, 299 * ms: 10, time.Hour: 10,
	} {
		a := must(strategy.NewAIMD(strategy.Params{Rate: 10, Burst: 100, Increase: 1, Jitter: -1}, nil))
		limittest.Admit(a, 0, limit.One)
		a.Settle(at(gap), limittest.Admit(a, at(gap), limit.One), &limit.Outcome{Result: limit.Accepted})
		if !closeTo(a.Rate(), rate) {
			t.Errorf("%v after the one before, the rate becomes %v, want %v", gap, a.Rate(), rate)
		}
	}
}
