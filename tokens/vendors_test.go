package tokens_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/paceline-go/paceline/tokens"
)

// Bodies of providers with an API of their own: the text for the model, the most output, and the
// content beside text.
func TestVendors(t *testing.T) {
	const said = "the quick brown fox" // 19 bytes
	for _, c := range []struct {
		path, body  string
		text        int64
		most        int64 // 0: not bounded
		choices     int64
		attachments int
		hidden      bool
	}{
		{"/v1/completions", `{"model":"m","prompt":"` + said + `","max_tokens":7,"n":2,"best_of":3}`, 19, 7, 3, 0, false},
		{"/v1/fim/completions", `{"model":"m","prompt":["` + said + `"],"suffix":"` + said + `"}`, 38, 0, 1, 0, false},
		{"/v1/moderations", `{"input":["` + said + `",{"type":"text","text":"` + said + `"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`, 38, 0, 1, 1, false},
		{"/v1/images/generations", `{"prompt":"` + said + `","n":1}`, 19, 0, 1, 0, false},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"` + said + `"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"inline_data":{"mime_type":"audio/mp3","data":"AAAA"}}]}],
			"systemInstruction":{"parts":{"text":"` + said + `"}},"generationConfig":{"maxOutputTokens":9,"candidateCount":2}}`, 38, 9, 2, 2, false},
		{"/v1beta/models/m:streamGenerateContent", `{"contents":{"parts":[{"functionResponse":{"name":"f","response":{"a":1}}},{"fileData":{"fileUri":"x"}}]},"cachedContent":"c"}`, 8, 0, 1, 0, true},
		{"/v1beta/models/m:batchEmbedContents", `{"requests":[{"content":{"parts":[{"text":"` + said + `"}]}},{"content":{"parts":[{"text":"` + said + `"}]}}]}`, 38, 0, 1, 0, false},
		{"/v1/models/m:predict", `{"instances":[{"content":"` + said + `"}]}`, 19, 0, 1, 0, false},
		{"/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"` + said + `"},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"document":{"name":"n","source":{"text":"` + said + `"}}},
			{"toolResult":{"content":[{"json":{"a":1}}]}}]}],"system":[{"text":"` + said + `"}],"inferenceConfig":{"maxTokens":5}}`, 65, 5, 1, 1, false},
		{"/model/m/invoke", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":6,"system":"` + said + `","messages":[{"role":"user","content":[{"type":"text","text":"` + said + `"}]}]}`, 38, 6, 1, 0, false},
		{"/model/m/invoke", `{"inputText":"` + said + `","textGenerationConfig":{"maxTokenCount":4}}`, 19, 4, 1, 0, false},
		{"/model/m/invoke", `{"prompt":"` + said + `","max_gen_len":3}`, 19, 3, 1, 0, false},
		{"/model/m/invoke", `{"messages":[{"content":[{"text":"` + said + `"}]}],"inferenceConfig":{"max_new_tokens":8}}`, 19, 8, 1, 0, false},
		{"/v2/chat", `{"model":"m","messages":[{"role":"user","content":"` + said + `"}],"documents":["` + said + `"],"max_tokens":5}`, 38, 5, 1, 0, false},
		{"/v2/embed", `{"texts":["` + said + `","` + said + `"],"images":["data:image/png;base64,AAAA"]}`, 38, 0, 1, 1, false},
		{"/v2/rerank", `{"query":"` + said + `","documents":["` + said + `",{"text":"` + said + `"}]}`, 57, 0, 1, 0, false},
		{"/api/generate", `{"model":"m","prompt":"` + said + `","system":"` + said + `","images":["AAAA"],"options":{"num_predict":11}}`, 38, 11, 1, 1, false},
		{"/api/chat", `{"model":"m","messages":[{"role":"user","content":"` + said + `","images":["AAAA"]}],"options":{"num_predict":-1}}`, 19, 0, 1, 1, false},
		{"/api/embed", `{"model":"m","input":["` + said + `"]}`, 19, 0, 1, 0, false},
	} {
		api := tokens.APIOf(c.path)
		b, err := tokens.Parse(api, []byte(c.body))
		if err != nil || api == tokens.NoAPI || b.TextBytes != c.text || b.MaxOutput != c.most || b.Bounded != (c.most > 0) || b.Choices != c.choices || b.Attachments != c.attachments || b.Hidden != c.hidden {
			t.Errorf("%s: %v: %d bytes, at most %d, %v, %d choices, %d attachments, hidden %v, %v", c.path, api, b.TextBytes, b.MaxOutput, b.Bounded, b.Choices, b.Attachments, b.Hidden, err)
		}
	}
	if b, err := tokens.Parse(tokens.Gemini, []byte(`{"generationConfig":{"maxOutputTokens":-5}}`)); !errors.Is(err, tokens.ErrMalformed) {
		t.Errorf("%+v %v", b, err)
	}
}

