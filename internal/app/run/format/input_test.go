package format_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

func read(t *testing.T, text string, limits format.InputLimits) (all []*format.Request, errs []string) {
	t.Helper()
	r := format.NewReader(format.Plain{}, "in.jsonl", strings.NewReader(text), limits)
	for range 1000 {
		q, err := r.Next()
		if err == io.EOF {
			return all, errs
		}
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		all = append(all, q)
	}
	t.Fatal("the reader does not end")
	return nil, nil
}

// The error of a bad line has the file, line, column, the reason, and what was expected.
func TestInputErrors(t *testing.T) {
	limits := format.InputLimits{Line: 200, Header: 40, Body: 20, Cost: 20}
	for _, c := range []struct{ line, want string }{
		{`{"url":"http://h/" "x"}`, `1:20: invalid character '"' after object key:value pair, expected one JSON object on the line`},
		{`{"url":"http://h/"`, `1:18: unexpected end of JSON input, expected one JSON object on the line`},
		{`{"url":"http://h/"} {}`, `1:21: invalid character '{' after top-level value, expected one JSON object on the line`},
		{"{\"url\":\"http://h/\xff\"}", `1:18: byte 0xff is not UTF-8, expected text in UTF-8`},
		{`[1]`, `1:1: an array, expected a JSON object with at least a url`},
		{`{}`, `1:1: there is no url, expected one (http:// or https://)`},
		{`{"url":null}`, `1:1: there is no url, expected one (http:// or https://)`},
		{`{"url":"http://h/","uri":1}`, `1:20: unknown field "uri", expected id, method, url, headers, body, cost, priority, deadline, created`},
		{`{"url":"http://h/","url":"http://i/"}`, `1:20: field "url" is given twice, expected once`},
		{`{"url":"http://h/","URL":"http://i/"}`, `1:20: unknown field "URL", expected id, method, url, headers, body, cost, priority, deadline, created`},
		{`{"url":7}`, `1:8: url is a number, expected a string`},
		{`{"url":"/x"}`, `1:8: url "/x", expected an absolute http or https URL with a host`},
		{`{"url":"ftp://h/x"}`, `1:8: url "ftp://h/x", expected an absolute http or https URL with a host`},
		{`{"url":"http://h:x/"}`, `1:8: url "http://h:x/": invalid port ":x" after host, expected an absolute http or https URL`},
		{`{"url":"http://h/?a b"}`, `1:8: url "http://h/?a b" has ' ' in its query, expected it escaped`},
		{`{"url":"http://h/","id":""}`, `1:25: the id has 0 bytes, expected 1 to 512`},
		{`{"url":"http://h/","id":7}`, `1:25: id is a number, expected a string`},
		{`{"url":"http://h/","method":"get"}`, `1:29: method "get", expected upper case: GET`},
		{`{"url":"http://h/","method":7}`, `1:29: method is a number, expected a string`},
		{`{"url":"http://h/","deadline":7}`, `1:31: deadline is a number, expected a string`},
		{`{"url":"http://h/","created":7}`, `1:30: created is a number, expected a string`},
		{`{"url":"http://h/","method":"TRACE"}`, `1:29: method "TRACE", expected an HTTP method other than CONNECT and TRACE`},
		{`{"url":"http://h/","method":"A B"}`, `1:29: method "A B", expected an HTTP method other than CONNECT and TRACE`},
		{`{"url":"http://h/","headers":[]}`, `1:30: headers is an array, expected an object of strings`},
		{`{"url":"http://h/","headers":{"A":1}}`, `1:35: header A is a number, expected a string`},
		{`{"url":"http://h/","headers":{"A":["x",{}]}}`, `1:40: header A is an object, expected a string`},
		{`{"url":"http://h/","headers":{"A b":"x"}}`, `1:31: header name "A b", expected letters, digits and hyphens`},
		{`{"url":"http://h/","headers":{"A":"x\r\nB: y"}}`, `1:35: header A has a control character, expected text without line breaks`},
		{`{"url":"http://h/","headers":{"a":"x", "A":"y"}}`, `1:40: header A is given twice, expected once (an array has several values)`},
		{`{"url":"http://h/","headers":{"content-length":"3"}}`, `1:31: header Content-Length is set by paceline itself, expected none`},
		{`{"url":"http://h/","headers":{"A":"` + strings.Repeat("x", 40) + `"}}`, `1:35: the headers have more than 40 bytes, expected at most that (--max-header)`},
		{`{"url":"http://h/","body":7}`, `1:27: body is a number, expected a string, an object or an array`},
		{`{"url":"http://h/","body":"123456789012345678901"}`, `1:27: the body has 21 bytes, expected at most 20 (--max-body)`},
		{`{"url":"http://h/","cost":-1}`, `1:27: cost is -1, expected a whole number from 0 to 17592186044416`},
		{`{"url":"http://h/","cost":1.5}`, `1:27: cost is 1.5, expected a whole number from 0 to 17592186044416`},
		{`{"url":"http://h/","cost":21}`, `1:27: cost 21 can never go: the limits allow at most 20 at once`},
		{`{"url":"http://h/","priority":"high"}`, `1:31: priority is "high", expected a whole number from -2147483648 to 2147483647`},
		{`{"url":"http://h/","deadline":"soon"}`, `1:31: deadline "soon", expected an instant as in RFC 3339 (2026-07-03T14:00:00Z), or a duration above 0 (90s, 1h30m)`},
		{`{"url":"http://h/","deadline":"-1s"}`, `1:31: deadline "-1s", expected an instant as in RFC 3339 (2026-07-03T14:00:00Z), or a duration above 0 (90s, 1h30m)`},
		{`{"url":"http://h/","created":"90s"}`, `1:30: created "90s", expected an instant as in RFC 3339 (2026-07-03T14:00:00Z)`},
		{`{"url":"http://h/","x":"` + strings.Repeat("y", 200) + `"}`, `1:201: the line is longer than 200 bytes, expected at most that (--max-line)`},
		{"\n \r\n{\"url\":1}", `3:8: url is a number, expected a string`},
		{"\ufeff" + `{"url":1}`, `1:8: url is a number, expected a string`},
	} {
		all, errs := read(t, c.line, limits)
		if len(all) != 0 || len(errs) != 1 || errs[0] != "in.jsonl:"+c.want {
			t.Errorf("%s\n got %d requests, %q\nwant in.jsonl:%s", c.line, len(all), errs, c.want)
		}
		// The line after a bad one is read, and counted right.
		if all, _ := read(t, c.line+"\n"+`{"url":"http://h/"}`, limits); len(all) != 1 || all[0].Line != strings.Count(c.line, "\n")+2 {
			t.Errorf("%s\nthe line after it was not read", c.line)
		}
	}
}

