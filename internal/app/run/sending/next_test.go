package sending

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
)

func TestPointer(t *testing.T) {
	// The document of RFC 6901, 5, and an array more.
	const doc = ` {"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,"data":[{"id":1},{"id":"last"}],"n":null}`
	for _, c := range []struct{ at, want string }{
		{"", strings.TrimSpace(doc)}, {"/foo", `["bar","baz"]`}, {"/foo/0", `"bar"`}, {"/", "0"}, {"/a~1b", "1"}, {"/c%d", "2"}, {"/e^f", "3"},
		{"/g|h", "4"}, {"/i\\j", "5"}, {"/k\"l", "6"}, {"/ ", "7"}, {"/m~0n", "8"}, {"/data/-1/id", `"last"`}, {"/n", "null"},
		{"/foo/2", ""}, {"/foo/-", ""}, {"/foo/00", ""}, {"/foo/+1", ""}, {"/foo/-2", ""}, {"/nothing/there", ""}, {"/foo/0/deep", ""}, {"/foo/bar", ""},
	} {
		p, err := parsePointer(c.at)
		if err != nil || p.String() != c.at {
			t.Fatalf("%q is %q, %v", c.at, p, err)
		}
		if got, err := p.find([]byte(doc)); err != nil || string(got) != c.want {
			t.Errorf("%q: %s, %v; want %s", c.at, got, err, c.want)
		}
	}
	for _, bad := range []string{"foo", "/a~", "/a~2b", "#/foo"} {
		if _, err := parsePointer(bad); err == nil {
			t.Errorf("%q is a pointer", bad)
		}
	}
	for _, bad := range []string{"", "{", `{"a":1}{"a":2}`, "<html>"} {
		if _, err := (pointer{"a"}).find([]byte(bad)); err == nil {
			t.Errorf("%q is a document", bad)
		}
	}
}

func TestPointerPuts(t *testing.T) {
	for _, c := range []struct{ doc, at, want string }{
		{"", "/start_cursor", `{"start_cursor":"c"}`},
		{`{"page_size":10}`, "/start_cursor", `{"page_size":10,"start_cursor":"c"}`},
		{`{"start_cursor":"b","n":12345678901234567890.5}`, "/start_cursor", `{"n":12345678901234567890.5,"start_cursor":"c"}`},
		{`{"q":null}`, "/q/after", `{"q":{"after":"c"}}`},
		{`{"q":[{"a":"<&>"},{}]}`, "/q/1/after", `{"q":[{"a":"<&>"},{"after":"c"}]}`},
		{`[1]`, "/0", `["c"]`},
		{`[]`, "/0", ""}, {`{"q":1}`, "/q/after", ""}, {`x`, "/a", ""}, {`{} {}`, "/a", ""},
	} {
		p, _ := parsePointer(c.at)
		got, err := p.put([]byte(c.doc), json.RawMessage(`"c"`))
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s at %s: %s, %v; want %s", c.doc, c.at, got, err, c.want)
		}
	}
}

// A value that was put is found, and a found value is JSON.
func FuzzPointer(f *testing.F) {
	for _, s := range [][2]string{{"/a/b", `{"a":{"b":[1,2]}}`}, {"/a~1b/-1", `{"a/b":[1]}`}, {"", "1"}, {"/0", "[[]]"}, {"//", `{"":{"":null}}`}} {
		f.Add(s[0], []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, at string, doc []byte) {
		p, err := parsePointer(at)
		if err != nil {
			return
		}
		if again, err := parsePointer(p.String()); err != nil || again.String() != p.String() {
			t.Fatalf("%q: %q, %v", at, p, err)
		}
		found, err := p.find(doc)
		if (err == nil) != json.Valid(doc) {
			t.Fatalf("%s: %v", doc, err)
		}
		if found != nil && !json.Valid(found) {
			t.Fatalf("%q of %s is %s", at, doc, found)
		}
		if with, err := p.put(doc, json.RawMessage(`"v"`)); err == nil {
			if found, err := p.find(with); err != nil || string(found) != `"v"` {
				t.Fatalf("%q put into %s: %s; found %s, %v", at, doc, with, found, err)
			}
		}
	})
}

