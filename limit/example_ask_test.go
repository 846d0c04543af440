package limit_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A log line says which limit holds a request up, and how full each limit is. Names distinguish two
// limits of one unit.
func ExampleExplain() {
	l := limit.NewAll(
		limit.Named("key", limit.MustRolling(2, time.Second)),
		limit.Named("account", limit.MustRolling(30, time.Minute)))
	answered(l, 0, 10*time.Millisecond, limit.One)
	send(l, 20*time.Millisecond, limit.One) // not answered yet

	now := mono.Time(30 * time.Millisecond)
	var rule limit.Rule
	_, rule = limit.Explain(l, now, limit.One)
	fmt.Printf("%s: %d of %d %s\n", rule.Name, limit.One[rule.Unit], rule.Most(), rule.Unit)
	for _, u := range limit.AppendUsage(nil, l, now) {
		fmt.Printf("%s: %d of %d used, %d in flight\n", u.Limit, u.Used, u.Allowed, u.Open)
	}
	rates, _ := limit.Rates(l)
	fmt.Println(rates[0], "and", rates[1])

	fmt.Println(limit.Unsettled(l), "in flight")
	most, _ := limit.Most(l, now, limit.Requests)
	fmt.Println("no cost above", most, "ever goes; limits:", len(limit.Parts(l)))
	// Output:
	// key: 1 of 2 requests
	// key: 2 of 2 used, 1 in flight
	// account: 2 of 30 used, 1 in flight
	// 2 requests per 1s and 30 requests per 1m0s
	// 1 in flight
	// no cost above 2 ever goes; limits: 2
}

// A caller that cannot wait asks first: not before when can a cost go that has others ahead of it?
func ExampleNotBefore() {
	l := limit.MustRolling(2, time.Second)
	var _ limit.Forecaster = l
	if !limit.Forecasts(l) {
		fmt.Println("the limiter has no forecast")
	}
	ahead := limit.Cost{limit.Requests: 4}
	fmt.Println("behind four requests:", limit.NotBefore(l, 0, 4, ahead, limit.One).Sub(0) >= 2*time.Second)
	// Output: behind four requests: true
}

// A small request may go ahead of a large one that waits, if the large one goes as soon all the same.
func ExampleMayPass() {
	l := limit.MustRolling(10, time.Second)
	if !limit.Foresees(l) {
		fmt.Println("the limiter does not foresee")
	}
	answered(l, 0, 0, limit.Cost{limit.Requests: 5})

	now := mono.Time(100 * time.Millisecond)
	small, large := limit.Cost{limit.Requests: 1}, limit.Cost{limit.Requests: 9}
	at := l.Ready(now, large)
	fmt.Println(limit.Foresees(l), limit.MayPass(l, now, small, large, at))
	two := limit.Cost{limit.Requests: 2}
	fmt.Println(limit.ReadyAfter(l, now, two, large) > at, limit.MayPass(l, now, two, large, at))
	// Output:
	// true true
	// true false
}

// A program that was restarted counts what its predecessor had sent, from its journal.
func ExampleReplay() {
	l := limit.MustRolling(3, time.Minute)
	journal := []limit.Past{
		{At: mono.Time(-50 * time.Second), Cost: limit.One, Result: limit.Accepted},
		{At: mono.Time(-20 * time.Second), Cost: limit.One, Result: limit.Accepted},
		{At: mono.Time(-10 * time.Second), Cost: limit.One, Result: limit.Limited}, // a refusal counts, too
	}
	limit.SetEpoch(l, time.Now()) // what 0 is; only limits by the clock of a place need it
	limit.Replay(l, 0, mono.Time(-time.Hour), journal)
	fmt.Println(ready(l, 0, limit.One))
	// Output: 10.0071s
}

// A limiter's memory goes into a file, and the next process reads it.
func ExampleKeeper() {
	l := limit.NewFitted(limit.MustRolling(2, time.Minute))
	if err := limit.Keeps(l); err != nil {
		fmt.Println(err)
	}
	answered(l, 0, 0, limit.One)
	answered(l, time.Second, 0, limit.One)
	state := limit.AppendState(nil, l)

	next := limit.NewFitted(limit.MustRolling(2, time.Minute))
	fmt.Println(limit.Restore(next, state), limit.Span(next) >= time.Minute)
	fmt.Println(ready(next, 2*time.Second, limit.One) == ready(l, 2*time.Second, limit.One))
	// Output:
	// <nil> true
	// true
}

// A limit that nobody uses at present is kept in a few bytes, and comes back with its memory.
func ExampleAppendIdle() {
	inFlight, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	l := limit.NewAll(limit.MustRolling(2, time.Minute), inFlight)
	answered(l, 0, 0, limit.One)

	now := mono.Time(30 * time.Second)
	until, known := limit.CountsUntil(l, now) // after it, a new limiter is as good
	state, ok := limit.AppendIdle(nil, l, now)
	fmt.Println(until.Sub(now).Round(time.Second), known, ok)

	again := limit.NewAll(limit.MustRolling(2, time.Minute), inFlight)
	fits, err := limit.RestoreIdle(again, state)
	two := limit.Cost{limit.Requests: 2}
	fmt.Println(fits, err, again.Ready(now, two) == l.Ready(now, two))
	// Output:
	// 30s true true
	// true <nil> true
}