// What is as long as the limits allow is a request.
func TestInputAtItsBounds(t *testing.T) {
	limits := format.InputLimits{Line: 200, Header: 40, Body: 20, Cost: 20}
	for _, line := range []string{
		`{"url":"http://h/","headers":{"A":"` + strings.Repeat("x", 40-len("A: \r\n")) + `"}}`,
		`{"url":"http://h/","headers":{"A":["` + strings.Repeat("x", 15) + `","` + strings.Repeat("y", 15) + `"]}}`,
		`{"url":"http://h/","body":"` + strings.Repeat("x", 20) + `"}`,
		`{"url":"http://h/","cost":20}`,
		`{"url":"http://h/` + strings.Repeat("x", 200-len(`{"url":"http://h/"}`)) + `"}`,
	} {
		if all, errs := read(t, line, limits); len(all) != 1 || errs != nil {
			t.Errorf("%s\n%q", line, errs)
		}
	}
}

// An id has 512 bytes at most, for all that keeps ids.
func TestLongIDs(t *testing.T) {
	const most = 512
	id := strings.Repeat("i", most)
	if all, errs := read(t, `{"url":"http://h/","id":"`+id+`"}`, format.InputLimits{}); len(all) != 1 || all[0].ID != id {
		t.Errorf("%q", errs)
	}
	all, errs := read(t, `{"url":"http://h/","id":"`+id+`i"}`, format.InputLimits{})
	if want := "in.jsonl:1:25: the id has 513 bytes, expected 1 to 512"; len(all) != 0 || len(errs) != 1 || errs[0] != want {
		t.Errorf("%d requests, %q, want %s", len(all), errs, want)
	}
}

