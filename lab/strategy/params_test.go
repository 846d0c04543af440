package strategy_test

import (
	"math"
	"testing"

	"github.com/paceline-go/paceline/lab/strategy"
)

// A quota gives up to a thousand million a second, and holds from one to a million million.
func TestParamsOfAQuota(t *testing.T) {
	for p, ok := range map[strategy.Params]bool{
		{Rate: 1, Burst: 1}: true, {Rate: 1e-9, Burst: 1}: true, {Rate: 1e9, Burst: 1e12}: true,
		{Rate: 0, Burst: 1}: false, {Rate: -1, Burst: 1}: false, {Rate: 1.001e9, Burst: 1}: false, {Rate: math.Inf(1), Burst: 1}: false,
		{Rate: 1, Burst: 0.999}: false, {Rate: 1, Burst: 1.001e12}: false, {Rate: 1, Burst: math.Inf(1)}: false,
	} {
		if err := p.Check("x"); (err == nil) != ok {
			t.Errorf("%v a second and a burst of %v: %v", p.Rate, p.Burst, err)
		}
	}
	for _, p := range []strategy.Params{{Rate: math.NaN(), Burst: 1}, {Rate: 1, Burst: math.NaN()}} {
		if p.Check("x") == nil {
			t.Errorf("%v a second and a burst of %v is a quota", p.Rate, p.Burst)
		}
	}
}
