package provider_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
)

// ask makes a request of "GET /path?query".
func ask(t testing.TB, route string) *http.Request {
	t.Helper()
	method, target, _ := strings.Cut(route, " ")
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: method, URL: u}
}

func charges(t testing.TB, list ...provider.Charge) *provider.Charges {
	t.Helper()
	c, err := provider.NewCharges(list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The first charge that fits a request holds, whether its path has a * or not.
func TestChargesInOrder(t *testing.T) {
	c := charges(t,
		provider.Charge{On: "GET /depth?limit>1000", Resource: "dear"},
		provider.Charge{On: "GET *", Resource: "any {1}"},
		provider.Charge{On: "GET /depth", Resource: "never"},
		provider.Charge{On: "POST /depth", Resource: "post"},
		provider.Charge{On: "* /depth", Resource: "{method} rest"},
	)
	for route, want := range map[string]string{
		"GET /depth?limit=1001": "dear", "GET /depth?limit=1000": "any /depth", "GET /": "any /", "HEAD /depth?limit=5000": "dear",
		" /x": "any /x", "POST /depth": "post", "DELETE /depth": "DELETE rest", "POST /": "",
	} {
		charge, got := c.Of(ask(t, route))
		if got != want || (charge == nil) != (want == "") {
			t.Errorf("%s: %+v, %q, want %q", route, charge, got, want)
		}
	}
	if charge, name := (*provider.Charges)(nil).Of(ask(t, "GET /")); charge != nil || name != "" {
		t.Errorf("no charges at all: %v, %q", charge, name)
	}
}

// Conditions read the first value of a parameter, without its escapes.
func TestChargeConditions(t *testing.T) {
	for _, c := range []struct {
		on, query string
		fits      bool
	}{
		{"limit>1000", "limit=1001", true}, {"limit>1000", "limit=1000", false}, {"limit>1000", "", false}, {"limit>1000", "limit=", false},
		{"limit<10", "limit=9", true}, {"limit<10", "limit=-9", true}, {"limit<10", "a=1", false}, {"limit>5", "limit=3&limit=9", false},
		{"limit>5", "l%69mit=9", true}, {"limit>5", "limit=%39", true}, {"limit>5", "xlimit=9", false},
		{"symbols>1", "symbols=A", false}, {"symbols>1", "symbols=%5B%22A%22%2C%22B%22%5D", true}, {"symbols>2", `symbols=["A","B"]`, false},
		{"symbol=", "", true}, {"symbol=", "symbol=", true}, {"symbol=", "symbol=A", false}, {"symbol=", "symbols=A", true},
		{"type=lin*", "type=linear", true}, {"type=lin*", "type=spot", false}, {"a=1&b>2", "b=3&a=1", true}, {"a=1&b>2", "b=2&a=1", false},
		{"q=a*b", "q=a+b", true}, {"q=%", "q=%", true},
	} {
		list := charges(t, provider.Charge{On: "GET /x?" + c.on})
		if charge, _ := list.Of(&http.Request{Method: "GET", URL: &url.URL{Path: "/x", RawQuery: c.query}}); (charge != nil) != c.fits {
			t.Errorf("%s with %s: fits %t, want %t", c.on, c.query, charge != nil, c.fits)
		}
	}
}

// The name of a resource has parts of the request.
func TestChargeResources(t *testing.T) {
	for _, c := range []struct{ on, resource, route, want string }{
		{"GET *", "{method} {path} {query:instId}", "GET /books?instId=BTC-USDT", "GET /books BTC-USDT"},
		{"GET *", "{method} {path} {query:instId}", "GET /books", "GET /books"},
		{"GET *", "{query:q}", "GET /books?q=a%20b", "a b"},
		{"* */channels/*/messages*", "{2} of {1}{3}", "POST /api/v10/channels/77/messages/5", "77 of /api/v10/5"},
		{"* /channels/*", "channel {1}", "GET /channels/1/x", "channel 1/x"},
		{"* /a*b*", "{1}|{2}", "GET /aXbYbZ", "X|YbZ"},
		{"GET /projects/*", "{1}", "GET /projects/group%2Fname", "group%2Fname"},
		{"GET /x", "search", "GET /x", "search"},
		{"GET /x", "", "GET /x", ""},
	} {
		if _, got := charges(t, provider.Charge{On: c.on, Resource: c.resource}).Of(ask(t, c.route)); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.resource, c.route, got, c.want)
		}
	}
}

