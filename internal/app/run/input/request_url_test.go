package input

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A URL that is none for a reason that nobody sees, or would not think of, is named as such.
func TestOddURLs(t *testing.T) {
	for text, want := range map[string]string{
		"\u200bhttp://a.test/":        "has a zero-width space (U+200B) at its beginning; expected the URL without it",
		"\ufeff\ufeffhttps://a.test/": "has a byte order mark (U+FEFF) at its beginning; expected the URL without it",
		"http://a.test/x\u200b":       "has a zero-width space (U+200B) after its first 15 bytes; expected the URL without it",
		"http://a.test/x\u00a0":       "has a no-break space (U+00A0) after its first 15 bytes; expected the URL without it",
		"http://a\u00ad.test/x":       "has a soft hyphen (U+00AD) after its first 8 bytes; expected the URL without it",
		"\u200ehttp://a.test/":        "has an invisible character (U+200E) at its beginning; expected the URL without it",
		"http://a.test/\u200d":        "has an invisible character (U+200D) after its first 14 bytes; expected the URL without it",
		"\u2060a.test/x":              "has an invisible character (U+2060) at its beginning; expected the URL without it",
		"a.test":                      "does not begin with http:// or https://; expected one of them in front of it",
		"www.a.test/x?y=z":            "does not begin with http:// or https://; expected one of them in front of it",
		"localhost/x":                 "does not begin with http:// or https://; expected one of them in front of it",
		"a:8080/x":                    "does not begin with http:// or https://; expected one of them in front of it",
		"10.0.0.1/x":                  "does not begin with http:// or https://; expected one of them in front of it",
		"me:pass@a.test/x":            "does not begin with http:// or https://; expected one of them in front of it",
		"ünï.test/x":                  "does not begin with http:// or https://; expected one of them in front of it",
		"//a.test/x":                  "begins with //; expected http:// or https://",
		"http:/a.test":                `has "/" after http:, expected //`,
		"HTTPS:a.test":                `has "" after HTTPS:, expected //`,
		"<https://a.test>":            "begins with <; expected the URL alone",
		"“https://a.test”":            "begins with “; expected the URL alone",
		`"https://a.test"`:            `begins with "; expected the URL alone`,
		"http://a.test/x":             "",
		"https://a.test/ü?q=日本":       "",
		"http://a.test/\u06cc\u200c\u06a9?e=👨\u200d👩": "", // words of Persian, and a family
		"ftp://a.test/x": "", // its error is another
		"me@a.test":      "",
		"1.5":            "",
		"1.2.3.4.5":      "", // a version
		"a word":         "",
		"":               "",
	} {
		if got := oddURL(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

// What no query can have is escaped when it is sent, and a user as curl takes it.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"http://a.test/?q=ü", "https://me:p^w%2@a.test/x", "http://me:p/w@a.test", "me:p@a.test/", "\u200bhttp://a/", "http://a:b@[::1]:80/?api_key=x", "http://%zz@/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const secret = "q7Zr4Lx2Vb8Nm1Tk6Yp3"
		u, reason := ParseURL(text, true)
		if (u == nil) == (reason == "") {
			t.Fatalf("%q: %v and %q", text, u, reason)
		}
		if u != nil && (u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.Fragment != "") {
			t.Fatalf("%q is taken as %q", text, u)
		}
		// A password is in no reason, whatever is behind it.
		if at := strings.Index(text, "@"); at >= 0 && utf8.ValidString(text) {
			scheme, rest, ok := strings.Cut(text[:at], "://")
			if !ok || strings.ContainsAny(rest, "/?#") || strings.ContainsAny(scheme, "/?#@:") {
				return
			}
			_, reason := ParseURL(scheme+"://me:"+secret+text[at:], true)
			if strings.Contains(reason, secret[:8]) {
				t.Fatalf("%q: %s", text, reason)
			}
		}
	})
}
