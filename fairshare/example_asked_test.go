package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// An answer states the limit of a quota that strangers use, too. Auto takes it, and says where it is
// from. Its memory is for the next process.
func ExampleAuto_Found() {
	l, err := fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := mono.Time(0)
	sent := &limit.Sent{At: now, Number: 1, Cost: limit.One}
	l.Admit(sent)
	answer := limit.Outcome{Result: limit.Accepted, RTT: 40 * time.Millisecond}
	now = now.Add(answer.RTT)
	l.Settle(now, sent, &answer)
	stated := limit.Rule{Name: "hourly", Unit: limit.Requests, N: 4500, Per: time.Hour, Counts: limit.CountsRolling}
	l.State(now, []limit.Rule{stated})

	found := l.Found()
	fmt.Println(found.Rule, found.By == "server", found.Rule.Counts == limit.CountsRolling)
	fmt.Println(l.Refills(&answer)) // no reset of this answer is the time of a full bucket

	damaged := l.AppendMemory(nil, now)[1:]
	next, _ := fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 2))})
	fmt.Println(next.Recall(now, now, damaged, nil) != nil)
	// Output:
	// 4500 requests per 1h0m0s true true
	// 0
	// true
}