// An error names the charge, and what was expected in its place.
func TestChargeErrors(t *testing.T) {
	for _, c := range []struct {
		charge provider.Charge
		want   string
	}{
		{provider.Charge{}, `want a method and a path`},
		{provider.Charge{On: "GET"}, `want a method and a path`},
		{provider.Charge{On: "GET ?a=1"}, `want a method and a path`},
		{provider.Charge{On: "get /x"}, `the method "get"; want capital letters`},
		{provider.Charge{On: " /x"}, `the method ""`},
		{provider.Charge{On: "GET x"}, `the path "x"; want one that begins with / or *`},
		{provider.Charge{On: "GET /x y"}, `"/x y" has a space`},
		{provider.Charge{On: "GET /x#y"}, `has a space, a #`},
		{provider.Charge{On: "GET /x?"}, `the condition ""; want NAME=VALUE`},
		{provider.Charge{On: "GET /x?a"}, `the condition "a"; want NAME=VALUE`},
		{provider.Charge{On: "GET /x?=1"}, `the condition "=1"`},
		{provider.Charge{On: "GET /x?a>many"}, `the condition "a>many"; want a whole number after >`},
		{provider.Charge{On: "GET /x?a=1&b=2&c=3"}, `3 conditions; want at most 2`},
		{provider.Charge{On: "GET /x", Cost: map[provider.Unit]int64{provider.Weight: 0}}, `a cost of 0 weight; want 1 to`},
		{provider.Charge{On: "GET /x", Cost: map[provider.Unit]int64{provider.Weight: provider.MaxCount + 1}}, `; want 1 to`},
		{provider.Charge{On: "GET /x", Cost: map[provider.Unit]int64{provider.Requests: 1}}, `a cost in "requests"; want one in weight`},
		{provider.Charge{On: "GET /x", Resource: "a}"}, `a } without {`},
		{provider.Charge{On: "GET /x", Resource: "{path"}, `a { without }`},
		{provider.Charge{On: "GET /x", Resource: "{verb}"}, `has {verb}; want {method}`},
		{provider.Charge{On: "GET /x", Resource: "{query:}"}, `has {query:}; want`},
		{provider.Charge{On: "GET /x*", Resource: "{2}"}, `has {2}, and the path has 1 *`},
	} {
		_, err := provider.NewCharges([]provider.Charge{{On: "GET /"}, c.charge})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "provider: charge 2, on ") {
			t.Errorf("%+v: %v, want %q", c.charge, err, c.want)
		}
	}
}

// A charge is hidden if an earlier one takes all of its requests. Names finds the resources.
func TestHiddenCharges(t *testing.T) {
	for _, c := range []struct {
		first, second string
		hidden        bool
	}{
		{"* /x*", "GET /xy", true}, {"* /x*", "GET /x*y*", true}, {"GET /x", "GET /x?a=1", true}, {"GET /x?a=1", "GET /x?b>2&a=1", true},
		{"* *", "* *", true}, {"GET /x", "* /x", false}, {"GET /x?a=1", "GET /x", false}, {"GET /x?a>1", "GET /x?a>2", false},
		{"* /x*y", "GET /x*", false}, {"GET /xy", "* /x*", false}, {"* /x", "* /y", false},
	} {
		hidden, by, ok := charges(t, provider.Charge{On: "PUT /z"}, provider.Charge{On: c.first}, provider.Charge{On: c.second}).Hidden()
		if ok != c.hidden || ok && (hidden != 2 || by != 1) {
			t.Errorf("%s after %s: %d by %d, %t", c.second, c.first, hidden, by, ok)
		}
	}
	all := charges(t, provider.Charge{On: "* /s", Resource: "search"}, provider.Charge{On: "* *", Resource: "10/2s {path}"}, provider.Charge{On: "GET /z"})
	for name, want := range map[provider.Pattern]bool{"search": true, "s*": true, "serch": false, "10/2s *": true, "10/2s /x": true, "20/2s *": false, "*": true} {
		if all.Names(name) != want {
			t.Errorf("a resource %s: %t", name, !want)
		}
	}
}

// No row of a provider is hidden, so its table could be the charges of a file.
func TestProvidersHideNothing(t *testing.T) {
	for _, p := range provider.Providers() {
		if hidden, by, ok := charges(t, p.Charges...).Hidden(); ok {
			t.Errorf("%s: %s is hidden by %s", p.Name, p.Charges[hidden].On, p.Charges[by].On)
		}
	}
}

