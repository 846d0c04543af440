// Package paceline paces requests to rate-limited servers from the client's side, so that the server has nothing to
// refuse and nobody waits longer than its rule demands.
//
// The decisions (package limit: when may the next request go?) are arithmetic on a now that somebody supplies. This
// package supplies it: it owns the clock, the locks and the timers, so that goroutines can simply wait.
//
// # Which one
//
//   - An HTTP client, or an SDK that takes one: package transport. It waits, reads what answers say,
//     and sends again.
//   - Goroutines that send something else: [Gate]. They wait for one limiter, first come first
//     served; [Gate.Do] sends in between.
//   - Several limits that callers share, by arrival or by weight: [Group].
//   - Work with priorities, deadlines, retries and several keys: package pool sends it.
//   - Code that calls Wait, Allow or Reserve of golang.org/x/time/rate: package contrib/xrate has
//     those over a Gate.
//   - A quota that strangers use, too: a limiter of package fairshare, behind any of these.
//   - Counting events of one's own, as in trading: package limit/window.
//
// Package limit has the rules to wait for, and package observe what can be watched of all of these.
// docs/coming-from.md says what to write in the place of other libraries. The AWS SDK, client-go and
// gRPC have modules of their own: contrib/aws, contrib/k8s and contrib/grpc.
//
// # What limiters let through
//
// The most that limiters of N per window admitted in one window, as a multiple of N, on a machine that wakes goroutines
// on time and on one that stalls for up to a window (N = 100, a hundred unkind schedules; TestWorstWindow in module lab/micro):
//
//	                                                on time   stalled
//	limit.Rolling, limit.Weighted, behind a Gate    1.00      1.00
//	limit.Anchored, Calendar, Bucket                2.00      2.00      and their servers allow it
//	x/time/rate, burst N                            2.00      2.00
//	x/time/rate, burst 1, reserving                 1.01      2.00
//	go.uber.org/ratelimit                           1.11      2.00
//	    without slack                               1.01      2.00
//	failsafe-go, smooth, trying                     1.01      1.01
//	    reserving                                   1.01      2.00
//	failsafe-go, bursty                             2.00      2.00
//	slidingwindow                                   2.00      2.00
//
// Where places are reserved ahead, a longer stall lets through more: all that come due meanwhile go at its end. A Gate
// asks its Limiter again whenever it admits.
package paceline
