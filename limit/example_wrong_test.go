package limit_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The configuration says 25 requests a second, and the server takes 20. Fitted sends as much as
// fits, and reports it.
func ExampleFitted() {
	var served []mono.Time // the server's log of a second
	serves := func(now mono.Time) bool {
		for len(served) > 0 && now.Sub(served[0]) > time.Second {
			served = served[1:]
		}
		if len(served) == 20 {
			return false
		}
		served = append(served, now)
		return true
	}
	l := limit.NewFitted(limit.MustRolling(25, time.Second))
	const oneWay = 10 * time.Millisecond
	refused := 0
	for now := mono.Time(0); now < mono.Time(10*time.Minute); now = now.Add(2 * oneWay) {
		now = max(now, l.Ready(now, limit.One))
		sent := send(l, now.Sub(0), limit.One)
		answer := limit.Outcome{Result: limit.Accepted, RTT: 2 * oneWay}
		if !serves(now.Add(oneWay)) {
			answer.Result = limit.Limited
			refused++
		}
		l.Settle(now.Add(2*oneWay), sent, &answer)
	}
	m := l.Misfits()[0]
	fmt.Printf("%d in %v were allowed, %d are accepted; %d requests were refused in ten minutes\n", m.N, m.Per, m.Fits, refused)
	// Output: 25 in 1s were allowed, 20 are accepted; 2 requests were refused in ten minutes
}

// The configuration changes while the program runs. One limit stays with its count, and another
// comes.
func ExampleVarying() {
	perSecond := limit.MustRolling(2, time.Second)
	l := limit.NewVarying(perSecond)
	answered(l, 0, 30*time.Millisecond, limit.One)
	fmt.Println(ready(l, 100*time.Millisecond, limit.One))
	l.Change(mono.Time(100*time.Millisecond), perSecond, limit.MustRolling(1, time.Minute))
	answered(l, 100*time.Millisecond, 30*time.Millisecond, limit.One)
	fmt.Println(ready(l, 200*time.Millisecond, limit.One))
	l.Change(mono.Time(200*time.Millisecond), perSecond) // the limit per minute is gone
	fmt.Println(ready(l, 200*time.Millisecond, limit.One))
	// Output:
	// 100ms
	// 1m0.1371s
	// 1.0312s
}
