package service_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

const asks = `"messages":[{"role":"user","content":"Why?"}]`

// The shape of a trip, in each form of a request.
const tripSchema = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":3}}}`

// TestEndpoints: each endpoint answers in the vendor's form, with the mistakes in a request refused
// in the vendor's words.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		provider, key, request string
		status                 int
		says                   string // every part, separated by " & "
	}{
		{"groq", "k", `POST /openai/v1/chat/completions {"model":"m","max_tokens":2,` + asks + `}`, 200, `"object":"chat.completion" & "content":"the cat " & "finish_reason":"length" & "completion_tokens":2 & "total_time": & "x_groq":{"id":"req_`},
		{"groq", "k", `POST /openai/v1/chat/completions {"model":"m","stream":true,` + asks + `}`, 200, `data: {"choices":[{"delta":{"content":"" & data: [DONE] & "x_groq":{"id":"req_000000000000000000000001","usage":{"completion_time"`},
		{"groq", "k", `POST /openai/v1/chat/completions {"model":"m"}`, 400, `"message":"messages: field required","type":"invalid_request_error","param":"messages"`},
		{"groq", "k", `POST /openai/v1/chat/completions {`, 400, `could not parse the JSON body`},
		{"groq", "", `POST /openai/v1/chat/completions {}`, 401, `"message":"Invalid API Key","type":"invalid_request_error","param":null,"code":"invalid_api_key"`},
		{"groq", "k", `GET /openai/v1/models`, 200, `"id":"llama-3.3-70b-versatile" & "object":"list" & "context_window"`},
		{"groq", "k", `GET /openai/v1/models/openai/gpt-oss-20b`, 200, `"id":"openai/gpt-oss-20b"`},
		{"groq", "k", `GET /openai/v1/models/nope`, 404, `"code":"model_not_found"`},
		{"groq", "", `GET /openai/v1/chat/completions`, 200, `{"status":"OK"}`},
		{"mistral", "k", `POST /v1/chat/completions {"model":"m","max_tokens":2,` + asks + `}`, 200, `"finish_reason":"length","index":0,"message":{"content":"the cat ","role":"assistant"} & "usage":{"completion_tokens":2,`},
		{"mistral", "k", `POST /v1/chat/completions {"model":"m","stream":true,` + asks + `}`, 200, `"finish_reason":"stop","index":0}] & "usage":{"completion_tokens":24 & data: [DONE]`},
		{"mistral", "k", `POST /v1/chat/completions {"model":"m"}`, 422, `"loc":["body","messages"],"msg":"Field required","type":"missing"`},
		{"mistral", "k", `POST /v1/chat/completions {"model":"m","messages":7}`, 400, `"message":"messages: not a list"`},
		{"mistral", "", `GET /v1/models`, 401, `{"detail":"Unauthorized"}`},
		{"mistral", "k", `GET /v1/models/mistral-embed`, 200, `"completion_chat":false`},
		{"mistral", "k", `GET /v1/models/nope`, 404, `not found`},
		{"azure-openai", "k", `POST /openai/deployments/d/chat/completions?api-version=1 {"max_tokens":2,` + asks + `}`, 200, `"model":"d" & "prompt_filter_results" & "severity":"safe"`},
		{"azure-openai", "k", `POST /openai/deployments/d/chat/completions?api-version=1 {"stream":true,` + asks + `}`, 200, `data: {"choices":[],"created":0 & "content_filter_results":{} & data: [DONE]`},
		{"azure-openai", "k", `POST /openai/deployments/d/chat/completions {` + asks + `}`, 404, `"message":"Resource not found"`},
		{"azure-openai", "", `POST /openai/v1/responses {"model":"d","input":"Why?"}`, 401, `Access denied due to invalid subscription key`},
		{"azure-openai", "k", `POST /openai/v1/responses {"model":"d","input":"Why?","max_output_tokens":2}`, 200, `"object":"response" & "text":"the cat "`},
		{"azure-openai", "k", `POST /openai/deployments/e/embeddings?api-version=1 {"input":["a","b"],"dimensions":2}`, 200, `"index":1`},
		{"azure-openai", "k", `GET /openai/v1/models/nope`, 404, `DeploymentNotFound`},
		{"gemini", "k", `POST /v1beta/models/m:generateContent {"contents":[{"parts":[{"text":"Why?"}]}],"generationConfig":{"maxOutputTokens":2,"candidateCount":2}}`, 200, `{"parts":[{"text":"the cat "}],"role":"model"},"finishReason":"MAX_TOKENS","index":1} & "candidatesTokenCount":4`},
		{"gemini", "k", `POST /v1beta/models/m:streamGenerateContent?alt=sse {"contents":[{"parts":[{"text":"Why?"}]}]}`, 200, `data: {"candidates":[{"content" & "finishReason":"STOP"`},
		{"gemini", "k", `POST /v1beta/models/m:streamGenerateContent {"contents":[{"parts":[{"text":"Why?"}]}]}`, 200, `[{"candidates" & "finishReason":"STOP"`},
		{"gemini", "k", `POST /v1beta/models/m:countTokens {"contents":[{"parts":[{"text":"Why?"}]}]}`, 200, `"totalTokens":11`},
		{"gemini", "k", `POST /v1beta/models/m:embedContent {"content":{"parts":[{"text":"Why?"}]},"outputDimensionality":1}`, 200, `{"embedding":{"values":[`},
		{"gemini", "k", `POST /v1beta/models/m:generateContent {"contents":[{"role":"wizard","parts":[]}]}`, 400, `"status":"INVALID_ARGUMENT" & valid role`},
		{"gemini", "k", `POST /v1beta/models/m:generateContent {}`, 400, `contents is not specified`},
		{"gemini", "k", `POST /v1beta/models/m:generateContent {"contents":7,"generationConfig":7}`, 400, `Invalid value at 'generationConfig'`},
		{"gemini", "", `POST /v1beta/models/m:generateContent {}`, 403, `"status":"PERMISSION_DENIED"`},
		{"gemini", "", `GET /v1beta/models?key=k&pageSize=1`, 200, `models/gemini-2.5-flash" & "nextPageToken":"1"`},
		{"gemini", "k", `GET /v1beta/models?pageSize=1&pageToken=3`, 200, `{"models":[{"description"`},
		{"gemini", "k", `GET /v1beta/models/nope`, 404, `NOT_FOUND`},
		{"gemini", "k", `POST /v1beta/openai/chat/completions {"model":"m",` + asks + `}`, 200, `"object":"chat.completion"`},
	} {
		t.Run(c.provider+" "+c.request, func(t *testing.T) {
			s := newServer(t, service.Config{Provider: c.provider})
			r := sends(s, c.key, c.request)
			if r.Status != c.status {
				t.Errorf("%d, want %d", r.Status, c.status)
			}
			for part := range strings.SplitSeq(c.says, " & ") {
				if !strings.Contains(string(r.Body), part) {
					t.Errorf("no %s in\n%s", part, r.Body)
				}
			}
			if report := s.Report(); report.Wrong != 0 || report.Accepted+report.Unauthorized != 1 || (c.status == 401 || c.status == 403) != (report.Unauthorized == 1) {
				t.Errorf("%+v", report)
			}
		})
	}
}

