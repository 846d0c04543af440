package explain

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// limited is the answer in most forms below: 429, three fields and a date with a comma and colons.
var limited = http.Header{"Date": {"Thu, 15 Jan 2026 12:00:00 GMT"}, "X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"0"}, "Retry-After": {"7"}}

// forms are the forms in which users have one and the same answer.
var forms = map[string]string{
	"curl -i": "HTTP/2 429 \nDate: Thu, 15 Jan 2026 12:00:00 GMT\nx-ratelimit-limit: 60\nx-ratelimit-remaining: 0\nretry-after: 7\n\n{\"message\": \"slow\"}",
	"curl -v": "* Host h:443 was resolved.\n* IPv4: 1.2.3.4\n*   Trying 1.2.3.4:443...\n} [5 bytes data]\n> GET /a HTTP/2\n> Host: api.example.com\n> User-Agent: curl/8.5.0\n> \n" +
		"* Request completely sent off\n< HTTP/2 429 \n< date: Thu, 15 Jan 2026 12:00:00 GMT\n< x-ratelimit-limit: 60\n{ [5 bytes data]\n* old SSL session ID is stale, removing\n< x-ratelimit-remaining: 0\n< retry-after: 7\n< \n" +
		"{\n* HTTP/2 stream 1 was read\n\"message\": \"slow\"}* Connection #0 to host api.example.com left intact\n",
	"curl -v, in colours, with a meter": "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\r\n  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--\r> GET /a HTTP/1.1\r\n> Host: api.example.com\r\n>\r\n" +
		"\x1b[36m< HTTP/1.1 429 Too Many Requests\x1b[0m\r\n< \x1b[1mDate\x1b[0m: Thu, 15 Jan 2026 12:00:00 GMT\r\n< \x1b]8;;http://x\x07X-RateLimit-Limit\x1b]8;;\x1b\\: 60\r\n< X-RateLimit-Remaining: 0\r\n< Retry-After: 7\r\n<\r\n{\"message\": \"slow\"}\n",
	"a command and what it printed": "$ curl -si https://api.example.com/a\nHTTP/1.1 429 Too Many Requests\nDate: Thu, 15 Jan 2026 12:00:00 GMT\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nRetry-After: 7\n\n{\"message\": \"slow\"}",
	"HTTPie":                        "HTTP/1.1 429 Too Many Requests\nDate: Thu, 15 Jan 2026 12:00:00 GMT\nRetry-After: 7\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\n\n{\n    \"message\": \"slow\"\n}\n",
	"HTTPie --verbose":              "GET /a HTTP/1.1\nAccept: */*\nHost: api.example.com\nRetry-After: 99\n\n\n\n\x1b[34mHTTP\x1b[39m/1.1 429 Too Many Requests\nDate: Thu, 15 Jan 2026 12:00:00 GMT\nRetry-After: 7\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\n\n{\"message\": \"slow\"}\n",
	"wget -S": "--2026-01-15 12:00:00--  https://api.example.com/a\nResolving api.example.com... 1.2.3.4\nHTTP request sent, awaiting response... \n  HTTP/1.1 429 Too Many Requests\n  Date: Thu, 15 Jan 2026 12:00:00 GMT\n" +
		"  X-RateLimit-Limit: 60\n  X-RateLimit-Remaining: 0\n  Retry-After: 7\n2026-01-15 12:00:00 ERROR 429: Too Many Requests.\n",
	"http.client of Python": "send: b'GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n'\nreply: 'HTTP/1.1 429 Too Many Requests\\r\\n'\nheader: Date: Thu, 15 Jan 2026 12:00:00 GMT\nheader: X-RateLimit-Limit: 60\nheader: X-RateLimit-Remaining: 0\nheader: Retry-After: 7\n",
	"a browser":             ":status: 429\ndate: Thu, 15 Jan 2026 12:00:00 GMT\nx-ratelimit-limit: 60\nx-ratelimit-remaining: 0\nretry-after: 7",
	"a browser, two lines":  "date\nThu, 15 Jan 2026 12:00:00 GMT\nretry-after\n7\nstatus\n429\nx-ratelimit-limit\n60\nx-ratelimit-remaining\n0\n",
	"a browser, with colons": "General\nRequest URL:\nhttps://api.example.com/a?b=c\nRequest Method:\nGET\nStatus Code:\n429 Too Many Requests\nRemote Address:\n1.2.3.4:443\n\nResponse Headers (5)\ndate:\nThu, 15 Jan 2026 12:00:00 GMT\n" +
		"retry-after:\n7\nx-ratelimit-limit:\n60\nx-ratelimit-remaining:\n0\nRequest Headers\nretry-after:\n99\n",
	"a browser, all of it": "Request URL: https://api.example.com/a\nRequest Method: GET\nStatus Code: 429\nRemote Address: 1.2.3.4:443\n\nResponse Headers\nDate: Thu, 15 Jan 2026 12:00:00 GMT\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nRetry-After: 7\nRequest Headers (3)\nRetry-After: 99\nAccept: */*\n",
	"a line of JSON":       `{"level":"warn","time":"2026-01-15T12:00:01Z","status":429,"url":"https://api.example.com/a","headers":{"date":["Thu, 15 Jan 2026 12:00:00 GMT"],"x-ratelimit-limit":["60"],"x-ratelimit-remaining":["0"],"retry-after":["7"]},"msg":"refused"}`,
	"lines of JSON":        `{"msg":"starting","status":"ok"}` + "\n" + `{"msg":"a","status":200,"headers":{"x-ratelimit-limit":"60"}}` + "\n" + `{"msg":"b","statusCode":"429","date":"Thu, 15 Jan 2026 12:00:00 GMT","x-ratelimit-limit":60,"x-ratelimit-remaining":0,"retry_after":7}` + "\n" + `{"msg":"done"}`,
	"OpenTelemetry":        `{"http.response.status_code":429,"url.full":"https://api.example.com/a","http.response.header.date":["Thu, 15 Jan 2026 12:00:00 GMT"],"http.response.header.x-ratelimit-limit":["60"],"http.response.header.x-ratelimit-remaining":["0"],"http.response.header.retry_after":["7"]}`,
	"words and JSON":       "2026-01-15T12:00:01Z WARN client refused, HTTP 429 Too Many Requests\t" + `{"headers": "date: Thu, 15 Jan 2026 12:00:00 GMT\r\nx-ratelimit-limit: 60\r\nx-ratelimit-remaining: 0\r\nretry-after: 7\r\n"}`,
	"Firefox":              `{"Response Headers (1.2 kB)":{"headers":[{"name":":status","value":"429"},{"name":"date","value":"Thu, 15 Jan 2026 12:00:00 GMT"},{"name":"x-ratelimit-limit","value":"60"},{"name":"x-ratelimit-remaining","value":"0"},{"name":"retry-after","value":"7"}]},"Request Headers (1 kB)":{"headers":[{"name":"retry-after","value":"99"}]}}`,
	"a HAR": `{"log":{"version":"1.2","entries":[{"request":{"url":"https://www.example.org/"},"response":{"status":200,"headers":[{"name":"date","value":"x"}],"content":{"text":"<html>"}}},` +
		`{"startedDateTime":"2026","request":{"method":"GET","url":"https://api.example.com/a","headers":[{"name":"retry-after","value":"99"}]},"response":{"status":429,"statusText":"","headers":[{"name":"Date","value":"Thu, 15 Jan 2026 12:00:00 GMT"},{"name":"X-RateLimit-Limit","value":"60"},{"name":"X-RateLimit-Remaining","value":"0"},{"name":"Retry-After","value":"7"}],"content":{"size":1,"mimeType":"application/json","text":"{\"message\":\"slow\"}"}},"timings":{"wait":1}},` +
		`{"request":{"url":"https://www.example.org/x.png"},"response":{"status":200,"headers":[{"name":"etag","value":"x"}]}}]}}`,
	"logfmt":                     `time=2026-01-15T12:00:01Z level=WARN msg="refused; a=b" status=429 date="Thu, 15 Jan 2026 12:00:00 GMT" x-ratelimit-limit=60 x-ratelimit-remaining=0 retry-after=7 took=1.2s`,
	"an object, cut off":         `{"status": 429, "headers": {"date": "Thu, 15 Jan 2026 12:00:00 GMT", "x-ratelimit-limit": "60", "x-ratelimit-remaining": "0", "retry-after": "7"}, "data": {"message": "sl`,
	"names and values in turn":   `{"statusCode": 429, "rawHeaders": ["Date", "Thu, 15 Jan 2026 12:00:00 GMT", "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "Retry-After", "7"]}`,
	"a list of pairs":            `HTTP 429: [["date", "Thu, 15 Jan 2026 12:00:00 GMT"], ["x-ratelimit-limit", "60"], ["x-ratelimit-remaining", "0"], ["retry-after", "7"]]`,
	"a response and its request": `{"response": {"status": 429, "headers": {"date": "Thu, 15 Jan 2026 12:00:00 GMT", "x-ratelimit-limit": "60", "x-ratelimit-remaining": "0", "retry-after": "7"}, "config": {"url": "https://api.example.com/a", "headers": {"Retry-After": "99"}}}, "request": {"status": 200, "headers": {"Retry-After": "99"}}}`,
	"headers in a text":          `{"status": 429, "headers": "{\"date\": \"Thu, 15 Jan 2026 12:00:00 GMT\", \"x-ratelimit-limit\": \"60\", \"x-ratelimit-remaining\": \"0\", \"retry-after\": \"7\"}"}`,
}

func TestForms(t *testing.T) {
	for name, text := range forms {
		a, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a.Status != 429 || !a.Said {
			t.Errorf("%s: status %d, said: %v", name, a.Status, a.Said)
		}
		for _, field := range slices.Sorted(maps.Keys(limited)) {
			if got := a.Header[field]; !slices.Equal(got, limited[field]) {
				t.Errorf("%s: %s is %q, want %q\n%q", name, field, got, limited[field], a.Header)
			}
		}
		if strings.Contains(text, "api.example.com") && !strings.Contains(text, "Domain(") && a.Host != "api.example.com" {
			t.Errorf("%s: the host is %q", name, a.Host)
		}
		if body := string(a.Body); strings.Contains(text, "slow") && !strings.Contains(body, "slow") || strings.Contains(body, "* ") || strings.Contains(body, "--:--") {
			t.Errorf("%s: the body is %q", name, body)
		}
		// As PowerShell saves it.
		wide := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(text)) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		if again, err := Parse(wide); err != nil || again.Status != a.Status || len(again.Header) != len(a.Header) {
			t.Errorf("%s, in UTF-16: %v, %d with %d fields, want %d", name, err, again.Status, len(again.Header), len(a.Header))
		}
	}
}

