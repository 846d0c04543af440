// Package postgres stores backlogs (lists of requests) in PostgreSQL (12 or later), for workers on
// many machines. In one message to the server, which is one transaction, a worker reports results
// and takes further requests. The transaction does not wait for a second message of the worker. So
// a worker process that is suspended at any instant holds no lock.
//
// A process that adds requests to a backlog, or sends them, needs these rights in the database. On
// the tables of the backlog it needs SELECT, INSERT, UPDATE and DELETE. On the table
// paceline_backlog_version it needs SELECT, and on the sequences USAGE. The first process also
// needs CREATE on the database schema, unless an administrator has made the tables before, by the
// statements in the constant Schema.
//
// The Go function EnqueueTx, and the function paceline_enqueue in SQL, add requests to a backlog in
// the transaction in which you change your own tables. So either both the requests and your changes
// are stored, or neither:
//
//	BEGIN; INSERT INTO orders …; SELECT paceline_enqueue('mails', 'order-1', '{"url":"https://…"}'); COMMIT;
//
// Package postgres loses no committed transaction if PostgreSQL runs with fsync on; the package
// itself sets synchronous_commit to on in each transaction of a worker. If the address names
// several hosts, each connection goes to a host that accepts writes. A standby that takes over
// should have all committed transactions, as with synchronous replication. Otherwise results and
// marks (the notes that a request may be sent) are lost. docs/backlog.md lists which repeats are
// then not reported.
//
// A long transaction elsewhere in the database, such as a dump, prevents vacuum from removing old
// versions of the rows of requests that workers have taken. These old versions make it slower to
// take further requests.
//
// A pooler such as PgBouncer in transaction mode may stand between the process and PostgreSQL. No
// further configuration is needed: package postgres detects the pooler, and then uses no named
// prepared statements, so each transaction may run on another connection. Without a pooler, the
// statements of workers are prepared once for each connection.
//
// # Files
//
//	postgres.go      Store: opens and closes connections; the clock of the database
//	schema.go        the tables, indexes and functions of SQL; older tables are brought to this form
//	worker.go        what workers do: take and mark requests, write results, give up workers that died
//	for_programs.go  what programs do: the counts and workers of `backlog ls`, adding, results,
//	                 pause, cancel, send again, remove
package postgres
