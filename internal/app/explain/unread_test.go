package explain

import (
	"strings"
	"testing"
)

// objectsPrinted are answers as programs print them.
var objectsPrinted = map[string]string{
	"Node":               "{\n  date: 'Thu, 15 Jan 2026 12:00:00 GMT',\n  'x-ratelimit-limit': '60',\n  'x-ratelimit-remaining': '0',\n  'retry-after': '7',\n  status: 429\n}",
	"lines of an object": "    date: 'Thu, 15 Jan 2026 12:00:00 GMT',\n    'x-ratelimit-limit': '60',\n    'x-ratelimit-remaining': '0',\n    'retry-after': '7',\n    status: 429,\n",
	"axios, error.response": "AxiosError: Request failed with status code 429\n    at settle (file:///x/node_modules/axios/lib/core/settle.js:19:12) {\n  code: 'ERR_BAD_REQUEST',\n  config: {\n    url: 'https://api.example.com/a',\n    headers: Object [AxiosHeaders] {\n      Accept: 'application/json',\n      'Retry-After': '99'\n    },\n    transformRequest: [ [Function: transformRequest] ]\n  },\n" +
		"  request: <ref *1> ClientRequest {\n    _header: 'GET / HTTP/1.1\\r\\n',\n    [Symbol(kNeedDrain)]: false\n  },\n  response: {\n    status: 429,\n    statusText: 'Too Many Requests',\n    headers: Object [AxiosHeaders] {\n      date: 'Thu, 15 Jan 2026 12:00:00 GMT',\n      'x-ratelimit-limit': '60',\n      'x-ratelimit-remaining': '0',\n      'retry-after': '7'\n    },\n    data: { message: 'slow' }\n  }\n}",
	"axios, a response":               "{\n  status: 429,\n  headers: { date: 'Thu, 15 Jan 2026 12:00:00 GMT', 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0', 'retry-after': '7' },\n  config: { url: 'https://api.example.com/a', headers: { 'Retry-After': '99' } },\n  request: { status: 200, headers: { 'Retry-After': '99' } }\n}",
	"Headers of undici":               "Response {\n  status: 429,\n  statusText: 'Too Many Requests',\n  headers: Headers {\n    date: 'Thu, 15 Jan 2026 12:00:00 GMT',\n    'x-ratelimit-limit': '60',\n    'x-ratelimit-remaining': '0',\n    'retry-after': '7'\n  },\n  url: 'https://api.example.com/a'\n}",
	"an answer and its headers again": "Response {\n  status: 429,\n  headers: Headers { date: 'Thu, 15 Jan 2026 12:00:00 GMT', 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0', 'retry-after': '7' }\n}\nHeaders {\n  'x-ratelimit-limit': '60',\n  'retry-after': '7'\n}",
	"Headers of Node 18":              "Headers {\n  [Symbol(guard)]: 'response',\n  [Symbol(headers list)]: HeadersList {\n    cookies: null,\n    [Symbol(headers map)]: Map(4) {\n      'date' => { name: 'Date', value: 'Thu, 15 Jan 2026 12:00:00 GMT' },\n      'x-ratelimit-limit' => { name: 'x-ratelimit-limit', value: '60' },\n      'x-ratelimit-remaining' => { name: 'x-ratelimit-remaining', value: '0' },\n      'retry-after' => { name: 'retry-after', value: '7' }\n    },\n    [Symbol(headers map sorted)]: null\n  }\n} 429 Too Many Requests",
	"rawHeaders":                      "{ statusCode: 429, rawHeaders: [\n  'Date', 'Thu, 15 Jan 2026 12:00:00 GMT',\n  'X-RateLimit-Limit', '60', 'X-RateLimit-Remaining', '0',\n  'Retry-After', '7' ] }",
	"an SDK of Node":                  "RateLimitError: 429 Rate limit reached for gpt-4o\n    at APIError.generate (/x/error.js:63:20)\n    at OpenAI.makeStatusError (/x/core.js:462:33) {\n  status: 429,\n  headers: {\n    date: 'Thu, 15 Jan 2026 12:00:00 GMT',\n    'retry-after': '7',\n    'x-ratelimit-limit': '60',\n    'x-ratelimit-remaining': '0'\n  },\n  request_id: 'req_1',\n  error: {\n    message: 'slow ' +\n      'down',\n    type: 'tokens',\n    param: null\n  }\n}",
	"Python, dict":                    "{'Date': 'Thu, 15 Jan 2026 12:00:00 GMT', 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '0', 'Retry-After': '7', 'status': 429}",
	"Python, CaseInsensitiveDict":     "<Response [429]>\nCaseInsensitiveDict({'Date': 'Thu, 15 Jan 2026 12:00:00 GMT', 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '0', 'Retry-After': '7'})",
	"Python, httpx":                   "<Response [429 Too Many Requests]> Headers([('date', 'Thu, 15 Jan 2026 12:00:00 GMT'), ('x-ratelimit-limit', '60'), ('x-ratelimit-remaining', '0'), ('retry-after', '7')])",
	"Python, aiohttp":                 "status=429, headers=<CIMultiDictProxy('Date': 'Thu, 15 Jan 2026 12:00:00 GMT', 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '0', 'Retry-After': '7')>",
	"Python, bytes":                   "{'status': 429, 'headers': {b'Date': [b'Thu, 15 Jan 2026 12:00:00 GMT'], b'X-Ratelimit-Limit': [b'60'], b'X-Ratelimit-Remaining': [b'0'], b'Retry-After': [b'7']}}",
	"Go, Header":                      "2026/01/15 12:00:01 429 Too Many Requests map[Date:[Thu, 15 Jan 2026 12:00:00 GMT] Nel:[{\"group\":\"[x]\"}] Retry-After:[7] X-Ratelimit-Limit:[60] X-Ratelimit-Remaining:[0]]",
	"Go, Response":                    "&{Status:429 Too Many Requests StatusCode:429 Proto:HTTP/1.1 ProtoMajor:1 ProtoMinor:1 Header:map[Date:[Thu, 15 Jan 2026 12:00:00 GMT] Retry-After:[7] X-Ratelimit-Limit:[60] X-Ratelimit-Remaining:[0]] Body:0xc0000a1b40 ContentLength:-1 Close:false}",
	"Go, %#v":                         `StatusCode:429, Header:http.Header{"Date":[]string{"Thu, 15 Jan 2026 12:00:00 GMT"}, "Retry-After":[]string{"7"}, "X-Ratelimit-Limit":[]string{"60"}, "X-Ratelimit-Remaining":[]string{"0"}}`,
	"slog":                            `time=2026-01-15T12:00:01.000Z level=WARN msg=refused status=429 headers="map[Date:[Thu, 15 Jan 2026 12:00:00 GMT] Retry-After:[7] X-Ratelimit-Limit:[60] X-Ratelimit-Remaining:[0]]"`,
	"Ruby":                            `{:status=>429, "date"=>["Thu, 15 Jan 2026 12:00:00 GMT"], "x-ratelimit-limit"=>["60"], "x-ratelimit-remaining"=>["0"], "retry-after"=>["7"]}`,
	"Java":                            "status: 429 headers: {date=[Thu, 15 Jan 2026 12:00:00 GMT], retry-after=[7], x-ratelimit-limit=[60], x-ratelimit-remaining=[0]}",
	"Rust":                            `Response { url: Url { scheme: "https", host: Some(Domain("api.example.com")), port: None }, status: 429, headers: {"date": "Thu, 15 Jan 2026 12:00:00 GMT", "x-ratelimit-limit": "60", "x-ratelimit-remaining": "0", "retry-after": "7"} }`,
	"cut off":                         "{\n  status: 429,\n  headers: {\n    date: 'Thu, 15 Jan 2026 12:00:00 GMT',\n    'x-ratelimit-limit': '60',\n    'x-ratelimit-remaining': '0',\n    'retry-after': '7',\n",
}

