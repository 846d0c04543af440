package host

import "strings"

// Match reports whether a request has the pattern METHOD /path, in which {} stands for any one part
// or for the middle of one. It returns what stands there.
func Match(pattern, method, path string) (parts []string, ok bool) {
	want, pattern, _ := strings.Cut(pattern, " ")
	fixed, _, _ := strings.Cut(pattern, "{}") // most paths differ there
	if method != want || !strings.HasPrefix(path, fixed) || strings.Count(path, "/") != strings.Count(pattern, "/") {
		return nil, false
	}
	given := strings.Split(path, "/")
	for i, part := range strings.Split(pattern, "/") {
		before, after, any := strings.Cut(part, "{}")
		switch {
		case !any && part != given[i]:
			return nil, false
		case !any:
			continue
		}
		rest, ok := strings.CutPrefix(given[i], before)
		rest, more := strings.CutSuffix(rest, after)
		if !ok || !more || rest == "" {
			return nil, false
		}
		parts = append(parts, rest)
	}
	return parts, true
}
