package tokens_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/tokens"
)

// bodies use every member in an API's reference, by the path of the request.
var bodies = [][2]string{
	{"/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"developer","content":"Be brief."},{"role":"user","name":"ann","content":[{"type":"text","text":"What is it?"},
		{"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"low"}},{"type":"input_audio","input_audio":{"data":"QUJDREVGR0g=","format":"wav"}},
		{"type":"file","file":{"filename":"a.pdf","file_data":"QUJDREVGR0g="}}]},{"role":"assistant","content":null,"refusal":"I cannot.","audio":{"id":"audio_1"},
		"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},{"role":"tool","tool_call_id":"call_1","content":"a cat"}],
		"tools":[{"type":"function","function":{"name":"look","description":"Looks at it.","parameters":{"type":"object","properties":{"at":{"type":"integer","description":"where"},
		"how":{"type":"string","enum":["near","far"]},"deep":{"type":"object","properties":{"er":{"type":"string"}}},"list":{"type":"array","items":{"properties":{"x":{"type":"number"}}}},
		"any":{"anyOf":[{"properties":{"y":{"type":"number"}}}]}},"$defs":{"a":1}}}},{"type":"custom","name":"sing","format":{"grammar":"la+"}},{"type":"web_search"}],
		"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}},"web_search_options":{},"n":2,"max_completion_tokens":50,"max_tokens":40,"stream":true,
		"stream_options":{"include_usage":true},"temperature":1,"user":"u","metadata":{"a":"b"}}`},
	{"/v1/responses", `{"model":"gpt-4o","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"https://example.org/a.png","detail":"low"},
		{"type":"input_file","file_data":"QUJDREVGR0g="}]},{"type":"function_call","call_id":"c","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"a cat"},
		{"type":"custom_tool_call","name":"sing","input":"la"},{"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"abc"},{"type":"item_reference","id":"i"}],
		"tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object","properties":{"at":{"type":"integer"}}}},{"type":"web_search"}],
		"text":{"format":{"type":"json_schema","schema":{"type":"object"}}},"previous_response_id":"r","conversation":"c","prompt":{"id":"p"},"max_output_tokens":70,"stream":true}`},
	{"/v1/messages", `{"model":"claude-x","max_tokens":60,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},
		{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},{"type":"document","title":"T","context":"C","source":{"type":"text","data":"a page"}},
		{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a part"}]}},{"type":"document","source":{"type":"base64","data":"QUJDREVGR0g="}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"well","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"t","name":"look","input":{"at":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a cat"}],"is_error":false}]}],
		"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],
		"output_config":{"format":{"schema":{"type":"object"}}},"output_format":{"schema":{"type":"string"}},"mcp_servers":[{"url":"u"}],"container":"c","stream":true}`},
	{"/v1/embeddings", `{"model":"text-embedding-3-small","input":["one text",[1,2,3],"another"],"dimensions":5}`},
	{"/v1/completions", `{"model":"m","prompt":["a prompt",[7,8]],"suffix":"its end","max_tokens":7,"n":2,"best_of":3,"stream":true,"stream_options":{"include_usage":true}}`},
	{"/v1/moderations", `{"model":"m","input":[{"type":"text","text":"is it bad"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}`},
	{"/v1/images/generations", `{"model":"m","prompt":"a cat","input":"or text","instructions":"softly","n":2}`},
	{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"What is it?"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"inline_data":{"mime_type":"audio/mp3","data":"QUJDREVGR0g="}},
		{"inlineData":{"mimeType":"video/mp4","data":"QUJDREVGR0g="}},{"inlineData":{"mimeType":"application/pdf","data":"QUJDREVGR0g="}},{"fileData":{"fileUri":"f"}},{"thought":true,"text":"well"}]},
		{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":1}},"thoughtSignature":"s"}]},{"parts":{"functionResponse":{"name":"look","response":{"is":"a cat"}}}}],
		"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"properties":{"at":{"type":"integer"}}}}]},{"googleSearch":{}}],
		"generationConfig":{"maxOutputTokens":9,"candidateCount":2,"responseSchema":{"type":"object"}},"cachedContent":"c"}`},
	{"/v1beta/models/m:batchEmbedContents", `{"requests":[{"model":"m","content":{"parts":[{"text":"one text"}]}},{"content":{"parts":[{"text":"another"}]}}]}`},
	{"/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"What is it?"},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"document":{"format":"txt","name":"n","source":{"text":"a page"}}},
		{"document":{"name":"p","source":{"bytes":"QUJDREVGR0g="}}},{"video":{"source":{"bytes":"AAAA"}}},{"cachePoint":{"type":"default"}}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"look","input":{"at":1}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"json":{"is":"a cat"}},{"text":"indeed"}]}}]}],"system":[{"text":"Be brief."}],"inferenceConfig":{"maxTokens":5},
		"toolConfig":{"tools":[{"toolSpec":{"name":"look","description":"Looks.","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{}}]},"guardrailConfig":{"g":1},"promptVariables":{"p":{"text":"x"}}}`},
	{"/v2/chat", `{"model":"m","messages":[{"role":"user","content":"What is it?"}],"documents":["a page",{"data":{"text":"another"}}],"tools":[{"type":"function","function":{"name":"look","description":"Looks."}}],
		"message":"or so","preamble":"Be brief.","chat_history":[{"role":"USER","message":"before"}],"connectors":[{"id":"web"}],"max_tokens":5}`},
	{"/v2/rerank", `{"model":"m","query":"which is it","documents":["a page",{"text":"another"}],"top_n":3}`},
	{"/api/chat", `{"model":"m","messages":[{"role":"user","content":"What is it?","images":["AAAA"]}],"tools":[{"type":"function","function":{"name":"look","description":"Looks."}}],"options":{"num_predict":8},"stream":false}`},
	{"/api/generate", `{"model":"m","prompt":"What is it?","suffix":"its end","system":"Be brief.","template":"{{ .Prompt }}","images":["AAAA"],"context":[1,2,3],"options":{"num_predict":11},"raw":true}`},
}

// The test checks which members of a body count. It compares the facts about a body with and
// without each member. For lists and the body itself, it also tries each member alone. A deliberate
// change of the reader rewrites the file; compare the difference with the API's reference.
func TestWhatOfABodyCounts(t *testing.T) {
	var b strings.Builder
	for _, c := range bodies {
		api := tokens.APIOf(c[0])
		var tree any
		if err := json.Unmarshal([]byte(c[1]), &tree); err != nil {
			t.Fatalf("%s: %v", c[0], err)
		}
		all := toldOf(t, api, tree)
		fmt.Fprintf(&b, "\n%s\n  all of it: %s\n", c[0], strings.Join(all, ", "))
		vary(tree, "", func(v any) { tree = v }, func(how string) {
			var differs []string
			for i, told := range toldOf(t, api, tree) {
				if told != all[i] {
					differs = append(differs, told)
				}
			}
			fmt.Fprintf(&b, "  %s: %s\n", how, cmp.Or(strings.Join(differs, ", "), "the same"))
		})
	}
	golden.Compare(t, "fields.golden", b.String())
}

// toldOf returns the facts that Parse finds in a body. Its tokens are guessed, since other tests
// count with vocabularies.
func toldOf(t *testing.T, api tokens.API, tree any) []string {
	t.Helper()
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tokens.Parse(api, raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	e := newEstimator(t, tokens.Config{CountMax: -1}).Of(b)
	return []string{
		fmt.Sprint("bytes of text ", b.TextBytes), fmt.Sprint("surely none ", int64(len(raw))-b.Bytes()), fmt.Sprint("attached ", b.Attachments), fmt.Sprint("tokens ", e.Input),
		fmt.Sprint("at most ", e.MaxOutput), fmt.Sprint("answers ", b.Choices), fmt.Sprint("bounded ", b.Bounded), fmt.Sprint("hidden ", b.Hidden), fmt.Sprint("streamed ", b.Stream),
		fmt.Sprint("with usage ", b.StreamUsage), fmt.Sprintf("model %q", b.Model),
	}
}

// vary changes v in two ways for each member and element anywhere in v, and calls f after each
// change. First the part is absent, then everything else is. set replaces v.
func vary(v any, path string, set func(any), f func(how string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			was := v[key]
			delete(v, key)
			f("without " + path + "." + key)
			v[key] = was
			if path == "" {
				set(map[string]any{key: was})
				f("nothing but ." + key)
				set(v)
			}
			vary(was, path+"."+key, func(other any) { v[key] = other }, f)
		}
	case []any:
		for i, was := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			set(append(slices.Clone(v[:i]), v[i+1:]...))
			f("without " + at)
			set([]any{was})
			f("nothing but " + at)
			set(v)
			vary(was, at, func(other any) { v[i] = other }, f)
		}
	}
}
