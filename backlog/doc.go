// Package backlog stores a list of requests, called a backlog, in a database. Any process that can
// open the database may add requests to the list, and any number of worker processes send them.
// With PostgreSQL the processes may be on many machines, with SQLite on one.
//
// Each request of a backlog has an ID, and each ID gets one result. If a request may have been sent
// again after it was served, its Result has Repeat set; other Results do not. (Your function Do
// reports whether a failed attempt may have been served.) This also holds if a process is killed or
// suspended, if a network is cut, and if the database restarts. If a database loses transactions
// that it had committed, some repeats are not reported: see docs/backlog.md, Failover. Package pool
// is different from package backlog: a Pool sends the requests of one process, and stores no list
// in a database.
//
//	store, err := sqlite.Open("jobs.db") // backlog/sqlite or backlog/postgres
//	b, err := backlog.Open(ctx, store, "mails", backlog.Options{})
//	added, err := b.Enqueue(ctx, backlog.Job{ID: "1", Data: mail})
//	w, err := backlog.NewWorker(backlog.WorkerConfig{Backlog: b, Gate: gate, Do: send})
//	err = w.Run(ctx)
//
// A Backlog has no rate limits of its own. If WorkerConfig.Gate is set, a Worker waits at this
// paceline.Gate before it sends. Without a Gate, a Worker sends without a limit. Package share
// provides limiters for a Gate whose limit several processes share.
//
// # Promises
//
// A worker sends a request only after a transaction has marked the request in the database. In
// advance the worker marks as many requests of a lane as it sent in the busiest 100 ms of the last
// seconds, and at least two. It marks one more for each permit that it has without a marked
// request. If a worker writes nothing to the database for about 15 s, the other workers give it up:
// they take over all requests that it had reserved for itself. The former worker may have sent
// those that it had marked. So if one of these is sent again, its Result has Repeat set. A worker
// that dies thus causes a Repeat for no other requests than those that it had marked. These are the
// requests in flight, those marked in advance, and failed ones that the worker would have sent
// again within 10 s.
//
// The first answer that a worker reports for a request becomes its result, even if the worker was
// given up before. The promises of package backlog are one result for each request, and no
// unreported repeat. They hold unless the database loses transactions that it had committed. They
// do not depend on the clocks of machines being right. Two fields of a Job are instants of a wall
// clock: Due by the clock of the database, Deadline by that of the worker.
//
// # Not for
//
// Package backlog has no recurring jobs, and no jobs that depend on others. It is not for answers
// of unlimited size, since each Result is stored in the database.
//
// # Files
//
//	job.go      Job, Result and their states; Counts: ready, later, held, done, dead
//	store.go    Store: the transactions of a database; Entry, its form of a Job; errors
//	backlog.go  Backlog: adding, results, pausing, cancelling, sending again; how many one transaction changes
//	session.go  Session: one worker without a limit or retries of its own; takes, marks, hands out
//	turns.go    the transactions of a Session, and when each is due; other workers that died
//	attempt.go  Attempt: a request in the hands of a worker; how it ends, and whether it may still go
//	worker.go   Worker: a Session whose requests a function sends, within a Gate; retries, rests
//
// Package internal/core/backlog makes the decisions of a worker: which requests the worker may
// send, and what it writes into the database. Package internal/core/backlog has no clock, and calls
// no store.
package backlog
