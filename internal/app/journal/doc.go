// Package journal records in a file, the journal, what a process sends. So after a restart, the
// next process knows how much of each limit is used, and which requests may have been sent before.
// The package appends a line to the file before each request is sent, and another after each answer
// (record.go). From time to time, the file is compacted: it is written anew, without the lines of
// sends that no longer count in any window.
//
// # Files
//
//	journal.go        Config, Open, and the records that a run writes
//	record.go         the fields of a line, and History: what earlier runs sent, read back
//	record_group.go   records of many goroutines in one write
//	encode.go         writes the lines of sends and answers without encoding/json, which is slower
//	decode_record.go  reads the lines of sends and answers in the same way
//	suspend.go        another process goes on with the file
//	findings.go       what a run learned of unknown limits, for the time after a restart
package journal
