// Package queue holds the requests that wait to be sent, and counts every request that was ever
// submitted to it. It has priorities, deadlines, retries, dead letters (requests that failed for
// good) and a bound on its length. Package queue knows nothing of keys, limits or nonces, which
// package dispatch adds. Package dispatch uses package queue, for a pool.Pool with the real time
// and for the simulator with virtual time. docs/request_states.md draws the states of a request and
// lists every transition.
//
// # Order
//
// Each request in the queue has an instant that is its place in the line:
//
//	place = submitted − Priority × HeadStart
//
// Of the requests that are ready, the one with the earliest place goes next. Of two requests with
// the same place, the one submitted first goes first. So a request whose priority is higher by one
// goes as if it had been submitted HeadStart earlier (a minute by default). A retry keeps the place
// of its first submission, unless the option RetriesLast is set. A request is not ready during the
// delay before a retry, or while its host is held.
//
// With the option Decay, requests lose value with age, as prices and forecasts do, and the greatest
// value goes first. The value halves in each Decay, and each step of the priority doubles it:
//
//	value(now) = 2 ^ (Priority − (now − created) / Decay)
//
// All values fall at the same rate, so the order of two requests never changes. It is the order of
// these places:
//
//	place = −(created + Priority × Decay)
//
// # No request is passed over for ever
//
// A request r is passed over if the caller takes another request from the queue while r is ready.
// Assume that the caller always takes the head of the queue. Then, but for the exceptions below,
// only requests that were submitted no later than the following instant can pass over r, each of
// them at most MaxAttempts times:
//
//	r.submitted + (P − r.Priority) × HeadStart
//
// In the bound r.submitted + (P − r.Priority) × HeadStart, P is the highest priority in use. The
// bound follows from the order of the queue. If a request q goes before a request r, the place of q
// is no later than that of r:
//
//	q.submitted − q.Priority × HeadStart <= r.submitted − r.Priority × HeadStart
//
// So a request q passes over r only if q.submitted is at most r.submitted + (P − r.Priority) ×
// HeadStart, since q.Priority <= P. Without the option RetriesLast, places never change, and each
// Take of q counts as one of the MaxAttempts of q. Once the present time is after the bound, no
// request that is submitted from then on can pass over r. So only finitely many requests can still
// pass over r.
//
// With Decay there is no such bound: a stale request waits as long as fresher ones come. A TTL ends it.
//
// The bound on how often a request is passed over has exceptions. It does not cover requests that
// are held, for example while their host is down (see Hold and SetAside). If Return takes back a
// Take, that Take does not count as an attempt. A request that is sent in several parts (More) has
// MaxAttempts for each part. A dead letter that is requeued is a new submission. With the option
// RetriesLast, a retry counts as submitted at the instant at which the retry is ready, both for
// this bound and for its place.
//
// Everything in package queue is arithmetic on an instant, now, that the caller supplies. If a
// call's now is before that of an earlier call, the queue uses the earlier call's now. A sum of
// instants or durations that is too large becomes the largest one, and does not wrap round. A Queue
// has no clock or lock and is not safe for concurrent use.
//
// # Files
//
//	queue.go        Submit, the place in the line by priority, ErrFull; deadlines of new requests
//	transitions.go  how a request ends or goes again: Take, Done, Retry, Kill, Expire, Cancel
//	info.go         Info, Waiting and Counts: state, place and cost of requests
//	host.go         the next request of each host and resource; hosts that are held
//	heap.go         a heap of requests by place or instant
//	dead.go         dead letters: those that are kept, sent again or dropped
//	turns.go        --every: when a request is asked again; turns that are skipped
package queue
