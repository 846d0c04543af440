package text

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	for _, c := range []struct{ in, text, lines string }{
		{"", "", ""},
		{"GET /a?b=ü 日本 👩‍🔬 [A] \\x1b", "GET /a?b=ü 日本 👩‍🔬 [A] \\x1b", "GET /a?b=ü 日本 👩‍🔬 [A] \\x1b"},
		{"\x1b]0;mine\x07", `\x1b]0;mine\x07`, `\x1b]0;mine\x07`},
		{"\x1b[2J\x1b[31mred", `\x1b[2J\x1b[31mred`, `\x1b[2J\x1b[31mred`},
		{"one\ntwo\tthree\r", `one\ntwo\tthree\r`, "one\ntwo\tthree\\r"},
		{"\u009b31m \u0085", `\x9b31m \x85`, `\x9b31m \x85`},
		{"\x9b31m", `\x9b31m`, `\x9b31m`},
		{"del \x7f, nul \x00", `del \x7f, nul \x00`, `del \x7f, nul \x00`},
		{"user\u202etxt.exe\u2066\u2069\u200e\u200f\u061c", `user\u202etxt.exe\u2066\u2069\u200e\u200f\u061c`, `user\u202etxt.exe\u2066\u2069\u200e\u200f\u061c`},
		{"a\u2028b\u2029c\ufeff\u00ad\u200b", `a\u2028b\u2029c\ufeff\xad\u200b`, `a\u2028b\u2029c\ufeff\xad\u200b`},
		{"\U000e0041 \U0010ffff \ufffd", `\U000e0041 \U0010ffff ` + "\ufffd", `\U000e0041 \U0010ffff ` + "\ufffd"},
	} {
		if got := Sanitize(c.in); got != c.text {
			t.Errorf("%q: %s, want %s", c.in, got, c.text)
		}
		if got := SanitizeLines(c.in); got != c.lines {
			t.Errorf("%q: %q, want %q", c.in, got, c.lines)
		}
	}
}

// Nothing that a terminal obeys comes out, what is harmless stays as it is, and JSON says the same as before.
func FuzzShown(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[1m\u009b\u202e\x00\xff\n", "{\"a\":\"\u009b\U000e0041\"}", `"\u001b"`, "[\n\t\"\x7f\"]"} {
		f.Add(s)
	}
	obeyed := func(s, but string) bool {
		return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
			return !strconv.IsGraphic(r) && r != joiner && !strings.ContainsRune(but, r)
		})
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, lines := Sanitize(s), SanitizeLines(s)
		if obeyed(text, "") || obeyed(lines, "\n\t") {
			t.Errorf("%q becomes %q and %q", s, text, lines)
		}
		if !obeyed(s, "") && (text != s || lines != s) {
			t.Errorf("%q is harmless and becomes %q and %q", s, text, lines)
		}
		if !json.Valid([]byte(s)) || !utf8.ValidString(s) {
			return
		}
		var was, is any
		got := SanitizeJSON([]byte(s))
		if err := json.Unmarshal(got, &is); err != nil || obeyed(string(got), "\n\t\r") {
			t.Fatalf("%q becomes %q: %v", s, got, err)
		}
		_ = json.Unmarshal([]byte(s), &was)
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		if string(a) != string(b) {
			t.Errorf("%q says %s, and as shown %s", s, a, b)
		}
	})
}
