package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"

	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens/tiktoken"
	"github.com/paceline-go/paceline/transport"
)

// mistakes is the calls of an SDK by name, each with something wrong in it that is no matter of limits.
func mistakes(provider llm.Provider, client func(h *http.Client, url string) map[string]func(context.Context) error) sdk {
	return sdk{provider: provider, client: func(h *http.Client, url string, _ int) call {
		calls := client(h, url)
		return func(ctx context.Context, kind, _ string, _ int64) error { return calls[kind](ctx) }
	}}
}

var openAIMistakes = mistakes(llm.OpenAI, func(h *http.Client, url string) map[string]func(context.Context) error {
	c := openai.NewClient(openaiopt.WithHTTPClient(h), openaiopt.WithBaseURL(url+"/v1/"), openaiopt.WithAPIKey("sk-test"))
	with := func(options ...openaiopt.RequestOption) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
				Model: openai.ChatModelGPT4o, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Why?")},
			}, options...)
			return err
		}
	}
	return map[string]func(context.Context) error{
		"bad role": with(openaiopt.WithJSONSet("messages.0.role", "wizard")), "unknown model": with(openaiopt.WithJSONSet("model", "gpt-nope")),
		"temperature 5": with(openaiopt.WithJSONSet("temperature", 5)), "too much output": with(openaiopt.WithJSONSet("max_tokens", 40_000)),
	}
})

var claudeMistakes = mistakes(llm.Anthropic, func(h *http.Client, url string) map[string]func(context.Context) error {
	c := anthropic.NewClient(anthropicopt.WithHTTPClient(h), anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("sk-ant-test"))
	with := func(options ...anthropicopt.RequestOption) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := c.Messages.New(ctx, anthropic.MessageNewParams{
				Model: "claude-sonnet-5", MaxTokens: 20, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Why?"))},
			}, options...)
			return err
		}
	}
	return map[string]func(context.Context) error{
		"bad role": with(anthropicopt.WithJSONSet("messages.0.role", "wizard")), "unknown model": with(anthropicopt.WithJSONSet("model", "claude-nope")),
		"temperature 5": with(anthropicopt.WithJSONSet("temperature", 5)), "too much output": with(anthropicopt.WithJSONSet("max_tokens", 200_000)),
	}
})

// What is no matter of limits is an error of the SDK's own type, sent once, on our transport as without it.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		sdk    sdk
		kind   string
		status int
		code   string // OpenAI's code, Anthropic's type
		param  string
	}{
		{openAIMistakes, "bad role", 400, "invalid_value", "messages[0].role"},
		{openAIMistakes, "unknown model", 404, "model_not_found", ""},
		{openAIMistakes, "temperature 5", 400, "decimal_above_max_value", "temperature"},
		{openAIMistakes, "too much output", 400, "", "max_tokens"},
		{claudeMistakes, "bad role", 400, "invalid_request_error", ""},
		{claudeMistakes, "unknown model", 404, "not_found_error", ""},
		{claudeMistakes, "temperature 5", 400, "invalid_request_error", ""},
		{claudeMistakes, "too much output", 400, "invalid_request_error", ""},
	} {
		t.Run(tc.sdk.provider.String()+" "+tc.kind, func(t *testing.T) {
			with(t, tc.sdk, llm.Config{Published: true}, transport.Config{}, 0, func(b *bench) {
				err := b.ask(context.Background(), tc.kind, "", 0)
				var ours *openai.Error
				var theirs *anthropic.Error
				switch {
				case errors.As(err, &ours):
					if ours.StatusCode != tc.status || ours.Code != tc.code || ours.Param != tc.param {
						t.Errorf("%d %q %q: %v", ours.StatusCode, ours.Code, ours.Param, err)
					}
				case errors.As(err, &theirs):
					var body struct{ Error struct{ Type string } }
					if json.Unmarshal([]byte(theirs.RawJSON()), &body); theirs.StatusCode != tc.status || body.Error.Type != tc.code {
						t.Errorf("%d %s", theirs.StatusCode, theirs.RawJSON())
					}
				default:
					t.Errorf("%v", err)
				}
				if r := b.server.Report(); len(r.Verdicts) != 1 || r.Verdicts["malformed"]+r.Verdicts["unknown_model"] != 1 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// The usage that the SDK tells is what the server's vocabulary counts, and moderations are served.
func TestInput(t *testing.T) {
	text := strings.Repeat("天空是蓝色的 🙂 ", 9)
	counted := func(_ string, body []byte) (int64, bool) {
		var ask struct{ Messages []struct{ Content string } }
		if json.Unmarshal(body, &ask) != nil || len(ask.Messages) == 0 {
			return 0, false
		}
		return tiktoken.Vocabulary("o200k_base").Count(ask.Messages[0].Content), true
	}
	s := sdk{provider: llm.OpenAI, client: func(h *http.Client, url string, _ int) call {
		c := openai.NewClient(openaiopt.WithHTTPClient(h), openaiopt.WithBaseURL(url+"/v1/"), openaiopt.WithAPIKey("sk-test"))
		return func(ctx context.Context, _, text string, _ int64) error {
			r, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: openai.ChatModelGPT4o, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}})
			if want := tiktoken.Vocabulary("o200k_base").Count(text); err != nil || r.Usage.PromptTokens != want {
				t.Errorf("%+v, %v; want %d", r, err, want)
			}
			m, err := c.Moderations.New(ctx, openai.ModerationNewParams{Input: openai.ModerationNewParamsInputUnion{OfString: openai.String(text)}})
			if err != nil || len(m.Results) != 1 || m.Results[0].Flagged {
				t.Errorf("%+v, %v", m, err)
			}
			return err
		}
	}}
	with(t, s, llm.Config{Input: counted, Published: true}, transport.Config{}, 0, func(b *bench) { b.ask(context.Background(), "", text, 0) })
}
