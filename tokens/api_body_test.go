package tokens_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

func newEstimator(t testing.TB, c tokens.Config) *tokens.Estimator {
	t.Helper()
	if c.Vocabulary == nil {
		c.Vocabulary = tiktoken.Vocabulary
	}
	e, err := tokens.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func estimate(t testing.TB, e *tokens.Estimator, api tokens.API, body string) tokens.Estimate {
	t.Helper()
	est, err := e.Estimate(api, []byte(body))
	if err != nil {
		t.Fatalf("%v\nin %s", err, body)
	}
	return est
}

// Without a vocabulary texts are guessed, as for an unknown model.
func TestWithoutVocabularies(t *testing.T) {
	const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"Why is the sky blue?"}]}`
	none := newEstimator(t, tokens.Config{Vocabulary: func(string) tokens.Vocabulary { return nil }})
	unset, err := tokens.New(tokens.Config{})
	if err != nil {
		t.Fatal(err)
	}
	counted := estimate(t, newEstimator(t, tokens.Config{}), tokens.Chat, body)
	if !counted.Counted || counted.Input != 13 {
		t.Errorf("with: %+v", counted)
	}
	for _, e := range []*tokens.Estimator{none, unset} {
		if got := estimate(t, e, tokens.Chat, body); got.Counted || got.Input < 13 || got.Input > 26 {
			t.Errorf("without: %+v", got)
		}
	}
}

func TestAPIOf(t *testing.T) {
	for path, want := range map[string]tokens.API{
		"/v1/chat/completions":                            tokens.Chat,
		"/openai/deployments/prod-7/chat/completions":     tokens.Chat,
		"/v1/responses":                                   tokens.Responses,
		"/v1/responses/":                                  tokens.Responses,
		"/v1/embeddings":                                  tokens.Embeddings,
		"/v1/messages":                                    tokens.Messages,
		"/v1/messages/count_tokens":                       tokens.NoAPI,
		"/v1/messages/batches":                            tokens.NoAPI,
		"/v1/threads/thread_1/messages":                   tokens.NoAPI,
		"/v1/responses/resp_1":                            tokens.NoAPI,
		"/v1/completions":                                 tokens.Completions,
		"/v1/fim/completions":                             tokens.Completions,
		"/v1/moderations":                                 tokens.Moderations,
		"/v1/images/generations":                          tokens.Media,
		"/v1beta/models/gemini-2.5-flash:generateContent": tokens.Gemini,
		"/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:streamGenerateContent": tokens.Gemini,
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4:streamRawPredict":  tokens.Messages,
		"/v1beta/models/gemini-embedding-001:batchEmbedContents":                                   tokens.GeminiEmbed,
		"/v1beta/models/gemini-2.5-flash:countTokens":                                              tokens.NoAPI,
		"/model/anthropic.claude-sonnet-4-5-20250929-v1:0/converse-stream":                         tokens.Converse,
		"/model/amazon.nova-lite-v1:0/invoke":                                                      tokens.Invoke,
		"/v2/chat":                                                                                 tokens.CohereChat,
		"/v2/embed":                                                                                tokens.CohereEmbed,
		"/v2/rerank":                                                                               tokens.CohereRerank,
		"/api/generate":                                                                            tokens.OllamaGenerate,
		"/api/chat":                                                                                tokens.OllamaChat,
		"/api/embed":                                                                               tokens.OllamaEmbed,
		"/api/tags":                                                                                tokens.NoAPI,
		"":                                                                                         tokens.NoAPI,
	} {
		if got := tokens.APIOf(path); got != want {
			t.Errorf("APIOf(%q) = %v, want %v", path, got, want)
		}
	}
}

// ones is a text of n tokens in both vocabularies: " a", n times.
func ones(n int) string { return strings.Repeat(" a", n) }

func TestTokensOfOneWord(t *testing.T) {
	e := newEstimator(t, tokens.Config{})
	for _, test := range []struct {
		model, text string
		want        int64
	}{
		// Published in OpenAI's cookbook, "How to count tokens with tiktoken".
		{"text-embedding-3-small", "tiktoken is great!", 6},
		{"text-embedding-ada-002", "antidisestablishmentarianism", 6},
		{"text-embedding-3-large", "2 + 2 = 4", 7},
		{"text-embedding-3-large", "お誕生日おめでとう", 9},
		{"gpt-4o", "お誕生日おめでとう", 8},
		// The basis of the other tests.
		{"gpt-4o", ones(13), 13},
		{"gpt-4", ones(13), 13},
		{"gpt-4o", ":string", 1},
		{"gpt-4", ":string", 1},
	} {
		body, _ := json.Marshal(map[string]any{"model": test.model, "input": test.text})
		est := estimate(t, e, tokens.Embeddings, string(body))
		if est.Input != test.want || !est.Counted || est.Output != 0 || est.MaxOutput != 0 {
			t.Errorf("%s: %q: %+v, want %d counted tokens and no output", test.model, test.text, est, test.want)
		}
	}
}

// The cookbook's two examples, with other words of as many tokens. The test is about the count of
// everything except text. The API counted 129 prompt tokens for gpt-4 and gpt-3.5-turbo and 124 for
// gpt-4o. With the tools it counted 105 and 101.
func TestChatOverheadAsPublished(t *testing.T) {
	e := newEstimator(t, tokens.Config{})
	chat := func(model string, names int, contents ...int) string {
		var messages []map[string]string
		for i, n := range contents {
			m := map[string]string{"role": "system", "content": ones(n)}
			if i >= 1 && i <= names {
				m["name"] = ones(2)
			}
			messages = append(messages, m)
		}
		body, _ := json.Marshal(map[string]any{"model": model, "messages": messages})
		return string(body)
	}
	for _, test := range []struct {
		model string
		body  string
		want  int64
	}{
		// 6 messages of 3 + 1, 4 names of 2 + 1, 3 for the answer: 39; and 90 of contents, or 85.
		{"gpt-4", chat("gpt-4", 4, 16, 11, 8, 20, 16, 19), 129},
		{"gpt-4o", chat("gpt-4o", 4, 15, 11, 8, 19, 15, 17), 124},
		{"openai/gpt-4o-mini", chat("openai/gpt-4o-mini", 4, 15, 11, 8, 19, 15, 17), 124},
		{"gpt-3.5-turbo-0125", chat("gpt-3.5-turbo-0125", 0, 1), 8},
		{"ft:gpt-4o-2024-08-06:acme::7", chat("ft:gpt-4o-2024-08-06:acme::7", 0, 1), 8},
	} {
		if got := estimate(t, e, tokens.Chat, test.body); got.Input != test.want || !got.Counted {
			t.Errorf("%s: %+v, want %d counted", test.model, got, test.want)
		}
	}
}

// tool is a function like that of the cookbook's example: two properties, one of them an enum of
// two. Its text is 26 tokens. name:description is 1 + 1 + 6, the properties are 1 + 1 + 1 + 5 each,
// and the values 1 each.
var tool = `"name":"a","description":"` + ones(6) + `.","parameters":{"type":"object","properties":{
	"a":{"type":"string","description":"` + ones(5) + `."}, "b":{"type":"string","description":"` + ones(5) + `","enum":["a","b"]}},"required":["a"]}`

func TestToolsAsPublished(t *testing.T) {
	// The API counted 101 (gpt-4o) and 105 (gpt-4) for the cookbook's example. Tools are estimated
	// at 1.1 times the count until answers confirm it.
	for _, test := range []struct {
		model        string
		text, actual int64
	}{
		// 35 is two messages of 4, 3 for the answer, 12 for tools, 3 for properties and 3 each, −3
		// for the enum and 3 each. The function is 7 or 10. Text has the remaining 101 − 42 or
		// 105 − 45, of which 26 are the tool's.
		{"gpt-4o", 101 - 42 - 26, 101},
		{"gpt-4", 105 - 45 - 26, 105},
	} {
		e := newEstimator(t, tokens.Config{})
		body := `{"model":"` + test.model + `","messages":[{"role":"system","content":"` + ones(10) + `"},{"role":"user","content":"` + ones(int(test.text)-10) + `"}],
			"tools":[{"type":"function","function":{` + tool + `}}]}`
		before := estimate(t, e, tokens.Chat, body)
		if want := (test.actual*11 + 9) / 10; before.Input != want {
			t.Errorf("%s: estimated %d before any answer, want %d", test.model, before.Input, want)
		}
		for range 99 {
			e.Learn(before, tokens.Usage{Input: test.actual, Output: 20})
		}
		if after := estimate(t, e, tokens.Chat, body); after.Input != test.actual || !after.Calibrated {
			t.Errorf("%s: estimated %+v after 99 answers, want %d", test.model, after, test.actual)
		}
		// The responses API has the function one level up, and the same text.
		flat := `{"model":"` + test.model + `","instructions":"` + ones(10) + `","input":"` + ones(int(test.text)-10) + `","tools":[{"type":"function",` + tool + `}]}`
		if got := estimate(t, newEstimator(t, tokens.Config{}), tokens.Responses, flat); got.Input != before.Input {
			t.Errorf("%s: responses: %d, want %d as for chat", test.model, got.Input, before.Input)
		}
	}
}

func TestParseRequests(t *testing.T) {
	type want struct {
		model         string
		stream, usage bool
		choices, most int64
		bounded       bool
		text          int64
		attached      int
		hidden        bool
	}
	for _, test := range []struct {
		name string
		api  tokens.API
		body string
		want want
	}{
		{"chat", tokens.Chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}],"max_tokens":100}`,
			want{model: "gpt-4o", choices: 1, most: 100, bounded: true, text: 5}},
		{"chat, several choices, streamed with usage", tokens.Chat,
			`{"messages":[{"role":"user","content":"Hello"}],"n":3,"max_completion_tokens":50,"stream":true,"stream_options":{"include_usage":true},"model":"m"}`,
			want{model: "m", stream: true, usage: true, choices: 3, most: 50, bounded: true, text: 5}},
		{"chat, streamed without usage", tokens.Chat, `{"messages":[],"stream":true,"stream_options":{"include_usage":false}}`,
			want{stream: true, choices: 1}},
		{"chat, nulls", tokens.Chat, `{"model":null,"messages":[{"role":"assistant","content":null}],"max_tokens":null,"n":null,"stream":null}`,
			want{choices: 1}},
		{"chat, the larger of two bounds", tokens.Chat, `{"messages":[],"max_completion_tokens":70,"max_tokens":10}`,
			want{choices: 1, most: 70, bounded: true}},
		{"chat, another API's bound", tokens.Chat, `{"messages":[],"max_output_tokens":10}`, want{choices: 1}},
		{"chat, a bound in exponent form", tokens.Chat, `{"messages":[],"max_tokens":1e3}`, want{choices: 1, most: 1000, bounded: true}},
		{"chat, parts", tokens.Chat,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"abc"},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}},
			{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]}]}`,
			want{choices: 1, text: 3, attached: 3}},
		{"chat, tool calls and their result", tokens.Chat,
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
			{"role":"tool","tool_call_id":"call_1","content":"42"}]}`,
			want{choices: 1, text: 1 + 7 + 2}},
		{"chat, a stored file", tokens.Chat, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`,
			want{choices: 1, hidden: true}},
		{"chat, an earlier spoken answer", tokens.Chat, `{"messages":[{"role":"assistant","audio":{"id":"a"}}]}`, want{choices: 1, hidden: true}},
		{"chat, web search", tokens.Chat, `{"messages":[],"web_search_options":{}}`, want{choices: 1, hidden: true}},
		{"chat, a field of some other server's", tokens.Chat, `{"messages":[{"role":"assistant","content":"ab","reasoning_content":"cde"}]}`,
			want{choices: 1, text: 5}},
		{"responses, text", tokens.Responses, `{"model":"gpt-5","input":"Hello","instructions":"Be brief","max_output_tokens":64,"stream":true}`,
			want{model: "gpt-5", stream: true, usage: true, choices: 1, most: 64, bounded: true, text: 5 + 8}},
		{"responses, items", tokens.Responses,
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"abc"},{"type":"input_image","image_url":"https://x/y.png"}]},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"seven"},
			{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"xy","annotations":[]}]}]}`,
			want{usage: true, choices: 1, text: 3 + 1 + 2 + 5 + 2, attached: 1}},
		{"responses, continued", tokens.Responses, `{"input":"go on","previous_response_id":"resp_1"}`,
			want{usage: true, choices: 1, text: 5, hidden: true}},
		{"responses, not continued", tokens.Responses, `{"input":"go on","previous_response_id":null}`, want{usage: true, choices: 1, text: 5}},
		{"responses, encrypted reasoning", tokens.Responses, `{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"abc"}],"encrypted_content":"gAAA"}]}`,
			want{usage: true, choices: 1, text: 3, hidden: true}},
		{"responses, a tool of the server's", tokens.Responses, `{"input":"x","tools":[{"type":"web_search"}]}`,
			want{usage: true, choices: 1, text: 1, hidden: true}},
		{"embeddings, several", tokens.Embeddings, `{"model":"text-embedding-3-small","input":["ab","cde"],"dimensions":256}`,
			want{model: "text-embedding-3-small", usage: true, choices: 1, text: 5}},
		{"messages", tokens.Messages, `{"model":"claude-sonnet-4-5","max_tokens":1024,"system":"You are brief.","messages":[{"role":"user","content":"Hello, Claude"}]}`,
			want{model: "claude-sonnet-4-5", usage: true, choices: 1, most: 1024, bounded: true, text: 14 + 13}},
		{"messages, blocks", tokens.Messages,
			`{"max_tokens":0,"system":[{"type":"text","text":"abc","cache_control":{"type":"ephemeral"}}],"messages":[
			{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"0123456789"},"title":"T"}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"AAAA"},{"type":"tool_use","id":"toolu_1","name":"f","input":{ "x" : [1, 2] }}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"seven"}]}]}]}`,
			want{usage: true, choices: 1, bounded: true, text: 3 + 10 + 1 + 2 + 1 + 11 + 5, attached: 1}},
		{"messages, a tool of the server's", tokens.Messages, `{"max_tokens":1,"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5}]}`,
			want{usage: true, choices: 1, most: 1, bounded: true, hidden: true}},
		{"an unknown kind of part", tokens.Messages, `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"hologram","caption":"abc","depth":12}]}]}`,
			want{usage: true, choices: 1, most: 1, bounded: true, text: 5}},
		{"escapes", tokens.Chat, `{"mod\u0065l":"m","messages":[{"role":"user","content":"\u4e2d\n\ud83d\ude00\"\/"}]}`,
			want{model: "m", choices: 1, text: 3 + 1 + 4 + 1 + 1}},
		{"nothing", tokens.Messages, ` { } `, want{usage: true, choices: 1}},
		{"wrong types", tokens.Chat, `{"model":7,"messages":{"a":1},"tools":"x","stream":"true","response_format":[]}`, want{choices: 1}},
	} {
		b, err := tokens.Parse(test.api, []byte(test.body))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got := want{model: b.Model, stream: b.Stream, usage: b.StreamUsage, choices: b.Choices, most: b.MaxOutput,
			bounded: b.Bounded, text: b.TextBytes, attached: b.Attachments, hidden: b.Hidden}
		if got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct {
		api        tokens.API
		body, says string
	}{
		{tokens.Chat, ``, "unexpected end"},
		{tokens.Chat, `{"model":"gpt-4o","messages":[`, "at byte 30"},
		{tokens.Chat, `{"model":}`, "at byte 10"},
		{tokens.Messages, `[]`, "not a JSON object"},
		{tokens.Messages, `null`, "not a JSON object"},
		{tokens.Chat, `{"max_tokens":-5}`, "max_tokens: -5 is not a whole number"},
		{tokens.Chat, `{"max_tokens":1.5}`, "max_tokens: 1.5"},
		{tokens.Chat, `{"max_tokens":"100"}`, `max_tokens: "100"`},
		{tokens.Chat, `{"max_tokens":1e300}`, "max_tokens: 1e300"},
		{tokens.Chat, `{"n":-1}`, "n: -1"},
		{tokens.Responses, `{"max_output_tokens":99999999999999999999}`, "max_output_tokens"},
		{tokens.Messages, `{"max_tokens":{}}`, "max_tokens: {}"},
	} {
		_, err := tokens.Parse(test.api, []byte(test.body))
		if !errors.Is(err, tokens.ErrMalformed) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want ErrMalformed saying %q", test.body, err, test.says)
		}
	}
	if _, err := tokens.Parse(tokens.NoAPI, []byte(`{}`)); err == nil {
		t.Error("a request of no API was read")
	}
}

