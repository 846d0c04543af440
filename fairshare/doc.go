// Package fairshare provides limiters for a quota that strangers use, too. Strangers are programs
// that your program cannot communicate with. All processes that use this package with the same
// settings get the same share of the quota, almost without refusals. Each process knows the
// published limit of the quota, or finds it out (Auto). A process learns about the other processes
// only from the answers to its own requests. An answer shows whether the request was served or
// refused, and often how much of the quota remains.
//
// [Fair] is the limiter for a quota with a known limit that strangers use, too. It is for token
// buckets, for fixed and rolling windows, and also for servers whose answers state no remaining
// quota. A Fair is a limit.Limiter for one process with any number of requests in flight. A Pool or
// a Transport takes a Fair like any other limiter, and reports each answer to the Fair. With a
// Gate, use Gate.DoWith, so that the Fair learns what each answer states.
//
// These are the main settings of a [FairConfig]:
//   - Limit and Window are the published limit: an amount per window, for example 4500 requests an
//     hour. They have no default.
//   - Kind is the way in which the server counts: in a token bucket, a fixed window or a rolling
//     window. If answers have a reset, Fair finds the kind out. If they have none, set Kind:
//     otherwise Fair takes the kind that the provider documents, or else a token bucket at first.
//   - Rng is a source of random numbers that nothing else uses. It has no default.
//
// A process whose Fair has a Weight of 2 gets twice the share of a process with the default Weight,
// 1. All processes must use a Fair with the same figures of the quota. If some processes may take
// more than their share, set Sharers of the [FairConfig] to the number of processes. Then this
// process claims its own part of the limit, Weight / Sharers, even beside the greedy ones.
//
// [Auto] is a Fair for a quota with an unknown limit.
//
// [Hints] is a limiter that reads the remaining quota and its reset in the answers of the server.
// Put it beside the limiter of a known limit, in a limit.All. Hints does not divide the quota among
// users. Before the stated reset, Hints admits no more than the remaining quota. For example, an
// answer states that 40 requests remain for 30 s, and 3 of your requests are in flight. Then at
// most 37 more go in these 30 s, since the server may not have counted the 3 yet. (If
// HintsConfig.Capacity is set, the quota is a bucket, and refills before the reset.) Hints ignores
// an answer without a reset. By default it believes a reset for an hour at most.
//
// Package lab/strategy lists strategies for sharing a quota by name: published strategies of other
// projects, and Fair and Auto. Package lab/sim/compare compares a strategy of yours with these.
//
// For a quota that only your own programs use, a limiter of package limit is better than one of
// package fairshare. If the programs are several processes, use package share. These limiters need
// no news from answers: they count your requests exactly. So the server refuses nothing, if the
// limit is configured as the server enforces it.
//
// No limiter in package fairshare has a clock, a lock or a goroutine, and none is safe for
// concurrent use. The caller of a Fair or an Auto supplies its source of random numbers (the field
// Rng of FairConfig and AutoConfig).
//
// # Files
//
// The table below lists the files of package fairshare. In the table, a sharer is a process that
// uses the quota. A law is the rule by which all sharers of one kind of quota conclude from answers
// what remains, and plan their next requests.
//
//	fair.go                Fair, a limit.Limiter: Ready, Admit, Settle
//	fair_config.go         Kind, and FairConfig with its defaults
//	fair_plan.go           the time of the next request, after an answer or a refusal
//	fair_stated.go         Fair learns from limits that the server states
//	belief.go              the estimate of the number of sharers
//	contention.go          when sharers send after a refusal, while they know nothing of each other
//	credit.go              the account by which requests pay for their time
//	entitled.go            the least part for a process among greedy ones
//	kind.go                finds out whether the quota is a bucket or of windows
//	emptied.go             recognizes a window that was used up at once
//	noise.go               the error in the servers' figures of what remains
//	level.go               the interface of the laws for one kind of quota
//	level_bucket.go        the law for token buckets
//	rise.go                ramps up the target reserve of a bucket
//	drought.go             detects a bucket that does not refill
//	listening.go           rounds of few requests by which sharers see whether a bucket refills
//	level_window.go        the law for fixed windows
//	phase.go               finds out when windows begin, where answers carry no reset
//	level_rolling.go       the law for rolling windows
//	silence.go             chooses the law for silent servers: answers without a remainder
//	silent_bucket.go       the law for token buckets of silent servers
//	silent_window.go       the law for fixed windows of silent servers
//	silent_ends.go         finds out when windows of silent servers end
//	silent_unknown.go      the law for an unknown quota of silent servers
//	auto.go                Auto, and Found: the limit that it found
//	auto_alone.go          the law of an Auto that shares with nobody
//	auto_stated.go         concludes the limit from remainders and resets
//	auto_memory.go         an Auto's memory, for the next process
//	auto_memory_fields.go  the fields of that memory
//	hints.go               Hints, a limit.Limiter
//	hints_own.go           Hints compares a hint with the configured limit
//	hints_idle.go          what Hints remembers with no request in flight, in a few bytes
package fairshare
