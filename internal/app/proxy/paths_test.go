package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
)

// A limit of a route holds for every path that some server takes for the route, and for no other.
func TestRouteLimitsHold(t *testing.T) {
	served := 0
	conf := to(upstreamOf(t, func(http.ResponseWriter, *http.Request) { served++ }))
	conf.MaxWait = -1
	conf.Upstreams[0].Limits = limitsOf("1/h")
	conf.Upstreams[0].Limits[0].Scope, conf.Upstreams[0].Limits[0].Only = provider.Route, "GET /v1/Search"
	x := start(t, conf)
	if resp, body := x.do("GET", "/v1/search", ""); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	for _, target := range []string{
		"GET /v1/search", "GET /v1/search?q=x", "GET //v1//search", "GET /v1/search/", "GET /v1%2fsearch", "GET /v1/./search", "GET /v1/x/../search", "GET /v1/SEARCH", "GET /v1/se%61rch",
		"GET /v1/se%2561rch", "GET /v1%252fsearch", "GET /v1\\search", "GET /v1%5csearch", "GET /v1/search;a=b", "GET /v1;x/search", "GET /v1/search%20", "GET /v1/search.", "GET /v1/search%09", "GET /v1/search%00",
		"GET /v1/%ef%bd%93earch", "HEAD /v1/search", "get /v1/search", "GET /v1/search%3fq", "GET /v1/search%23", "GET /v1/sear%c3%88/../search", "GET ///v1/search", "GET /v1/search//",
	} {
		before := served
		got := x.raw(target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if served != before || !strings.HasPrefix(got, "HTTP/1.1 429 ") && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%s: %.60q, served %d", target, got, served-before)
		}
	}
	for _, target := range []string{"POST /v1/search", "GET /v1/search/more", "GET /v1/research", "GET /v2/search", "GET /v1/search.json", "GET /v1/s.earch", "GET /v1"} {
		if got := x.raw(target + " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: %.60q", target, got)
		}
	}
}

// A path that may be one of another upstream is refused: its limits could be passed by it.
func TestPathsAside(t *testing.T) {
	named := func(name string) *url.URL {
		return upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Is", name) })
	}
	conf := Config{Upstreams: []Upstream{{Name: "search", Path: "/Search", To: named("search")}, {Name: "rest", To: named("rest")}, {Name: "inner", Path: "/Search/inner", To: named("inner")}}}
	x := start(t, conf)
	for path, want := range map[string]string{
		"/Search": "search", "/Search/": "search", "/Search//x": "search", "/Search/X": "search", "/other": "rest", "/Other//": "rest", "/Search/inner": "inner", "/Search/inner/x/": "inner",
		"/search": "", "//Search": "", "/Search%2finner": "", "/Search//inner": "", "/Search/INNER": "", "/SEARCH/x": "", "/%53earch;x": "", "/Search/inner%20/x": "",
	} {
		got := x.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if want == "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") || want != "" && !strings.Contains(got, "X-Is: "+want) {
			t.Errorf("%s: %.100q, expected %q", path, got, want)
		}
	}
}

// What is not refused leads out of no folder, however often it is decoded, and its route is the
// same if it is found again.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{"/a/../b", "/..;/x", "/%2e%2e/", "/..%09", "/%252e", "/a%c0%aeb", "/．．/", "//A//", "/x.;y", "/a%", "/%25%32%65%25%32%65/"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI("/" + raw)
		if err != nil {
			return
		}
		route := folded(u.Path)
		if again := folded(route); again != route && !strings.Contains(route, "%") {
			t.Errorf("%q is %q, and that is %q", u.Path, route, again)
		}
		if badPathIn(u.Path) != "" {
			return
		}
		for path, n := u.Path, 0; n < decodings; n++ {
			for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
				segment, _, _ = strings.Cut(segment, ";")
				if segment = strings.TrimSpace(segment); segment == ".." || segment == "." {
					t.Errorf("%q is taken, and is %q", u.Path, path)
				}
			}
			next, err := url.PathUnescape(path)
			if err != nil {
				return
			}
			path = next
		}
	})
}
