// Package window counts recent events: the number of events in the window that ends now. Use it for
// events whose instants you know: outgoing orders, errors, bytes, incoming calls. For requests that
// a server must never refuse, use limit.Rolling. A server counts arrivals, and a client knows only
// its sends.
//
// An event exactly as old as the window still counts, as at strict servers. All memory is allocated
// at construction. A counter is arithmetic on the now of the caller. It owns no clock, lock or
// goroutine, and is not safe for concurrent use. A now before the last now is taken as the last now.
//
// In production, now is mono.Of(began, time.Now()). Read began once, when the program starts:
//
//	orders, err := window.NewLog(50, time.Second) // at most 50 in any second
//	now := mono.Of(began, time.Now())
//	if orders.Take(now) {
//		send()
//	} else {
//		wait(orders.Ready(now).Sub(now))
//	}
//
// # Which counter
//
// [Log] answers "may one more happen?" for a limit of N events. It is exact, and keeps
// 8 bytes for each of the N events. Choose it unless those are too many, or one event may count as several.
//
// [Runs] counts events with weights, or many events at one instant. You choose a number of
// different instants per window. Up to this number, Runs is exact. Beyond it, the count is too
// high, never too low.
//
// [Slots] takes the memory of its slots, for any number of events. Its count is too high by up to
// the events of one slot. So a limit of N per window yields N per window + precision: 91 % of the
// limit with ten slots to a window, and 99 % with a hundred.
//
//	            bytes                   Add, ns                                 ask, ns            counts
//	Log         64 + 8 per event        1.3                                     1.3 (Count 2–9)    exactly, up to its limit
//	Runs        128 + 32 per instant    5.5, uneven gaps 11, same instant 2.1   0.8                exactly, or more
//	Slots       96 + 8 per slot         1.7, next slot 4, big jump 7            0.8                exactly, or up to a slot more
//
// These figures hold at any size (N = 20 to 100,000; 65 slots) and without allocation. They are of
// one core of an AMD EPYC of 2024. Three limits at once are three Logs, with Full and Add of each:
// 4.8 ns, or 6 with the latest Ready of them.
//
// With 200,000 counters, none of them is in the nearest cache. An Add then takes Log 42, Slots 66
// and Runs 88 ns. An Add touches the counter and one or two places of its ring.
//
// # Remove and OnLeave
//
// Remove takes back an event that did not happen, such as an unsent order. If that event has left
// the window, Remove does nothing. Remove never takes another event instead.
//
// OnLeave sets a function that gets the leaving events, oldest first. There is no timer: the
// function is called during the next use of the counter. Without a function, OnLeave costs nothing.
// A Log with a function is a type of its own, TellingLog.
//
// # A counter for each key
//
// [Keyed] has a counter of one of these kinds for each key in use, such as a symbol or an account.
// Its memory is bounded. A Get and a Take of a Log are 18 ns with 100 keys, and 25 ns with 10,000.
// If each key is new, they are 60 ns. Package shared has a Keyed for many goroutines: 55 ns.
//
// # Comparison with other counters
//
// The table has the most events of one second, at a limit of 300 per second, in the worst known
// case:
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

// MaxLen is the largest size: of events in a Log, instants in a Runs and slots in a Slots.
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