func TestNextLink(t *testing.T) {
	for _, c := range []struct {
		name, want string
		fields     []string
	}{
		{"GitHub", "https://api.github.com/x?page=2", []string{`<https://api.github.com/x?page=2>; rel="next", <https://api.github.com/x?page=34>; rel="last"`}},
		{"not the first", "/b", []string{`</a>; rel="prev", </b>; rel="next"`}},
		{"a field of its own", "/b", []string{`</a>; rel=prev`, `</b>;rel=next`}},
		{"several relations", "/b", []string{`</b>; rel="last next"`}},
		{"in capitals", "/b", []string{`</b>; REL="NEXT"`}},
		{"a comma and a semicolon in the URL", "/a,b;c=d", []string{`</a,b;c=d>; rel="next"`}},
		{"a comma in quotes", "/b", []string{`</a>; title="a, <b>; rel=\"next\""; rel="prev", </b>; rel="next"`}},
		{"spaces", "/b", []string{` < /b > ; title = "x" ; rel = "next" `}},
		{"empty links", "/b", []string{`,, </a>; rel=prev,, </b>; rel=next`}},
		{"the first rel counts", "", []string{`</b>; rel="prev"; rel="next"`}},
		{"another context", "", []string{`</b>; rel="next"; anchor="/other"`}},
		{"a relation like it", "", []string{`</b>; rel="next-archive"`}},
		{"no rel", "", []string{`</b>`}},
		{"a name without a value", "/b", []string{`</b>; crossorigin; rel=next`}},
		{"the end", "", []string{`</a>; rel="first"`}},
		{"nothing", "", nil},
		{"no link", "", []string{`rel="next"`, "<", "</b", "</b> rel=next", `</b>; rel="ne`, `</b>; rel="ne\`}},
		{"a backslash at the end", "/b", []string{`</b>; rel=next; title="a\`}},
		{"an escaped backslash", "/b", []string{`</b>; title="a\\"; rel=next`}},
	} {
		if got := nextLink(c.fields); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A field is read to its end, whatever its content, and no link is invented.
func FuzzNextLink(f *testing.F) {
	for _, s := range []string{`<https://a/b?c=d>; rel="next", </x>; rel=last`, `</a>; title="\""; rel=next`, `<>;rel=next`, "<a>;;;", `<a>;rel="`, `<a>;rel="\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		got := nextLink([]string{field})
		if !strings.Contains(field, got) || strings.ContainsAny(got, ">") {
			t.Fatalf("%q of %q", got, field)
		}
		// After a whole link the result is the same, unless that link is the next page.
		if again := nextLink([]string{`</first>; rel="first",` + field}); again != got {
			t.Fatalf("%q and %q of %q", got, again, field)
		}
	})
}

func TestNextAfter(t *testing.T) {
	for _, c := range []struct{ how, while, body, want, wrong string }{
		{"/next", "", `{"next":"/p2"}`, "/p2", ""},
		{"/next", "", `{"next":null}`, "", ""},
		{"/next", "", `{"next":""}`, "", ""},
		{"/next", "", `{"next":false}`, "", ""},
		{"/next", "", `{}`, "", ""},
		{"/next", "", ``, "", ""},
		{"/next", "", `{"next":7}`, "", "where /next (--next) is 7, expected a text"},
		{"/next", "", `{"next":{"href":"/p2"}}`, "", `where /next (--next) is {"href":"/p2"}`},
		{"/next", "", `<html>`, "", "no JSON"},
		{"cursor=/c", "", `{"c":7}`, "7", ""},
		{"cursor=/c", "", `{"c":"a b"}`, "a b", ""},
		{"starting_after=/data/-1/id", "/has_more", `{"has_more":true,"data":[{"id":"x"},{"id":"y"}]}`, "y", ""},
		{"starting_after=/data/-1/id", "/has_more", `{"has_more":false,"data":[{"id":"x"}]}`, "", ""},
		{"starting_after=/data/-1/id", "/has_more", `{"data":[{"id":"x"}]}`, "", ""},
		{"starting_after=/data/-1/id", "/has_more", `{"has_more":true,"data":[]}`, "", ""},
		{"body:/start_cursor=/next_cursor", "", `{"next_cursor":"abc"}`, `"abc"`, ""},
		{"body:/start_cursor=/next_cursor", "", `{"next_cursor":null}`, ``, ""},
		{"link", "", `anything`, "/p9", ""},
		{"link", "/more", `{"more":true}`, "/p9", ""},
		{"link", "/more", `{"more":false}`, "", ""},
		{"link", "/more", `anything`, "", "no JSON"},
	} {
		n, err := ParseNext(c.how, c.while)
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.After(&Response{Status: 200, Body: []byte(c.body), Header: http.Header{"Link": {"</p9>; rel=next"}}})
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s of %s: %q, %v; want %q, %q", c.how, c.body, got, err, c.want, c.wrong)
		}
		if n.link && n.while == nil {
			continue
		}
		if _, err := n.After(&Response{Status: 200, Body: []byte(`{"a":`), Cut: true}); err == nil || !strings.Contains(err.Error(), "the end is missing") {
			t.Errorf("%s of half a body: %v", c.how, err)
		}
	}
	for _, bad := range []string{"", "next", "cursor", "=/a", "cursor=a", "body:/a", "body:a=/b", "body:/a=b", "/a~", "cursor=/a~2"} {
		if _, err := ParseNext(bad, ""); err == nil {
			t.Errorf("%q says where the next page is", bad)
		}
	}
}

// The place of a next page: relative to the page, at the same host or at a named one, and without
// keys.
func TestTurned(t *testing.T) {
	place, _ := secret.ParsePlace("https://cdn.example.com")
	s := &Sender{secrets: format.NewSecrets([]secret.Key{{Name: "A", Value: "aB3dE5gH7jK9mN1pQ"}}, nil, nil, nil), places: secret.Places{place}}
	line, _ := url.Parse("https://api.example.com/v1/items?limit=2&cursor=old&cursor=older")
	q := &format.Request{ID: "a", Method: "GET", URL: line}
	q.Begin()
	for _, c := range []struct{ how, next, want, wrong string }{
		{"/n", "?page=2", "https://api.example.com/v1/items?page=2", ""},
		{"/n", "more?page=2", "https://api.example.com/v1/more?page=2", ""},
		{"/n", "/v2?page=2#part", "https://api.example.com/v2?page=2", ""},
		{"/n", "https://api.example.com/x", "https://api.example.com/x", ""},
		{"/n", "https://API.example.com:443/x", "https://API.example.com:443/x", ""},
		{"/n", "https://cdn.example.com/x", "https://cdn.example.com/x", ""},
		{"/n", "https://other.example.com/x", "https://other.example.com/x", "not followed to other.example.com: the next page is at another host (--key-host)"},
		{"/n", "//other.example.com/x", "https://other.example.com/x", "another host"},
		{"/n", "http://api.example.com/x", "http://api.example.com/x", "another host"},
		{"/n", "https://api.example.com:8443/x", "https://api.example.com:8443/x", "another host"},
		{"/n", "ftp://api.example.com/x", "", "no http or https URL"},
		{"/n", "https://", "", "no http or https URL"},
		{"/n", "?page=2&key=aB3dE5gH7jK9mN1pQ", "https://api.example.com/v1/items?page=2", ""},
		{"/n", "/aB3dE5gH7jK9mN1pQ/x", "", "its URL has the value of A"},
		{"/n", "https://me:pw@api.example.com/x", "https://api.example.com/x", ""},
		{"cursor=/c", "a b&c=d", "https://api.example.com/v1/items?limit=2&cursor=a+b%26c%3Dd", ""},
		{"cursor=/c", "https://other.example.com/", "https://api.example.com/v1/items?limit=2&cursor=https%3A%2F%2Fother.example.com%2F", ""},
		{"cursor=/c", "aB3dE5gH7jK9mN1pQ", "", "the cursor has the value of A"},
	} {
		n, err := ParseNext(c.how, "")
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Turned(n, q, FirstHop(q), c.next, false)
		got := ""
		if p.URL != nil {
			got = p.URL.String()
		}
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s, %s: %s, %v; want %s, %q", c.how, c.next, got, err, c.want, c.wrong)
			continue
		}
		// The kept form leads to the same page.
		again, err := s.Turned(n, q, FirstHop(q), n.Keeps(p, c.next), true)
		if again.URL != nil && again.URL.String() != got || (err == nil) != (c.wrong == "") {
			t.Errorf("%s, %s: kept as %s, which is %v, %v", c.how, c.next, n.Keeps(p, c.next), again.URL, err)
		}
	}
	foreign := FirstHop(q)
	foreign.Foreign = true
	n, _ := ParseNext("link", "")
	if _, err := s.Turned(n, q, foreign, "https://api.example.com/x", false); err == nil {
		t.Error("a host abroad says where to go with a key")
	}
	n, _ = ParseNext("body:/start=/next", "")
	q.Body = []byte(`{"size":5}`)
	if p, err := s.Turned(n, q, FirstHop(q), `"abc"`, false); err != nil || string(p.Body) != `{"size":5,"start":"abc"}` || p.Header.Get("Content-Type") != "application/json" || q.Header != nil {
		t.Errorf("%s %v, %v", p.Body, p.Header, err)
	}
	if _, err := s.Turned(n, q, FirstHop(q), `"aB3dE5gH7jK9mN1pQ"`, false); err == nil {
		t.Error("a cursor is a key")
	}
}

// The kept form of a page has no secret of the first page's query; the next run, whose input has it, adds it again.
func TestKeptPagesHaveNoSecrets(t *testing.T) {
	s := &Sender{secrets: format.NewSecrets(nil, nil, nil, nil)}
	line, _ := url.Parse("https://api.example.com/items?api_key=aB3dE5gH7jK9mN1pQ&limit=2")
	q := &format.Request{ID: "a", Method: "GET", URL: line}
	q.Begin()
	n, err := ParseNext("cursor=/c", "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Turned(n, q, FirstHop(q), "c2", false)
	if err != nil {
		t.Fatal(err)
	}
	kept := n.Keeps(p, "c2")
	if want := "https://api.example.com/items?limit=2&cursor=c2"; kept != want {
		t.Errorf("kept as %s, want %s", kept, want)
	}
	again, err := s.Turned(n, q, FirstHop(q), kept, true)
	if err != nil || again.URL.Query().Get("api_key") != "aB3dE5gH7jK9mN1pQ" || again.URL.Query().Get("cursor") != "c2" {
		t.Errorf("it leads to %v, %v", again.URL, err)
	}
}
