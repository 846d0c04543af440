// Package paceline lets a client keep to the request limits of a server. Each request waits until,
// by what the client knows, the server has room for it under these limits. So the server refuses no
// request for a limit, if three conditions hold. The limits are configured as the server enforces
// them. No request costs more than its estimate. Only this process uses the quota. (A process that
// was started anew does not know what the process before it sent, unless a store or a file records
// that.)
//
// Package limit decides when the next request may go. A decision is arithmetic on an instant that
// the caller of package limit passes in: package limit itself reads no clock. Package paceline is
// such a caller: package paceline reads the clock, holds the locks and sets the timers. A goroutine
// that has to wait for a limit blocks in a call such as [Gate.Wait].
//
// # Which front end
//
// A front end is the type whose methods a program calls in order to wait for limits. There are
// these front ends, for these uses:
//   - A Transport of package transport is for an HTTP client, or an SDK that takes one. A Transport
//     is an http.RoundTripper. It waits, sends the request, and reads the answer. If the server
//     refused the request for a limit, it waits and sends the request again: up to 3 attempts by
//     default, or more if a MaxWait is set.
//   - A [Gate] is for goroutines that send something other than HTTP. They wait for one limiter, by
//     default first come, first served. [Gate.Do] waits, calls a function that sends, and settles
//     (reports the end of the request to the limiter) when the function returns.
//   - A [Group] is for goroutines that share several limits, first come, first served or by weight.
//   - A Pool of package pool is for work with priorities, deadlines, retries and several API keys.
//   - A Limiter of package contrib/xrate is for code that calls Wait, Allow or Reserve of
//     golang.org/x/time/rate. It has methods of the same names, and waits at a Gate.
//
// Two packages are for other cases. For a quota that other people's programs use, too, give a Gate,
// a Group, a Pool or a Transport a limiter of package fairshare. For events of your own that you
// only count, such as the orders of a trader, use package limit/window.
//
// Package limit provides most limiters, such as limit.Rolling. A Gate, a Group, a Pool and a
// Transport each have a method Snapshot, which returns their state at one instant, as the type
// Snapshot of package observe. docs/coming-from.md lists the calls of other libraries, and what
// replaces these calls here. The adapters for the AWS SDK, client-go and gRPC are modules of their
// own: contrib/aws, contrib/k8s and contrib/grpc.
//
// # How much limiters admit
//
// The table compares limiters of Paceline and of other Go libraries, each set to N requests per
// window. A figure is the largest number of requests that went in one window, divided by N. So 2.00
// means 2 N requests in one window. In the first column of figures (on time), the goroutines that
// send woke on time. In the second column (stalled), the machine stalled for up to a window. N was
// 100. Each figure is the worst over schedules of requests that were made to exceed N
// (TestWorstWindow in module lab/micro).
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
// In the table, Anchored, Calendar and Bucket have 2.00. They are limiters for servers that
// themselves accept up to 2 N requests in some windows. For example, a server that counts by
// calendar minutes accepts N requests at the end of one minute, and N more at the beginning of the
// next. All 2 N are then within one window of 60 s.
//
// Some limiters of other libraries reserve: they give each request, in advance, the instant at
// which it may go. If the machine stalls, all requests whose instants passed during the stall go at
// once after the stall. So the longer the stall, the more requests go at once. A Gate reserves no
// instant: it asks its Limiter right before it gives a request its permit.
//
// # Files
//
//	gate.go           Gate: one limiter, first come, first served; Do, Wait, TryWait
//	group.go          Group, Limit, Lane, Permit: several limits that lanes share; Settle
//	lane_share.go     Class: several lanes that count as one at a fair limit, by weight
//	batch.go          TryWaitMany, SettleAll: several permits under one lock
//	wait.go           a goroutine in line: enters, is woken in time, gives up; the one timer
//	wait_error.go     why a Wait failed: deadline, never fits, closed; its text
//	wait_stats.go     WaitStats: how long a Wait took, and for which limit
//	hint.go           TryWait that was refused just now: the same answer without the lock
//	unsettled.go      log lines: permits that nobody settles, rounds of a limit
//	gate_snapshot.go  Snapshot and Stats: counts of each client, figures of lanes and limits
package paceline
