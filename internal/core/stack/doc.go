// Package stack provides Stack, a limit.Limiter that combines several reasons to delay the requests
// of one partition. A partition is one credential, or any other part of a server's quota. A Stack
// combines the configured limit, bounds on requests in flight, a pause after a refusal, the
// remaining quota that the server states, and a slow beginning. A request goes only if all of these
// allow it. So a Stack admits no request that the configured limit alone would not admit.
//
// A Stack, like every Limiter, is arithmetic on the now of its caller. It owns no clock and no
// lock, and is not safe for concurrent use. Outages of a host are the work of another limiter of
// package stack, the Breaker.
//
//	stack.go          all limits of a partition as one: Ready, Admit, Settle; remainders in
//	                  answers
//	pause.go          how long the pause after a refusal lasts: Retry-After, reset, guess; the
//	                  probe then
//	trial_request.go  the first request goes alone: a wrong key costs one refusal
//	beginning.go      after a pause with an unknown limit: one request, then two, then four
//	ramp.go           Use and Ramp: a part of the limits; a load that rises slowly, also after
//	                  "too fast"
//	idle.go           what a Stack without requests in flight remembers
//	breaker.go        Breaker: when a host counts as down, when a probe goes, when it is up again; one
//	                  answer of a server that is away, while others can take its load
//	open_files.go     too many open files: fewer requests in flight
package stack
