// Package sqlite stores backlogs (lists of requests) in a SQLite file. The package is for processes
// on one machine, and needs no server. Each transaction waits until the disk has stored it, so no
// committed result is lost if the power fails.
//
// A process that is suspended while it writes to the file holds the file's lock, so all other
// processes wait until it continues. (A process that opens the file meanwhile fails after 10 s.) If
// package share/sqlite shares a limit between the processes, use another file for the limit. Then
// such a suspension does not delay requests of other processes at the limit. Do not put the file on
// a network file system.
//
// # Files
//
//	sqlite.go        Store: opens the file; transactions, and how long they wait for the file's lock
//	schema.go        the tables and indexes, and their version
//	worker.go        what workers do: take and mark requests, write results, give up workers that died
//	for_programs.go  what programs do: the counts and workers of `backlog ls`, adding, results,
//	                 pause, cancel, send again, remove
package sqlite
