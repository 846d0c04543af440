// Package paceline paces requests to rate-limited servers on the client's side. The server then has
// nothing to refuse, and no request waits longer than the server's rule demands.
//
// Package limit decides when the next request may go; it computes with an instant that its caller
// supplies. This package supplies that instant. It owns the clock, the locks and the timers, so
// that a goroutine simply waits.
//
// # Which front end
//
//   - An HTTP client, or an SDK that takes one: package transport. It waits, reads the answers, and
//     sends again.
//   - Goroutines that send something else: [Gate]. They wait for one limiter, first come, first
//     served. [Gate.Do] waits, sends and settles.
//   - Several limits that callers share, by arrival or by weight: [Group].
//   - Work with priorities, deadlines, retries and several keys: package pool sends it.
//   - Code that calls Wait, Allow or Reserve of golang.org/x/time/rate: package contrib/xrate
//     offers them over a Gate.
//   - A quota shared with strangers: a limiter of package fairshare, behind any of these.
//   - Counting events of your own, as in trading: package limit/window.
//
// Package limit has the limiters, and package observe has the snapshots of all of these.
// docs/coming-from.md shows the replacement for calls of other libraries. The AWS SDK, client-go
// and gRPC have their own modules: contrib/aws, contrib/k8s and contrib/grpc.
//
// # How much limiters admit
//
// The table shows the most that a limiter of N per window admitted in one window, as a multiple of
// N. One machine woke goroutines on time; the other stalled for up to a window. N was 100, and
// there were a hundred unkind schedules (TestWorstWindow in module lab/micro).
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
// A limiter that reserves places ahead admits more after a longer stall: all places that came due
// during the stall go at its end. A Gate asks its Limiter again at every admission.
//
// # Files
//
//	gate.go           Gate: one limiter, one lane
//	group.go          Group, Limit, Lane and Permit: several limits with lanes that share them
//	lane_share.go     Class: several lanes that count as one at a fair limit
//	wait.go           a goroutine in line: enter, wake, spin, leave
//	wait_error.go     WaitError: why a Wait failed
//	wait_stats.go     WaitStats: how long a Wait took, and for which limit
//	hint.go           the last refusal of a TryWait, repeated without the lock
//	notice.go         lines of the log: the next instant, and permits that stay unsettled
//	gate_snapshot.go  View, Snapshot and Stats
package paceline
