package secret

import (
	"strings"
	"testing"
)

// A URL is shown without what may be secret in it, also where it stands in an error.
func TestSanitizeURL(t *testing.T) {
	const key = "sk-7Qw9Zr4Lx2Vb8Nm1Tk6Yp3"
	for text, want := range map[string]string{
		"https://h.test/a?page=2":                         "https://h.test/a?page=2",
		"https://me:" + key + "@h.test/a":                 "https://[hidden]@h.test/a",
		"https://" + key + "@h.test:80/a?token=" + key:    "https://[hidden]@h.test:80/a?token=[hidden]",
		"https://h.test/@me?api_key=" + key + "&b#x":      "https://h.test/@me?api_key=[hidden]&b#x",
		"https://me:" + key + "/x@h.test/":                "https://[hidden]@h.test/",
		"https://me:" + key + "?x@h.test/":                "https://[hidden]@h.test/",
		"https://me:" + key + "@h:x/":                     "https://[hidden]@h:x/",
		"me:" + key + "@h.test/":                          "[hidden]@h.test/",
		"":                                                "",
		"https://h.test/?a%20b=c&secret=" + key + "#?x=@": "https://h.test/?a%20b=c&secret=[hidden]#?x=@",
	} {
		if got := SanitizeURL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"no URL": "no URL",
		`Get "https://h.test/?token=` + key + `": EOF`:           `Get "https://h.test/?token=[hidden]": EOF`,
		"a http://u:" + key + "@h b https://h/?key=x c":          "a http://[hidden]@h b https://h/?key=x c",
		"://x:" + key + "@h":                                     "://[hidden]@h",
		"proxyconnect tcp: dial http://a:" + key + "@h: refused": "proxyconnect tcp: dial http://[hidden]@h: refused",
	} {
		if got := SanitizeURLs(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// The names of members are found as InMembers reads them, and its answer is that of the names.
func FuzzInMembers(f *testing.F) {
	f.Add(`{"api_key":"x"}`, "api_key")
	f.Add(`{"a" : {"Token"`+"\n"+`: 5}}`, "Token")
	f.Fuzz(func(t *testing.T, text, name string) {
		InMembers([]byte(text))
		if strings.ContainsAny(name, "\"\\") || len(name) > 30 || !PrivateParameter(name, "3f9a1c07be5284d63f9a1c07be5284d6") {
			return
		}
		if !InMembers([]byte(text + `{"` + name + `": 1}`)) {
			t.Errorf("%q is not found", name)
		}
	})
}
