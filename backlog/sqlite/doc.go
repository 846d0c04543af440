// Package sqlite keeps backlogs in a SQLite file. The package is for processes of one machine, and
// needs no server. Each transaction waits for the disk, so no committed result is lost if the power
// fails.
//
// A process that is stopped while it writes to the file holds up all other processes until it
// continues. So if a limit is shared by package share/sqlite, use another file for the limit: then
// such a stop does not hold up the limit. Do not put the file on a network's file system.
//
// # Files
//
//	sqlite.go        Store: opens the file; transactions, and how long they wait for the file's lock
//	schema.go        the tables and indexes, and their version
//	worker.go        what workers do: take and mark requests, write results, give up workers that died
//	for_programs.go  what programs do: the counts and workers of `backlog ls`, adding, results,
//	                 pause, cancel, send again, remove
package sqlite
