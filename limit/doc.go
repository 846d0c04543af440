// Package limit answers one question: when may the next request go, given the server's rule?
//
// Every limiter has the same three methods: Ready, Admit and Settle. Each is arithmetic on an
// instant, now, that the caller passes in. In the table below, the first column is the method, the
// second what its call means, and the third what the call does to the limiter's state:
//
//	Ready   when may this cost go?      reads only
//	Admit   it goes now                 records a fact; never refuses
//	Settle  the answer came             records the answer's time, cost and hints
//
// A server counts the requests that arrive in a window. A client knows when it sent a request and
// when it read the answer, but not when the request arrived. Two requests sent 1000 ms apart may
// arrive 996 ms apart, if the first took 4 ms longer on its way. So a client that counts its sends
// per window may exceed the limit: the jitter of the network moves more requests into one window of
// the server.
//
// In package limit a request counts in full from Admit to Settle. In a limiter with a window, the
// request then counts for one window more, unless it was surely not sent (Unsent). That window
// starts at the latest instant at which the request can have arrived. By default this is the
// instant of its answer. After a timeout or a reset it is 5 s later, unless Arrivals.Late differs.
// Package limit relies on no request arriving later than that. Then no latency, reordering or stall
// can put more than the limit into any window of the server. Options such as OneWayMax and
// LearnLead rely on more.
//
// # Which limiter
//
// In the table, each line has the rule of a server or the need of a client, and then the limiter
// for it.
//
//	so many requests in any window, or in windows of unknown phase    [Rolling]
//	so many per minute or day, by a clock whose minutes are known     [Calendar]
//	so many per interval that begins with the first message           [Anchored]
//	token bucket, GCRA, leaky bucket                                  [Bucket]
//	the window before counts in proportion (Cloudflare, HAProxy)      [Weighted]
//	output tokens count as they are produced (Anthropic)              [Produced]
//	several of these limits at once                                   [All]
//	use a part of a limit only; let the load rise slowly              [Headroom]
//	a bound on requests in flight                                     [Concurrency]
//	the same, where the server's bound is not known                   [Adaptive]
//	a least time between sends; requests that must arrive in order    [Spacing], [Sequence]
//	pauses that the server asks for                                   [Cooldown]
//	limits that may be wrong; limits that come and go                 [Fitted], [Varying]
//
// Other packages have limiters, too. Package fairshare is for a quota that other people's programs
// use. Package share is for a limit that several processes share. Package limit/window is no
// limiter for servers: it counts events whose instants the caller knows exactly, for example the
// orders that a program sent.
//
// A Limiter of package limit has no clock, lock, timer or goroutine. It is not safe for concurrent
// use: it belongs to one caller, such as one Gate. Goroutines that want to wait for a Limiter use a
// paceline.Gate. Programs that send with several API keys use a pool.Pool, or a Transport of
// package transport.
//
// # Files
//
//	limit.go          Limiter, Cost, Outcome, Arrivals: the units, their sizes; until when an
//	                  unanswered request may arrive
//	sent.go           the record of a request in flight, and the Book of such records
//	account.go        common to most limiters, not to buckets: open cost, arrivals, margin; SetLimit,
//	                  SetWindow
//	arrival_log.go    settled requests: arrival and cost, oldest first, in a ring
//	rolling.go        Rolling: any window; the argument that no window has more
//	calendar.go       Calendar: intervals of a known clock, such as minutes or days
//	zone.go           days, weeks and months of a place, also when clocks change to summer time
//	anchored.go       Anchored: intervals that begin with a message
//	bucket.go         Bucket: token bucket, GCRA, leaky bucket; its rounding; Alone
//	weighted.go       Weighted: this window and a part of the one before
//	produced.go       Produced: tokens that count as the server produces them
//	concurrency.go    Concurrency: a bound on requests in flight
//	adaptive.go       Adaptive: requests in flight, where the server's bound is not known
//	spacing.go        Spacing: a least time between two sends
//	sequence.go       Sequence: requests that must arrive in order
//	cooldown.go       Cooldown: pauses that the server asks for
//	all.go            All: several limiters at once: goes when all let it go
//	varying.go        Varying: an All whose limiters may change
//	fitted.go         which refusals show that a configured limit is wrong; Misfit, which reports
//	                  it
//	fit.go            the stricter limit kept then, and when it is sure; doubt that rate is the
//	                  cause
//	lesson.go         what a Fitted learned, for the next process
//	driver.go         Bind: the one driver to which a limiter belongs
//	wrap.go           Unwrap and Ask: the search for an ability in wrapped limiters
//	leaving.go        when a cost may go and leave a part of each limit free
//	forecast.go       a small request ahead of a large one; refusals at once for a deadline
//	rule.go           Rule: so much of a unit per window, and its text
//	describe.go       the rules of a limiter, and which of them makes a request wait
//	usage.go          how much of each limit is used now, for pages and metrics
//	headroom.go       Use and Ramp: a part of the limits; a load that begins slowly
//	named.go          Named: a limiter with a name, for pages and errors
//	keeper.go         writes and reads a limiter's memory; a memory of another configuration
//	keeper_state.go   the bytes of that memory: letter, version, varints
//	idle.go           the memory of a limiter with no request in flight, in a few bytes
//	replay_past.go    after a restart: earlier requests count in a new limiter
//	retreat.go        options with a risk, such as LearnLead: given up for a while after a refusal
//	rtts.go           LearnLead: the shortest round trips, and the lead learnt of them
//	serverclock.go    when a request arrived, by the server's time stamps
//	outcome_tally.go  counts of served, refused and failed requests
//	link.go           what an attempt shows of the network: unreachable, silent, cut
package limit
