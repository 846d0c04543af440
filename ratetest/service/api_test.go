package service_test

import (
	"encoding/json"
	"fmt"
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
		{"deepseek", "k", `POST /chat/completions {"model":"m","max_tokens":2,` + asks + `}`, 200, `"object":"chat.completion" & "completion_tokens":2`},
		{"deepseek", "k", `POST /v1/chat/completions {"model":"m","stream":true,` + asks + `}`, 200, `data: [DONE]`},
		{"deepseek", "", `POST /chat/completions {}`, 401, `Authentication Fails`},
		{"deepseek", "k", `GET /models`, 200, `"id":"deepseek-v4-pro" & "owned_by":"deepseek"`},
		{"deepseek", "k", `GET /v1/models/nope`, 400, `Model Not Exist`},
		{"deepseek", "k", `POST /v1/embeddings {"model":"m","input":"x"}`, 200, `{"status":"OK"}`},
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

		{"stripe", "k", `GET /v1/customers?limit=2&starting_after=cus_000000000000000000000033`, 200, `"has_more":false & cus_000000000000000000000034 & cus_000000000000000000000035`},
		{"stripe", "k", `GET /v1/charges?limit=2&ending_before=ch_000000000000000000000005`, 200, `"has_more":true & ch_000000000000000000000003 & ch_000000000000000000000004`},
		{"stripe", "k", `GET /v1/charges?limit=x`, 400, `"code":"parameter_invalid_integer"`},
		{"stripe", "k", `GET /v1/charges?starting_after=ch_0`, 400, `"code":"resource_missing"`},
		{"stripe", "k", `GET /v1/figs`, 404, `Unrecognized request URL (GET: /v1/figs).`},
		{"stripe", "k", `DELETE /v1/products/p`, 200, `"deleted":true,"id":"p","object":"product"`},
		{"stripe", "", `POST /v1/charges`, 401, `You did not provide an API key`},
		{"notion", "k", `GET /v1/users`, 400, `"code":"missing_version"`},
		{"notion", "", `GET /v1/users`, 401, `"code":"unauthorized"`},
		{"slack", "k", `GET /api/conversations.list?limit=2&cursor=34`, 200, `"id":"C00000035" & "next_cursor":""`},
		{"slack", "k", `POST /api/chat.postMessage {"channel":"C1","text":"Fig"}`, 200, `"channel":"C1" & "text":"Fig"`},
		{"slack", "", `GET /api/users.list?token=t&limit=2`, 200, `"id":"U00000002" & "next_cursor":"2"`},
		{"slack", "k", `POST /upload/v1/F1 fig`, 200, `OK - 3`},
		{"github", "", `GET /repos/a/b/issues?per_page=10&page=2`, 200, `"id":20,`},
		{"github", "k", `GET /search/issues?page=2`, 200, `"total_count":35`},
		{"github", "", `GET /user`, 401, `"message":"Requires authentication"`},
		{"github", "", `POST /repos/a/b/issues {"title":"x"}`, 401, `Requires authentication`},
		{"github", "k", `POST /repos/a/b/issues {"title":"x"}`, 201, `"title":"x"`},
		{"hubspot", "k", `GET /crm/v3/objects/contacts?limit=30`, 200, `"paging":{"next":{"after":"30","link":"http://example.com/crm/v3/objects/contacts?after=30`},
		{"hubspot", "k", `POST /crm/v3/objects/deals/search {"after":"30"}`, 200, `"id":"35" & "total":35`},
		{"hubspot", "", `GET /crm/v3/objects/contacts/1`, 401, `INVALID_AUTHENTICATION`},
		{"shopify", "k", `GET /admin/api/2025-01/products.json?limit=20`, 200, `"id":20,`},
		{"shopify", "k", `POST /admin/api/2025-01/graphql.json {"query":"query Q($n:Int){p:products(first:$n,query:\"a\"){nodes{...on Product{id} title}}}","variables":{"n":2}}`, 200, `"p":{"nodes":[{"id":"gid://shopify/Product/1","title":"fig 1"},{"id":"gid://shopify/Product/2" & "requestedQueryCost":1`},
		{"shopify", "k", `POST /admin/api/2025-01/graphql.json {"query":"{shop"}`, 200, `"errors":[{"message":"syntax error`},
		{"shopify", "", `POST /admin/api/2025-01/graphql.json {"query":"{shop{id}}"}`, 401, `Invalid API key or access token`},
		{"binance", "", `GET /api/v3/exchangeInfo`, 200, `"symbol":"BTCUSDT" & "limit":6000`},
		{"binance-futures", "", `GET /fapi/v1/exchangeInfo`, 200, `"contractType":"PERPETUAL" & "limit":2400`},
		{"binance", "", `POST /api/v3/order`, 401, `"code":-2014`},
		{"binance", "k", `POST /api/v3/order?symbol=BTCUSDT`, 200, `"status":"NEW","symbol":"BTCUSDT"`},
		{"okx", "", `GET /api/v5/public/instruments?instType=SWAP`, 200, `{"code":"0","data":[],"msg":""}`},
		{"okx", "", `GET /api/v5/account/balance`, 401, `"code":"50103"`},
		{"okx", "k", `POST /api/v5/trade/order {"instId":"BTC-USDT"}`, 200, `"sCode":"0"`},
		{"bybit", "", `GET /v5/market/instruments-info?category=spot`, 200, `"retCode":0 & "symbol":"ETHUSDT"`},
		{"bybit", "", `GET /v5/account/wallet-balance`, 401, `"retCode":10003`},
		{"kraken", "", `GET /0/public/AssetPairs`, 200, `"error":[] & "wsname":"XBT/USD"`},
		{"kraken", "k", `POST /0/private/AddOrder`, 200, `"txid":["FIG-000001"]`},
		{"coinbase", "", `GET /products/BTC-USD/book`, 200, `"bids":[["99.90","1.000",1]]`},
		{"coinbase", "", `GET /accounts`, 401, `CB-ACCESS-KEY header is required`},
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

// TestPages: a client that follows the pages of a list gets each entry once.
func TestPages(t *testing.T) {
	s := newServer(t, service.Config{Provider: "github"})
	for _, size := range []int{1, 10, 34, 35, 36, 100} {
		seen, path := 0, fmt.Sprintf("/repos/a/b/issues?per_page=%d", size)
		for range 40 {
			r := sends(s, "k", "GET "+path)
			var page []struct{ ID int }
			if err := json.Unmarshal(r.Body, &page); err != nil {
				t.Fatal(err)
			}
			for _, entry := range page {
				if seen++; entry.ID != seen {
					t.Errorf("%d a page: entry %d is %d", size, seen, entry.ID)
				}
			}
			next, _, ok := strings.Cut(r.Header.Get("Link"), `>; rel="next"`)
			if !ok {
				break
			}
			path = next[strings.LastIndexByte(next, '<')+1:]
			if !strings.HasPrefix(path, "http://example.com/") {
				t.Fatalf("%s is not absolute", path)
			}
		}
		if seen != 35 {
			t.Errorf("%d a page: %d entries, want 35", size, seen)
		}
	}
}

// Slack answers a request without a key with a status of 200, and Kraken too.
func TestStrangerIn200(t *testing.T) {
	for request, says := range map[string]string{"slack POST /api/auth.test": "not_authed", "kraken POST /0/private/Balance": "EAPI:Invalid key"} {
		name, request, _ := strings.Cut(request, " ")
		s := newServer(t, service.Config{Provider: name})
		r := sends(s, "", request)
		if report := s.Report(); r.Status != 200 || !strings.Contains(string(r.Body), says) || report.Unauthorized != 1 {
			t.Errorf("%d %s %+v", r.Status, r.Body, report)
		}
	}
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
		{"gemini", "/v1beta/models/m:batchEmbedContents"}, {"shopify", "/admin/api/2025-01/graphql.json"},
		{"stripe", "/v1/charges"}, {"slack", "/api/chat.postMessage"}, {"hubspot", "/crm/v3/objects/contacts/search"},
	}
	for i := range paths {
		f.Add(i, `{"model":"m","input":"a",`+asks+`,"response_format":{"type":"json_schema","json_schema":{"schema":{"$ref":"#"}}}}`)
		f.Add(i, `{"query":"query($n:Int=3){a:b(first:$n,x:{y:[1]})@d(e:\\"f\\"){edges{cursor node{...G}}pageInfo{endCursor}}}fragment G on H{id ...G}"}`)
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
