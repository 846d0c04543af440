package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// A refusal in an answer 200 is read as if it had the status of one, whoever answers: as JSON, as
// the first event of a stream, as a line. The wait that it states counts.
func TestRefusedWith200(t *testing.T) {
	const words = `"Rate limit reached, please try again in 3s"`
	for _, c := range []struct {
		name, kind, body string
		why              provider.Refusal
	}{
		{"as OpenAI's", "", `{"error":{"message":` + words + `,"type":"rate_limit_error","code":"rate_limit_exceeded"}}`, provider.RateLimited},
		{"with empty choices", "", `{"id":"x","object":"chat.completion.chunk","created":1,"error":{"code":429,"message":"x"},"choices":[]}`, provider.RateLimited},
		{"as Anthropic's", "", `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, provider.RateLimited},
		{"an overload", "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.Overloaded},
		{"as Google's", "", `{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}`, provider.RateLimited},
		{"Google's stream as an array", "", `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]`, provider.RateLimited},
		{"a text", "", `{"error":"Too many requests, slow down"}`, provider.RateLimited},
		{"flat", "", `{"code":429,"msg":"Too many requests","data":null}`, provider.RateLimited},
		{"flat, with a text code", "", `{"code":"RATE_LIMITED","message":"x"}`, provider.RateLimited},
		{"flat, no success", "", `{"success":false,"message":"You are being rate limited"}`, provider.RateLimited},
		{"in Chinese", "", `{"success":false,"message":"请求过于频繁，请稍后再试"}`, provider.RateLimited},
		{"GraphQL", "", `{"data":null,"errors":[{"message":"x","extensions":{"code":"THROTTLED"}}]}`, provider.RateLimited},
		{"GraphQL, all members null", "", `{"data":{"a":null},"errors":[{"type":"RATE_LIMITED","message":"x"}]}`, provider.RateLimited},
		{"GraphQL in a list", "", `[{"errors":[{"extensions":{"code":"RATELIMITED"}}]},{"errors":[{"extensions":{"code":"RATELIMITED"}}]}]`, provider.RateLimited},
		{"JSON-RPC", "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"daily request count exceeded, request rate limited"}}`, provider.RateLimited},
		{"a batch of which all is refused", "", `{"responses":[{"id":"1","status":429},{"id":"2","status":429}]}`, provider.RateLimited},
		{"bulk, all refused", "", `{"errors":true,"items":[{"index":{"status":429,"error":{"type":"es_rejected_execution_exception"}}}]}`, provider.RateLimited},
		{"as text/plain", "text/plain", `{"error":{"type":"rate_limit_error"}}`, provider.RateLimited},
		{"the first event", "text/event-stream", "data: {\"error\":{\"message\":" + words + ",\"type\":\"rate_limit_error\"}}\n\ndata: [DONE]\n\n", provider.RateLimited},
		{"after a comment", "text/event-stream; charset=utf-8", ": PROCESSING\r\n\r\nevent: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\r\n\r\n", provider.Overloaded},
		{"after the preamble", "text/event-stream", "data: {\"type\":\"response.created\",\"response\":{\"status\":\"queued\"}}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":" + words + "}}}\n\n", provider.RateLimited},
		{"a line", "application/x-ndjson", "{\"error\":\"rate limit exceeded\"}\n", provider.RateLimited},
		{"no credit", "", `{"error":{"code":"insufficient_quota","message":"x"}}`, provider.Unpaid},
	} {
		r := respond(200, c.body, "Content-Type: "+kindOr(c.kind))
		if c.why == provider.Unpaid {
			d, _ := provider.Lookup("openai")
			if o := d.Read(noon, r); o.Refusal != c.why || o.Partly {
				t.Errorf("%s: %+v", c.name, o)
			}
			continue
		}
		for _, name := range []string{"generic", "openai", "anthropic", "openrouter", "github", "ietf"} {
			d, _ := provider.Lookup(name)
			o := d.Read(noon, r)
			if o.Refusal != c.why || o.Partly {
				t.Errorf("%s, read as %s: %+v", c.name, name, o)
			}
			if name == "openai" && strings.Contains(c.body, "try again in 3s") && o.RetryAfter != 3*time.Second {
				t.Errorf("%s, read as %s: stays away for %v", c.name, name, o.RetryAfter)
			}
		}
	}
}

func kindOr(kind string) string {
	if kind == "" {
		return "application/json"
	}
	return kind
}

