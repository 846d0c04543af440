package limit_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A server counted by the second. From 10 s on it counts by the minute, and says so. Earlier
// requests still count.
func ExampleRolling_SetWindow() {
	l, err := limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1})
	if err != nil {
		panic(err)
	}
	request := func(now time.Duration) {
		sent := send(l, now, limit.One)
		l.Settle(mono.Time(now), sent, &limit.Outcome{Result: limit.Accepted})
	}
	request(9500 * time.Millisecond)
	request(9700 * time.Millisecond)
	now := mono.Time(10 * time.Second)
	fmt.Println(l.Ready(now, limit.One))
	if err := l.SetWindow(now, time.Minute); err != nil {
		panic(err)
	}
	fmt.Println(l.Ready(now, limit.One))
	// Output:
	// 10.5s
	// 1m9.5s
}
