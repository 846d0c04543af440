package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// Answers name other addresses of their server: the next page, the place of what was made, where a
// request should go instead. A client that follows one as it is leaves the proxy and its limits. So
// those in header fields lead here, too.

// linkFields are fields with one URL.
var linkFields = [...]string{"Location", "Content-Location"}

// lead changes the addresses of the upstream in the fields of an answer to those of the proxy, as
// this client knows it.
func (v *visit) lead(h http.Header) {
	signed := h.Get("Signature-Input") != "" // it may cover these fields (RFC 9421)
	if v.whole || v.upstream.KeepLinks || v.in.Host == "" || signed {
		return
	}
	for _, name := range linkFields {
		if old := h.Get(name); old != "" {
			if here, ok := v.here(old); ok {
				h.Set(name, here)
			}
		}
	}
	for i, old := range h["Link"] {
		h["Link"][i] = v.leadLinks(old)
	}
}

// here returns the address at the proxy of a URL of the upstream. It reports false for all others,
// and for a reference that a client resolves rightly.
func (v *visit) here(ref string) (string, bool) {
	u, err := url.Parse(ref)
	to := v.upstream.To
	if err != nil || u.Opaque != "" || u.User != nil {
		return "", false
	}
	switch {
	case u.Host != "":
		scheme := u.Scheme
		if scheme == "" {
			scheme = to.Scheme // //host/path
		}
		if scheme != to.Scheme || hostname(u.Host) != hostname(to.Host) || portOr(u, scheme) != portOf(to) {
			return "", false
		}
	case u.Scheme != "" || !strings.HasPrefix(u.Path, "/") || v.upstream.Path == "" && strings.Trim(to.Path, "/") == "":
		return "", false
	}
	folder := strings.TrimSuffix(to.EscapedPath(), "/")
	rest, ok := strings.CutPrefix(u.EscapedPath(), folder)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false // nothing of the proxy leads there
	}
	here := v.upstream.Path + rest
	if here == "" {
		here = "/"
	}
	if strings.HasPrefix(here, "//") {
		return "", false // it would name a host
	}
	if u.Host != "" {
		scheme := "http"
		if v.in.TLS != nil {
			scheme = "https"
		}
		here = scheme + "://" + v.in.Host + here
	}
	if u.RawQuery != "" || u.ForceQuery {
		here += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		here += "#" + u.EscapedFragment()
	}
	return here, true
}

// portOr is portOf, of a URL whose scheme may be missing.
func portOr(u *url.URL, scheme string) string {
	if p := u.Port(); p != "" {
		return p
	}
	return standardPort[scheme]
}

// leadLinks does it within a Link field: <URL>; rel="next", <URL>; rel="last" (RFC 8288). All else
// stays as it is.
func (v *visit) leadLinks(field string) string {
	var b strings.Builder
	for rest := field; ; {
		i := strings.IndexAny(rest, `<"`)
		if i < 0 {
			return b.String() + rest
		}
		b.WriteString(rest[:i+1])
		open := rest[i]
		rest = rest[i+1:]
		if open == '"' { // a parameter, which may have anything in it
			end := endOfQuoted(rest)
			b.WriteString(rest[:end])
			rest = rest[end:]
			continue
		}
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return field
		}
		ref := rest[:end]
		if here, ok := v.here(strings.TrimSpace(ref)); ok {
			ref = here
		}
		b.WriteString(ref)
		rest = rest[end:]
	}
}

// endOfQuoted is the place after the quote that ends a quoted string, or the end.
func endOfQuoted(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
