package window_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// throttle is the check of a trading loop before each order: at most 3 orders in any 100 ms, and
// 1,000 shares in any second.
type throttle struct {
	orders *window.Log
	shares *window.Runs
}

const sharesPerSecond = 1000

func newThrottle() (*throttle, error) {
	orders, err := window.NewLog(3, 100*time.Millisecond)
	if err != nil {
		return nil, err
	}
	shares, err := window.NewRuns(time.Second, 64) // at most 30 orders in a second, so 64 instants are more than enough
	if err != nil {
		return nil, err
	}
	return &throttle{orders, shares}, nil
}

// take admits an order of n shares in both limits, or in none. If it admits none, it names the
// limit in the way.
func (t *throttle) take(now mono.Time, n int64) string {
	switch {
	case t.orders.Full(now):
		return fmt.Sprintf("orders: not before %v", t.orders.Ready(now))
	case t.shares.Total(now)+n > sharesPerSecond:
		return fmt.Sprintf("shares: %d of %d used", t.shares.Total(now), sharesPerSecond)
	}
	t.orders.Add(now)
	t.shares.Add(now, n)
	return "sent"
}

// A trading loop: each tick asks the counters, at the instant that the loop read once. They take
// some 5 ns, allocate nothing and read no clock. So a replay of yesterday's ticks makes the same
// decisions.
func Example_tradingLoop() {
	limits, err := newThrottle()
	if err != nil {
		fmt.Println(err)
		return
	}
	ticks := []struct {
		at     time.Duration // in production: mono.Of(start, time.Now())
		shares int64
	}{{0, 400}, {10 * time.Millisecond, 300}, {20 * time.Millisecond, 300}, {30 * time.Millisecond, 100}, {150 * time.Millisecond, 100}, {1001 * time.Millisecond, 100}}
	for _, tick := range ticks {
		now := mono.Time(tick.at)
		fmt.Printf("%v: %d shares: %s\n", now, tick.shares, limits.take(now, tick.shares))
	}
	// Output:
	// 0s: 400 shares: sent
	// 10ms: 300 shares: sent
	// 20ms: 300 shares: sent
	// 30ms: 100 shares: orders: not before 100.000001ms
	// 150ms: 100 shares: shares: 1000 of 1000 used
	// 1.001s: 100 shares: sent
}
