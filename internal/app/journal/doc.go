// Package journal records in a file, the journal, what a process sends. So after a restart, the
// next process knows how much of each limit is used, and which requests may have been sent before.
// The package appends a line to the file before each request is sent, and another after each answer
// (record.go). From time to time, the file is compacted: it is written anew, without the lines of
// sends that no longer count in any window.
//
// # Files
//
//	journal.go         Journal: opened, compacted, written; a file that grows; what is synced
//	record.go          the fields of a line; what earlier runs sent, read back; versions
//	record_group.go    many records in one write; the instants in them after a sleep
//	encode.go          writes the lines of sends and answers without encoding/json, which is slower
//	decode_record.go   reads the lines of sends and answers in the same way
//	starts.go          when the durations of an input's lines begin
//	suspend.go         another process goes on with the file
//	sent_place.go      where a request counts, as the file names it
//	earlier_send.go    a request that an earlier process sent, for the limits of a Transport
//	sent_log.go        a file with a line of each attempt, for an audit
//	salt.go            names of credentials that a reader of the file cannot use
//	recent_notes.go    what other processes of the user sent a moment ago, with the same keys
//	beside_words.go    the warning of a process that sends with the same key at this moment
//	findings.go        limits that a run found out, for the time after a restart
package journal
