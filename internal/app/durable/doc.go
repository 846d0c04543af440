// Package durable appends lines to files. An appended line survives a crash of the process. A line
// that was also synced (written to the disk) survives a crash of the machine. The package does not
// know what the lines mean. One source file, file_name.go, has another purpose: it makes safe names
// of files from ids that strangers chose.
package durable
