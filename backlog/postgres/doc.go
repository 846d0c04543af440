// Package postgres keeps backlogs in PostgreSQL (12 or later), for workers on many machines. A
// worker takes requests and reports results in one message to the server, which is one transaction.
// So a worker process that is stopped at any instant holds no lock.
//
// A process that adds requests to a backlog, or sends them, needs SELECT, INSERT, UPDATE and DELETE
// on the tables of the backlog, and USAGE on their sequences. The first process also needs CREATE
// on the database schema, unless an administrator has made the tables before, by the statements in
// the constant Schema.
//
// EnqueueTx, and the function paceline_enqueue in SQL, add requests in a transaction with your own tables:
//
//	BEGIN; INSERT INTO orders …; SELECT paceline_enqueue('mails', 'order-1', '{"url":"https://…"}'); COMMIT;
//
// Package postgres relies on fsync, and on synchronous_commit, which each transaction of a worker
// sets. If the address has several hosts, each connection goes to a host that accepts writes. A
// standby that takes over should have all committed transactions, as with synchronous replication.
// Otherwise results and marks (the notes that a request may be sent) are lost: docs/backlog.md
// lists which repeats are then not reported.
//
// A long transaction elsewhere in the database prevents vacuum from removing old versions of the
// rows of requests that workers have taken. The many old versions make it slower to take further
// requests.
//
// A pooler such as PgBouncer in transaction mode may stand between the process and PostgreSQL. No
// further configuration is needed: behind a pooler, no statement of this package depends on which
// connection runs it. Without a pooler, the statements are prepared once for each connection.
//
// # Files
//
//	postgres.go      Store: opens and closes connections; the clock of the database
//	schema.go        the tables, indexes and functions of SQL; older tables are brought to this form
//	worker.go        what workers do: take and mark requests, write results, give up workers that died
//	for_programs.go  what programs do: the counts and workers of `backlog ls`, adding, results,
//	                 pause, cancel, send again, remove
package postgres
