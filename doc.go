// Package paceline lets a client keep to the request limits of a server. Each request waits until
// the server surely accepts it, and no longer. So the server refuses nothing.
//
// Package limit decides when the next request may go. Its decisions are arithmetic on an instant
// that the caller passes in. This package is such a caller. It owns the clock, the locks and the
// timers, and a goroutine simply waits.
//
// # Which front end
//
//   - An HTTP client, or an SDK that takes one: package transport. A Transport waits, sends, reads
//     the answers, and sends again.
//   - Goroutines that send something else: [Gate]. They wait for one limiter, first come, first
//     served. [Gate.Do] waits, calls a function, and settles.
//   - Several limits that callers share, by arrival or by weight: [Group].
//   - Work with priorities, deadlines, retries and several keys: package pool.
//   - Code that calls Wait, Allow or Reserve of golang.org/x/time/rate: package contrib/xrate. It
//     has these methods over a Gate.
//   - A quota that strangers use, too: a limiter of package fairshare, behind any of these.
//   - Counting events of your own, as in trading: package limit/window.
//
// Package limit provides the limiters. Package observe has snapshots of all front ends.
// docs/coming-from.md shows the replacement for calls of other libraries. The AWS SDK, client-go
// and gRPC have modules of their own: contrib/aws, contrib/k8s and contrib/grpc.
//
// # How much limiters admit
//
// The table compares limiters of N requests per window. A figure is the largest number of requests
// in one window, divided by N. In the first column goroutines woke on time. In the second the
// machine stalled for up to a window. N was 100, in a hundred schedules that were made to break
// them (TestWorstWindow in module lab/micro).
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
// Some limiters reserve places ahead. After a stall, all places that came due during the stall go
// at once. So a longer stall admits more. A Gate asks its Limiter again at every admission.
//
// # Files
//
//	gate.go           Gate: one limiter, one lane
//	group.go          Group, Limit, Lane and Permit: several limits with lanes that share them
//	lane_share.go     Class: several lanes that count as one at a fair limit
//	batch.go          several permits under one lock
//	wait.go           a goroutine in line: enter, wake, spin, leave
//	wait_error.go     WaitError: why a Wait failed
//	wait_stats.go     WaitStats: how long a Wait took, and for which limit
//	hint.go           the last refusal of a TryWait, repeated without the lock
//	unsettled.go      lines of the log: the next instant, and permits that stay unsettled
//	gate_snapshot.go  View, Snapshot and Stats
package paceline
