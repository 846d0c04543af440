// Package window counts recent events: the number of events in the window that ends now. Use the
// package for events whose instants you know: outgoing orders, errors, bytes, incoming calls. For
// requests that a server must never refuse, use limit.Rolling instead: the server counts the
// arrivals of requests, and a client knows only when it sent them.
//
// An event exactly as old as the window still counts, since strict servers count such an event,
// too. A counter (a Log, a Runs or a Slots) allocates all its memory when it is made. A counter
// computes with the instant, now, that its caller passes in. It has no clock, lock or goroutine,
// and is not safe for concurrent use. If a call passes a now that is before that of an earlier Add
// or Take, the counter uses the now of that Add or Take.
//
// In production, now is mono.Of(began, time.Now()). Set began to time.Now() once, when the program
// starts:
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
// [Log] answers "may one more event happen?" for a limit of N events per window. A Log is exact,
// and takes 8 bytes for each of the N events. Choose a Log unless N is too large for that, or one
// event may count as several.
//
// [Runs] counts events with weights, or many events at one instant. When you make a Runs, you
// choose how many different instants per window it can store exactly, for example 1000. Its count
// is exact while the events of the window have no more different instants than that. With more
// instants, the count may be too high, never too low.
//
// [Slots] divides the window into slots of equal length, and stores one number for each slot. So
// its memory does not depend on the number of events. A slot leaves the window as a whole, so the
// count may be too high by the events of up to one slot. So with a limit of N per window, a steady
// stream of events can use only N in the time of one window and one slot together. That is 91 % of
// the limit with ten slots to a window (10/11), and 99 % with a hundred.
//
//	            bytes                   Add, ns                                 ask, ns            counts
//	Log         64 + 8 per event        1.3                                     1.3 (Count 2–9)    exactly, up to its limit
//	Runs        128 + 32 per instant    5.5, uneven gaps 11, same instant 2.1   0.8                exactly, or more
//	Slots       96 + 8 per slot         1.7, next slot 4, big jump 7            0.8                exactly, or up to a slot more
//
// The table above lists for each counter its bytes, and the nanoseconds that a call takes. The
// column Add is for the method Add. The column ask is for a method that only reads, such as Full or
// Total. The times were measured on one core of an AMD EPYC of 2024; the Slots had 65 slots. With N
// from 20 to 100,000 events per window, the times are the same. The exception is Log.Count, which
// takes 2 to 9 ns. None of these methods allocates memory. For three limits at once, use three
// Logs. One Full and one Add of each of the three take 4.8 ns together, or 6 ns with one Ready of
// each.
//
// In a program with 200,000 counters, a counter is rarely in the processor's nearest cache, so an
// Add is slower. It takes 42 ns for a Log, 66 ns for Slots and 88 ns for Runs. In this time the Add
// reads and writes the counter, and one or two entries of the counter's ring buffer.
//
// # Remove and OnLeave
//
// The method Remove takes back an event that did not happen, such as an unsent order. If that event
// has left the window, Remove does nothing. In Slots, Remove takes any event of the same slot. If a
// Runs has more different instants in its window than you chose, Remove may take an event of a
// neighbouring instant.
//
// The method OnLeave sets a function that is called with the events that leave the window, oldest
// first. The counter has no timer: it calls the function during the next call that counts, such as
// Add, Count or Total. A counter without such a function pays nothing for OnLeave. The OnLeave of a
// Log returns another type, TellingLog, which you then use in place of the Log.
//
// # A counter for each key
//
// [Keyed] contains a Log, a Runs or a Slots for each key in use, such as a symbol or an account. A
// key is in use while its window has an event. You choose the largest number of keys, so the memory
// is bounded. While so many keys are in use, Get returns false for a new key, and no counter. A Get
// of a key and a Take of its Log take 18 ns together with 100 keys, and 25 ns with 10,000. If each
// key is new, they take 60 ns. Package limit/window/shared provides a Keyed that many goroutines
// may use at once: there the two calls take 55 ns.
//
// # Comparison with other counters
//
// The table shows how many events each counter of package window, and other kinds of counters, let
// through in one second. The limit is 300 events per second. Each figure is for the worst case that
// is known:
//
//	Log, Runs, Slots                                     300
//	a ring of 0.9 s or 1.0 s in slots of 0.1 s           600   emptied a slot too soon; 11 slots let through 300
//	an exponential moving average                        599   fades at once, so it forgets before the second is over;
//	                                                           lets 415 of a steady 600 a second through before it
//	                                                           refuses one; after 300 at once it lingers for 5.7 s
//	a token bucket with a burst of 300 (x/time/rate)     600
//	the previous window in proportion (slidingwindow)    600
//
// The tests of this package and of the module lab/micro measure each line of the table.
//
// # Files
//
//	log.go     Log: the last N events, and when one more may happen; TellingLog, a Log with OnLeave
//	runs.go    Runs: weighted events, with a number for each instant
//	slots.go   Slots: events in slots of equal length, with bounded memory
//	keyed.go   Keyed: a counter for each key in use
//	window.go  checks the sizes of counters, and the length of a window
package window
