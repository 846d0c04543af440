package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The quota is unknown, but answers have a remainder and a reset. Auto concludes the rest.
func ExampleNewAuto() {
	auto, err := fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		fmt.Println(err)
		return
	}
	const quota, window = 600, time.Minute // the server does not state these
	left, begun, refused, number := quota, mono.Time(0), 0, uint64(0)
	for now := mono.Time(0); now < mono.Time(10*time.Minute); now = now.Add(20 * time.Millisecond) {
		now = max(now, auto.Ready(now, limit.One))
		for now.Sub(begun) >= window {
			left, begun = quota, begun.Add(window)
		}
		number++
		sent := &limit.Sent{At: now, Number: number, Cost: limit.One}
		auto.Admit(sent)
		answer := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, RTT: 20 * time.Millisecond}
		if left == 0 {
			answer.Result = limit.Limited
			refused++
		} else {
			left--
		}
		answer.Remaining[limit.Requests] = int64(left)
		answer.Reset[limit.Requests] = begun.Add(window).Sub(now)
		auto.Settle(now.Add(answer.RTT), sent, &answer)
	}
	fmt.Println(auto.Found())
	fmt.Println(refused, "refused")
	// Output:
	// 600 requests per 1m0s, as what answers say remains lets one think
	// 0 refused
}
