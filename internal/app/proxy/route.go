package proxy

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// routes are the upstreams, those of one host before those of any, and longer paths before shorter ones.
type routes []*upstream

func newRoutes(all []*upstream) routes {
	r := routes(slices.Clone(all))
	slices.SortStableFunc(r, func(a, b *upstream) int {
		if (a.Host == "") != (b.Host == "") {
			return len(b.Host) - len(a.Host)
		}
		return len(b.Path) - len(a.Path)
	})
	return r
}

// find returns the upstream of a request, or nil. Paths are compared as they are written, by whole segments.
func (all routes) find(r *http.Request) *upstream {
	host, path := hostname(r.Host), r.URL.EscapedPath()
	for _, u := range all {
		if u.Host != "" && u.Host != host {
			continue
		}
		if rest, ok := strings.CutPrefix(path, u.Path); ok && (rest == "" || rest[0] == '/' || u.Path == "") {
			return u
		}
	}
	return nil
}

// hostname is the host of a Host field, as Upstream.Host has it.
func hostname(hostport string) string {
	host := hostport
	if strings.IndexByte(hostport, ':') >= 0 { // otherwise there would be an error to make
		if h, _, err := net.SplitHostPort(hostport); err == nil {
			host = h
		}
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// climbs tells whether a path, decoded, has a segment . or .. in it, by which it could leave the folder where it begins. Some servers take
// a backslash, or an encoded slash, for a slash.
func climbs(path string) bool {
	for len(path) > 0 {
		segment := path
		if i := strings.IndexAny(path, `/\`); i >= 0 {
			segment, path = path[:i], path[i+1:]
		} else {
			path = ""
		}
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// outgoing is the URL at the upstream: the path without the upstream's prefix, behind that of To, encoded as it came, and the query as it
// came.
func (u *Upstream) outgoing(in *url.URL) *url.URL {
	out := *in
	out.Scheme, out.Host, out.User, out.Fragment = u.To.Scheme, u.To.Host, nil, ""
	out.Path = in.Path[len(u.Path):] // which has nothing encoded in it
	if in.RawPath != "" {
		out.RawPath = in.RawPath[len(u.Path):]
	}
	base := strings.TrimSuffix(u.To.Path, "/")
	if base == "" {
		if out.Path == "" {
			out.Path = "/"
		}
		return &out
	}
	if out.Path == "" {
		base = u.To.Path // with its slash, if it has one
	}
	escaped := strings.TrimSuffix(u.To.EscapedPath(), "/")
	if out.Path == "" {
		escaped = u.To.EscapedPath()
	}
	raw := escaped + out.EscapedPath()
	out.Path = base + out.Path
	out.RawPath = raw // Go leaves it aside where it says nothing that Path does not
	return &out
}

// paths are those that go somewhere, for people who asked for another. Which hosts there are is not for everybody.
func (all routes) paths() string {
	var some []string
	for _, u := range all {
		if u.Host == "" && u.Path != "" {
			some = append(some, u.Path+"/…")
		}
	}
	return sanitize.Some(some, 10)
}
