package secret

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Place is a server that may get keys. The zero value is no server.
type Place struct {
	scheme string // empty: http or https
	host   string // in lower case
	port   string // empty: that of the scheme
}

// ParsePlace reads HOST, HOST:PORT or http(s)://HOST:PORT. Without a port it means the port of the
// scheme, without a scheme both schemes.
func ParsePlace(s string) (Place, error) {
	text := s
	if !strings.Contains(s, "://") {
		text = "//" + s
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil || u.Path != "" || u.RawQuery != "" ||
		u.Fragment != "" || strings.HasSuffix(u.Host, ":") || strings.Count(u.Host, ":") > 1 && u.Host[0] != '[' ||
		strings.ContainsAny(u.Host, "* ") {
		return Place{}, fmt.Errorf("%q, expected HOST, HOST:PORT, or https:// and one of them", s)
	}
	return Place{u.Scheme, hostOf(u), u.Port()}, nil
}

// Host returns the name or the address of the place, without its port.
func (p Place) Host() string { return p.host }

// IsLoopback reports whether the place is on this machine.
func (p Place) IsLoopback() bool { return p.host == "localhost" || net.ParseIP(p.host).IsLoopback() }

// PlaceOf returns the place of a URL that has a scheme and a host.
func PlaceOf(u *url.URL) Place { return Place{u.Scheme, hostOf(u), portOf(u)} }

// String returns the place as ParsePlace reads it.
func (p Place) String() string {
	s := p.host
	if p.port != "" && p.port != ports[p.scheme] {
		s = net.JoinHostPort(p.host, p.port)
	} else if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	if p.scheme != "" {
		s = p.scheme + "://" + s
	}
	return s
}

var ports = map[string]string{"http": "80", "https": "443"}

func hostOf(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return ports[u.Scheme]
}

// is reports whether a URL leads to the place. A place with plain http includes the same host over
// https, which no third party can read.
func (p Place) is(u *url.URL) bool {
	port := portOf(u)
	switch {
	case p.host == "" || p.host != hostOf(u):
		return false
	case p.scheme == "http" && u.Scheme == "https":
		return (p.port == "" || p.port == "80") && port == "443"
	case p.scheme != "" && p.scheme != u.Scheme:
		return false
	case p.port == "":
		return port == ports[u.Scheme]
	}
	return p.port == port
}

// Places are all servers that may get keys.
type Places []Place

// Have reports whether a URL leads to one of the places.
func (all Places) Have(u *url.URL) bool {
	return slices.ContainsFunc(all, func(p Place) bool { return p.is(u) })
}

// Keep reports whether keys may follow a redirect. A redirect from https to http needs a place with
// http.
func (all Places) Keep(from, to *url.URL) bool {
	if from.Scheme == "https" && to.Scheme == "http" {
		return slices.ContainsFunc(all, func(p Place) bool { return p.scheme == "http" && p.is(to) })
	}
	return all.Have(to)
}

func (all Places) String() string {
	var names []string
	for _, p := range all {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// StaysHome reports whether a header field must stay with the server that it was meant for. The
// reason is its name, or a key's value in it.
func (s *Set) StaysHome(name, value string) bool {
	return PrivateField(name) || s.has(value)
}

// has reports whether a field or parameter has the value of a key. A value that is easy to guess
// must be the whole text, or its last word.
func (s *Set) has(value string) bool {
	if _, found := s.Holds(value); found {
		return true
	}
	return slices.ContainsFunc(s.weak, func(k Key) bool {
		return value == k.Value || strings.HasSuffix(value, " "+k.Value)
	})
}

// WithoutKeys returns a raw query without the parameters that have a key's value.
func (s *Set) WithoutKeys(query string) string {
	if query == "" {
		return query
	}
	parts := strings.Split(query, "&")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(value)
		return s.has(name) || s.has(value) || err == nil && s.has(plain)
	}), "&")
}
