package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// An arrival within a grain counts for a window after the end of the grain, and no longer. It never
// counts for a nanosecond less than a window.
func TestGrainIsRoundedUp(t *testing.T) {
	const grain = 4
	for sent := mono.Time(-9); sent < 9; sent++ {
		l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: -1, Grain: grain}))
		l.Settle(sent, limittest.Admit(l, sent, limit.One), &limit.Outcome{Result: limit.Accepted})
		end := sent
		for end%grain != 0 {
			end++
		}
		if got, want := l.Ready(sent, limit.One), end.Add(time.Second); got != want {
			t.Errorf("sent at %d ns, the next is ready %d ns after a second", int64(sent), got.Sub(want.Add(time.Duration(sent-end))))
		}
	}
}
