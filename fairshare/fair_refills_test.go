package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// A refusal with only a reset asks to stay away until then, unless that is when a bucket is full
// again. Otherwise the first sharer at an empty bucket would be away for the whole refill.
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
		f.Settle(second(0.1), limittest.Admit(f, second(0), limit.One), &o)
		if wait := f.Ready(second(0.1), limit.One).Sub(second(0)); wait > 20*time.Minute != c.away {
			t.Errorf("%s: it goes after %v", name, wait)
		}
	}
}

// A reset is the refill of a bucket in two cases. The quota is known to be a bucket, or the reset
// is as long as a refill from the remainder.
func TestRefills(t *testing.T) {
	const requests = 1 << limit.Requests
	for name, c := range map[string]struct {
		kind   Kind
		made   func(f *Fair)
		left   int64
		reset  time.Duration
		result limit.Result
		units  uint8
	}{
		"nothing is left":                          {UnknownKind, nil, 0, time.Hour, limit.Accepted, requests},
		"as long as it takes from what is left":    {UnknownKind, nil, 900, 45 * time.Minute, limit.Accepted, requests},
		"an answer may be slow, and seconds whole": {UnknownKind, nil, 900, 45*time.Minute + 3*time.Second, limit.Accepted, requests},
		"longer than it takes":                     {UnknownKind, nil, 900, 46 * time.Minute, limit.Accepted, 0},
		"shorter than it takes":                    {UnknownKind, nil, 900, 44 * time.Minute, limit.Accepted, 0},
		"refused, something is left for others":    {UnknownKind, nil, 900, time.Hour, limit.Limited, requests},
		"no reset":                                 {TokenBucket, nil, 900, 0, limit.Accepted, 0},
		"a bucket, and it takes another time":      {TokenBucket, nil, 900, time.Minute, limit.Accepted, requests},
		"a window":                                 {FixedWindow, nil, 900, 45 * time.Minute, limit.Accepted, 0},
		"documented, and it takes another time": {UnknownKind, func(f *Fair) {
			f.State(0, []limit.Rule{{N: 3600, Per: time.Hour, Counts: limit.CountsBucket}})
		}, 900, time.Minute, limit.Accepted, requests},
		"found out, and it takes another time": {UnknownKind, func(f *Fair) { f.finder.votes = -kindVotes }, 900, time.Minute, limit.Accepted, requests},
		"it holds less": {UnknownKind, func(f *Fair) {
			f.State(0, []limit.Rule{{N: 3600, Per: time.Hour, Burst: 900}})
		}, 0, 15 * time.Minute, limit.Limited, requests},
		"nobody knows the quota": {UnknownKind, func(f *Fair) { f.unknown = &silentUnknown{} }, 0, time.Hour, limit.Limited, 0},
	} {
		config := hourly
		config.Kind = c.kind
		f := fairOf(t, config)
		if c.made != nil {
			c.made(f)
		}
		o := limit.Outcome{Result: c.result, Known: requests}
		o.Remaining[limit.Requests], o.Reset[limit.Requests] = c.left, c.reset
		if units := f.Refills(&o); units != c.units {
			t.Errorf("%s: %b", name, units)
		}
		if units := (&Auto{fair: f}).Refills(&o); units != c.units {
			t.Errorf("%s, found out by an Auto: %b", name, units)
		}
		if o.Known = 1 << limit.Tokens; f.Refills(&o) != 0 {
			t.Errorf("%s: and it knows of tokens", name)
		}
	}
}
