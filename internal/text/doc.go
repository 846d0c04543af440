// Package text writes numbers, durations and lists as people read them, and reads what people
// write. It finds the name that a user meant by a misspelt one. It makes texts of strangers safe to
// show. All of it is arithmetic on text.
//
//	humanize.go  numbers, money, durations and dates as people read them
//	bytesize.go  numbers of bytes in people's form: 64KiB, 16MiB
//	count.go     a number with its noun, and the first few of a list
//	suggest.go   the name that a user may have meant by a wrong one, for errors
//	sanitize.go  text of strangers, made safe for a terminal
//	filter.go    writers that make what passes through them safe
package text
