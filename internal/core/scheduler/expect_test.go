package scheduler_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A guess counts on the used part of a limit, and on a ramp: it is within a tenth of the truth. No ticket
// goes before a bound, which counts on all of the limit.
func TestExpectOfAPart(t *testing.T) {
	bucket, err := limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 20})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]limit.HeadroomConfig{
		"windows": {Limiter: rolling(t, 20, time.Second), Use: 0.5},
		"bucket":  {Limiter: bucket, Use: 0.25},
		"all":     {Limiter: rolling(t, 20, time.Second)},
		"ramp":    {Limiter: rolling(t, 20, time.Second), Ramp: 20 * time.Second},
		"several": {Limiter: limit.NewAll(rolling(t, 20, time.Second), rolling(t, 200, 30*time.Second)), Use: 0.75},
	} {
		h, err := limit.NewHeadroom(c)
		if err != nil {
			t.Fatal(err)
		}
		l := scheduler.New(scheduler.Config{})
		lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(h, scheduler.Sharing{})})
		now := mono.Time(0)
		goes := func(until *scheduler.Ticket) {
			for until.State == scheduler.Waiting {
				now = max(now, l.Wake())
				for u := l.Next(now); u != nil; u = l.Next(now) {
					l.Settle(now, u.Pass, &accepted)
				}
			}
		}
		var last, middle *scheduler.Ticket
		for i := range 600 {
			last = ticket("u", now)
			if l.Enter(now, lane, last) == scheduler.Granted {
				l.Settle(now, last.Pass, &accepted)
			}
			if i == 20 {
				middle = last
			}
		}
		goes(middle)
		guess, _ := l.Expect(now, lane, &last.Cost, mono.Max)
		bound, _ := l.Ask(now, lane, &last.Cost, &last.Cost)
		from := now
		goes(last)
		if left, want := guess.Sub(from), now.Sub(from); left < want-want/10 || left > want+want/10 {
			t.Errorf("%s: the guess is %v, and the last went after %v", name, left, want)
		}
		if bound > now.Add(time.Second) { // it is of one behind the last
			t.Errorf("%s: the bound is %v, and the last went at %v", name, bound, now)
		}
	}
}

// If answers come at once, Ask is within a hundredth of the truth for a line of several keys, also
// if their limits and the costs differ.
func TestAskOfKeysIsTight(t *testing.T) {
	tokens := func(n int64) limit.Limiter {
		return must(limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Second, Unit: limit.Tokens}))
	}
	bucket := func(n int64) limit.Limiter {
		return must(limit.NewBucket(limit.BucketConfig{Limit: n, Window: time.Second, Burst: 20}))
	}
	for name, c := range map[string]struct {
		keys []limit.Limiter
		size int64 // costs are from 1 to size
	}{
		"equal":            {[]limit.Limiter{rolling(t, 20, time.Second), rolling(t, 20, time.Second), rolling(t, 20, time.Second)}, 1},
		"of all":           {[]limit.Limiter{rolling(t, 60, time.Second), rolling(t, 70, time.Second), rolling(t, 80, time.Second)}, 1},
		"different":        {[]limit.Limiter{rolling(t, 40, time.Second), rolling(t, 10, time.Second), rolling(t, 3, time.Second)}, 1},
		"a second, minute": {[]limit.Limiter{rolling(t, 20, time.Second), rolling(t, 60, time.Minute)}, 1},
		"buckets":          {[]limit.Limiter{bucket(20), bucket(5)}, 1},
		"tokens":           {[]limit.Limiter{tokens(100), tokens(40)}, 8},
	} {
		l := scheduler.New(scheduler.Config{})
		var ways [][]*scheduler.Limit
		all := l.Limit(rolling(t, 100, time.Second), scheduler.Sharing{})
		for _, key := range c.keys {
			ways = append(ways, []*scheduler.Limit{l.Limit(key, scheduler.Sharing{}), all})
		}
		lane, now := l.Lane(scheduler.LaneConfig{}, ways...), mono.Time(0)
		var last *scheduler.Ticket
		var asked mono.Time
		for i := range int64(600) {
			last = ticket("u", 0)
			last.Cost[limit.Input] = 1 + i*5%c.size
			last.Cost[limit.Tokens] = last.Cost[limit.Input]
			asked, _ = l.Ask(0, lane, &last.Cost, &last.Cost)
			if l.Enter(0, lane, last) == scheduler.Granted {
				l.Settle(0, last.Pass, &accepted)
			}
		}
		for last.State == scheduler.Waiting {
			now = max(now, l.Wake())
			for u := l.Next(now); u != nil; u = l.Next(now) {
				l.Settle(now, u.Pass, &accepted)
			}
		}
		if asked > now || asked < now.Add(-now.Sub(0)/100) {
			t.Errorf("%s: Ask said %v, and it went at %v", name, asked, now)
		}
	}
}