// TestStructured: JSON and tools fit the schema, whole and over a stream.
func TestStructured(t *testing.T) {
	format := `"response_format":{"type":"json_schema","json_schema":{"schema":` + tripSchema + `}}`
	tools := `"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","required":["days"],"properties":{"days":{"type":"integer","minimum":3}}}}}]`
	const trip, call = `{"city":"fig","days":3}`, `{"days":3}`
	chat := func(stream string, more string) string {
		return `POST /openai/v1/chat/completions {"model":"m",` + stream + asks + `,` + more + `}`
	}
	for _, c := range []struct{ provider, request, field, want string }{
		{"groq", chat("", format), "content", trip},
		{"groq", chat(`"stream":true,`, format), "content", trip},
		{"groq", chat("", tools), "arguments", call},
		{"groq", chat(`"stream":true,`, tools), "arguments", call},
		{"azure-openai", `POST /openai/v1/responses {"model":"m","input":"Why?","text":{"format":{"type":"json_schema","name":"t","schema":` + tripSchema + `}}}`, "text", trip},
		{"gemini", `POST /v1beta/models/m:generateContent {"contents":[{"parts":[{"text":"Why?"}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":` + strings.ToUpper(tripSchema[:17]) + tripSchema[17:] + `}}`, "text", ""},
		{"gemini", `POST /v1beta/models/m:streamGenerateContent?alt=sse {"contents":[{"parts":[{"text":"Why?"}]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + tripSchema + `}}`, "text", trip},
	} {
		if c.want == "" {
			c.request, c.want = strings.ReplaceAll(strings.ReplaceAll(c.request, "TYPE", "type"), "object", "OBJECT"), trip
		}
		r := sends(newServer(t, service.Config{Provider: c.provider}), "k", c.request)
		if got := fieldsOf(t, string(r.Body), c.field); got != c.want {
			t.Errorf("%s %s: %q, want %s in\n%s", c.provider, c.request, got, c.want, r.Body)
		}
	}
}

// fieldsOf joins the strings of a name, of all events of a body.
func fieldsOf(t *testing.T, body, name string) string {
	t.Helper()
	var all strings.Builder
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, v := range v {
				if s, ok := v.(string); ok && key == name {
					all.WriteString(s)
				}
				find(v)
			}
		case []any:
			for _, v := range v {
				find(v)
			}
		}
	}
	for line := range strings.Lines(body) {
		line = strings.TrimPrefix(line, "data: ")
		if line = strings.TrimSpace(line); line == "" || line == "[DONE]" {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		find(v)
	}
	return all.String()
}

// TestUsageIsCounted: the usage that an answer states is the cost that its request had.
func TestUsageIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `{"model":"m","max_tokens":40,` + asks + `}`
		s := newServer(t, service.Config{Provider: "mistral"})
		r := sends(s, "k", "POST /v1/chat/completions "+body)
		var said struct {
			Usage struct {
				Total int64 `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal(r.Body, &said); err != nil {
			t.Fatal(err)
		}
		for _, l := range s.Report().Limits {
			if l.Policy == "tokens" && l.Cost != said.Usage.Total || said.Usage.Total < 40 {
				t.Errorf("%d counted, %d stated", l.Cost, said.Usage.Total)
			}
		}
	})
}

