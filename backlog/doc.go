// Package backlog keeps one list of requests in a database, for many workers. Any process adds
// requests to the list, and any number of processes on any number of machines send them.
//
// Each request of a backlog has an ID, and each ID gets one result. If a request may have been sent
// again after it was served, its Result has Repeat set, and no other Result has. This also holds if
// a process is killed or stopped, if a network is cut, and if the database restarts. Package pool
// is different: it sends the requests of one process, and stores no list in a database.
//
//	store, err := sqlite.Open("jobs.db") // backlog/sqlite or backlog/postgres
//	b, err := backlog.Open(ctx, store, "mails", backlog.Options{})
//	added, err := b.Enqueue(ctx, backlog.Job{ID: "1", Data: mail})
//	w, err := backlog.NewWorker(backlog.WorkerConfig{Backlog: b, Gate: gate, Do: send})
//	err = w.Run(ctx)
//
// A Backlog has no rate limits of its own. A Worker waits at a paceline.Gate before it sends.
// Package share provides limiters for a Gate whose limit several processes share.
//
// # Promises
//
// A worker sends a request only after a transaction has marked the request in the database. At one
// time the worker marks only as many requests as it may send in the next 100 ms. If a worker writes
// nothing to the database for 15 s, the other workers give it up: they take over all requests that
// it had marked. The former worker may have sent some of these, so if they are sent again, their
// Results have Repeat set. So a worker that dies causes a Repeat only for requests in flight, and
// for those that it had marked for the next 100 ms.
//
// The first answer to a request becomes its result, even if the answer comes from a worker that was
// given up. The clocks of machines have no part in the promises of this package: one result for
// each request, and no unreported repeat. Only Job.Due and Job.Deadline are instants of a wall
// clock.
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
//	backlog.go  Backlog: adding, results, pausing, cancelling, sending again
//	session.go  Session: one worker without a limit or retries of its own; takes, marks, hands out
//	turns.go    the transactions of a Session, and when each is due; other workers that died
//	attempt.go  Attempt: a request in the hands of a worker; how it ends, and whether it may still go
//	worker.go   Worker: a Session whose requests a function sends, within a Gate; retries, rests
//
// Package internal/core/backlog makes the decisions of a worker: which requests it may send, and
// what it writes into the database. That package has no clock, and calls no store.
package backlog