func TestBodies(t *testing.T) {
	for name, c := range map[string]struct{ text, body string }{
		"an object is JSON again": {`{ "status": 429, "headers": { "retry-after": "7" }, "data": { "a": "x", "b": null, "c": true, "d": 1.50, "e": [ 1, "y" ] } }`, `{"a":"x","b":null,"c":true,"d":1.50,"e":[1,"y"]}`},
		"in a line of a log":      {`2026-01-15 12:00:01 WARN status code 429: {"error": {"message": "It's too much.", "code": null}}`, `{"error":{"message":"It's too much.","code":null}}`},
		"that looks like fields":  {`{"message":"You are being rate limited.","retry_after":64.57,"global":false}`, `{"message":"You are being rate limited.","retry_after":64.57,"global":false}`},
		"after fields":            {"retry-after: 7\n\n{\"retry_after\": 64.57, \"status\": 503}\n", "{\"retry_after\": 64.57, \"status\": 503}\n"},
		"text":                    {`{"status":429,"headers":{"retry-after":"7"},"body":"slow\ndown\u0021"}`, "slow\ndown!"},
	} {
		a, err := Parse([]byte(c.text))
		if err != nil || string(a.Body) != c.body {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, a.Body, c.body)
		}
	}
}

// Even the longest and strangest text is read in a moment and not in minutes.
func TestLongTexts(t *testing.T) {
	race.Without(t) // which takes its time
	for _, s := range []string{"(", "{}", "[a]", "{'", "a=(", "map[", "<a", "{\"a\":", "{\"a\":1}\n", "{a:1}\n", "=>", "at (", "x=\"", "'a'+", "429 ", "< HTTP/1.1 1\n", "a: b\n", "a-b\n", "{\"retry-after\":1}", "{'retry-after':1}"} {
		began := cli.CPUSeconds() // time goes by on a busy machine, too
		n := 1 << 16
		if s == "a=(" {
			n = 1 << 18 // given up early, since each try is expensive
		}
		_, _ = Parse([]byte(strings.Repeat(s, n/len(s))))
		if took := cli.CPUSeconds() - began; took > 2 {
			t.Errorf("%q over and over took %.1f s", s, took)
		}
	}
}

