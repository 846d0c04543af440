package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/ratetest/llm"
)

const moderations = "/v1/moderations"

// A request with a wrong value is refused as by the provider, before any limit is checked. Each
// request here needs more than the tokens left.
func TestLLMBadValues(t *testing.T) {
	openai := newServer(t, llm.Config{Limits: llm.Limits{Requests: 1, Tokens: 1}, Published: true, Models: []string{"mine"}})
	claude := newServer(t, llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 1, Input: 1, Output: 1}, Published: true})
	mine := newServer(t, llm.Config{Models: []string{"mine"}})
	turn := func(model, role, more string) string {
		return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"a long enough text"},{"role":%s,"content":"x"}]%s}`, model, role, more)
	}
	user := `"user"`
	for _, c := range []struct {
		l          *llm.Server
		path, body string
		status     int
		says       string // of the error's text
	}{
		{openai, chat, turn("gpt-4o", `"wizard"`, ""), 400, `"param":"messages[1].role","code":"invalid_value"`},
		{openai, chat, turn("gpt-4o", `7`, ""), 400, `Invalid value: '7'.`},
		{openai, chat, turn("gpt-4o", `"developer"`, ""), 429, ""},
		{openai, chat, turn("gpt-4o", `"tool"`, ""), 429, ""},
		{openai, responses, `{"model":"gpt-4o","input":[{"type":"function_call_output","output":"x"},{"role":"tool","content":"x"}]}`, 400, `"param":"input[1].role","code":"invalid_value"`},
		{openai, responses, `{"model":"gpt-4o","input":[{"type":"function_call_output","output":"xxxxxxxx"},{"role":"developer","content":"x"}]}`, 429, ""},
		{openai, chat, turn("gpt-4o", user, `,"temperature":5`), 400, `a value \u003c= 2, but got 5 instead.","type":"invalid_request_error","param":"temperature","code":"decimal_above_max_value"`},
		{openai, chat, turn("gpt-4o", user, `,"temperature":-0.5`), 400, `"code":"decimal_below_min_value"`},
		{openai, chat, turn("gpt-4o", user, `,"temperature":"hot"`), 400, `"param":"temperature"`},
		{openai, chat, turn("gpt-4o", user, `,"temperature":2,"top_p":1`), 429, ""},
		{openai, chat, turn("gpt-4o", user, `,"top_p":1.5`), 400, `"param":"top_p"`},
		{openai, chat, turn("gpt-4o", user, `,"max_tokens":16385`), 400, `This model supports at most 16384 completion tokens, whereas you provided 16385.","type":"invalid_request_error","param":"max_tokens","code":null`},
		{openai, chat, turn("gpt-4o-2024-08-06", user, `,"max_completion_tokens":16385`), 400, `"param":"max_completion_tokens"`},
		{openai, chat, turn("ft:gpt-4o-2024-08-06:org::id", user, `,"max_tokens":16385`), 400, `at most 16384`},
		{openai, chat, turn("gpt-4o-2024-05-13", user, `,"max_tokens":4097`), 400, `at most 4096`},
		{openai, chat, turn("gpt-4o", user, `,"max_tokens":16384`), 429, ""},
		{openai, chat, turn("mine", user, `,"max_tokens":1000000`), 429, ""},
		{openai, responses, `{"model":"gpt-5.4","input":"x","max_output_tokens":128001}`, 400, `"param":"max_output_tokens","code":"integer_above_max_value"`},
		{openai, chat, turn("gpt-4-0613", user, `,"max_tokens":8193`), 400, `at most 8192`},
		{openai, chat, turn("gpt-4-turbo-preview", user, ""), 429, ""},
		{openai, chat, turn("gpt-4o-2", user, ""), 404, `"code":"model_not_found"`},
		{openai, chat, turn("claude-sonnet-5", user, ""), 404, "The model `claude-sonnet-5` does not exist or you do not have access to it."},
		{mine, chat, turn("gpt-4o", user, ""), 404, `"code":"model_not_found"`},
		{openai, chat, turn("gpt-4o", user, `,"tool_choice":"required"`), 400, `"param":"tool_choice"`},
		{openai, chat, turn("gpt-4o", user, `,"tool_choice":{"type":"function","function":{"name":"b"}},"tools":[{"type":"function","function":{"name":"a"}}]`), 400, `"param":"tool_choice"`},
		{openai, chat, turn("gpt-4o", user, `,"tool_choice":"auto"`), 429, ""},
		{openai, moderations, `{"input":{"a":1}}`, 400, `"param":"input"`},
		{openai, moderations, `{"input":["a",1]}`, 400, `"param":"input"`},
		{openai, moderations, `{}`, 400, `"code":"missing_required_parameter"`},

		{claude, messages, turn("claude-opus-4-8", `"wizard"`, `,"max_tokens":9`), 400, `messages.1.role: Input should be 'user' or 'assistant'`},
		{claude, messages, `{"model":"claude-opus-4-8","max_tokens":9,"messages":[{"role":"system","content":"x"}]}`, 400, `messages: Unexpected role`},
		{claude, messages, turn("claude-opus-4-8", `"system"`, `,"max_tokens":9`), 429, ""},
		{claude, messages, turn("claude-opus-4-8", user, `,"max_tokens":9,"temperature":5`), 400, `temperature: range: 0..1`},
		{claude, messages, turn("claude-opus-4-8", user, `,"max_tokens":9,"temperature":1`), 429, ""},
		{claude, messages, turn("claude-haiku-4-5-20251001", user, `,"max_tokens":128000`), 400, `max_tokens: 128000 \u003e 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5-20251001`},
		{claude, messages, turn("claude-haiku-4-5-20251001", user, `,"max_tokens":64000`), 429, ""},
		{claude, messages, turn("claude-sonnet-4-0", user, `,"max_tokens":9`), 429, ""},
		{claude, messages, turn("gpt-4o", user, `,"max_tokens":9`), 404, `"type":"not_found_error"`},
	} {
		if w := ask(c.l, c.path, "k", c.body); w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d %s", c.body, w.Code, w.Body, c.status, c.says)
		}
	}
	if r := openai.Report(); r.Verdicts["malformed"] != 18 || r.Verdicts["unknown_model"] != 2 || r.Verdicts["accepted"] != 0 {
		t.Errorf("%+v", r.Verdicts)
	}
}

