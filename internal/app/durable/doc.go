// Package durable appends lines to files. An appended line survives a crash of the process. A line
// that was also synced survives a crash of the machine. The package does not know what the lines
// mean. The file file_name.go is about something else: it makes safe names of files from ids that
// strangers chose.
package durable
