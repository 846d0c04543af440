// Package text writes numbers, durations and lists as people read them, and reads such texts when
// people write them. For a misspelt name, it finds the name that the user may have meant. It makes
// texts of strangers safe to show in a terminal: for example, it writes an escape character as
// \x1b. Package text only computes on texts, and prints nothing itself.
//
//	humanize.go  numbers, dollars, durations and dates as people read them
//	bytesize.go  numbers of bytes in people's form: 64KiB, 16MiB
//	count.go     a number with its noun, the first few of a list, and who paused a key
//	suggest.go   the name that a user may have meant by a wrong one, for errors
//	sanitize.go  escapes and control characters of strangers, made harmless
//	filter.go    writers that sanitize what passes through them
package text