// The count of Input is the true usage. At arrival the estimate counts against the limits.
func TestLLMInput(t *testing.T) {
	l := newServer(t, llm.Config{Input: func(api string, body []byte) (int64, bool) {
		return int64(len(body)), api != "responses" && !strings.Contains(string(body), "unknown")
	}, Law: llm.Law{Spread: -1}, Rolling: true})
	body := prompt(40, 5)
	for _, c := range []struct {
		path, body, usage string
		want              int
	}{
		{chat, body, "prompt_tokens", len(body)},
		{chat, strings.Replace(body, `"m"`, `"unknown"`, 1), "prompt_tokens", 40}, // the estimate
		{responses, `{"model":"m","input":"four"}`, "input_tokens", 1},
		{embeddings, `{"model":"m","input":"four"}`, "prompt_tokens", 28},
	} {
		var answer struct{ Usage map[string]any }
		w := ask(l, c.path, "k", c.body)
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Usage[c.usage] != float64(c.want) {
			t.Errorf("%s: %v %s, want %d", c.body, err, w.Body, c.want)
		}
	}
	if r := l.Report(); r.Accounts[0].Limits[1].Counted != 40+1+1 || r.Accounts[0].Input != int64(len(body))+1+28 {
		t.Errorf("%+v", r)
	}
}

// Moderations have a result for each input, no usage, and a default model if the request has none.
func TestLLMModerations(t *testing.T) {
	l := newServer(t, llm.Config{Published: true})
	for body, want := range map[string]int{
		`{"input":"a"}`:       1,
		`{"input":["a","b"]}`: 2,
		`{"model":"omni-moderation-2024-09-26","input":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`: 1,
	} {
		w := ask(l, moderations, "k", body)
		var answer struct {
			ID, Model string
			Results   []struct {
				Flagged    *bool
				Categories map[string]bool
				Scores     map[string]float64 `json:"category_scores"`
			}
			Usage any
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || len(answer.Results) != want || !strings.HasPrefix(answer.Model, "omni-moderation-") || answer.Usage != nil {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
			continue
		}
		if r := answer.Results[0]; r.Flagged == nil || *r.Flagged || len(r.Categories) != 13 || len(r.Scores) != 13 {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
	if r := l.Report(); r.Accounts[0].Output != 0 || r.Accounts[0].Limits[1].Counted < 1 {
		t.Errorf("%+v", r)
	}
}

// A forced tool is called with the arguments that its schema asks for. Without force the answer is
// in words.
func TestLLMTools(t *testing.T) {
	l := newServer(t, llm.Config{})
	for _, c := range []struct{ schema, choice, want string }{
		{`{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"type":["integer","null"]},"c":{"type":"array"},"d":{"type":"boolean"},"e":{"const":7},"f":{"type":"string"},"g":{"type":"object","properties":{"h":{"type":"number"}},"required":["h"]},"i":{"type":"string"}},"required":["a","b","c","d","e","f","g"]}`,
			`"required"`, `{"a":"x","b":1,"c":[],"d":true,"e":7,"f":"fig","g":{"h":1}}`},
		{`{"type":"object"}`, `{"type":"function","function":{"name":"t"}}`, `{}`},
		{`null`, `"required"`, `{}`},
		{`{"type":"object"}`, `"auto"`, ""},
		{`{"type":"object"}`, `"none"`, ""},
		{`{"type":"object"}`, `null`, ""},
	} {
		body := fmt.Sprintf(`{"model":"m","n":2,"messages":[{"role":"user","content":"x"}],"tool_choice":%s,"tools":[{"type":"function","function":{"name":"t","parameters":%s}}]}`, c.choice, c.schema)
		var answer struct {
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct {
					Content *string
					Calls   []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		w := ask(l, chat, "k", body)
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Choices) != 2 {
			t.Errorf("%s: %v %s", body, err, w.Body)
			continue
		}
		for _, choice := range answer.Choices {
			calls := choice.Message.Calls
			switch {
			case c.want == "" && (len(calls) > 0 || choice.Message.Content == nil || choice.Finish == "tool_calls"),
				c.want != "" && (len(calls) != 1 || calls[0].Function.Name != "t" || calls[0].Function.Arguments != c.want || choice.Message.Content != nil || choice.Finish != "tool_calls"):
				t.Errorf("%s: %s", body, w.Body)
			}
		}
	}
}
