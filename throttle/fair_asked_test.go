package throttle

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A refusal that tells nothing but a reset asks to stay away until then, unless that is when a bucket is full again: who came first to an
// empty one would be away for all of the time that it takes to fill.
func TestFairIsAskedToStayAway(t *testing.T) {
	for name, c := range map[string]struct {
		kind         Kind
		reset, retry time.Duration
		away         bool
	}{
		"full again in an hour":                        {UnknownKind, time.Hour, time.Hour, false},
		"the same, and when there is one":              {UnknownKind, time.Hour, time.Second, false},
		"the same, and it asks for another time":       {UnknownKind, time.Hour, 50 * time.Minute, true},
		"a window that ends in half an hour":           {UnknownKind, 30 * time.Minute, 30 * time.Minute, true},
		"a bucket, and the hour is not quite right":    {TokenBucket, 30 * time.Minute, 30 * time.Minute, false},
		"a bucket that says for how long to stay away": {TokenBucket, 0, 30 * time.Minute, true},
		"a bucket that says both":                      {TokenBucket, 20 * time.Minute, 30 * time.Minute, true},
		"a window that has begun":                      {FixedWindow, time.Hour, time.Hour, true},
		"a rolling window":                             {RollingWindow, time.Hour, time.Hour, true},
	} {
		config := hourly
		config.Kind = c.kind
		f := fairOf(t, config)
		f.last = second(0)
		o := limit.Outcome{Result: limit.Limited, RetryAfter: c.retry, Known: 1 << limit.Requests}
		o.Reset[limit.Requests] = c.reset
		f.Settle(second(0.1), f.Admit(second(0), limit.One), o)
		if wait := f.Ready(second(0.1), limit.One).Sub(second(0)); wait > 20*time.Minute != c.away {
			t.Errorf("%s: it goes after %v", name, wait)
		}
	}
}