// An answer that was served in part has both.
func TestServedInPart(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		kind   string
		body   string
		want   provider.Parts
	}{
		{"Microsoft Graph", 200, "", `{"responses":[{"id":"1","status":201,"body":{}},{"id":"2","status":429,"headers":{"Retry-After":"7"}}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"GraphQL", 200, "", `{"data":{"a":{"id":1},"b":null},"errors":[{"type":"RATE_LIMITED","path":["b"]}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"Shopify", 200, "", `{"data":{"a":{"id":1},"b":null,"c":null},"errors":[{"extensions":{"code":"THROTTLED"}},{"extensions":{"code":"THROTTLED"}}]}`, provider.Parts{Served: 1, Refused: 2}},
		{"Linear", 200, "", `{"data":{"a":{"success":true},"b":null},"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"batched GraphQL", 200, "", `[{"data":{"a":1}},{"errors":[{"extensions":{"code":"RATE_LIMITED"}}]}]`, provider.Parts{Served: 1, Refused: 1}},
		{"Elasticsearch", 200, "", `{"took":30,"errors":true,"items":[{"index":{"_id":"1","status":201}},{"create":{"_id":"2","status":429,"error":{"type":"es_rejected_execution_exception"}}},{"update":{"_id":"3","status":404}}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"a search of which shards failed", 200, "", `{"_shards":{"total":5,"successful":4,"failed":1,"failures":[{"reason":{"type":"es_rejected_execution_exception"}}]},"hits":{}}`, provider.Parts{Served: 4, Refused: 1}},
		{"_msearch", 200, "", `{"responses":[{"status":200,"hits":{}},{"status":429,"error":{"type":"es_rejected_execution_exception"}}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"DynamoDB writes", 200, "application/x-amz-json-1.0", `{"UnprocessedItems":{"T":[{"PutRequest":{}},{"PutRequest":{}}]}}`, provider.Parts{Refused: 2}},
		{"DynamoDB reads", 200, "application/x-amz-json-1.0", `{"Responses":{"T":[{},{},{}]},"UnprocessedKeys":{"T":{"Keys":[{},{}]}}}`, provider.Parts{Served: 3, Refused: 2}},
		{"Kinesis", 200, "application/x-amz-json-1.1", `{"FailedRecordCount":1,"Records":[{"SequenceNumber":"1"},{"ErrorCode":"ProvisionedThroughputExceededException"}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"EventBridge", 200, "application/x-amz-json-1.1", `{"FailedEntryCount":1,"Entries":[{"EventId":"1"},{"ErrorCode":"ThrottlingException"}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"SQS", 200, "application/x-amz-json-1.0", `{"Successful":[{"Id":"1"}],"Failed":[{"Id":"2","Code":"RequestThrottled"}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"Salesforce", 200, "", `{"compositeResponse":[{"httpStatusCode":201},{"httpStatusCode":429}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"OKX", 200, "", `{"code":"2","data":[{"sCode":"0"},{"sCode":"50061","sMsg":"sub-account limit"}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"Binance", 200, "", `[{"orderId":1,"symbol":"A"},{"code":-1015,"msg":"Too many new orders."}]`, provider.Parts{Served: 1, Refused: 1}},
		{"Facebook", 200, "", `[{"code":200,"body":"{}"},{"code":400,"body":"{\"error\":{\"code\":4,\"message\":\"(#4) Application request limit reached\"}}"}]`, provider.Parts{Served: 1, Refused: 1}},
		{"JSON-RPC", 200, "", `[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":2,"error":{"code":429,"message":"x"}}]`, provider.Parts{Served: 1, Refused: 1}},
		{"207", 207, "", `{"results":[{"status":201},{"status":429},{"status":"429"},{"status":400}]}`, provider.Parts{Served: 1, Refused: 2}},
		{"207, a list", 207, "", `[{"statusCode":200},{"statusCode":503}]`, provider.Parts{Served: 1, Refused: 1}},
		{"207, HubSpot", 207, "", `{"status":"COMPLETE","results":[{"id":"1"}],"numErrors":1,"errors":[{"status":"error","category":"RATE_LIMITS","message":"x"}]}`, provider.Parts{Served: 1, Refused: 1}},
		{"207, WebDAV", 207, "application/xml", `<D:multistatus><D:status>HTTP/1.1 200 OK</D:status><D:status>HTTP/1.1 429 Too Many Requests</D:status></D:multistatus>`, provider.Parts{Served: 1, Refused: 1}},
		{"a batch of Google's", 200, "multipart/mixed; boundary=b", "--b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}\r\n--b\r\n\r\nHTTP/1.1 429 Too Many Requests\r\n\r\n{}\r\n--b--", provider.Parts{Served: 1, Refused: 1}},
		{"a stream", 200, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\ndata: {\"error\":{\"message\":\"Overloaded\",\"code\":429},\"choices\":[]}\n\n", provider.Parts{Served: 1, Refused: 1}},
		{"cut off", 200, "", `{"errors":true,"items":[{"index":{"status":429}},{"index":{"status":201}},{"index":{"status":2`, provider.Parts{Served: 1, Refused: 1}},
	} {
		for _, name := range []string{"generic", "openai", "aws", "shopify", "linear", "monday", "microsoft-graph"} {
			d, _ := provider.Lookup(name)
			if o := d.Read(noon, respond(c.status, c.body, "Content-Type: "+kindOr(c.kind))); o.Refusal == provider.None || !o.Partly || o.Parts != c.want {
				t.Errorf("%s, read as %s: %q, partly %v %+v, want %+v", c.name, name, o.Refusal, o.Partly, o.Parts, c.want)
			}
		}
	}
}

// Words about limits are no refusal where they are content, or a thing that the server keeps.
func TestNotRefusedWith200(t *testing.T) {
	for _, c := range []struct{ name, kind, body string }{
		{"an answer of a model", "", `{"id":"x","object":"chat.completion","created":1,"choices":[{"message":{"content":"{\"error\":{\"type\":\"rate_limit_error\",\"code\":429}}"}}],"usage":{"total_tokens":429}}`},
		{"of the responses API", "", `{"id":"r","object":"response","created_at":1,"status":"completed","error":null,"output":[{"type":"message","content":[{"text":"Rate limit exceeded: 429"}]}]}`},
		{"a stream about limits", "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Too many requests: rate limit exceeded\"}}]}\n\ndata: [DONE]\n\n"},
		{"a job that failed", "", `{"id":"job_1","status":"failed","created_at":1,"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}`},
		{"jobs", "", `{"data":[{"id":"job_1","status":"failed","error":{"code":"rate_limit_exceeded"}},{"id":"job_2","status":"done"}],"error":null}`},
		{"a list of jobs", "", `[{"id":"job_1","status":"failed","error":{"code":"rate_limit_exceeded"}},{"id":"job_2","status":"done"}]`},
		{"deliveries of webhooks", "", `[{"id":1,"status":"Too Many Requests","status_code":429},{"id":2,"status":"OK","status_code":200}]`},
		{"a log", "", `[{"timestamp":"t","status":429,"message":"Too many requests","path":"/a"},{"timestamp":"u","status":200,"message":"ok","path":"/b"}]`},
		{"the state of limits", "", `{"rate":{"limit":5000,"remaining":0,"reset":1},"resources":{"core":{"limit":5000}}}`},
		{"a validation error about a field", "", `{"errors":[{"code":"invalid_parameter","message":"rate_limit exceeded the most, 100"}]}`},
		{"an error of GraphQL that is none of limits", "", `{"data":{"a":1,"b":null},"errors":[{"message":"not found","extensions":{"code":"NOT_FOUND"}}],"limit":1}`},
		{"too deep a query", "", `{"data":null,"errors":[{"message":"x","extensions":{"code":"DEPTH_LIMIT_EXCEEDED"}}]}`},
		{"too long a prompt", "", `{"error":{"code":"context_length_exceeded","message":"too many tokens: the limit is 8192"}}`},
		{"bulk, all well", "", `{"errors":false,"items":[{"index":{"_id":"429","status":201}}]}`},
		{"nothing unprocessed", "", `{"UnprocessedItems":{},"limit":0}`},
		{"items that have a status", "", `{"items":[{"order":{"status":429}}],"total":1}`},
		{"a text", "", `"rate limit exceeded"`},
		{"a chat", "", `{"message":"rate limit exceeded, said the server","status":"ok"}`},
		{"a code that is none", "", `{"code":0,"message":"rate limit exceeded is what you asked about"}`},
		{"an empty error", "", `{"error":{},"result":"Too many requests"}`},
		{"a page", "text/html", `<title>429 Too Many Requests, and how to avoid them</title>`},
	} {
		for _, name := range []string{"generic", "openai", "anthropic", "ietf", "aws"} {
			d, _ := provider.Lookup(name)
			if o := d.Read(noon, respond(200, c.body, "Content-Type: "+kindOr(c.kind))); o.Refusal != provider.None || o.Partly {
				t.Errorf("%s, read as %s: %q, %+v", c.name, name, o.Refusal, o.Parts)
			}
		}
	}
}

// No body of an answer 200, however odd, breaks the reading, and nothing is partly served without a
// refusal.
func FuzzWithin(f *testing.F) {
	for _, body := range []string{
		`{"responses":[{"status":201},{"status":429}]}`, `[[[[{"error":"rate limit exceeded"}]]]]`, `{"errors":[[{"code":429}]],"data":{"a":1}}`,
		"data: {\"error\":{\"code\":429}}\n\n", "HTTP/1.1 429", `{"UnprocessedItems":{"T":7}}`, `{"items":[{"index":null,"x":1},{}],"errors":429`,
	} {
		f.Add(body, uint8(0), uint8(0))
	}
	kinds := []string{"application/json", "text/event-stream", "multipart/mixed", "application/xml", ""}
	f.Fuzz(func(t *testing.T, body string, kind, status uint8) {
		d := nth(status)
		r := respond(200+int(status%8), body, "Content-Type: "+kinds[int(kind)%len(kinds)])
		o := d.Read(noon, r)
		check(t, "within", noon, o)
		if o.Partly && o.Refusal == provider.None || o.Parts.Served < 0 || o.Parts.Refused < 0 {
			t.Errorf("%+v", o)
		}
	})
}

// What a served answer costs before its reading: most have no sign of a refusal.
func BenchmarkMayRefuse(b *testing.B) {
	for name, body := range map[string]string{
		"short": `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`,
		"2 KiB": strings.Repeat(`{"role":"assistant","content":"some words"},`, 47),
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte(body)
			for b.Loop() {
				if provider.MayRefuse(text) {
					b.Fatal("it has a sign")
				}
			}
		})
	}
}
