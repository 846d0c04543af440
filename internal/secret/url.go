package secret

import (
	"net/url"
	"strings"
)

// Hidden stands in place of a secret that has no name.
const Hidden = "[hidden]"

// SanitizeURL returns a URL for people: without its user and password, and without the values of
// secret parameters. Of a text that is no URL it leaves out all that a user and a password can be:
// everything up to the last @.
func SanitizeURL(s string) string {
	begin := 0
	if i := strings.Index(s, "//"); i >= 0 {
		begin = i + len("//")
	}
	end := len(s)
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		if i := strings.IndexAny(s[begin:], "/?#"); i >= 0 {
			end = begin + i
		}
	}
	if at := strings.LastIndexByte(s[begin:end], '@'); at >= 0 {
		s = s[:begin] + Hidden + s[begin+at:]
	}
	before, query, ok := strings.Cut(s, "?")
	if !ok {
		return s
	}
	query, fragment, cut := strings.Cut(query, "#")
	shown, _ := SanitizeQuery(query, nil)
	if cut {
		shown += "#" + fragment
	}
	return before + "?" + shown
}

// SanitizeQuery returns a query or a form without the values of its secret parameters, and reports
// whether it has any. It calls found, unless that is nil, with the name and value of each.
func SanitizeQuery(raw string, found func(name, value string)) (shown string, some bool) {
	parts := strings.Split(raw, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		plainName, err := url.QueryUnescape(name)
		plain, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil {
			plainName, plain = name, value
		}
		if value != "" && PrivateParameter(plainName, plain) {
			if found != nil {
				found(plainName, plain)
			}
			parts[i], some = name+"="+Hidden, true
		}
	}
	return strings.Join(parts, "&"), some
}

// SanitizeURLs returns a text, such as the error of a request, in which each URL is that of
// SanitizeURL. It returns text itself if there is none.
func SanitizeURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	var b strings.Builder
	for {
		at := strings.Index(text, "://")
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		begin := at
		for begin > 0 && (text[begin-1]|0x20 >= 'a' && text[begin-1]|0x20 <= 'z' || text[begin-1] >= '0' &&
			text[begin-1] <= '9') {
			begin--
		}
		end := len(text)
		if i := strings.IndexAny(text[at:], " \t\r\n\"<>`"); i >= 0 {
			end = at + i
		}
		b.WriteString(text[:begin])
		b.WriteString(SanitizeURL(text[begin:end]))
		text = text[end:]
	}
}
