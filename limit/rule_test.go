package limit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// The rates of a named limiter all have its name. A limiter that does not know its rates has none
// under a name either.
func TestRatesOfNamed(t *testing.T) {
	both := limit.NewAll(limit.MustRolling(5, time.Second), limit.MustRolling(60, time.Minute))
	want := []limit.Rule{
		{Name: "mine", N: 5, Per: time.Second, Counts: limit.CountsRolling},
		{Name: "mine", N: 60, Per: time.Minute, Counts: limit.CountsRolling},
	}
	if rates, ok := limit.Rates(limit.Named("mine", both)); !ok || !slices.Equal(rates, want) {
		t.Errorf("%v %v, want %v", rates, ok, want)
	}
	if rates, ok := limit.Rates(limit.Named("mine", opaque{both})); ok || len(rates) != 0 {
		t.Errorf("of one that does not tell: %v %v", rates, ok)
	}
}

// A rule reads as a person would say it. One without a number has its name.
func TestRuleInWords(t *testing.T) {
	for want, rule := range map[string]limit.Rule{
		"20 requests per 1s": {Name: "requests", N: 20, Per: time.Second},
		"4 requests at once": {Name: "four", N: 4, Counts: limit.CountsInFlight},
		"pause":              {Name: "pause"},
		"30 tokens":          {Name: "tokens", Unit: limit.Tokens, N: 30},
	} {
		if got := rule.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A bound that a limiter finds is one of its Rules, and none of its Rates. So a Fitted leaves it
// alone, with all that is beside it.
func TestRatesOfWhatIsFound(t *testing.T) {
	l := limit.NewAll(limit.MustRolling(5, time.Second), must(limit.NewAdaptive(limit.AdaptiveConfig{Initial: 3})))
	if all, ok := limit.Rules(l); !ok || len(all) != 2 || all[1].N != 3 {
		t.Errorf("the rules are %v, %v", all, ok)
	}
	if all, ok := limit.Rates(l); ok || len(all) > 0 {
		t.Errorf("the rates are %v, %v", all, ok)
	}
}
