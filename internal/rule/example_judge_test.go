package rule_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// A server with two rules at once, and a clock that is a second fast. Left is what it would still take.
func ExampleAll() {
	second, err := rule.NewRolling(rule.RollingConfig{Limit: 2, Window: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	cells, err := rule.NewGCRA(rule.GCRAConfig{Limit: 60, Window: time.Minute, Burst: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	var server rule.Server
	both := rule.All(second, cells)
	server, err = rule.NewClocked(both, rule.Clock{Offset: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		fmt.Println(server.Arrive(mono.Time(i)*mono.Time(time.Millisecond), 1))
	}
	fmt.Println(rule.Left(both, mono.Time(1900*time.Millisecond), 100, 0))
	// Output:
	// true
	// true
	// false
	// 0
}

// A log of arrivals, and the rule that a server should have kept. Hear takes them in order.
func ExampleWitness() {
	witness, err := rule.RollingConfig{Limit: 2, Window: time.Second}.Witness()
	if err != nil {
		fmt.Println(err)
		return
	}
	densest, err := rule.NewDensest(time.Second, time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range []time.Duration{0, 400 * time.Millisecond, 900 * time.Millisecond, 5 * time.Second} {
		witness.Hear(mono.Time(at), 1, true)
		densest.Hear(mono.Time(at), 1)
	}
	var f rule.Finding = witness.Finding()
	fmt.Println(f.Kept(), f.Most, "of", f.Limit)
	cost, from, to := densest.Most()
	fmt.Println(cost, "from", from, "to", to)

	// A server that reserves the longest answer, and learns later what it was.
	amended, ok := witness.(rule.AmendedWitness)
	if ok {
		amended.Amend(mono.Time(6*time.Second), mono.Time(5*time.Second), -1)
	}
	fmt.Println(ok)
	// Output:
	// false 3 of 2
	// 3 from 0s to 900ms
	// true
}

// An exchange bans a key that goes on after refusals. The judge finds out from its log whether it kept
// its own rule.
func ExampleJudge() {
	config := rule.ExchangeConfig{Keys: 1, Limit: 2, Window: time.Second, BanAfter: 2, AnyNonce: true}
	exchange, err := rule.NewExchange(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	judge, err := rule.NewJudge(config, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		at := mono.Time(i) * mono.Time(10*time.Millisecond)
		verdict := exchange.Arrive(at, 0, uint64(i+1))
		fmt.Println(verdict, verdict.Status())
		judge.Hear(rule.Arrival{At: at, Key: 0, Nonce: uint64(i + 1), Verdict: verdict})
	}
	report := judge.Report()
	fmt.Println(report.Faults, "faults;", report.Total.Total(), "requests")
	for _, k := range report.Keys {
		fmt.Println("banned:", k.Banned, "fullest window:", k.Worst.Requests)
	}
	// Output:
	// accepted 200
	// accepted 200
	// limited 429
	// limited 429
	// banned 403
	// 0 faults; 5 requests
	// banned: true fullest window: 2

}
