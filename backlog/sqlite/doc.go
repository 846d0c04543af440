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
//	sqlite.go        Store: opening a file, and transactions
//	schema.go        the tables
//	worker.go        what workers do: take requests, report results, look at other workers, give them up
//	for_programs.go  what programs do: adding, results, changes
package sqlite