func TestInput(t *testing.T) {
	all, errs := read(t, `{"url":"http://h/p?a=1#f"}
 { "id" : "b\u00e9\"" , "method":"POST", "url":"https://u@h:8/", "headers":{"A":"x","b":["y","z"],"C":[]}, "body":{ "k" : [ 1 , "]}\\\"" ] }, "cost":0,"priority":-3,"deadline":"1h"}`+"\r\n\n"+
		`{"url":"http://h/","body":[],"headers":{"content-type":"text/x"},"deadline":"2026-07-03T14:00:00+02:00"}
{"url":"http://h/","body":"as it is\n","id":null,"method":null,"headers":null,"cost":null,"deadline":null}`, format.InputLimits{})
	if errs != nil || len(all) != 4 {
		t.Fatalf("%d requests, errors %q", len(all), errs)
	}
	a, b, c, d := all[0], all[1], all[2], all[3]
	if a.Method != "GET" || a.URL.String() != "http://h/p?a=1" || a.Cost != limit.One || a.Body != nil || a.Line != 1 {
		t.Errorf("%+v", a)
	}
	if b.ID != `bé"` || b.Method != "POST" || string(b.Body) != `{"k":[1,"]}\\\""]}` || b.Cost != (limit.Cost{}) || b.Priority != -3 || b.TTL != time.Hour ||
		b.Header.Get("Content-Type") != "application/json" || len(b.Header.Values("B")) != 2 || b.Header.Get("a") != "x" {
		t.Errorf("%+v", b)
	}
	if string(c.Body) != `[]` || c.Header.Get("Content-Type") != "text/x" || !c.At.Equal(time.Date(2026, 7, 3, 12, 0, 0, 0, time.UTC)) || c.Line != 4 {
		t.Errorf("%+v", c)
	}
	if string(d.Body) != "as it is\n" || d.Header != nil || d.Cost != limit.One {
		t.Errorf("%+v", d)
	}
	if w, errs := read(t, `{"url":"http://h/","cost":"25 weight"}`, format.InputLimits{}); errs != nil ||
		w[0].Cost != (limit.Cost{limit.Requests: 1, limit.Weight: 25}) {
		t.Errorf("25 weight beside the request: %v, %q", w[0].Cost, errs)
	}
	// Without an id, the line and its content name the request. The raw line can be run again with
	// that id.
	if !strings.HasPrefix(a.ID, "line-1-") || !strings.HasPrefix(d.ID, "line-5-") {
		t.Errorf("ids %q, %q", a.ID, d.ID)
	}
	if other, _ := read(t, `{"url":"http://h/p?a=2"}`, format.InputLimits{}); other[0].ID == a.ID {
		t.Errorf("another request on the same line has the same id %q", a.ID)
	}
	for _, q := range all {
		again, errs := read(t, string(q.Raw), format.InputLimits{})
		if errs != nil || again[0].ID != q.ID || again[0].URL.String() != q.URL.String() || !bytes.Equal(again[0].Body, q.Body) {
			t.Errorf("raw line of %s read again: %+v %q", q.ID, again, errs)
		}
	}
}

// Any bytes give requests, or errors with a place. An accepted request can be sent.
func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"id":"a","method":"PUT","url":"https://h/","headers":{"A":["b"]},"body":{"x":[1]},"cost":2,"priority":1,"deadline":"3s"}`))
	f.Add([]byte("{\"url\":\"http://h/\"}\n\n{\"url\":\"http://h/\",\"body\":\"\\ud800\"}\r\n[{\"a\":null}"))
	f.Add([]byte("\ufeff{\"url\" : \"http://h/\" , \"headers\" : { } }\x00"))
	f.Add([]byte(`{"id":null,"url":"http://[::1]:80/%zz"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := format.NewReader(format.Plain{}, "f", bytes.NewReader(text), format.InputLimits{Line: 1000})
		for n := 0; ; n++ {
			if n > len(text)+1 {
				t.Fatal("more requests and errors than lines")
			}
			q, err := r.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				e, ok := errors.AsType[*format.InputError](err)
				if !ok || e.Line < 1 || e.Line > n+1+bytes.Count(text, []byte("\n")) || e.Column < 1 || e.Column > 1001 || e.Reason == "" {
					t.Fatalf("error %v", err)
				}
				continue
			}
			if q.ID == "" || q.Cost[limit.Requests] < 0 || q.URL.Host == "" || !json.Valid(q.Raw) {
				t.Fatalf("accepted %+v", q)
			}
			if _, err := http.NewRequest(q.Method, q.URL.String(), bytes.NewReader(q.Body)); err != nil {
				t.Fatalf("accepted, but: %v", err)
			}
			// An independent reader agrees on the parts.
			var all map[string]json.RawMessage
			if err := json.Unmarshal(q.Raw, &all); err != nil {
				t.Fatal(err)
			}
			var url string
			if err := json.Unmarshal(all["url"], &url); err != nil || !strings.HasPrefix(strings.ToLower(url), "http") {
				t.Fatalf("url %s: %v", all["url"], err)
			}
			var body string
			if raw := all["body"]; len(raw) > 0 && raw[0] == '"' {
				if err := json.Unmarshal(raw, &body); err != nil || body != string(q.Body) {
					t.Fatalf("body %q, want %q", q.Body, body)
				}
			}
		}
	})
}
