package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// For a history known from its beginning nothing is assumed: exactly its requests count.
func TestReplayOfAllThereWas(t *testing.T) {
	for name, make := range replayed(t) {
		l := make()
		now := at(time.Hour)
		past := []limit.Past{
			{At: at(time.Hour - 300*ms), Cost: limit.Cost{limit.Requests: 2, limit.Output: 2}, Result: limit.Accepted},
			{At: at(time.Hour - 200*ms), Cost: limit.Cost{limit.Requests: 1, limit.Output: 1}, Result: limit.Failed},
		}
		limit.Replay(l, now, mono.Min, past)
		for _, u := range limit.AppendUsage(nil, l, now) {
			if u.Total != 3 || u.Used > 3 {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}
