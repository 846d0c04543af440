package send

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// ASCIIQuery returns a raw query with all bytes beyond ASCII escaped, as browsers send it. If there
// are none, it returns raw itself.
func ASCIIQuery(raw string) string {
	if !strings.ContainsFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return raw
	}
	var b strings.Builder
	for i := range len(raw) {
		if c := raw[i]; c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Param is a parameter of a query, not escaped.
type Param struct{ Name, Value string }

// SetQuery sets parameters in a raw query. The others stay as they are written, in their order.
func SetQuery(raw string, all []Param) string {
	if len(all) == 0 {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if part == "" || err == nil && slices.ContainsFunc(all, func(p Param) bool { return p.Name == plain }) {
			continue
		}
		kept = append(kept, part)
	}
	for _, p := range all {
		kept = append(kept, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
	}
	return strings.Join(kept, "&")
}
