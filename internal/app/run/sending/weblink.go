package sending

import (
	"slices"
	"strings"
)

// nextLink returns the target of the first link to the next page in Link fields (RFC 8288); empty:
// there is none. Links with an anchor are passed over, since they do not start from this page.
// After a place that cannot be read, it gives up the rest of the field.
func nextLink(fields []string) string {
	for _, field := range fields {
		rest := field
		for {
			var l weblink
			var ok bool
			if l, rest, ok = cutLink(rest); !ok {
				break
			}
			if !l.anchored && slices.ContainsFunc(strings.Fields(l.rel),
				func(r string) bool { return strings.EqualFold(r, "next") }) {
				return l.target
			}
		}
	}
	return ""
}

// weblink has the needed parts of a link.
type weblink struct {
	target, rel string
	related     bool // the link has a rel; only its first one counts
	anchored    bool
}

const linkSpace = " \t"

// cutLink reads the first link of a field, and returns the rest. It has the form <target>;
// name=value; name="value", …
func cutLink(s string) (l weblink, rest string, ok bool) {
	s = strings.TrimLeft(s, linkSpace+",")
	if s == "" || s[0] != '<' {
		return l, "", false
	}
	target, s, ok := strings.Cut(s[1:], ">")
	if !ok {
		return l, "", false
	}
	l.target = strings.Trim(target, linkSpace)
	for {
		s = strings.TrimLeft(s, linkSpace)
		if s == "" || s[0] == ',' {
			return l, s, true
		}
		if s[0] != ';' {
			return l, "", false
		}
		var name, value string
		name, value, s = cutParam(s[1:])
		switch strings.ToLower(name) {
		case "rel":
			if !l.related {
				l.rel, l.related = value, true
			}
		case "anchor":
			l.anchored = true
		}
	}
}

// cutParam reads a parameter of a link, and returns the rest. The value may be in quotes, where a
// backslash escapes a character.
func cutParam(s string) (name, value, rest string) {
	s = strings.TrimLeft(s, linkSpace)
	n := strings.IndexAny(s, "=;,"+linkSpace)
	if n < 0 {
		return s, "", ""
	}
	name, s = s[:n], strings.TrimLeft(s[n:], linkSpace)
	if s == "" || s[0] != '=' {
		return name, "", s
	}
	s = strings.TrimLeft(s[1:], linkSpace)
	if s == "" || s[0] != '"' {
		if n = strings.IndexAny(s, ";,"+linkSpace); n < 0 {
			return name, s, ""
		}
		return name, s[:n], s[n:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return name, b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return name, b.String(), ""
}
