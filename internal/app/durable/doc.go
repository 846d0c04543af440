// Package durable appends lines to files. An appended line survives a crash of the process. A line
// that was also synced survives a crash of the machine. Neither holds for a pipe or a terminal
// (Stream). The package does not know what the lines mean. The file file_name.go is about something
// else: it makes safe names of files from ids that strangers chose.
//
// # Files
//
//	durable.go     appends, syncs and replaces files; a file that others use or remove meanwhile
//	file_name.go   names of files made of ids, without /, capitals or reserved names
//	owner_lock.go  the lock of a file that is replaced during its use; another process takes it over
//	lock_*.go      the lock of a file, by system
package durable
