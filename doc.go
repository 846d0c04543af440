// Package paceline paces requests to rate-limited servers from the client's side, so that the server has nothing to
// refuse and nobody waits longer than its rule demands.
//
// The decisions (package limit: when may the next request go?) are arithmetic on a now that somebody supplies. This
// package supplies it: it owns the clock, the locks and the timers, so that goroutines can simply wait.
//
//   - [Gate] lets any number of goroutines wait for one limiter, first come first served. Take a [Permit], send, settle
//     the Permit with how it ended.
//   - [Pool] sends for you, over several keys, with priorities, deadlines and retries.
//
// The rest is elsewhere: rules to wait for in package limit, the order of work that waits in queue and dispatch, and a
// virtual clock for trying them out in sim.
package paceline
