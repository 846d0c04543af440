package durable

import (
	"fmt"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{"order-17", "order-17"},
		{"ann@example.com", "ann@example.com"},
		{"John Smith", "John Smith+h"},
		{"john smith", "john smith"},
		{"ORDER-17", "ORDER-17+v"},
		{"az09", "az09"},
		{"AZ", "AZ+3"},
		{"order-17+x", "order-17%2bx"},
		{"a/b\\c", "a%2fb%5cc"},
		{"../../etc/passwd", "%2e.%2f..%2fetc%2fpasswd"},
		{".", "%2e"},
		{"..", "%2e%2e"},
		{".hidden", "%2ehidden"},
		{"-rf", "%2drf"},
		{" a ", "%20a%20"},
		{"con", "%63on"},
		{"Con", "%43on"},
		{"con.txt", "%63on.txt"},
		{"LPT1", "%4cPT1+3"},
		{"com", "com"},
		{"com10", "com10"},
		{"results", "%72esults"},
		{"results.dead", "%72esults.dead"},
		{"Results.dead", "%52esults.dead"},
		{"müller", "m%c3%bcller"},
		{"a\x00\n\xff", "a%00%0a%ff"},
		{"100%", "100%25"},
	} {
		if got := FileName(c.id, "results"); got != c.want {
			t.Errorf("%q is %q, want %q", c.id, got, c.want)
		}
	}
	long := strings.Repeat("long/", 100)
	if a, b := FileName(long), FileName(long+"x"); len(a) > longestName || !strings.HasPrefix(a, "long%2flong") || a == b {
		t.Errorf("%s\n%s", a, b)
	}
	// A cut name does not end within the %xx of a byte, and keeps as much as fits.
	for before, want := range map[int]string{116: "%2fl", 117: "%2f", 118: "", 119: "", 120: ""} {
		want = strings.Repeat("a", before) + want
		if begin, _, cut := strings.Cut(FileName(strings.Repeat("a", before)+"/"+long), "++"); !cut || begin != want {
			t.Errorf("%d bytes and another begin as %s, want %s", before, begin, want)
		}
	}
}

// idOf reads a name by the comment at Of. False: the name has only a part of the id.
func idOf(t *testing.T, name string) (string, bool) {
	body, tail, isMarked := strings.Cut(name, "+")
	if isMarked && strings.HasPrefix(tail, "+") {
		return "", false
	}
	var b []byte
	letter := 0
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == '%':
			var n byte
			if _, err := fmt.Sscanf(body[i+1:i+3], "%02x", &n); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			c, i = n, i+2
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			c |= 0x20
			if at := letter / 5; at < len(tail) && strings.IndexByte(base32Digits, tail[at])>>(letter%5)&1 == 1 {
				c &^= 0x20
			}
			letter++
		}
		b = append(b, c)
	}
	return string(b), true
}

// A name is safe. A reader without a difference between upper and lower case finds the id again, so
// no two ids share a name. Two ids with too long names have different names.
func FuzzOf(f *testing.F) {
	for _, s := range []string{"a", "A", "con", "aux.json", "..", "x y ", "ann+1@Example.com", "results.dead", "ﬀ", strings.Repeat("Ab/", 90), strings.Repeat("a", 200), strings.Repeat("A", 200)} {
		f.Add(s, strings.ToLower(s))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" || len(a) > 600 || len(b) > 600 {
			return
		}
		name := FileName(a, "results")
		if len(name) > longestName || name == "" || strings.Trim(name, ". ") != name || name[0] == '-' {
			t.Fatalf("%q is %q", a, name)
		}
		for _, c := range []byte(name) {
			if c < ' ' || c > '~' || strings.IndexByte(`/\:*?"<>|'~`+"`$!;&()[]{}^#", c) >= 0 {
				t.Fatalf("%q is %q, with %q", a, name, c)
			}
		}
		base, _, _ := strings.Cut(strings.ToLower(name), ".")
		switch strings.TrimRight(base, " ") {
		case "con", "prn", "aux", "nul", "com0", "com1", "com9", "lpt0", "lpt1", "lpt9", "results":
			t.Fatalf("%q is %q, which is reserved", a, name)
		}
		if id, isWhole := idOf(t, strings.ToLower(name)); isWhole && id != a {
			t.Fatalf("%q is %q, which is read as %q", a, name, id)
		}
		if a != b && strings.EqualFold(name, FileName(b, "results")) {
			t.Fatalf("%q and %q share %q", a, b, name)
		}
	})
}

func TestEnding(t *testing.T) {
	for _, c := range []struct{ of, want string }{
		{"application/json", ".json"},
		{"Application/JSON; charset=utf-8", ".json"},
		{"application/problem+json", ".json"},
		{"text/html; charset=utf-8", ".html"},
		{"text/csv; header=present", ".csv"},
		{"text/plain", ".txt"},
		{"text/x-whatever", ".txt"},
		{"application/pdf", ".pdf"},
		{"application/atom+xml", ".xml"},
		{"application/octet-stream", ".bin"},
		{"application/json; charset", ".json"},
		{"../../../../x", ".bin"},
		{"", ".bin"},
	} {
		if got := FileEnding(c.of); got != c.want {
			t.Errorf("%q is %s, want %s", c.of, got, c.want)
		}
	}
	for media, e := range fileEndings {
		if len(e) < 2 || len(e) > 8 || e[0] != '.' || strings.Trim(e[1:], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("%s: %q", media, e)
		}
	}
}
