package secret

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// ErrAddress means that a text cannot be read as an address. It quotes nothing, since nobody knows
// which part of the text is a password.
var ErrAddress = errors.New("the address is no URL: in a name or a password @ is %40, / is %2F, ? is %3F, # is %23 " +
	"and % is %25, and other signs likewise")

// ErrScheme means that an address has no scheme.
var ErrScheme = errors.New("http:// or https:// is missing in front")

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isBare reports whether a text is an address without a scheme, such as localhost:9999 or example.com/v1. No part
// of it can be a password.
func isBare(text string) bool {
	authority, path, _ := strings.Cut(text, "/")
	host, port, _ := strings.Cut(authority, ":")
	return (host == "localhost" || strings.Contains(host, ".")) && strings.Trim(host, alphanumeric+".-") == "" &&
		strings.Trim(port, "0123456789") == "" && strings.Trim(path, alphanumeric+"./_-") == ""
}

// ParseAddress reads the URL of a server, a store or a proxy: SCHEME://USER:PASSWORD@HOST/PATH.
// HOST may be a list with commas, or the folder of a socket (%2Frun), as PostgreSQL has both. A
// text that has an @ elsewhere is refused, since what stands before that @ may be a part of a
// password. The error is ErrAddress, or ErrScheme.
func ParseAddress(text string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok && text != "" && (isBare(text) || isWord(text)) {
		return nil, ErrScheme
	}
	authority, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, after = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.IndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	if !ok || strings.Contains(hosts, "@") || strings.Contains(after, "@") {
		return nil, ErrAddress
	}
	var first *url.URL
	for host := range strings.SplitSeq(hosts, ",") { // net/url reads one, and no folder
		if strings.HasPrefix(host, "%") {
			host = "folder"
		}
		u, err := url.Parse(scheme + "://" + user + host + after)
		if err != nil || (u.Host != "") != (host != "") || (u.User != nil) != (user != "") {
			return nil, ErrAddress
		}
		if first == nil {
			first = u
		}
	}
	var err error
	if first.Host, err = url.PathUnescape(hosts); err != nil {
		return nil, ErrAddress
	}
	return first, nil
}

// SanitizeAddress returns a text that is meant as an address, for people: without its password, and
// without a name that stands alone, which may be one. PostgreSQL's names are shown, since they need
// no password. Of a text that ParseAddress refuses it returns the scheme alone, as in redis:…, or
// the text itself where that is a word.
func SanitizeAddress(text string) string {
	text = strings.TrimSpace(text)
	if u, err := ParseAddress(text); err == nil {
		return sanitized(u)
	}
	if text != "" && isWord(text) {
		return text
	}
	if isBare(text) {
		return withoutTokens(text)
	}
	if scheme, _, ok := strings.Cut(text, ":"); ok && slices.Contains(schemes, strings.ToLower(scheme)) {
		return scheme + ":…"
	}
	return "…"
}

// isWord reports whether a text has no sign of an address, and so none of a password in one.
func isWord(text string) bool { return !strings.ContainsAny(text, ":@=") }

// schemes are words that are surely no part of a password.
var schemes = []string{"http", "https", "h2c", "socks5", "socks5h", "postgres", "postgresql", "redis", "rediss",
	"unix", "sqlite"}

func sanitized(u *url.URL) string {
	v := *u
	v.User, v.Fragment, v.RawFragment = nil, "", ""
	if strings.HasPrefix(u.Scheme, "http") {
		v.Path, v.RawPath = withoutTokens(u.Path), ""
	}
	if v.RawQuery, _ = SanitizeQuery(u.RawQuery, nil); v.RawQuery != "" && !strings.Contains(v.RawQuery, "=") &&
		!strings.HasPrefix(u.Scheme, "http") {
		v.RawQuery = hidden // a word alone may be the end of a password
	}
	if u.User == nil {
		return v.String()
	}
	name := u.User.Username()
	password, with := u.User.Password()
	switch {
	case with && (password != "" || name == ""):
		v.User = url.UserPassword(name, hidden)
	case !with && strings.HasPrefix(u.Scheme, "postgres"):
		v.User = url.User(name)
	default:
		v.User = url.User(hidden)
	}
	return v.String()
}

// hidden is Hidden where a URL would escape that.
const hidden = "xxxxx"

// withoutTokens returns a path with xxxxx in place of each segment that is a token.
func withoutTokens(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if LooksRandom(segment) {
			segments[i] = hidden
		}
	}
	return strings.Join(segments, "/")
}
