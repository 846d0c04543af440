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
//	explain.go      which form a pasted text has; the answer among several
//	wire.go         answers as curl, curl -v, HTTPie and wget print them
//	coded.go        bodies in a content coding such as gzip, decoded
//	fields.go       header fields without a status line, as browsers copy them; key=value
//	json_answer.go  JSON within other text, cut off or not
//	harvest.go      HAR and other JSON: which objects are answers: headers, status, body
//	unread.go       traces and printed objects: the error that says what to paste
package explain
