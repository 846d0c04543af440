package costs

import "strings"

const maxSegment = 40

// Route returns the method and the path of requests, without what looks like the identifier of an object. An
// empty method is GET.
func Route(method, path string) string {
	if method == "" {
		method = "GET"
	}
	plain := true
	for start := 0; start < len(path); {
		segment := path[start:]
		if i := strings.IndexByte(segment, '/'); i >= 0 {
			segment = segment[:i]
		}
		plain = plain && !identifies(segment)
		start += len(segment) + 1
	}
	if plain {
		return method + " " + path
	}
	b := make([]byte, 0, len(method)+1+len(path))
	b = append(append(b, method...), ' ')
	for start := 0; start < len(path); {
		segment := path[start:]
		i := strings.IndexByte(segment, '/')
		if i >= 0 {
			segment = segment[:i]
		}
		if identifies(segment) {
			b = append(b, '*')
		} else {
			b = append(b, segment...)
		}
		if i >= 0 {
			b = append(b, '/')
		}
		start += len(segment) + 1
	}
	return string(b)
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
