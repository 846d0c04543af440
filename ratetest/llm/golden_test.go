package llm_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

var update = flag.Bool("update", false, "write the answers of testdata; read each against the provider's documentation before it is committed")

// Answers as they go over the network, 0.3 s after the server's start: testdata/NAME.http.
func TestLLMGolden(t *testing.T) {
	chatBody := `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"Say something"}]`
	claudeBody := `{"model":"claude-sonnet-4","max_tokens":10,"messages":[{"role":"user","content":"Say something"}]`
	small := llm.Limits{Tokens: 9}
	shape := `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`
	chatTool := `,"tool_choice":"required","tools":[{"type":"function","function":{"name":"weather","parameters":` + shape + `}}]`
	responseTool := `,"tools":[{"type":"web_search"},{"type":"function","name":"weather","parameters":` + shape + `}]`
	claudeTool := `,"tool_choice":{"type":"any"},"tools":[{"name":"weather","input_schema":` + shape + `}]`
	for _, c := range []struct {
		name, path, body string
		config           llm.Config
	}{
		{"chat", chat, chatBody + `}`, llm.Config{}},
		{"chat_stream", chat, chatBody + `,"stream":true,"stream_options":{"include_usage":true}}`, llm.Config{}},
		{"chat_stream_without_usage", chat, chatBody + `,"stream":true}`, llm.Config{}},
		{"chat_too_large", chat, chatBody + `}`, llm.Config{Limits: small}},
		{"chat_unpaid", chat, chatBody + `}`, llm.Config{Script: []string{"unpaid"}}},
		{"chat_garbled", chat, chatBody + `}`, llm.Config{Script: []string{"garbled-headers"}}},
		{"responses", responses, `{"model":"gpt-4o","max_output_tokens":10,"input":"Say something"}`, llm.Config{}},
		{"responses_stream", responses, `{"model":"gpt-4o","max_output_tokens":10,"input":"Say something","stream":true}`, llm.Config{}},
		{"embeddings", embeddings, `{"model":"text-embedding-3-small","input":"Say something","dimensions":2}`, llm.Config{}},
		{"messages", messages, claudeBody + `}`, llm.Config{Provider: llm.Anthropic}},
		{"messages_stream", messages, claudeBody + `,"stream":true}`, llm.Config{Provider: llm.Anthropic}},
		{"chat_tool", chat, chatBody + chatTool + `}`, llm.Config{}},
		{"chat_tool_stream", chat, chatBody + chatTool + `,"stream":true}`, llm.Config{}},
		{"responses_tool", responses, `{"model":"gpt-4o","input":"Say something","tool_choice":"required"` + responseTool + `}`, llm.Config{}},
		{"responses_tool_stream", responses, `{"model":"gpt-4o","input":"Say something","stream":true,"tool_choice":{"type":"function","name":"weather"}` + responseTool + `}`, llm.Config{}},
		{"messages_tool", messages, claudeBody + claudeTool + `}`, llm.Config{Provider: llm.Anthropic}},
		{"messages_tool_stream", messages, claudeBody + claudeTool + `,"stream":true}`, llm.Config{Provider: llm.Anthropic}},
		{"messages_stream_broken", messages, claudeBody + `,"stream":true}`, llm.Config{Provider: llm.Anthropic, Script: []string{"error-event"}}},
		{"messages_refused", messages, claudeBody + `}`, llm.Config{Provider: llm.Anthropic, Script: []string{"429"}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.config.Truth, c.config.Before = uses(4, 0, 9), latency.Constant(300*time.Millisecond)
			w := ask(newServer(t, c.config), c.path, "k", c.body)
			var got bytes.Buffer
			fmt.Fprintf(&got, "HTTP/1.1 %d\n", w.Code)
			w.Header().Write(&got)
			got.WriteByte('\n')
			got.Write(w.Body.Bytes())
			text := strings.ReplaceAll(got.String(), "\r\n", "\n")
			file := filepath.Join("testdata", c.name+".http")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || text != string(want) {
				t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, text, want)
			}
		})
	}
}

// The estimate of the input of a body, in tokens.
func TestLLMEstimate(t *testing.T) {
	for body, want := range map[string]int64{
		`{"model":"m","messages":[{"role":"user","content":""}]}`:                                                                        1,
		`{"model":"m","messages":[{"role":"user","content":"1234"}]}`:                                                                    1,
		`{"model":"m","messages":[{"role":"user","content":"12345"}]}`:                                                                   2,
		`{"model":"m","messages":[{"role":"user","content":"日本語五字字字字"}]}`:                                                                2, // characters, not bytes
		`{"model":"m","messages":[{"role":"system","content":"1234"},{"role":"user","content":[{"type":"text","text":"5678"}]}]}`:        2,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`:              765,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAAAAAA","format":"wav"}}]}]}`: 766,
		`{"model":"m","tools":[{"a":"b"}],"messages":[{"role":"user","content":"1"}]}`:                                                   3, // 11 + 1 characters
		`{"model":"m","max_tokens":null,"messages":[{"role":"user","content":"1"}]}`:                                                     1,
		`{"model":"m","max_tokens":3,"max_completion_tokens":7,"messages":[{"role":"user","content":"1"}]}`:                              1,
	} {
		var log bytes.Buffer
		l := newServer(t, llm.Config{LogTo: &log})
		w := ask(l, chat, "k", body)
		l.Close()
		var line llm.Line
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || w.Code != 200 || line.Estimate != want || line.MaxOutput != map[bool]int64{true: 7}[strings.Contains(body, ":7,")] {
			t.Errorf("%s: %d, estimate %d, output %d, %v; want %d", body, w.Code, line.Estimate, line.MaxOutput, err, want)
		}
	}
}

// The instant of a reset is rounded up to a second. A client that returns then is not too early.
func TestLLMAnthropicReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 8}})
		time.Sleep(100 * time.Millisecond)
		w := ask(l, messages, "k", prompt(1, 1))
		want := time.Now().Add(7900 * time.Millisecond).UTC().Format(time.RFC3339) // 7.5 s, rounded up
		if got := w.Header().Get("anthropic-ratelimit-requests-reset"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
