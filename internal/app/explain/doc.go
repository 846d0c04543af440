// Package explain reads a server's answer from a text that a user has pasted. The text may be
// output of curl, HTTPie or wget, or header fields from a browser. It may also be JSON, a HAR, or
// lines of a log that contain JSON or key=value. Parse recognizes two forms that it does not read:
// traces, and objects as a programming language prints them. For these two, Parse returns an error
// that names what to paste instead.
//
// If a pasted text has several answers of a server, Parse reads the last answer. If a text has
// several JSON objects or several lines of a log, Parse reads the last one that has a limit or a
// refusal in it. If the text is cut off, Parse reads what is there. The package is for users who
// paste one answer at a time, so its code is not made to be fast.
//
//	explain.go      Answer, and Parse: which form a text has
//	wire.go         answers as curl, HTTPie and wget print them
//	coded.go        bodies in a content coding such as gzip, decoded
//	fields.go       header fields without a status line, and key=value
//	json_answer.go  JSON within other text, and the status beside it
//	harvest.go      finds answers in the objects of JSON
//	unread.go       forms that are recognized and not read, with the error for each
package explain
