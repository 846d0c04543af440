// Package classify judges one attempt at a request by its answer or its error. It answers four
// questions. How did the attempt end? If the attempt was refused, which requests does the refusal
// concern: those of a key, of a model, of a route or of an address? May the request be sent again?
// How long should the request wait before that? These are the main types of package classify:
//
//	Evidence   the facts about one attempt: status, header, body or error, and its request
//	Policy     how to read the answer, and the longest waits
//	Verdict    the result: the Outcome for limiters, the Scope, Again or Why not
//
// Package classify is for code that sends requests under a limit, and judges their answers itself.
// In the Send function of a pool.Pool, return the result of the method Verdict.Answer. With a
// Permit of a paceline.Gate, call Permit.Settle with the field Verdict.Outcome. Package classify
// reads what an answer states about limits by package provider. Package limit decides when the next
// request may go.
//
// Package classify has no clock, lock or goroutine, and no state: equal evidence gives equal
// verdicts. It judges the bytes of a body that the caller has read, and reads no body from the
// network. All of its functions are safe for concurrent use. Every answer gets a verdict, however
// odd the answer is: judging never returns an error.
//
//	verdict.go     Evidence, Policy, Verdict: how an attempt ended, and whether it is sent again,
//	               also where no answer came
//	concerns.go    whom a refusal concerns: address, key, resource, model or route
//	outcome.go     the Outcome for limiters of some scopes: Retry-After and remainders
//	dialect.go     of which answers the body has to be read first
//	never_sent.go  errors that prove that nothing was written: no name, route, connection or TLS
//	network.go     what a failed attempt shows of the way to a server (limit.Link)
//	exhausted*.go  errors of a machine that has no files or ports left
//	describe.go    the limits of an answer, and when to come back, in words for people
package classify
