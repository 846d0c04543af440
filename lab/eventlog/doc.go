// Package eventlog reads logs of events, and finds out whether any window of a log contains more
// events than a limit allows. A window is closed, as in package internal/rule: two events exactly
// one window apart are both in it.
//
//	instant.go  the forms of an instant: RFC 3339, Unix seconds, milliseconds
//	read.go     lines, CSV and JSON lines: where the instant and the key of an event are
//	check.go    counts events in each window; the first window that has too many
package eventlog
