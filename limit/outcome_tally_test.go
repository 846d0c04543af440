package limit_test

import (
	"testing"

	"github.com/paceline-go/paceline/limit"
)

func TestTally(t *testing.T) {
	var got, all limit.Tally
	for _, o := range []limit.Outcome{
		{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: 30}},
		{Result: limit.Accepted, Actual: limit.Cost{limit.Tokens: 9}}, // not metered, so Actual means nothing
		{Result: limit.Failed, Metered: true, Actual: limit.Cost{limit.Requests: -5, limit.Tokens: limit.MaxCost + 1}},
		{Result: limit.Limited},
		{Result: limit.Unsent},
		{Result: limit.Unsent + 1},
	} {
		got.Settled(&o)
	}
	want := limit.Tally{Accepted: 2, Failed: 1, Limited: 1, Unsent: 1, Unknown: 1, Used: limit.Cost{limit.Requests: 1, limit.Tokens: limit.MaxCost + 30}}
	if got != want || got.Sum() != 6 {
		t.Errorf("%+v, %d in all", got, got.Sum())
	}
	all.Add(&got)
	all.Add(&limit.Tally{Accepted: 1, Limited: 2, Failed: 3, Unknown: 4, Unsent: 5, Used: limit.Cost{limit.Tokens: 1}})
	if want := (limit.Tally{Accepted: 3, Limited: 3, Failed: 4, Unknown: 5, Unsent: 6, Used: limit.Cost{limit.Requests: 1, limit.Tokens: limit.MaxCost + 31}}); all != want {
		t.Errorf("%+v", all)
	}
}
