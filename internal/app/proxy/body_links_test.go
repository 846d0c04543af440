package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
)

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

// The next page that a body names is at the proxy. What is signed, too long or in another coding stays as it
// is, and so does all else of a body; that clients may leave is said once.
func TestPagesOfBodiesLeadHere(t *testing.T) {
	var self *url.URL
	there := func(s string) string { return strings.ReplaceAll(s, "THERE", self.String()) }
	const page = `{"total": 1.0e2, "paging" : {"next": {"after":"2", "link" : "THERE\/a?b=<\u0031>&after=2"}}, "link":"THERE/a", "z":["THERE"]} `
	const here = `{"total": 1.0e2, "paging" : {"next": {"after":"2", "link" : "HERE/a?b=<1>&after=2"}}, "link":"THERE/a", "z":["THERE"]} `
	long := `{"paging":{"next":{"link":"THERE/a"}},"x":"` + strings.Repeat("x", mostPage) + `"}`
	rows := []struct {
		name, body, want string
		header           http.Header
		status           int
		told             bool
	}{
		{name: "plain", body: page, want: here},
		{name: "gzip", body: page, want: here, header: http.Header{"Content-Encoding": {"gzip"}}},
		{name: "a kind of JSON", body: page, want: here, header: http.Header{"Content-Type": {"application/hal+json; charset=utf-8"}}},
		{name: "text", body: page, want: page, header: http.Header{"Content-Type": {"text/plain"}}},
		{name: "a part", body: page, want: page, status: http.StatusPartialContent},
		{name: "a refusal", body: page, want: page, status: http.StatusBadRequest},
		{name: "another server", body: `{"paging":{"next":{"link":"https://x.example.com/"}}}`, want: `{"paging":{"next":{"link":"https://x.example.com/"}}}`},
		{name: "relative", body: `{"paging":{"next":{"link":"/THERE"}}}`, want: `{"paging":{"next":{"link":"/THERE"}}}`},
		{name: "cut", body: `{"paging":{"next":{"link":"THERE/a"}`, want: `{"paging":{"next":{"link":"THERE/a"}`},
		{name: "signed", body: page, want: page, header: http.Header{"Signature": {"s=:YQ==:"}}, told: true},
		{name: "with a digest", body: page, want: page, header: http.Header{"Content-Digest": {"sha-256=:YQ==:"}}, told: true},
		{name: "another coding", body: page, want: page, header: http.Header{"Content-Encoding": {"br"}}, told: true},
		{name: "long", body: long, want: long, told: true},
		{name: "long, in gzip", body: long, want: long, header: http.Header{"Content-Encoding": {"gzip"}}, told: true},
	}
	self = upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		for _, row := range rows {
			if r.URL.Query().Get("row") != row.name {
				continue
			}
			w.Header().Set("Content-Type", "application/json")
			maps.Copy(w.Header(), row.header)
			if row.status != 0 {
				w.WriteHeader(row.status)
			}
			body := there(row.body)
			if row.header.Get("Content-Encoding") == "gzip" {
				body = zipped(body)
			}
			_, _ = io.WriteString(w, body)
		}
	})
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			c := to(self, "100/s")
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
			c.Upstreams[0].Provider, _ = provider.Lookup("hubspot")
			x := start(t, c)
			want := strings.ReplaceAll(there(row.want), "HERE", x.url)
			for range 2 {
				r, got := x.do("GET", "/?row="+url.QueryEscape(row.name), "", "Accept-Encoding", "gzip, br")
				if r.Header.Get("Content-Encoding") == "gzip" {
					b, err := unzip([]byte(got))
					if err != nil {
						t.Fatal(err)
					}
					z, _ := gzip.NewReader(strings.NewReader(got))
					rest, _ := io.ReadAll(z)
					if got = string(rest); !strings.HasPrefix(got, string(b[:min(len(b), mostPage)])) {
						t.Error("a body of two kinds")
					}
				}
				if got != want {
					t.Errorf("%.300s\nwant\n%.300s", got, want)
				}
			}
			said := strings.Count(log.String(), "may leave the proxy")
			if told := map[bool]int{true: 1}[row.told]; said != told {
				t.Errorf("said %d times, want %d: %s", said, told, log.String())
			}
		})
	}
	c := to(self, "100/s")
	c.Upstreams[0].Provider, _ = provider.Lookup("hubspot")
	c.Upstreams[0].KeepLinks = true
	if _, got := start(t, c).do("GET", "/?row=plain", ""); got != there(page) {
		t.Errorf("with KeepLinks: %s", got)
	}
}

// FuzzChangeStrings changes any text. What is changed is the same JSON but for the strings at the paths, and
// those are all changed.
func FuzzChangeStrings(f *testing.F) {
	for _, s := range []string{`{"next":"a","x":[{"next":"b"}]}`, `{"paging":{"next":"a\u0041","n":1e400}}`, `["next"]`, `{"paging":["next"],"next":{"next":"a"}}`,
		`{"paging/next":"a"}`, ` {"next" : "a" , "next":null}`, `{"":{"next":""}}`, `"next"`, `{"next":"a"} {"next":"b"}`} {
		f.Add(s)
	}
	paths := []string{"next", "paging/next"}
	change := func(s string) (string, bool) { return "<" + s + ">", !strings.Contains(s, "keep") }
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := changeStrings([]byte(s), paths, change)
		if !json.Valid([]byte(s)) {
			return
		}
		read := func(b []byte) (v any) {
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%q became %q: %v", s, b, err)
			}
			return v
		}
		want := read([]byte(s))
		if !ok {
			got = []byte(s)
		}
		in := func(v any) {
			if m, is := v.(map[string]any); is {
				if old, is := m["next"].(string); is {
					m["next"], _ = change(old)
					if strings.Contains(old, "keep") {
						m["next"] = old
					}
				}
			}
		}
		if m, is := want.(map[string]any); is {
			in(m["paging"])
		}
		in(want)
		if now := read(got); strings.Count(s, `{`) <= mostDepth && strings.Count(s, `[`) <= mostDepth && !reflect.DeepEqual(now, want) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
