package tokens_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/tokens"
)

func TestParseUsage(t *testing.T) {
	for _, test := range []struct {
		name   string
		api    tokens.API
		answer string
		want   tokens.Usage
	}{
		{"chat", tokens.Chat, `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"\\\" {\"usage\":{\"prompt_tokens\":1}"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":7},
			"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":5,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`,
			tokens.Usage{Input: 2006, CachedInput: 1920, AudioInput: 7, Output: 300, Reasoning: 192, AudioOutput: 5, Total: 2306}},
		{"chat without details", tokens.Chat, `{"usage":{"completion_tokens":0,"prompt_tokens":3,"prompt_tokens_details":null,"completion_tokens_details":null}}`,
			tokens.Usage{Input: 3, Total: 3}},
		{"a total with reasoning that output lacks", tokens.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`,
			tokens.Usage{Input: 10, Output: 5, Total: 40}},
		{"a total that is too small", tokens.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":0}}`,
			tokens.Usage{Input: 10, Output: 5, Total: 15}},
		{"responses", tokens.Responses, `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[],
			"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":16,"cache_write_tokens":4},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123}}`,
			tokens.Usage{Input: 36, CachedInput: 16, CacheWrite: 4, Output: 87, Reasoning: 64, Total: 123}},
		{"embeddings", tokens.Embeddings, `{"object":"list","data":[{"embedding":[-0.1,1e-3]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`,
			tokens.Usage{Input: 8, Total: 8}},
		{"messages", tokens.Messages, `{"type":"message","content":[{"type":"tool_use","input":{"usage":{"input_tokens":9}}}],"stop_reason":"end_turn",
			"usage":{"input_tokens":21,"cache_creation_input_tokens":188086,"cache_read_input_tokens":500,"cache_creation":{"ephemeral_5m_input_tokens":188086},"output_tokens":393,
			"output_tokens_details":{"thinking_tokens":300},"service_tier":"standard"}}`,
			tokens.Usage{Input: 21 + 188086 + 500, CachedInput: 500, CacheWrite: 188086, Output: 393, Reasoning: 300, Total: 21 + 188086 + 500 + 393}},
		{"messages that are kept for an hour", tokens.Messages, `{"usage":{"input_tokens":10,"output_tokens":2,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200}}}`,
			tokens.Usage{Input: 310, CacheWrite: 300, CacheWriteHour: 200, Output: 2, Total: 312}},
		{"messages without a cache", tokens.Messages, `{"usage":{"input_tokens":10,"output_tokens":2,"cache_creation_input_tokens":null,"cache_read_input_tokens":null}}`,
			tokens.Usage{Input: 10, Output: 2, Total: 12}},
		{"the last of two", tokens.Chat, `{"usage":{"prompt_tokens":1,"completion_tokens":-1},"usage":{"prompt_tokens":10,"completion_tokens":5}}`,
			tokens.Usage{Input: 10, Output: 5, Total: 15}},
	} {
		got, err := tokens.ParseUsage(test.api, []byte(test.answer))
		if err != nil || got != test.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", test.name, got, err, test.want)
		}
		// The same, passed through in pieces.
		w := tokens.NewWatcher(test.api, false, iotestOneByte(test.answer))
		if body := drain(t, w); body != test.answer {
			t.Errorf("%s: the answer was changed on the way", test.name)
		}
		if got, err := w.Usage(); err != nil || got != test.want {
			t.Errorf("%s, watched:\n got %+v, %v\nwant %+v", test.name, got, err, test.want)
		}
	}
	if u := (tokens.Usage{Input: 10, CachedInput: 4, CacheWrite: 3}); u.Uncached() != 6 {
		t.Errorf("uncached %d, want 6", u.Uncached())
	}
}

func TestParseUsageRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		api    tokens.API
		answer string
		want   error
		says   string
	}{
		{"empty", tokens.Chat, ``, tokens.ErrMalformed, "not JSON"},
		{"cut off", tokens.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":5}`, tokens.ErrMalformed, "not JSON"},
		{"HTML of a proxy", tokens.Chat, `<html>502 Bad Gateway</html>`, tokens.ErrMalformed, "not JSON"},
		{"an error", tokens.Chat, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, tokens.ErrNoUsage, ""},
		{"no usage", tokens.Messages, `{"type":"message","content":[]}`, tokens.ErrNoUsage, ""},
		{"null", tokens.Responses, `{"status":"queued","usage":null}`, tokens.ErrNoUsage, ""},
		{"an empty usage", tokens.Chat, `{"usage":{}}`, tokens.ErrNoUsage, ""},
		{"half a usage", tokens.Chat, `{"usage":{"prompt_tokens":10}}`, tokens.ErrNoUsage, ""},
		{"no number", tokens.Chat, `{"usage":{"prompt_tokens":null,"completion_tokens":5}}`, tokens.ErrNoUsage, ""},
		{"usage elsewhere", tokens.Chat, `{"choices":[{"usage":{"prompt_tokens":10,"completion_tokens":5}}]}`, tokens.ErrNoUsage, ""},
		{"an array", tokens.Chat, `[{"usage":{"prompt_tokens":10,"completion_tokens":5}}]`, tokens.ErrNoUsage, ""},
		{"negative", tokens.Chat, `{"usage":{"prompt_tokens":-10,"completion_tokens":5}}`, tokens.ErrMalformed, "input"},
		{"negative part", tokens.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":-1}}}`, tokens.ErrMalformed, "reasoning"},
		{"negative cache", tokens.Messages, `{"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":-3}}`, tokens.ErrMalformed, "cache reads"},
		{"a fraction", tokens.Chat, `{"usage":{"prompt_tokens":10.5,"completion_tokens":5}}`, tokens.ErrMalformed, "input"},
		{"a string", tokens.Chat, `{"usage":{"prompt_tokens":"10","completion_tokens":5}}`, tokens.ErrMalformed, "input"},
		{"true", tokens.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":true}}`, tokens.ErrMalformed, "output"},
		{"too large", tokens.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":99999999999999999999999}}`, tokens.ErrMalformed, "output"},
		{"no API", tokens.NoAPI, `{}`, tokens.ErrNoUsage, ""},
	} {
		got, err := tokens.ParseUsage(test.api, []byte(test.answer))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || got != (tokens.Usage{}) {
			t.Errorf("%s: %+v, %v; want %v saying %q", test.name, got, err, test.want, test.says)
		}
	}
}

// FuzzParseUsage reads each answer with encoding/json too. Where that finds whole numbers from 0,
// the scanner must find the same ones.
func FuzzParseUsage(f *testing.F) {
	for _, s := range []string{
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		`{"a":[{"b":"\\\""},[1,{"usage":{}}]],"usage" : { "prompt_tokens" : 1 , "completion_tokens" : 2 } }`,
		`{"usage":{"prompt_tokens":-1,"completion_tokens":1e2}}`, `{"usage":[1],"error":null}`, `{"usage":"{}"}`,
		`{"usage":{"prompt_tokens":{"x":1},"completion_tokens":[2]}}`, `{"response":{"usage":{"input_tokens":1}}}`, `[]`, `1`, `"x"`,
		`{"usa\u0067e":{"prompt_tokens":1,"completion_tokens":2}}`,
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, answer []byte, piece int) {
		u, err := tokens.ParseUsage(tokens.Chat, answer)
		w := tokens.NewWatcher(tokens.Chat, false, pieces(string(answer), piece))
		if got := drain(t, w); got != string(answer) {
			t.Fatal("the answer was changed on the way")
		}
		if watched, watchErr := w.Usage(); json.Valid(answer) && (watchErr == nil) != (err == nil) || err == nil && watched != u {
			t.Fatalf("%+v, %v; watched in pieces: %+v, %v", u, err, watched, watchErr)
		}
		if err == nil && (u.Input < 0 || u.Output < 0 || u.CachedInput < 0 || u.Reasoning < 0 || u.Total < u.Input+u.Output) {
			t.Fatalf("%+v", u)
		}

		var top map[string]json.RawMessage
		if json.Unmarshal(answer, &top) != nil {
			if err == nil {
				t.Fatalf("%+v of no object", u)
			}
			return
		}
		if strings.Count(string(answer), "usage") > 1 || strings.ContainsRune(string(answer), '\\') || strings.Count(string(answer), "tokens") > 2 {
			return // repeated members, and escaped names: encoding/json merges and resolves them
		}
		var usage map[string]json.RawMessage
		if json.Unmarshal(top["usage"], &usage) != nil || usage == nil {
			if err == nil {
				t.Fatalf("%+v of no usage", u)
			}
			return
		}
		read := func(keys ...string) (n int64, ok bool) {
			for _, key := range keys {
				if v, has := usage[key]; has && json.Unmarshal(v, &n) == nil && n >= 0 && n <= 1<<44 && string(v) != "null" && string(v) != "-0" {
					return n, true
				}
			}
			return 0, false
		}
		in, hasIn := read("prompt_tokens", "input_tokens")
		out, hasOut := read("completion_tokens", "output_tokens")
		if hasIn && hasOut && (err != nil || u.Input != in || u.Output != out) {
			t.Fatalf("%+v, %v; want input %d and output %d", u, err, in, out)
		}
		if err == nil && !(hasIn && hasOut) {
			t.Fatalf("%+v of %s", u, top["usage"])
		}
	})
}
