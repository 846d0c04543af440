package input

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/secret"
)

// ParseURL reads the URL of a request, or returns the mistake in it. The reason quotes the URL
// without its secrets, or nothing of it if quote is false.
//
// As curl does, it takes characters of a user and a password as they are where they should have
// been escaped.
func ParseURL(text string, quote bool) (u *url.URL, reason string) {
	if u = PlainURL(text); u != nil {
		return u, ""
	}
	return parseURL(text, quote)
}

// parseURL is ParseURL for any URL.
func parseURL(text string, quote bool) (u *url.URL, reason string) {
	shown := func() string { // for a mistake alone: most lines have none
		if !quote {
			return ""
		}
		return shortJSON(secret.SanitizeURL(text))
	}
	if what := oddURL(text); what != "" {
		return nil, strings.TrimSpace(shown() + " " + what)
	}
	const expected = ", expected an absolute http or https URL"
	u, err := url.Parse(escapeUser(text))
	switch {
	case err != nil && !quote:
		return nil, "that is none" + expected
	case err != nil && strings.Contains(text, "@"): // the error may quote a part of a password
		return nil, shown() + ": it is no URL; expected %40, %2F, %3F and %23 for @, /, ? and # in a user or a password"
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Sprintf("%s: %v%s", shown(), err, expected)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return nil, shown() + expected + " with a host"
	}
	for i := range len(u.RawQuery) {
		if c := u.RawQuery[i]; c <= ' ' || c == 0x7f {
			return nil, fmt.Sprintf("%s has %q in its query, expected it escaped", shown(), c)
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, ""
}

// shortJSON quotes a text as JSON does, and shortens it.
func shortJSON(text string) string { return ValueAt("", 0, 0, []byte(quoteJSON(text))).String() }

// isURL says whether a text begins as an absolute URL does.
func isURL(s string) bool {
	head := strings.ToLower(s[:min(len(s), len("https://"))])
	return strings.HasPrefix(head, "http://") || head == "https://"
}

// notURL says why a text begins as no URL does. or is the reason if nothing is odd about it.
func notURL(what, text, or string) string {
	if odd := oddURL(text); odd != "" {
		return what + odd
	}
	return or
}

// oddURL names what makes a text no URL where a reader does not see it, or would not think of it.
// It is empty if there is nothing of that kind.
func oddURL(s string) string {
	if isURL(s) && !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return ""
	}
	for at, r := range s {
		if name := invisible(r); name != "" && (!joins(r) || at == 0 || at+utf8.RuneLen(r) == len(s)) {
			where := fmt.Sprintf("after its first %d bytes", at)
			if at == 0 {
				where = "at its beginning"
			}
			return fmt.Sprintf("has %s (U+%04X) %s; expected the URL without it", name, r, where)
		}
	}
	if isURL(s) {
		return ""
	}
	if first, _ := utf8.DecodeRuneInString(s); strings.ContainsRune("\"'<`“”‘’«(", first) &&
		isURL(s[utf8.RuneLen(first):]) {
		return fmt.Sprintf("begins with %c; expected the URL alone", first)
	}
	scheme, rest, ok := strings.Cut(s, ":")
	switch low := strings.ToLower(scheme); {
	case strings.HasPrefix(s, "//"):
		return "begins with //; expected http:// or https://"
	case ok && (low == "http" || low == "https"):
		return fmt.Sprintf("has %q after %s:, expected //", rest[:len(rest)-len(strings.TrimLeft(rest, "/"))], scheme)
	case isHost(s):
		return "does not begin with http:// or https://; expected one of them in front of it"
	}
	return ""
}

// isHost says whether a text begins as a URL does without its scheme: the name of a host or an
// address of IPv4, or a name with a port.
func isHost(s string) bool {
	host := s
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		host = s[:i]
	}
	at := strings.LastIndexByte(host, '@')
	if at >= 0 && (len(host) == len(s) || strings.ContainsAny(host, " \t")) {
		return false // an address of mail
	}
	host = host[at+1:]
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && (port == "" || strings.Trim(port, "0123456789") != "") || name == "" ||
		strings.ContainsFunc(name, notInHost) {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	last, _ := utf8.DecodeRuneInString(labels[len(labels)-1])
	const ipv4 = 4
	switch {
	case hasPort || strings.EqualFold(name, "localhost"):
		return true
	case len(labels) < 2:
		return false
	}
	return unicode.IsLetter(last) || len(labels) == ipv4
}

func notInHost(r rune) bool {
	return r != '.' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// invisible names a character that shows nothing, or only a space. The plain space has its own
// error.
func invisible(r rune) string {
	switch r {
	case '\u200b':
		return "a zero-width space"
	case '\ufeff':
		return "a byte order mark"
	case '\u00a0':
		return "a no-break space"
	case '\u00ad':
		return "a soft hyphen"
	}
	if r >= utf8.RuneSelf && (unicode.Is(unicode.Cf, r) || unicode.IsSpace(r)) {
		return "an invisible character"
	}
	return ""
}

// joins reports whether a character joins or parts its neighbours, as in words of Persian and in
// emoji. Within a URL it may be meant.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// escapeUser returns a URL whose user and password have no character that a URL cannot have.
func escapeUser(s string) string {
	begin := strings.Index(s, "://") + len("://")
	if begin < len("://") || !strings.Contains(s, "@") {
		return s
	}
	end := len(s)
	if i := strings.IndexAny(s[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	at := strings.LastIndexByte(s[begin:end], '@')
	if at < 0 {
		return s
	}
	user := s[begin : begin+at]
	var b strings.Builder
	for i := range len(user) {
		c := user[i]
		isHex := c == '%' && i+2 < len(user) && isHexDigit(user[i+1]) && isHexDigit(user[i+2])
		if isHex || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~!$&'()*+,;=:", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return s[:begin] + b.String() + s[begin+at:]
}

func isHexDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }
