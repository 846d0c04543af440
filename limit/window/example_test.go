package window_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// At most 3 orders in any second. The clock is the caller's.
func ExampleLog() {
	orders, err := window.NewLog(3, time.Second)
	if err != nil {
		panic(err)
	}
	for _, now := range []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 1000 * time.Millisecond, 1001 * time.Millisecond} {
		now := mono.Time(now)
		if orders.Take(now) {
			fmt.Println(now, "sent")
		} else {
			fmt.Println(now, "not before", orders.Ready(now))
		}
	}
	// Output:
	// 0s sent
	// 100ms sent
	// 200ms sent
	// 1s not before 1.000000001s
	// 1.001s sent
}

// Two limits at once. If one refuses, the other is not used.
func ExampleLog_several() {
	second, err := window.NewLog(2, time.Second)
	if err != nil {
		panic(err)
	}
	minute, err := window.NewLog(3, time.Minute)
	if err != nil {
		panic(err)
	}
	now := mono.Time(0)
	for range 4 {
		now = max(second.Ready(now), minute.Ready(now))
		second.Add(now)
		minute.Add(now)
		fmt.Println(now)
	}
	// Output:
	// 0s
	// 0s
	// 1.000000001s
	// 1m0.000000001s
}

// An order that was never sent makes room at once.
func ExampleLog_Remove() {
	orders, err := window.NewLog(2, time.Second)
	if err != nil {
		panic(err)
	}
	orders.Add(100)
	orders.Add(200)
	fmt.Println(orders.Full(300))
	orders.Remove(200)
	fmt.Println(orders.Full(300), orders.Count(300))
	// Output:
	// true
	// false 1
}

// The function gets each order when it leaves the window: here at the first Take after that.
func ExampleLog_OnLeave() {
	log, err := window.NewLog(3, time.Second)
	if err != nil {
		panic(err)
	}
	orders := log.OnLeave(func(at mono.Time, n int64) { fmt.Println(n, "of", at, "left") })
	for _, now := range []time.Duration{0, 0, 500 * time.Millisecond, 1200 * time.Millisecond, 1600 * time.Millisecond} {
		fmt.Println(mono.Time(now), orders.Take(mono.Time(now)))
	}
	// Output:
	// 0s true
	// 0s true
	// 500ms true
	// 2 of 0s left
	// 1.2s true
	// 1 of 500ms left
	// 1.6s true
}

// The position of the last minute: a purchase adds to it, and leaves it again with the window.
func ExampleRuns_OnLeave() {
	bought, err := window.NewRuns(time.Minute, 1000)
	if err != nil {
		panic(err)
	}
	money := 0.0
	prices := map[mono.Time]float64{}
	bought.OnLeave(func(at mono.Time, n int64) {
		money -= float64(n) * prices[at]
		delete(prices, at)
	})
	buy := func(now time.Duration, n int64, price float64) {
		total := bought.Add(mono.Time(now), n)
		prices[mono.Time(now)] = price
		money += float64(n) * price
		fmt.Printf("at %v: %d for %.2f in the last minute\n", now, total, money)
	}
	buy(0, 10, 2.50)
	buy(30*time.Second, 20, 2.40)
	buy(61*time.Second, 5, 2.60)
	// Output:
	// at 0s: 10 for 25.00 in the last minute
	// at 30s: 30 for 73.00 in the last minute
	// at 1m1s: 25 for 61.00 in the last minute
}

// Windows are closed. At 1100 the event of 1000 is exactly 100 old and still counts. At 1200 those
// of 1000, 1010 and 1050 are gone, and those of 1100 are not.
func ExampleRuns() {
	runs, err := window.NewRuns(100, 16)
	if err != nil {
		panic(err)
	}
	for _, e := range []struct {
		now mono.Time
		n   int64
	}{{1000, 1}, {1010, 3}, {1050, 1}, {1100, 4}, {1200, 1}, {1300, 1}} {
		fmt.Printf("%d at %d: total %d\n", e.n, int64(e.now), runs.Add(e.now, e.n))
	}
	fmt.Println("at 1400: total", runs.Total(1400))
	fmt.Println("at 1401: total", runs.Total(1401))
	// Output:
	// 1 at 1000: total 1
	// 3 at 1010: total 4
	// 1 at 1050: total 5
	// 4 at 1100: total 9
	// 1 at 1200: total 5
	// 1 at 1300: total 2
	// at 1400: total 1
	// at 1401: total 0
}

// Ten seconds in slots of one: 11 slots. At 16.0 s and even at 16.5 s the two events of 6.5 s are
// in the window. A ring of ten slots has dropped them by then.
func ExampleSlots() {
	slots, err := window.NewSlots(10*time.Second, time.Second)
	if err != nil {
		panic(err)
	}
	for _, e := range []struct {
		seconds float64
		n       int64
	}{{6.5, 2}, {8.8, 6}, {12.7, 1}, {16.5, 0}, {17.0, 3}, {32.0, 0}} {
		now := mono.Time(e.seconds * float64(time.Second))
		fmt.Printf("%d at %v: total %d\n", e.n, now, slots.Add(now, e.n))
	}
	// Output:
	// 2 at 6.5s: total 2
	// 6 at 8.8s: total 8
	// 1 at 12.7s: total 9
	// 0 at 16.5s: total 9
	// 3 at 17s: total 10
	// 0 at 32s: total 0
}
