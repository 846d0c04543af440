package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// leading is a visit of http://here:7878 with an upstream in a folder of it.
func leading(t testing.TB, path, to string) *visit {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return &visit{upstream: &upstream{Upstream: Upstream{Path: path, To: u}}, in: httptest.NewRequest("GET", "http://here:7878"+path+"/x", nil)}
}

// Each line is an address that an answer names, and the one that the client gets.
func TestHere(t *testing.T) {
	for _, c := range []struct{ path, to, ref, want string }{
		{"", "https://api.github.com", "https://api.github.com/repos?page=2", "http://here:7878/repos?page=2"},
		{"", "https://api.github.com", "https://api.github.com:443/a%2Fb#c", "http://here:7878/a%2Fb#c"},
		{"", "https://api.github.com", "//api.github.com/a", "http://here:7878/a"},
		{"", "https://api.github.com", "https://API.GitHub.com", "http://here:7878/"},
		{"", "https://api.github.com", "http://api.github.com/a", ""},
		{"", "https://api.github.com", "https://github.com/a", ""},
		{"", "https://api.github.com", "https://api.github.com:8443/a", ""},
		{"", "https://api.github.com", "https://user@api.github.com/a", ""},
		{"", "https://api.github.com", "/a?b", ""},
		{"", "https://api.github.com", "a?b", ""},
		{"", "https://api.github.com", "mailto:x@api.github.com", ""},
		{"/gh", "https://api.github.com", "https://api.github.com/a", "http://here:7878/gh/a"},
		{"/gh", "https://api.github.com", "/a?b", "/gh/a?b"},
		{"/gh", "https://api.github.com", "a", ""},
		{"/ai", "https://x.com/v1", "https://x.com/v1/models?after=1", "http://here:7878/ai/models?after=1"},
		{"/ai", "https://x.com/v1", "/v1/models", "/ai/models"},
		{"/ai", "https://x.com/v1", "https://x.com/v2/models", ""},
		{"/ai", "https://x.com/v1", "https://x.com/v10", ""},
		{"", "https://x.com/v1", "/v1//evil.com/x", ""},
		{"", "https://x.com/v1", "https://x.com/v1//evil.com/x", ""},
		{"", "https://x.com/v1", "/v1?p=2", "/?p=2"},
		{"", "https://x.com/v1/", "https://x.com/v1/models", "http://here:7878/models"},
	} {
		got, ok := leading(t, c.path, c.to).here(c.ref)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s at %s, of %s: %q %v, want %q", c.path, c.to, c.ref, got, ok, c.want)
		}
	}
}

// The pages of a list, and redirects, stay at the proxy. So they keep to the limits.
func TestLinksLeadHere(t *testing.T) {
	var self *url.URL
	self = upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, self.String()+"/new", http.StatusMovedPermanently)
			return
		}
		w.Header().Add("Link", "<"+self.String()+`/items?page=2>; rel="next"; title="see <`+self.String()+`/no>", <`+self.String()+`/items?page=9>; rel="last"`)
		w.Header().Add("Link", `<https://elsewhere.example.com/a>; rel="help"`)
	})
	x := start(t, to(self, "100/s"))
	resp, _ := x.do("GET", "/items", "")
	want := "<" + x.url + `/items?page=2>; rel="next"; title="see <` + self.String() + `/no>", <` + x.url + `/items?page=9>; rel="last"`
	if got := resp.Header["Link"]; len(got) != 2 || got[0] != want || got[1] != `<https://elsewhere.example.com/a>; rel="help"` {
		t.Errorf("%q", got)
	}
	if resp, _ := x.do("GET", "/old", ""); resp.Header.Get("Location") != x.url+"/new" {
		t.Errorf("%q", resp.Header.Get("Location"))
	}
	c := to(self, "100/s")
	c.Upstreams[0].KeepLinks = true
	if resp, _ := start(t, c).do("GET", "/old", ""); resp.Header.Get("Location") != self.String()+"/new" {
		t.Errorf("%q", resp.Header.Get("Location"))
	}
}

// FuzzLeadLinks changes any Link field. Without an address of the upstream in angle brackets it
// stays as it is, byte by byte, and done twice is done once.
func FuzzLeadLinks(f *testing.F) {
	for _, s := range []string{`<https://api.x.com/a>; rel=next`, `<a>, "<b>", <`, `"\"<https://api.x.com/>"`, `<https://api.x.com/%zz>`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := leading(t, "", "https://api.x.com")
		once := v.leadLinks(s)
		if !strings.Contains(strings.ToLower(s), "api.x.com") && once != s {
			t.Errorf("%q: %q", s, once)
		}
		if twice := v.leadLinks(once); twice != once {
			t.Errorf("%q: %q, and then %q", s, once, twice)
		}
	})
}
