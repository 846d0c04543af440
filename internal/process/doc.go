// Package process names the processes of a machine, so that another process of that machine can see
// that one has ended.
//
// # Files
//
//	process.go       Here, Ended
//	start_linux.go   when a process started, and which processes see one another
//	start_other.go   systems where no end is certain
package process