// LearnLead sends a little before the server is ready. The first refusal ends that for ten minutes.
func ExampleRetreats() {
	l, err := limit.NewRolling(limit.RollingConfig{
		Limit: 1, Window: time.Second, Arrivals: limit.Arrivals{LearnLead: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := mono.Time(0)
	send := func(result limit.Result) {
		now = l.Ready(now, limit.One)
		sent := send(l, now.Sub(0), limit.One)
		now = now.Add(20 * time.Millisecond)
		l.Settle(now, sent, &limit.Outcome{Result: result, RTT: 20 * time.Millisecond})
	}
	for range 60 {
		send(limit.Accepted)
	}
	fmt.Println(len(limit.Retreats(l, now)), "options are out of use")
	send(limit.Limited)
	var all []limit.Retreat = limit.Retreats(l, now)
	for _, r := range all {
		fmt.Printf("%s: %s is out of use for %v\n", r.Limit, r.Option, r.Until.Sub(now))
	}
	limit.Trust(l, now) // somebody has mended the clock
	fmt.Println(len(limit.Retreats(l, now)))
	// Output:
	// 0 options are out of use
	// requests: LearnLead is out of use for 10m0s
	// 0
}

// The server writes its time into answers. It was there before the answer came, so a request arrived
// earlier than the answer proves.
func ExampleServerClock() {
	var clock limit.ServerClock
	var ago time.Duration
	for i := range 20 { // a way of 10 ms there, and 10 or 30 ms back
		sent := mono.Time(i) * mono.Time(time.Second)
		back := time.Duration(10+20*(i%2)) * time.Millisecond
		arrived := sent.Add(10 * time.Millisecond)
		ago = clock.ArrivedAgo(sent, arrived.Add(back), arrived)
	}
	fmt.Println(ago.Round(time.Millisecond))
	// Output: 18ms
}

// A report says how attempts ended, and what the way to the server showed.
func ExampleTally() {
	var t limit.Tally
	for _, o := range []limit.Outcome{
		{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Tokens: 812}, Link: limit.Working},
		{Result: limit.Unknown, Link: limit.Silent},
		{Result: limit.Unsent, Link: limit.Unreachable},
	} {
		t.Settled(&o)
		fmt.Println(o.Result, "-", o.Link)
	}
	fmt.Println(t.Sum(), "attempts,", t.Used)
	// Output:
	// accepted - working
	// unknown - silent
	// unsent - unreachable
	// 3 attempts, 812 tokens
}

// What a Fitted has learned of a wrong limit goes to the next process, so the limit is found once.
func ExampleFitted_Recall() {
	l := limit.NewFitted(limit.MustRolling(25, time.Second))
	for now, n := mono.Time(0), 0; n < 100; n++ {
		now = l.Ready(now, limit.One)
		answer := limit.Outcome{Result: limit.Accepted, RTT: time.Millisecond}
		if n == 90 {
			answer.Result = limit.Limited
		}
		sent := send(l, now.Sub(0), limit.One)
		now = now.Add(time.Millisecond)
		l.Settle(now, sent, &answer)
	}
	var lessons []limit.Lesson = l.Lessons()
	next := limit.NewFitted(limit.MustRolling(25, time.Second))
	for _, lesson := range lessons {
		fmt.Println(lesson.Rule, "is learned:", next.Recall(0, lesson))
	}
	fmt.Println(len(next.Misfits()) == len(l.Misfits()))
	// Output:
	// 25 requests per 1s is learned: true
	// true
}

// The day of a place has 23 hours once a year. CheckZone says which windows a place has.
func ExampleIntervalIn() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	begin, end := limit.IntervalIn(berlin, 24*time.Hour, time.Date(2026, 3, 29, 12, 0, 0, 0, berlin))
	fmt.Println(end.Sub(begin), limit.CheckZone(24*time.Hour), limit.CheckZone(5*time.Hour) != nil)
	// Output: 23h0m0s <nil> true
}

// A reload of the configuration finds the part that may change, however it is wrapped.
func ExampleVaryingIn() {
	l := limit.Named("key", limit.NewFitted(limit.NewVarying(limit.MustRolling(2, time.Second))))
	limit.VaryingIn(l).Change(0, limit.MustRolling(5, time.Second))
	rates, _ := limit.Rates(l)
	fmt.Println(slices.Collect(func(yield func(string) bool) {
		for _, r := range rates {
			yield(r.String())
		}
	}))
	// Output: [5 requests per 1s]
}
