// Package explain reads a server's answer from a text that a user has pasted. The text is output of
// curl, HTTPie or wget, or header fields from a browser. It may also be JSON, a HAR, or lines of a
// log with JSON or key=value. Two forms are not read: traces, and objects as a programming language
// prints them. For these two, Parse returns an error that names what to paste instead.
//
// If a pasted text has several answers of a server, Parse reads the last one. If a text has several
// objects, or lines of a log, Parse reads the last one that has a limit or a refusal in it. If the
// text is cut off, its beginning is read. The package is for users with one answer at a time, and
// not fast.
//
//	explain.go      Answer, and Parse: which form a text has
//	wire.go         answers as curl, HTTPie and wget print them
//	coded.go        bodies in a content coding such as gzip, decoded
//	fields.go       header fields without a status line, and key=value
//	json_answer.go  JSON within other text, and the status beside it
//	harvest.go      finds answers in the objects of JSON
//	unread.go       forms that are recognized and not read, with the error for each
package explain
