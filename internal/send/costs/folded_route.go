package costs

import "strings"

const maxSegment = 40

// Route returns the method and the path of requests, without what looks like the identifier of an object. An
// empty method is GET.
func Route(method, path string) string {
	if method == "" {
		method = "GET"
	}
	var b strings.Builder
	b.Grow(len(method) + 1 + len(path))
	b.WriteString(method)
	b.WriteByte(' ')
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		if identifies(segment) {
			segment = "*"
		}
		b.WriteString(segment)
		if more {
			b.WriteByte('/')
		}
	}
	return b.String()
}

// identifies reports whether a piece of a path looks like an object's identifier.
func identifies(s string) bool {
	if len(s) > maxSegment {
		return true
	}
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			return !(s[0] == 'v' && i == 1 && len(s) <= 8) // v1, v1beta, v2024
		}
	}
	return false
}
