package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Strangers use this quota of 3,600 an hour, too. Answers have the remainder. A refusal makes the
// next request wait longer.
func ExampleNewFair() {
	fair, err := fairshare.NewFair(fairshare.FairConfig{Limit: 3600, Window: time.Hour, Kind: fairshare.TokenBucket, Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		fmt.Println(err)
		return
	}
	now, number := mono.Time(0), uint64(0)
	wait := func(result limit.Result, left int64) time.Duration { // until the next request, once this one is answered
		now = fair.Ready(now, limit.One)
		number++
		sent := &limit.Sent{At: now, Number: number, Cost: limit.One}
		fair.Admit(sent)
		answer := limit.Outcome{Result: result, Known: 1 << limit.Requests, RTT: 50 * time.Millisecond}
		answer.Remaining[limit.Requests] = left
		now = now.Add(answer.RTT)
		fair.Settle(now, sent, &answer)
		return fair.Ready(now, limit.One).Sub(now)
	}
	fmt.Println(wait(limit.Accepted, 3599)) // nobody else is there
	fmt.Println(wait(limit.Accepted, 3598))
	fmt.Println(wait(limit.Limited, 0).Round(time.Second)) // somebody took the rest
	// Output:
	// 0s
	// 0s
	// 3s
}

// Beside a configured limit, Hints keeps to the server's remainder.
func ExampleHints() {
	hints, err := fairshare.NewHints(fairshare.HintsConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	l := limit.NewAll(limit.MustRolling(100, time.Minute), hints)
	sent := &limit.Sent{Number: 1, Cost: limit.One}
	l.Admit(sent)
	// A stranger uses the key: nothing is left.
	answer := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	answer.Reset[limit.Requests] = 30 * time.Second
	l.Settle(mono.Time(time.Second), sent, &answer)
	fmt.Println(l.Ready(mono.Time(time.Second), limit.One))
	// Output: 31s
}