// Parse invents nothing that the text lacks.
func TestUnsaid(t *testing.T) {
	for _, text := range []string{"retry-after: 7", `{"Retry-After": "7", "Age": "429"}`, "Retry-After\n7", "level=warn retry-after=7", `{"retry-after": 7, "message": "took 429 ms, code 1.429, x429 Too Many Requests, code 429.5"}`} {
		if a, err := Parse([]byte(text)); err != nil || a.Said || a.Status != 200 || a.Header.Get("Retry-After") != "7" || a.Host != "" {
			t.Errorf("%q: %v %+v", text, err, a)
		}
	}
	a, err := Parse([]byte("HTTP/1.1 429\nX-App-Usage: {\"call_count\":28,'\nReport-To: {\"retry-after\":1}\n"))
	if err != nil || len(a.Header) != 2 || a.Header.Get("Retry-After") != "" {
		t.Errorf("%v %+v", err, a)
	}
	a, err = Parse([]byte("X-Ratelimit-Limit: 5\nReport-To: {\"retry-after\":1}\nNel: {\"a\":\"b\",\"c\":'\nEtag: 'x'\n"))
	if err != nil || len(a.Header) != 4 || a.Header.Get("Retry-After") != "" {
		t.Errorf("%v %+v", err, a)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "line 1: nothing there; want an answer as curl -i prints it",
		"\n\n# only this\n":                 "line 1: nothing there",
		"hello\n":                           `line 1: "hello" is no header field; want Name: value`,
		"hello\nworld\n":                    `line 1: "hello" is no header field`,
		"\n\nhello there\n":                 `line 3: "hello there" is no header field`,
		"HTTP/1.1 OK\n":                     `line 1: "HTTP/1.1 OK" has no status code; want a line like HTTP/1.1 429`,
		"* x\n< HTTP/1.1\n":                 "line 2: ",
		"< HTTP/1.1 200\n< a b\n":           `line 2: "a b" is no header field`,
		"HTTP/1.1 200\nX: y\na b\n":         `line 3: "a b" is no header field`,
		"X-A: y\nRetry-After: 1\na b\n":     `line 3: "a b" is no header field`,
		"retry-after\n7\nx ratelimit\n60\n": `line 3: "x ratelimit" is no name of a header field; want name and value on lines`,
		"{\n \"a\": \"1\",\n \"retry-after\": 7s\n}\n":                  `line 3: invalid character 's' after object key:value pair; want JSON`,
		"{\n \"retry-after\": [1,\n 2}\n}":                              "line 3: invalid character '}' after array element; want JSON",
		`{"message": "x", "config": {"headers": {"Retry-After": "9"}}}`: "line 1: no header fields in it",
		`{"a": 1}`: `line 1: no header fields in it; want JSON that holds them, such as {"status": 429`,
		"{\"a\": 1,\n\"b\":\n" + strings.Repeat("[", 100) + "\n": "line 3: brackets in brackets, more than 64 deep",
		"<!DOCTYPE html>\n<style>a { b: c }</style>":             `line 1: "<!DOCTYPE html>" begins a page that says no code; want the answer as curl -i prints it`,
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParse: no text causes a panic. An accepted text has a status and valid field names. An error
// has a line.
func FuzzParse(f *testing.F) {
	for _, s := range forms {
		f.Add([]byte(s))
	}
	for _, s := range []string{"HTTP/1.1 200 OK\nA: b\n c\n\nbody", "HTTP/2 429\r\n\r\n", "A: b", "< HTTP/1.1 100\n<\n< HTTP/1.1 200\n", " a: b", "\n", "#", "HTTP/", "HTTP/1.1 200\n\nHTTP/", "a\nb", "a-b:\n", ":status",
		"\x1b[", "\x1b]", "\xff\xfe{", "map[", "map[a:[", "{a:[(<ref *1>", "<a", "'\\", "{'\\x4", "a=\"", "a==b", "[[a,b]]", "{headers:{name:1,value:{}}}", "'a'+", "x: 1,\n'y': 2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return
		}
		a, err := Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if a.Status < 100 || a.Status > 999 || a.Header == nil || !a.Said && a.Status != 200 {
			t.Errorf("%q is read as %+v", text, a)
		}
		for name, values := range a.Header {
			if !FieldName(name) || len(values) == 0 {
				t.Errorf("%q has the field %q: %q", text, name, values)
			}
		}
	})
}

// A body alone is Bare, unless it states its status. It may be JSON or XML. A request is no body.
func TestBare(t *testing.T) {
	for text, want := range map[string]int{
		`{"error":{"message":"slow","type":"tokens","code":"rate_limit_exceeded"}}`: 200,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`:                      429,
		`{"message":"slow","status":503}`:                                           503,
		`[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"m"}]`:                    200,
		`{"code":"50011","msg":"Too Many Requests","data":[]}`:                      200,
		`{"ok":false,"error":"ratelimited"}`:                                        200,
		"<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code></Error>":             200,
	} {
		a, err := Parse([]byte(text))
		if err != nil || a.Bare == a.Said || len(a.Body) == 0 || a.Status != want || a.Said != (want != 200) {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	for _, text := range []string{`{"a":1}`, `{"message":"x","config":{"headers":{"Retry-After":"9"}}}`, `[1,2]`, `{"error":"x"} and more`} {
		if a, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, a)
		}
	}
}
