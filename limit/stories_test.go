package limit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// wrongLimit is a server, and a client whose configuration is wrong.
type wrongLimit struct {
	name   string
	told   limit.Limiter
	server rule.Server
	later  rule.Server   // the server from after on, if not nil
	after  time.Duration // half of hour, if 0
	costs  []int64       // of requests; 1, if empty
	noise  int           // one in so many is refused at random
	mutes  bool          // the server fails all requests that it does not refuse
	hour   time.Duration
}

func rollingRule(n int64, per time.Duration) rule.Server {
	return must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: per}))
}

func bucketRule(n int64, per time.Duration, burst int64) rule.Server {
	return must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: per, Capacity: burst}))
}

func calendarRule(n int64, per time.Duration) rule.Server {
	return must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: per}))
}

var wrongLimits = []wrongLimit{
	{name: "told 8 a second of 5", told: limit.MustRolling(8, time.Second), server: rollingRule(5, time.Second), hour: time.Hour},
	{name: "told 100 a minute of 20", told: limit.MustRolling(100, time.Minute), server: calendarRule(20, time.Minute), hour: 4 * time.Hour},
	{name: "told 10 a second of a bucket of 3 a second", told: limit.MustRolling(10, time.Second), server: bucketRule(3, time.Second, 10), hour: time.Hour},
	{name: "told 2 a second of 1 in 5 s", told: limit.MustRolling(2, time.Second), server: rollingRule(1, 5*time.Second), hour: 3 * time.Hour},
	{name: "told 4 a second of 1 a minute", told: limit.MustRolling(4, time.Second), server: rollingRule(1, time.Minute), hour: 9 * time.Hour},
	{name: "told 6 a second, which is right after half an hour", told: limit.MustRolling(6, time.Second), server: rollingRule(3, time.Second), later: rollingRule(6, time.Second), hour: 2 * time.Hour, after: 30 * time.Minute},
	{name: "told 6 a second, which is right for half an hour", told: limit.MustRolling(6, time.Second), server: rollingRule(6, time.Second), later: rollingRule(2, time.Second), hour: time.Hour, after: 30 * time.Minute},
	{name: "told rightly, and refused at random", told: limit.MustRolling(5, time.Second), server: rollingRule(5, time.Second), noise: 40, hour: time.Hour},
	{name: "told two limits, one of which is wrong", told: limit.NewAll(limit.MustRolling(5, time.Second), limit.Named("minute", limit.MustRolling(100, time.Minute))), server: rollingRule(60, time.Minute), hour: 2 * time.Hour},
	{name: "told a limit of weights", told: must(limit.NewRolling(limit.RollingConfig{Limit: 100, Window: 10 * time.Second, Unit: limit.Weight})), server: rollingRule(60, 10*time.Second), costs: []int64{1, 5, 20, 33}, hour: 2 * time.Hour},
	{name: "told a weighted window", told: must(limit.NewWeighted(limit.WeightedConfig{Limit: 30, Window: 10 * time.Second})), server: rollingRule(12, 10*time.Second), hour: time.Hour},
	{name: "told a bucket, and all that is served fails", told: must(limit.NewBucket(limit.BucketConfig{Limit: 4, Window: time.Second})), server: bucketRule(2, time.Second, 2), mutes: true, hour: time.Hour},
}

// The stories of wrong limits, as Misfits reports them: each time that another fit is found. After
// a change of the search, write the file anew, and read whether the stories are still good.
func TestStoriesOfWrongLimits(t *testing.T) {
	race.Without(t) // one goroutine races with nobody
	var b strings.Builder
	for _, w := range wrongLimits {
		fmt.Fprintf(&b, "\n%s\n", w.name)
		w.tell(&b)
	}
	golden.CompareFloats(t, "wrong.golden", b.String())
}

type onTheWay struct {
	arrives, ends mono.Time
	lease         *limit.Sent
	cost          int64
	arrived       bool
	o             limit.Outcome
}

// tell runs a client with eight requests in flight at most, and writes its story.
func (w *wrongLimit) tell(b *strings.Builder) {
	f, rng := limit.NewFitted(w.told), rand.New(rand.NewPCG(5, 9))
	began := at(time.Hour)
	now, flights, served, refused, said := began, []*onTheWay(nil), 0, 0, "nothing is wrong"
	for now < began.Add(w.hour) {
		n := int64(1)
		if len(w.costs) > 0 {
			n = w.costs[(served+refused+len(flights))%len(w.costs)]
		}
		cost := limit.Cost{limit.Requests: 1, limit.Weight: n}
		next := limit.Never
		if len(flights) < 8 {
			next = f.Ready(now, cost)
		}
		if next <= now {
			d := time.Duration(30+rng.IntN(60)) * time.Millisecond
			flights = append(flights, &onTheWay{arrives: now.Add(d), ends: now.Add(2 * d), lease: limittest.Admit(f, now, cost), cost: n})
			continue
		}
		for _, x := range flights {
			if !x.arrived {
				next = min(next, x.arrives)
			} else {
				next = min(next, x.ends)
			}
		}
		now = next
		for i := 0; i < len(flights); i++ {
			x := flights[i]
			if !x.arrived && x.arrives <= now {
				x.arrived, x.o = true, w.serve(x, began, rng)
			}
			if x.arrived && x.ends <= now {
				if f.Settle(now, x.lease, &x.o); x.o.Result == limit.Limited {
					refused++
				} else {
					served++
				}
				flights = append(flights[:i], flights[i+1:]...)
				i--
			}
		}
		if is := story(f, began); is != said {
			fmt.Fprintf(b, "  after %v, %d served and %d refused: %s\n", now.Sub(began).Round(time.Millisecond), served, refused, is)
			said = is
		}
	}
	fmt.Fprintf(b, "  in all %d served and %d refused\n", served, refused)
}

func (w *wrongLimit) serve(x *onTheWay, began mono.Time, rng *rand.Rand) limit.Outcome {
	server := w.server
	if w.later != nil && x.arrives >= began.Add(w.after) {
		server = w.later
	}
	switch {
	case !server.Arrive(x.arrives, x.cost), w.noise > 0 && rng.IntN(w.noise) == 0:
		return limit.Outcome{Result: limit.Limited}
	case w.mutes:
		return limit.Outcome{Result: limit.Failed}
	}
	return limit.Outcome{Result: limit.Accepted}
}

// story returns the Misfits of a Fitted as text.
func story(f *limit.Fitted, began mono.Time) string {
	all := f.Misfits()
	if len(all) == 0 {
		return "nothing is wrong"
	}
	var parts []string
	for _, m := range all {
		parts = append(parts, fmt.Sprintf("%d in %v fit %d, a gap of %v, until %v, %d times, %d refusals, sure %v",
			m.N, m.Per, m.Fits, m.Gap, m.Until.Sub(began).Round(time.Millisecond), m.Times, m.Refusals, m.Sure))
	}
	return strings.Join(parts, "; ")
}
