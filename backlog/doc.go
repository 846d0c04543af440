// Package backlog keeps one list of requests for many workers. Any process adds requests to it, and
// any number of processes on any number of machines send them.
//
// Each request has an ID, and each ID has one result. A request that may have been sent twice is
// named: its Result has Repeat. No other is. That holds if a process is killed or stopped, if a
// network is cut, and if the database restarts. Package pool has the same for one process, and keeps
// no list.
//
//	store, err := sqlite.Open("jobs.db") // backlog/sqlite or backlog/postgres
//	b, err := backlog.Open(ctx, store, "mails", backlog.Options{})
//	added, err := b.Enqueue(ctx, backlog.Job{ID: "1", Data: mail})
//	w, err := backlog.NewWorker(backlog.WorkerConfig{Backlog: b, Gate: gate, Do: send})
//	err = w.Run(ctx)
//
// Limits are not the backlog's. A Worker waits at a paceline.Gate, whose limit can be shared with
// other processes by package share.
//
// # Promises
//
// A worker sends a request only if a transaction has marked it before. A worker that takes no turn for
// 15 s is given up by the others: what it had marked is named from then on, and others send it. So of a
// worker that dies, what was in flight is named, and what may go next in 100 ms.
//
// The first answer counts, also that of a worker that was given up. The clocks of machines have no part
// in it. Only Due and Deadline are instants of a wall clock.
//
// # Not for
//
// There are no recurring jobs, no jobs that depend on others, and no answers without a bound: a Result
// is in the database.
//
// # Files
//
//	job.go       Job, Result, and what is counted
//	store.go     Store: a database, and what each transaction does
//	backlog.go   Backlog: adding, results, pausing, cancelling, sending again
//	session.go   Session: one worker that takes requests from the backlog
//	turns.go     the turns of a Session, and its looks at other workers
//	attempt.go   Attempt: a request in the hands of a worker, and its Answer
//	worker.go    Worker: a Session whose requests are sent by a function, within a Gate
//
// Package internal/core/backlog decides; it has no clock and no store.
package backlog