// plainly finds the charge of a request as the documentation says it, without a table.
func plainly(list []provider.Charge, method string, u *url.URL) int {
	for i, c := range list {
		want, rest, _ := strings.Cut(c.On, " ")
		path, query, _ := strings.Cut(rest, "?")
		fits := (want == "*" || want == method || want == "GET" && (method == "HEAD" || method == "")) && provider.Pattern(path).Match(u.EscapedPath())
		for text := range strings.SplitSeq(query, "&") {
			if text == "" {
				continue
			}
			at := strings.IndexAny(text, "=<>")
			values, value := u.Query(), ""
			if all := values[text[:at]]; len(all) > 0 {
				value = all[0]
			}
			n, err := strconv.Atoi(value)
			if err != nil && value != "" {
				n = len(strings.Split(value, ","))
			}
			than, _ := strconv.Atoi(text[at+1:])
			fits = fits && (text[at] == '=' && provider.Pattern(text[at+1:]).Match(value) ||
				text[at] == '>' && value != "" && n > than || text[at] == '<' && value != "" && n < than)
		}
		if fits {
			return i
		}
	}
	return -1
}

// FuzzCharge: the table finds the same charge as a search that follows the documentation, and no
// text makes it panic.
func FuzzCharge(f *testing.F) {
	f.Add("GET /depth?limit>1000", "* */depth", "{method} {1} {query:limit}", "GET", "/depth", "limit=5000")
	f.Add("* /a*b*c", "GET /aXbc", "{2}{1}{path}", "HEAD", "/aXbbc", "q=%41&q=+")
	f.Add("* *", "POST *?a=&b<3", "{1}", "", "", "a=1,2")
	f.Add("GET /x?a=%", "GET /%2F", "r", "GET", "/%2F", "a=%")
	f.Fuzz(func(t *testing.T, first, second, resource, method, path, query string) {
		list := []provider.Charge{{On: first, Resource: resource}, {On: second}, {On: "GET /depth"}, {On: "* */trades*"}}
		c, err := provider.NewCharges(list)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "provider: charge ") || strings.ContainsAny(err.Error(), "\x00\x1b\n") {
				t.Errorf("%q", err)
			}
			return
		}
		u, err := url.Parse("http://h" + path + "?" + query)
		if err != nil || u.Host != "h" || u.EscapedPath() != path || strings.Contains(query, ";") {
			return // no request has this
		}
		if _, err := url.ParseQuery(u.RawQuery); err != nil {
			return // the search reads no such query
		}
		charge, _ := c.Of(&http.Request{Method: method, URL: u})
		if hidden, by, ok := c.Hidden(); ok && (by >= hidden || plainly(list, method, u) == hidden) {
			t.Errorf("%v: %d is hidden by %d, and %s %s reaches it", list, hidden, by, method, u)
		}
		switch i := plainly(list, method, u); {
		case i < 0 && charge != nil, i >= 0 && (charge == nil || charge.On != list[i].On):
			t.Errorf("%q, %q of %s %s: %+v, want the one at %d", first, second, method, u, charge, i)
		}
	})
}

// A request costs no allocation where no charge fits, nor where the resource has no places.
func TestChargeAllocates(t *testing.T) {
	for _, name := range provider.Names() {
		c := provider.ChargesOf(name)
		for _, route := range []string{"GET /of/nothing?symbol=A&limit=10", "POST /of/nothing"} {
			r := ask(t, route)
			if n := testing.AllocsPerRun(100, func() { c.Of(r) }); n != 0 {
				t.Errorf("%s: %v allocations for %s", name, n, route)
			}
		}
	}
}

func BenchmarkCharge(b *testing.B) {
	for _, of := range []struct{ name, provider, route string }{
		{"none", "okx", "GET /of/nothing?instId=BTC-USDT&sz=100"},
		{"last", "github", "GET /repos/a/b/issues?page=2"},
		{"query", "binance-spot", "GET /api/v3/depth?symbol=BTCUSDT&limit=5000"},
		{"places", "okx", "GET /api/v5/market/books?instId=BTC-USDT&sz=100"},
	} {
		c, r := provider.ChargesOf(of.provider), httptest.NewRequest("GET", "http://h", nil)
		method, target, _ := strings.Cut(of.route, " ")
		r.Method = method
		r.URL, _ = url.Parse(target)
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Of(r)
			}
		})
	}
}
