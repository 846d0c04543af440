package proxy

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/text"
)

// routes are the upstreams in the order of the search. Those with a Host come before those without,
// and longer paths before shorter ones.
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

// find returns the upstream of a request, or nil. It compares paths as they are written, by whole
// segments.
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

// hostname is the host of a Host field, in the form of Upstream.Host.
func hostname(hostport string) string {
	host := hostport
	if strings.IndexByte(hostport, ':') >= 0 { // otherwise SplitHostPort would make an error
		if h, _, err := net.SplitHostPort(hostport); err == nil {
			host = h
		}
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// leadsAside reports whether some server would take the path of a request for one of another
// upstream.
func (all routes) leadsAside(r *http.Request, found *upstream) bool {
	as, host := folded(r.URL.Path), hostname(r.Host)
	for _, u := range all {
		if u.Host != "" && u.Host != host {
			continue
		}
		prefix := folded(u.Path)
		if rest, ok := strings.CutPrefix(as, prefix); u.Path == "" || ok && (rest == "" || rest[0] == '/') {
			return u != found && prefix != folded(found.Path)
		}
	}
	return false
}

// incoming is the URL by which a client asks for what has the path and the query of to.
func (u *Upstream) incoming(to *url.URL) *url.URL {
	in := url.URL{Path: u.Path + to.Path, RawQuery: to.RawQuery}
	if to.RawPath != "" {
		in.RawPath = u.Path + to.RawPath
	}
	return &in
}

// outgoing is the URL at the upstream: the path without the upstream's prefix, behind that of To.
// The path keeps its encoding, and the query stays as it came.
func (u *Upstream) outgoing(in *url.URL) *url.URL {
	out := *in
	out.Scheme, out.Host, out.User, out.Fragment = u.To.Scheme, u.To.Host, nil, ""
	out.Path = in.Path[len(u.Path):] // the prefix has no encoded character
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
	out.RawPath = raw // Go ignores it if it says the same as Path
	return &out
}

// paths are the valid paths, for a user who typed another. It does not list the hosts: they are not
// public.
func (all routes) paths() string {
	var some []string
	for _, u := range all {
		if u.Host == "" && u.Path != "" {
			some = append(some, u.Path+"/…")
		}
	}
	return text.Some(some, 10)
}
