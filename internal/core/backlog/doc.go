// Package backlog decides what a worker does. Many workers send the requests of one list, the
// backlog, which is in a database. A worker asks this package two questions. Which requests are its
// own, so that it may send them? What does it write into the database in its next transaction? Such
// a transaction is called a turn. Package backlog does not decide when a request may go: the rate
// limits do.
//
// A worker sends a request only if one of its transactions, called turns, has marked the request
// and was committed. So each request that may have been sent has a mark in the database until its
// result is there, even after the worker has crashed.
//
// Each turn (transaction of a worker) also increments a number in the row of its worker: the beat.
// If the beat of a worker does not change for 14 s, the other workers give it up, and may claim its
// requests. Each of them looks at all beats once a second, and measures the 14 s by its own clock.
// A worker whose look fails, or comes more than 2.5 s after its last one, measures the 14 s anew.
// So no worker has to trust the clock of another machine.
//
// The workers of a backlog and their transactions (turns) obey these laws:
//  1. One result. Each request without a result has a row. The transaction that writes the result
//     deletes that row. Where the row is gone already, no second result is written.
//  2. Mark before the send. A worker sends what is marked by its latest turn that the database
//     confirmed as committed. If the outcome of a later turn is unknown, that turn must mark the
//     request, too. Marks that the worker reads from its row confirm nothing: a standby that takes
//     over may lack them.
//  3. The lease (the right to the claimed requests for some seconds) is that of a worker, not of
//     each request. So a turn that keeps the lease changes one row, however many requests the
//     worker holds.
//  4. A worker is given up by its beat (the number that each of its turns increments) alone: see
//     Watch. Each request that it had marked has a doubt from then on: it may have been sent.
//  5. Fresh: a worker sends for 10 s after its latest committed turn began. A Watch waits for 14 s.
//     So a worker that was given up sends nothing more.
//  6. The marks, claims and returned requests of a turn are written only if the worker's row has
//     the beat that the turn expects. So they are written at most once. Results and doubts are
//     written in any case. If the outcome of a turn is unknown, the worker reads its row.
//  7. The first answer that gets into the database is the result, even if it comes from a worker
//     that was given up. If the request has a doubt, the result states that it may have been sent
//     twice.
//  8. Rate limits belong to other packages. While requests of a lane wait for permits, the worker
//     holds as many of them as it sends in about 2 s, and at least 4. It marks only as many as it
//     sent in the busiest 100 ms of the last seconds, and at least 2. For each permit that waits for
//     a mark, it marks one more.
//
// # Files
//
//	worker.go  Worker: the requests that it holds, and which of them it may send
//	turn.go    Turn: what one transaction writes, and what follows from its outcome
//	lane.go    how many requests of a lane a worker holds, and how many it marks
//	rewind.go  what to do when the store has lost turns
//	watch.go   Watch: gives up workers without a turn for 14 s (they send for FreshFor, 10 s)
package backlog
