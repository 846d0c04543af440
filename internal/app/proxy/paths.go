package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/transport"
)

// A path goes on as it came, byte by byte. Servers differ in what they read out of it. So a path
// that one of them could read as leading out of its folder is refused, and a limit of a route
// counts all paths that some server takes for the route.

// decodings is how often a path is decoded again. Two servers in a row decode it twice.
const decodings = 4

// badPathIn says what is wrong with a decoded path; empty: nothing.
func badPathIn(path string) string {
	if isPlain(path) {
		return ""
	}
	for range decodings {
		switch {
		case strings.IndexByte(path, 0) >= 0:
			return "a path with a NUL in it"
		case overlong(path):
			return "a path with overlong UTF-8 in it"
		case climbs(path):
			return "a path with . or .. in it"
		}
		next := unescape(path)
		if next == path {
			break
		}
		path = next
	}
	return ""
}

// isPlain reports that a path has nothing in it that badPathIn looks for. Most have not.
func isPlain(path string) bool {
	for i := range len(path) {
		if c := path[i]; c == '.' || c == '%' || c == 0 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// climbs reports whether a decoded path has a segment . or .., with which it could leave its
// folder. Some servers read a backslash as a slash, cut a segment off at ; or trim white space, and
// some read other letters as dots and slashes.
func climbs(path string) bool {
	path = norm.NFKC.String(path)
	for len(path) > 0 {
		segment := path
		if i := strings.IndexAny(path, `/\`); i >= 0 {
			segment, path = path[:i], path[i+1:]
		} else {
			path = ""
		}
		if segment = bare(segment); segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// bare is a segment without its parameters, and without white space and controls around it.
func bare(segment string) string {
	if i := strings.IndexAny(segment, ";?#"); i >= 0 {
		segment = segment[:i]
	}
	return strings.TrimFunc(segment, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// overlong reports whether a path has a character in more bytes than UTF-8 has for it. Some servers
// read such bytes as a dot or a slash.
func overlong(path string) bool {
	for i := range len(path) {
		next := byte(0)
		if i+1 < len(path) {
			next = path[i+1]
		}
		switch c := path[i]; {
		case c == 0xc0 || c == 0xc1, c == 0xe0 && next < 0xa0, c == 0xf0 && next < 0x90:
			return true
		}
	}
	return false
}

// unescape decodes all %XX once, and leaves all else.
func unescape(path string) string {
	i := strings.IndexByte(path, '%')
	if i < 0 {
		return path
	}
	b := append(make([]byte, 0, len(path)), path[:i]...)
	for ; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if c, err := url.PathUnescape(path[i : i+3]); err == nil {
				b, i = append(b, c...), i+2
				continue
			}
		}
		b = append(b, path[i])
	}
	return string(b)
}

// partitionOf is transport.PartitionOf, with a route that is the same for all paths that a server
// may take for one. HEAD counts as GET, since servers answer it in the same way.
func partitionOf(r *http.Request) transport.Partition { return partitionBy(r, credentialOf(r)) }

func partitionBy(r *http.Request, credential string) transport.Partition {
	p := transport.PartitionBy(r, credential)
	p.Resource = visitOf(r.Context()).resource()
	if method, path := foldedMethod(r.Method), folded(r.URL.Path); method != r.Method || path != r.URL.Path {
		p.Route = costs.Route(method, path)
	}
	return p
}

// foldedRoute is the name of a configured route, as partitionOf has it.
func foldedRoute(route string) string {
	method, path, ok := strings.Cut(route, " ")
	if !ok {
		return route
	}
	return foldedMethod(method) + " " + folded(path)
}

func foldedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	if method = strings.ToUpper(method); method == http.MethodHead {
		return http.MethodGet
	}
	return method
}

// folded is a decoded path in the form in which servers find a route: without empty segments and
// parameters, in small letters, with nothing escaped twice. It is path itself if that has this
// form.
func folded(path string) string {
	if isFolded(path) {
		return path
	}
	for range decodings {
		next := unescape(path)
		if next == path {
			break
		}
		path = next
	}
	path = strings.ToLower(norm.NFKC.String(path))
	var b strings.Builder
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if segment = bare(segment); segment == "." {
			continue
		}
		if without := strings.TrimRight(segment, ". "); without != "" {
			segment = without
		}
		if segment != "" {
			b.WriteString("/" + segment)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

func isFolded(path string) bool {
	for i := range len(path) {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '~' || c == '!' || c == '$' ||
			c == '*' || c == '@' || c == ':' || c == ',' || c == '+' || c == '=' || c == '(' || c == ')':
		case c == '/' && (i == 0 || path[i-1] != '/' && i < len(path)-1):
		case c == '.' && i < len(path)-1 && path[i+1] != '/':
		default:
			return false
		}
	}
	return true
}
