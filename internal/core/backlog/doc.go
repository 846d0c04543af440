// Package backlog decides what a worker does. Many workers send the requests of one list, which a
// database keeps. A worker asks this package two questions. Which requests are its own, so that it may
// send them? What does it write into the database in its next transaction? Such a transaction is a
// turn. When a request may go, the limits decide, and not this package.
//
// A worker sends a request only if a committed turn named it before: the turn marks it. So each
// request that may have been sent is named in the store, whatever happens to the worker. Workers are
// given up by the beats of their turns, and nobody reads a clock of another machine.
//
// The laws:
//
//  1. The row is the right. Only the row of a waiting request gives the right to its result; it goes
//     in the transaction that writes the result. So there is one result.
//  2. Mark before write. A worker sends what its latest turn names whose commit the store confirmed, if
//     each later turn that may still commit names it, too. What a row shows confirms nothing.
//  3. A worker is leased, not a request: holding many costs one row a turn.
//  4. A worker is given up by its beats: see Watch. What it had marked has a doubt from then on.
//  5. Fresh: after its latest committed turn a worker sends for less time than a Watch waits.
//  6. A turn has a number, and fits only once. If its outcome is unknown, the worker reads its row.
//  7. The first answer counts, also that of a worker that was given up. It says that the request may
//     have been sent twice.
//  8. Limits are somebody else's: a request that waits for a permit is held, and not marked.
//
// # Files
//
//	worker.go   Worker: what it holds, and what it may send
//	turn.go     Turn: what one transaction says, and what its outcome means
//	lane.go     how many requests of a lane a worker holds, and how many it marks
//	rewind.go   what to do when the store has lost turns
//	watch.go    Watch: workers that no longer take turns
package backlog
