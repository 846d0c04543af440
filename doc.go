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
// # How many go in one window
//
// The most that a limit of 100 per second lets through in any closed second, asked as unkindly as we could think of, over
// the limit: where goroutines wake on time, and where the machine stalls for up to a second. Module bench measures it.
//
//	a Gate of limit.Rolling, limit.Weighted              1.00   1.00
//	a Gate of limit.Calendar, limit.Anchored, Bucket     2.00   2.00   as the servers that they are for allow
//	x/time/rate, burst 100: Allow or Reserve             2.00   2.00
//	x/time/rate, burst 1: Reserve                        1.01   2.00   places reserved ahead, and then two late ones
//	uber ratelimit: Take; without slack                  1.11   2.00   1.01 without slack
//	failsafe-go, smooth: try; reserve                    1.01   2.00   1.01 where it tries
//	failsafe-go, bursty                                  2.00   2.00
//	slidingwindow                                        2.00   2.00
//
// With 256 goroutines and stamps up to 10 ms old, x/time/rate's AllowN lets through thousands of times its limit, since an
// old stamp takes its state back; window.Log and a Gate exactly theirs.
//
// The rest is elsewhere: rules to wait for in package limit, the order of work that waits in queue and dispatch, and a
// virtual clock for trying them out in sim.
package paceline