// An object as a language prints it is refused, with its line and what to paste instead. Nothing is
// read of it by half.
func TestObjectsAreNotRead(t *testing.T) {
	for name, text := range objectsPrinted {
		a, err := Parse([]byte(text))
		kind := "is of an object as a program prints it, which is not read; " + insteadOfObject
		if strings.Contains(text, "\n    at ") {
			kind = "is of an error's trace, which is not read; " + insteadOfTrace
		}
		if err == nil || !strings.HasPrefix(err.Error(), "line ") || !strings.HasSuffix(err.Error(), kind) {
			t.Errorf("%s: %v, %+v", name, err, a)
		}
	}
}

// A trace is refused, with its first line and what to paste instead, whatever status is in its
// words.
func TestTracesAreNotRead(t *testing.T) {
	for text, line := range map[string]string{
		"Traceback (most recent call last):\n  File \"a.py\", line 3\nopenai.RateLimitError: Error code: 429 - {'error': {'code': None}}":         `line 1: "Traceback`,
		"during the night:\n  File \"a.py\", line 3, in f\nValueError: x":                                                                         `line 2: "  File`,
		"anthropic.RateLimitError: Error code: 429 - rate_limit_error":                                                                            `line 1: "anthropic.RateLimitError`,
		"google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded for quota metric":                                                       `line 1: "google.api_core`,
		"HTTPError: Response code 429 (Too Many Requests)":                                                                                        `line 1: "HTTPError`,
		"requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://api.github.com/users/octocat":                        `line 1: "requests.exceptions`,
		"\nAn error occurred (ThrottlingException) when calling the ListUsers operation: Rate exceeded":                                           `line 2: "An error occurred`,
		"RateLimitError: 429 {\"error\":{\"message\":\"slow\"}}\n    at APIError.generate (file:///app/node_modules/openai/core/error.mjs:59:20)": `line 2: "    at APIError`,
		"Exception in thread \"main\" com.stripe.exception.RateLimitException: slow; status code: 429\n\tat com.stripe.Live.request(Live.java:1)": `line 2: "\tat com.stripe`,
		"panic: status 429\n\ngoroutine 1 [running]:\nmain.main()\n":                                                                              `line 3: "goroutine 1`,
	} {
		a, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), line) || !strings.HasSuffix(err.Error(), "is of an error's trace, which is not read; "+insteadOfTrace) {
			t.Errorf("%q: %v, %+v", text, err, a)
		}
	}
}

// A text that resembles a trace or a printed object, and is neither, is read.
func TestLikeTraces(t *testing.T) {
	for name, text := range map[string]string{
		"a trace in a body":          "HTTP/1.1 429\nRetry-After: 7\n\nTraceback (most recent call last):\n  File \"a.py\", line 3\n",
		"a trace after fields":       "status: 429\nretry-after: 7\n\nError: x\n    at f (a.js:1:2)\n",
		"a trace in JSON":            `{"status": 429, "headers": {"retry-after": "7"}, "stack": "Error: x\n    at f (a.js:1:2)"}`,
		"an error's name, then JSON": `Error: {"status": 429, "headers": {"retry-after": "7"}}`,
		"an object in JSON":          `{"status": 429, "headers": {"retry-after": "7"}, "message": "map[a:b] Foo{ a: 'b', c => 1 }"}`,
		"JSON in a log":              "body: {\n  \"status\": 429,\n  \"headers\": {\"retry-after\": 7}\n}\n",
	} {
		a, err := Parse([]byte(text))
		if err != nil || a.Status != 429 || a.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: %v, %+v", name, err, a)
		}
	}
}
