package host

import (
	"slices"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, method, path string
		ok                    bool
		parts                 []string
	}{
		{"GET /a", "GET", "/a", true, nil},
		{"GET /a", "POST", "/a", false, nil},
		{"GET /a", "GET", "/a/", false, nil},
		{"GET /a/{}", "GET", "/a/b", true, []string{"b"}},
		{"GET /a/{}", "GET", "/a/", false, nil},
		{"GET /a/{}", "GET", "/a/b/c", false, nil},
		{"GET /a/{}/c", "GET", "/a/b/d", false, nil},
		{"GET /{}/{}.json", "GET", "/a/b.json", true, []string{"a", "b"}},
		{"GET /{}/{}.json", "GET", "/a/.json", false, nil},
		{"GET /x{}", "GET", "/y1", false, nil},
		{"GET /a{}a", "GET", "/a", false, nil},
	} {
		if parts, ok := Match(c.pattern, c.method, c.path); ok != c.ok || !slices.Equal(parts, c.parts) {
			t.Errorf("%s: %s %s: %q, %t", c.pattern, c.method, c.path, parts, ok)
		}
	}
}
