// Package httptext says what may be the name and the value of a header field, and sets parameters of queries. It is arithmetic on bytes.
package httptext

import "strings"

// IsFieldName tells whether s is a token, as RFC 9110, section 5.6.2 has it.
func IsFieldName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// IsFieldValue tells whether s has no control character in it but tabs.
func IsFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