// TestStranger: requests without a key reach no limit, and those with one are refused as ever.
func TestStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, service.Config{Provider: "mistral", Limits: []provider.Policy{{Name: "requests", Limit: 2}}})
		for _, want := range []struct {
			key    string
			status int
		}{{"", 401}, {"", 401}, {"", 401}, {"k", 200}, {"k", 200}, {"k", 429}, {"", 401}} {
			if r := sends(s, want.key, "GET /v1/models"); r.Status != want.status {
				t.Errorf("key %q: %d, want %d", want.key, r.Status, want.status)
			}
		}
		time.Sleep(time.Minute + time.Second)
		if r := sends(s, "k", "GET /v1/models"); r.Status != 200 {
			t.Error(r.Status)
		}
		if r := s.Report(); r.Unauthorized != 4 || r.Accepted != 3 || r.Limited != 1 || r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A client that leaves a stream ends it.
func TestStreamLeft(t *testing.T) {
	s := newServer(t, service.Config{Provider: "groq"})
	r := httptest.NewRequest(http.MethodPost, "/openai/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":4000,"stream":true,`+asks+`}`))
	r.Header.Set("Authorization", "Bearer k")
	w := &leaver{ResponseRecorder: httptest.NewRecorder()}
	if s.ServeHTTP(w, r); w.writes != 3 {
		t.Errorf("%d writes, want 3", w.writes)
	}
}

// leaver fails from the third write on.
type leaver struct {
	*httptest.ResponseRecorder
	writes int
}

func (l *leaver) Write(p []byte) (int, error) {
	if l.writes++; l.writes > 2 {
		return 0, http.ErrHandlerTimeout
	}
	return l.ResponseRecorder.Write(p)
}

// FuzzEndpoints: no body breaks an endpoint, and every answer is JSON or a stream of it.
func FuzzEndpoints(f *testing.F) {
	paths := []struct{ provider, path string }{
		{"groq", "/openai/v1/chat/completions"}, {"azure-openai", "/openai/v1/responses"},
		{"azure-openai", "/openai/deployments/d/embeddings?api-version=1"}, {"mistral", "/v1/chat/completions"},
		{"gemini", "/v1beta/models/m:generateContent"}, {"gemini", "/v1beta/models/m:streamGenerateContent"},
		{"gemini", "/v1beta/models/m:batchEmbedContents"},
	}
	for i := range paths {
		f.Add(i, `{"model":"m","input":"a",`+asks+`,"response_format":{"type":"json_schema","json_schema":{"schema":{"$ref":"#"}}}}`)
		f.Add(i, `{"contents":[{"parts":[{"text":"a"}]}],"requests":[{}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"allOf":[{"$ref":"#"}]}}}`)
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		at := paths[uint(i)%uint(len(paths))]
		s, err := service.New(service.Config{Provider: at.provider})
		if err != nil {
			t.Fatal(err)
		}
		r := sends(s, "k", "POST "+at.path+" "+body)
		if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
			fieldsOf(t, string(r.Body), "")
		} else if !json.Valid(r.Body) {
			t.Errorf("%d: %s", r.Status, r.Body)
		}
		if report := s.Report(); report.Wrong != 0 {
			t.Errorf("%+v", report)
		}
	})
}
