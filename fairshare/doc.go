// Package fairshare provides limiters for a quota that strangers use, too. Strangers are programs
// that your program cannot talk to. All processes that use this package with the same Weight get
// the same share of the quota, almost without refusals. Each process knows the published limit of
// the quota. A process learns about the others only from the answers to its own requests: whether
// these were served or refused, and how much of the quota remains.
//
// [Fair] is the limiter to use for a quota with a known limit. It is for token buckets, for fixed
// and rolling windows, and also for servers whose answers state no remaining quota. A Fair is a
// limit.Limiter for one process with any number of requests in flight. A Gate, a Pool or a
// Transport takes a Fair like any other limiter.
//
// A Fair needs these settings:
//   - The published limit is so much per window, for example 4500 requests an hour.
//   - The Kind of the quota is token bucket, fixed window or rolling window. A Fair needs it only
//     if the server's answers have no reset.
//   - The source of random numbers is one that nothing else uses.
//
// A process whose Fair has a Weight of 2 gets twice the share of a process without a Weight. All
// processes must follow the rules of this package and know the same quota. If some processes may
// take more than their share, set Sharers of the [FairConfig] to the number of processes. Then this
// process claims its own part of the limit, Weight / Sharers, even beside the greedy ones.
//
// [Auto] is a Fair for a quota with an unknown limit.
//
// [Hints] is a limiter to put beside one for a known limit, in a limit.All. Hints does not divide
// the quota among users. It reads the remaining quota and its reset in the answers of the server.
// Before that reset, Hints lets no more than the remaining quota go. For example, if an answer
// states that 40 requests remain for 30 s, at most 40 go in these 30 s. Those that were in flight
// already are counted in the 40.
//
// Package lab/strategy lists strategies for sharing a quota by name: published ones of others, and
// the two of this package. Package lab/sim/compare compares a strategy of yours with them.
//
// For a quota that only your own programs use, package limit is better than fairshare, or package
// share if they are several processes. Their limiters need no news from answers: they count your
// requests exactly, so the server refuses nothing.
//
// No limiter in this package has a clock, a lock or a goroutine, and none is safe for concurrent
// use. The caller of a limiter supplies its source of random numbers (FairConfig.Rng).
//
// # Files
//
// In the table of files below, a sharer is a process that uses the quota. A law is the way in which
// all sharers of one kind of quota read what remains, and plan their next requests.
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
