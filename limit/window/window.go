// Package window counts what happened lately: how many events are in the window that ends now. Use it for events whose instants you know:
// orders on their way out, errors, bytes, calls that arrive. To have requests that a server never refuses, use limit.Rolling: a server
// counts arrivals, and a client knows only when it sent.
//
// Windows are closed: an event exactly as old as the window still counts, as strict servers have it. All memory is
// allocated at construction. A counter is arithmetic on the now it is given: it owns no clock, lock or goroutine, is not
// safe for concurrent use, and takes a now before the last one for the last one.
//
// The now of production code is mono.Of(began, time.Now()), with one instant began that is read when the program starts:
//
//	orders, err := window.NewLog(50, time.Second) // at most 50 in any second
//	now := mono.Of(began, time.Now())
//	if orders.Take(now) {
//		send()
//	} else {
//		wait(orders.Ready(now).Sub(now))
//	}
//
// # Which one
//
// [Log] answers "may one more happen?" for a limit of N events. It is the fastest and is exact: take it unless N is so
// large that 8 N bytes are too many, or events have weights.
//
// [Runs] counts events with weights, or many at one instant, exactly, up to a number of different instants per window
// that is yours to say. Beyond it, the count is on the safe side.
//
// [Slots] takes the memory of its slots, however much happens. Its count is on the safe side by up to what happened in
// one slot, so a limit of N per window yields N per window + precision: 91 % of the limit with ten slots to a window and
// 99 % with a hundred.
//
//	            bytes                   Add, ns                                 ask, ns            counts
//	Log         64 + 8 per event        1.3                                     1.3 (Count 2–9)    exactly, up to its limit
//	Runs        128 + 32 per instant    5.5, uneven gaps 11, same instant 2.1   0.8                exactly, or more
//	Slots       96 + 8 per slot         1.7, next slot 4, big jump 7            0.8                exactly, or up to a slot more
//
// at any size (N = 20 to 100,000; 65 slots) and without allocation, on one core of an AMD EPYC of 2024. Three limits at
// once are three Logs, Full and Add of each: 4.8 ns, or 6 with the latest Ready of them. An Add to one of 200,000
// counters, none of it in the nearest cache, takes Log 42, Slots 66 and Runs 88 ns: it touches the counter itself and one
// or two places of its ring.
//
// # Taking back, and being told
//
// Remove takes back an event that turned out not to have happened, such as an order that was never sent. An event that has left the
// window is gone already, and no other is ever taken in its place.
//
// OnLeave has a function told what leaves the window, oldest first. It is told when the counter is next used with a now by which
// something has left: there is no timer here. Where nobody listens it costs nothing; for that, a Log that tells is a type of its own.
//
// # What others count
//
// The most that a limit of 300 per second let through in one second, asked as unkindly as we could think of:
//
//	Log, Runs, Slots                                     300
//	a ring of 0.9 s or 1.0 s in slots of 0.1 s           600   emptied a slot too soon; 11 slots let through 300
//	an exponential moving average                        599   fades at once, so it forgets before the second is over;
//	                                                           lets 415 of a steady 600 a second through before it
//	                                                           refuses one; after 300 at once it lingers for 5.7 s
//	a token bucket with a burst of 300 (x/time/rate)     600
//	the previous window in proportion (slidingwindow)    600
//
// The tests here and in module bench measure each line.
package window

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// MaxLen is the most events of a Log, instants of a Runs and slots of a Slots.
const MaxLen = 1 << 26

// never is later than every instant.
const never = mono.Time(math.MaxInt64)

func checkWindow(constructor string, window time.Duration) error {
	if window <= 0 {
		return fmt.Errorf("window: %s: window %v is not positive", constructor, window)
	}
	return nil
}

func ceilDiv(a, b uint64) uint64 { return (a-1)/b + 1 }
