// Package fairshare provides limiters for a quota that strangers use, too. Strangers are programs
// that your program cannot communicate with. If all processes that use the quota have a Fair or an
// Auto with the same settings, they get about the same share of the quota, with few refusals. A
// process with a Fair is given the published limit of the quota; an Auto finds it out. A process
// learns about the other processes only from the answers to its own requests. An answer shows
// whether the request was served or refused, and often how much of the quota remains.
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
//     window. If answers have a reset, Fair finds the kind out. If they have none, and you set no
//     Kind, Fair takes the kind that the provider documents, or else a token bucket at first.
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
// users. Before the stated reset, Hints admits no more than the remaining quota. (HintsConfig.Own
// may correct a reset in whole seconds.) For example, an answer states that 40 requests remain for
// 30 s, and 3 of your requests are in flight. Then at most 37 more go in these 30 s, since the
// server may not have counted the 3 yet. (If HintsConfig.Capacity is set, the quota is a bucket,
// and refills before the reset.) Hints ignores an answer without a reset. By default it believes a
// reset for an hour at most, unless the answer's Outcome is Sure; after that, one request at a time
// asks again.
//
// Package lab/strategy lists strategies for sharing a quota by name: published strategies of other
// projects, and Fair and Auto. Package lab/sim/compare compares a strategy of yours with these.
//
// For a quota that only your own programs use, a limiter of package limit is better than one of
// package fairshare. If the programs are several processes, use package share. The limiters of
// packages limit and share need no news from answers: they count your requests exactly. So the
// server refuses nothing for a limit that is configured as the server enforces it.
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
//	fair.go                Fair, a limit.Limiter: Ready, Admit, Settle; what each answer sets off
//	fair_config.go         Kind, and FairConfig with its defaults
//	fair_plan.go           when the next request goes: after an answer, or after a refusal
//	fair_stated.go         a limit or capacity that an answer states: when Fair takes it over
//	belief.go              how many sharers there are, so how fast this process goes
//	contention.go          after a refusal: random waits, so that not all come back at once
//	credit.go              when a request with its cost goes, with others in flight: it pays
//	                       beforehand
//	entitled.go            Sharers: a least part among greedy clients
//	kind.go                finds out whether a quota is a bucket, fixed or rolling windows
//	emptied.go             a crowd used a window up at once: it is no bucket
//	noise.go               remainders that are rounded or late, so that the number of sharers
//	                       jumps
//	level.go               what the laws for bucket, window and rolling window have in common
//	level_bucket.go        token buckets: a newcomer's rate; the reserve, and when it may be spent
//	rise.go                token buckets: a reserve that grows slowly after the start
//	drought.go             token buckets: nothing refills any more
//	listening.go           token buckets: all send little for a while, to see whether it refills
//	level_window.go        fixed windows: what to leave until their end; bursts where they begin
//	phase.go               fixed windows without a reset in answers: when they begin
//	level_rolling.go       rolling windows: the reserve; bursts that would come again
//	silence.go             servers that say only 429: which law holds, bucket or window
//	silent_bucket.go       servers that say only 429, with a token bucket
//	silent_window.go       servers that say only 429, with fixed windows; unequal shares there
//	silent_ends.go         servers that say only 429: when a window ends; latecomers
//	silent_unknown.go      Auto at servers that say only 429: the search for an unknown limit
//	auto.go                Auto: an unknown limit; the first requests; strangers; Found, which reports
//	                       the limit
//	auto_alone.go          an Auto that shares with nobody: uses all; a refusal shows strangers
//	auto_stated.go         guesses the limit from remainders and resets, in round numbers
//	auto_memory.go         what an Auto remembers over a restart; versions of that memory
//	auto_memory_fields.go  the fields of an Auto's memory, in their order
//	hints.go               Hints: sends no more than the server says is left until the reset
//	hints_own.go           Hints: whether own requests explain a low remainder, or strangers do
//	hints_idle.go          Hints without a request in flight, in a few bytes
package fairshare