// frame is a message of AWS's event streams with a field of no meaning.
func frame(payload string) string {
	const field = "\x05:kind\x07\x00\x05event"
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(field)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
	return string(append(b, "crc0"+field+payload+"crc1"...))
}

// chunk returns a message that encloses a payload of a model's vendor, in the form of
// InvokeModelWithResponseStream. Slashes are escaped, as some encoders do.
func chunk(payload string) string {
	return frame(`{"p":"abcd","bytes":"` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(payload)), "/", `\/`) + `"}`)
}

var vendorAnswers = []struct {
	name   string
	api    tokens.API
	stream bool
	answer string
	want   tokens.Usage
	whole  bool // a broken-off stream can be detected
}{
	{"Gemini", tokens.Gemini, false, `{"candidates":[{}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":7,"toolUsePromptTokenCount":3,"cachedContentTokenCount":4,"totalTokenCount":25}}`,
		tokens.Usage{Input: 13, CachedInput: 4, Output: 12, Reasoning: 7, Total: 25}, true},
	{"Gemini, a list", tokens.Gemini, false, `[{"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}},` + "\n" + `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}]`,
		tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"Gemini, events", tokens.Gemini, true, "data: {\"usageMetadata\":{\"promptTokenCount\":10,\"totalTokenCount\":10}}\r\n\r\ndata: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":5,\"totalTokenCount\":15}}\r\n\r\n",
		tokens.Usage{Input: 10, Output: 5, Total: 15}, false},
	{"Converse", tokens.Converse, false, `{"output":{"message":{"content":[]}},"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":22,"cacheReadInputTokens":4,"cacheWriteInputTokens":3}}`,
		tokens.Usage{Input: 17, CachedInput: 4, CacheWrite: 3, Output: 5, Total: 22}, true},
	{"Converse, a stream", tokens.Converse, true, frame(`{"contentBlockIndex":0,"delta":{"text":"hi"}}`) + frame(`{"stopReason":"end_turn"}`) + frame(`{"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15},"metrics":{}}`),
		tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"InvokeModel, a stream", tokens.Invoke, true, chunk(`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`) + chunk(`{"type":"content_block_delta","delta":{"text":"a longer piece of text that takes more than one turn of the decoder, with a / in it: ÿÿÿ???>>>"}}`) +
		chunk(`{"type":"message_delta","usage":{"output_tokens":5}}`) + chunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":10,"outputTokenCount":5,"invocationLatency":4069,"firstByteLatency":1117,"cacheReadInputTokenCount":4,"cacheWriteInputTokenCount":3}}`),
		tokens.Usage{Input: 17, CachedInput: 4, CacheWrite: 3, Output: 5, Total: 22}, true},
	{"Cohere", tokens.CohereChat, false, `{"usage":{"billed_units":{"input_tokens":5,"output_tokens":5},"tokens":{"input_tokens":71,"output_tokens":6},"cached_tokens":64}}`,
		tokens.Usage{Input: 71, CachedInput: 64, Output: 6, Total: 77}, true},
	{"Cohere, events", tokens.CohereChat, true, "event: content-delta\ndata: {\"type\":\"content-delta\",\"delta\":{\"message\":{}}}\n\nevent: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"usage\":{\"billed_units\":{\"input_tokens\":5},\"tokens\":{\"input_tokens\":71,\"output_tokens\":6}}}}\n\n",
		tokens.Usage{Input: 71, Output: 6, Total: 77}, true},
	{"Cohere's embeddings", tokens.CohereEmbed, false, `{"embeddings":{},"meta":{"billed_units":{"input_tokens":9}}}`, tokens.Usage{Input: 9, Total: 9}, true},
	{"Ollama", tokens.OllamaChat, false, `{"message":{"content":"hi"},"done":true,"prompt_eval_count":10,"eval_count":5}`, tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"Ollama, lines", tokens.OllamaGenerate, true, "{\"response\":\"h\",\"done\":false}\n{\"response\":\"\",\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}\n", tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"Ollama's embeddings", tokens.OllamaEmbed, false, `{"embeddings":[[0.1]],"prompt_eval_count":8}`, tokens.Usage{Input: 8, Total: 8}, true},
	{"Mistral", tokens.Chat, true, "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\ndata: [DONE]\n\n", tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"Groq", tokens.Chat, true, "data: {\"choices\":[{}],\"x_groq\":{\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}}\n\ndata: [DONE]\n\n", tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"DeepSeek", tokens.Chat, false, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}}`, tokens.Usage{Input: 10, CachedInput: 6, Output: 5, Total: 15}, true},
	{"completions", tokens.Completions, false, `{"choices":[{"text":"hi"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, tokens.Usage{Input: 10, Output: 5, Total: 15}, true},
	{"a picture", tokens.Media, false, `{"data":[],"usage":{"input_tokens":10,"output_tokens":1056,"total_tokens":1066,"input_tokens_details":{"text_tokens":10}}}`, tokens.Usage{Input: 10, Output: 1056, Total: 1066}, true},
}

// The vendors' answers state the usage, in one piece and in pieces of one byte. A broken-off stream
// does not.
func TestVendorUsage(t *testing.T) {
	for _, c := range vendorAnswers {
		for _, r := range []io.Reader{strings.NewReader(c.answer), iotest.OneByteReader(strings.NewReader(c.answer))} {
			w := tokens.NewWatcher(c.api, c.stream, r)
			io.Copy(io.Discard, w)
			if u, err := w.Usage(); err != nil || u != c.want {
				t.Errorf("%s: %+v, %v; want %+v", c.name, u, err, c.want)
			}
		}
		w := tokens.NewWatcher(c.api, c.stream, strings.NewReader(c.answer[:len(c.answer)-len(c.answer)/4]))
		io.Copy(io.Discard, w)
		if u, err := w.Usage(); c.whole && err == nil {
			t.Errorf("%s, cut: %+v", c.name, u)
		}
		if c.stream {
			continue
		}
		if u, err := tokens.ParseUsage(c.api, []byte(c.answer)); err != nil || u != c.want {
			t.Errorf("%s, parsed: %+v, %v", c.name, u, err)
		}
	}
	w := tokens.NewWatcher(tokens.OllamaChat, true, strings.NewReader("{\"done\":false}\n{\"error\":\"it failed\"}\n"))
	io.Copy(io.Discard, w)
	if _, err := w.Usage(); !errors.Is(err, tokens.ErrIncomplete) {
		t.Error(err)
	}
}

func TestHeaderUsage(t *testing.T) {
	h := http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"10"}, "X-Amzn-Bedrock-Output-Token-Count": {"5"}, "X-Amzn-Bedrock-Cache-Read-Input-Token-Count": {"4"}}
	if u, ok := tokens.HeaderUsage(h); !ok || u != (tokens.Usage{Input: 14, CachedInput: 4, Output: 5, Total: 19}) {
		t.Error(u, ok)
	}
	for _, v := range []string{"", "-1", "x", "1e30"} {
		h.Set("X-Amzn-Bedrock-Input-Token-Count", v)
		if u, ok := tokens.HeaderUsage(h); ok {
			t.Error(v, u)
		}
	}
}