func asPNG(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// asJPEG returns a JPEG of 8 × 8 whose frame header states w × h. Only the size is read.
func asJPEG(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	frame := bytes.Index(file, []byte{0xFF, 0xC0})
	binary.BigEndian.PutUint16(file[frame+5:], uint16(h))
	binary.BigEndian.PutUint16(file[frame+7:], uint16(w))
	return base64.StdEncoding.EncodeToString(file)
}

// Costs of images as OpenAI and Anthropic publish them. Before answers, a body with images is
// estimated at 1.1 times (counted) or 1.5 times (guessed) its count, text included. The tests
// subtract a body without the image.
func TestImages(t *testing.T) {
	square := asPNG(t, 1024, 1024)
	tall := asJPEG(t, 2048, 4096)
	for _, test := range []struct {
		name, model, url, detail string
		want                     int64
	}{
		{"1024 × 1024", "gpt-4o", "data:image/png;base64," + square, "high", 765},
		{"1024 × 1024 with escaped slashes", "gpt-4o", "data:image/png;base64," + strings.ReplaceAll(square, "/", `\/`), "high", 765},
		{"2048 × 4096", "gpt-4o", "data:image/jpeg;base64," + tall, "high", 1105},
		{"any, low", "gpt-4o", "data:image/jpeg;base64," + tall, "low", 85},
		{"a remote one is as dear as can be", "gpt-4o", "https://example.org/a.png", "auto", 85 + 8*170},
		{"no image at all", "gpt-4o", "data:image/png;base64,AAAA", "auto", 85 + 8*170},
		{"patches", "gpt-4.1-mini", "data:image/png;base64," + square, "", 1659}, // 1024 × 1.62
		{"most patches", "gpt-4.1-nano", "data:image/jpeg;base64," + tall, "", 3779},
		{"an unknown model", "brand-new", "data:image/png;base64," + square, "high", 765},
	} {
		e := newEstimator(t, tokens.Config{})
		body := `{"model":"` + test.model + `","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + test.url + `","detail":"` + test.detail + `"}}]}]}`
		got := estimate(t, e, tokens.Chat, body)
		factor := 1.1
		if !got.Counted {
			factor = 1.5
		}
		if want := int64(float64(7+test.want)*factor + 0.9999); got.Input != want {
			t.Errorf("%s: %d, want %d", test.name, got.Input, want)
		}
	}
	small := asPNG(t, 200, 200)
	for _, c := range []struct {
		model, data string
		want        int64
	}{
		{"claude-x", square, 37 * 37}, {"claude-x", tall, 46 * 92}, {"claude-x", small, 8 * 8}, {"claude-x", asJPEG(t, 4000, 4000), 4784}, {"claude-opus-4-7", tall, 46 * 92},
		{"claude-3-5-sonnet-20241022", tall, 28 * 56}, {"claude-sonnet-4-5", asJPEG(t, 4000, 4000), 1568}, {"claude-opus-4-20250514", small, 8 * 8}, {"claude-sonnet-5", tall, 46 * 92},
	} {
		body := `{"model":"` + c.model + `","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + c.data + `"}}]}]}`
		if got, want := estimate(t, newEstimator(t, tokens.Config{}), tokens.Messages, body).Input, int64(float64(7+c.want)*1.5+0.9999); got != want {
			t.Errorf("%s: %d, want %d", c.model, got, want)
		}
	}
	for _, c := range []struct {
		model, data string
		want        int64
	}{{"gemini-2.5-flash", small, 258}, {"gemini-2.5-flash", square, 4 * 258}, {"gemini-2.0-pro", asJPEG(t, 800, 300), 2 * 258}, {"gemini-3-flash", square, 1120}} {
		b, err := tokens.Parse(tokens.Gemini, []byte(`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"`+c.data+`"}}]}]}`))
		if b.Model = c.model; err != nil {
			t.Fatal(err)
		}
		if got, want := newEstimator(t, tokens.Config{}).Of(b).Input, int64(float64(7+c.want)*1.5+0.9999); got != want {
			t.Errorf("%s: %d, want %d", c.model, got, want)
		}
	}
	many := `{"model":"gpt-4o","messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"image_url","image_url":{"url":"http://x","detail":"low"}},`, 1999) +
		`{"type":"image_url","image_url":{"url":"http://x","detail":"low"}}]}]}`
	if got := estimate(t, newEstimator(t, tokens.Config{}), tokens.Chat, many).Input; got != (7+2000*85)*11/10+1 {
		t.Errorf("2000 images: %d", got)
	}
}

