package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// A bucket whose refill takes less than a tick, except for one token, cannot be kept. One whose
// refill takes just a tick can.
func TestProducedOfTheSmallestBucket(t *testing.T) {
	const token = 1_000_201 // ns: a thousandth of a second, by a clock that is slower than ours by 200 millionths
	for _, c := range []struct {
		burst  int64
		margin time.Duration
		ok     bool
	}{
		{2, token, true}, {2, token + 1, false}, {3, token + 1, true}, {3, 2 * token, true}, {3, 2*token + 1, false}, {1, -1, true}, {1, 1, false},
	} {
		l, err := limit.NewProduced(limit.ProducedConfig{Limit: 1000, Window: time.Second, Burst: c.burst, Margin: c.margin})
		if (err == nil) != c.ok {
			t.Errorf("a bucket of %d with a tick of %v: %v", c.burst, c.margin, err)
		} else if c.ok {
			if got := l.Ready(0, costing(5)); got != 0 {
				t.Errorf("of a bucket of %d with a tick of %v, the first goes at %v", c.burst, c.margin, got)
			}
		}
	}
}

// A request that goes now counts as the largest output until another arrives, at most a second
// later: one token and a hundred. The smallest open request may be left out.
func TestProducedBesideASmallOne(t *testing.T) {
	for burst, goes := range map[int64]bool{101: false, 102: true} {
		for _, small := range []int64{50, 101} { // the part that is left out stays the same
			l := must(limit.NewProduced(limit.ProducedConfig{Limit: 1, Window: time.Second, Burst: burst, PerSecond: 100, Within: time.Second, Margin: -1}))
			limittest.Admit(l, 0, costing(small))
			if got := l.Ready(0, costing(500)); (got == 0) != goes {
				t.Errorf("of a bucket of %d, 500 beside %d go at %v", burst, small, got)
			}
		}
	}
}
