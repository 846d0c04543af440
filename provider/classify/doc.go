// Package classify judges one attempt at a request by its answer or its error. It answers four
// questions. How did the attempt end? If the attempt was refused, which requests does the refusal
// concern: those of an address, a key, a resource, a model or a route? May the request be sent
// again? How long should the request wait before that? These are the main types of package
// classify:
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
//	verdict.go     served, refused or failed; sent again or not; waits that are too long
//	concerns.go    whom a refusal concerns: address, key, resource, model or route
//	outcome.go     what limiters of some scopes learn: remainders, Retry-After, actual cost
//	dialect.go     whose words an unknown server uses; a nonce that did not rise; bodies to read
//	               first
//	never_sent.go  errors that prove that nothing was written: no name, route, connection or TLS
//	network.go     connection errors: host unreachable, silent, or this machine at fault
//	exhausted*.go  by system: too many open files, no ports left
//	describe.go    an answer's limits, and when to come back, in words for people
package classify