// FuzzParse states three facts. No input makes the parser panic. A body is refused if and only if
// it is no JSON object or has an impossible number. The two passes over a body see the same text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}],"max_tokens":100}`,
		`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}],"tools":[{"type":"function","function":{` + tool + `}}]}`,
		`{"input":[{"type":"function_call_output","output":[{"type":"input_text","text":"\ud800\"\\"}]}],"text":{"format":{"schema":{"a":[1,{"b":null}]}}}}`,
		`{"input":[[1,2,3],[4]],"model":"text-embedding-3-small"}`,
		"{\"input\":\"\xff\xfe\"}", `{"n":1e309}`, `{"messages":[[[[[[[[[[[[[[["a"]]]]]]]]]]]]]]]}`, ` {"a" : "\\" , "b":[ ] } `,
		`{"messages":[{"content":[{"type":"document","source":{"type":"content","content":[{"type":"document","source":{"type":"content","content":"x"}}]}}]}]}`,
	} {
		for api := range tokens.Messages + 1 {
			f.Add(uint8(api), []byte(s))
		}
	}
	guess := newEstimator(f, tokens.Config{CountMax: -1})
	count := newEstimator(f, tokens.Config{CountMax: 1 << 12})
	f.Fuzz(func(t *testing.T, api uint8, raw []byte) {
		before := bytes.Clone(raw)
		b, err := tokens.Parse(tokens.API(api%5), raw)
		if !bytes.Equal(before, raw) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			var object map[string]json.RawMessage
			if api%5 != 0 && json.Unmarshal(raw, &object) == nil && object != nil && !strings.Contains(err.Error(), "is not a whole number") {
				t.Fatalf("refused an object: %v", err)
			}
			return
		}
		if b.TextBytes < 0 || b.TextBytes > 4*int64(len(raw)) || b.Choices < 1 || b.MaxOutput < 0 {
			t.Fatalf("%+v of %d bytes", b, len(raw))
		}
		g := guess.Of(b)
		if g.Input < 0 || g.Output < 0 || g.Output > g.MaxOutput || g.Counted {
			t.Fatalf("guessed: %+v", g)
		}
		b.Model = "gpt-4o"
		if c := count.Of(b); c.Input < 0 || c.Counted != (b.API != tokens.Messages && b.TextBytes <= 1<<12) {
			t.Fatalf("counted: %+v", c)
		}
	})
}

// FuzzEmbeddingText checks the reading of strings against encoding/json's.
func FuzzEmbeddingText(f *testing.F) {
	for _, s := range []string{`"a"`, `["a\n\u4e2d\ud83d\ude00", "\ud83d", "\udc00\ud83d"]`, `[["x"], "\\\"", {"k":"no"}, 5, null]`, "\"\xff\xc3\"", `"\ud800\u0041\b\f\r\t\/"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var v any
		if json.Unmarshal(value, &v) != nil {
			return
		}
		var want int64
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case string:
				want += int64(len(v))
			case []any:
				for _, v := range v {
					walk(v)
				}
			}
		}
		walk(v)
		b, err := tokens.Parse(tokens.Embeddings, append(append([]byte(`{"input":`), value...), '}'))
		if err != nil || b.TextBytes != want {
			t.Fatalf("%d bytes of text (%v), want %d", b.TextBytes, err, want)
		}
	})
}