// No body and no answer causes a panic or a count out of bounds.
func FuzzVendors(f *testing.F) {
	for _, c := range vendorAnswers {
		f.Add(uint8(c.api), c.answer)
	}
	f.Add(uint8(tokens.Gemini), `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"functionCall":{"name":"f","args":{}}}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`)
	f.Add(uint8(tokens.Converse), `{"messages":[{"content":[{"toolResult":{"content":[{"toolResult":{}}]}}]}],"toolConfig":{"tools":[{"toolSpec":{"inputSchema":{"json":{}}}}]}}`)
	e, err := tokens.New(tokens.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, api uint8, text string) {
		if b, err := tokens.Parse(tokens.API(api), []byte(text)); err == nil {
			if est := e.Of(b); est.Input < 0 || est.Output < 0 || est.Output > est.MaxOutput {
				t.Errorf("%+v", est)
			}
		}
		if u, err := tokens.ParseUsage(tokens.API(api), []byte(text)); err == nil && (u.Input < 0 || u.Output < 0 || u.Total < u.Input || !json.Valid([]byte(text))) {
			t.Errorf("%+v", u)
		}
		for _, stream := range []bool{false, true} {
			whole, bytes := tokens.NewWatcher(tokens.API(api), stream, strings.NewReader(text)), tokens.NewWatcher(tokens.API(api), stream, iotest.OneByteReader(strings.NewReader(text)))
			io.Copy(io.Discard, whole)
			io.Copy(io.Discard, bytes)
			a, errA := whole.Usage()
			b, errB := bytes.Usage()
			if a != b || (errA == nil) != (errB == nil) {
				t.Errorf("%+v %v, by the byte %+v %v", a, errA, b, errB)
			}
		}
	})
}
