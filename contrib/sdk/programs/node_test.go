package programs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

// node runs scripts that call servers of the command line.
type node struct {
	path string
}

// run runs a script, with an environment of nothing but addresses, and returns what it says, in order.
func (n *node) run(t *testing.T, script string, env ...string) []told {
	t.Helper()
	all, err := said(2*time.Minute, nil, "../node", env, n.path, script)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// served says how the input of a call that is answered is known: by a vocabulary, with the tokens that frame a message, or only
// to the server.
type served struct {
	vocabulary string
	frame      int64
	says       string // a tool's argument, and what came of it
}

var (
	o200k  = served{vocabulary: "o200k_base", frame: 7} // a message is 3 tokens and its role, the answer's beginning 3
	cl100k = served{vocabulary: "cl100k_base", frame: 7}
	bare   = served{vocabulary: "cl100k_base"} // embeddings are of text alone
	some   = served{}
	tool   = served{says: "fig"}
	ran    = served{says: "fig: rain"}
)

// refused is how an SDK throws an error.
type refused struct {
	class  string
	status int
	code   any
	kind   string // error.type
	param  string
	says   string
}

// Every call that the SDKs have, and every mistake that a provider tells from a limit: status, type and words as the provider has
// them, thrown as the SDK's own class, and never sent twice.
var nodeCalls = map[string]any{
	"fetch chat": o200k, "fetch chat of an older vocabulary": cl100k, "fetch chat stream": o200k, "fetch messages": some,

	"openai chat": o200k, "openai chat stream": o200k, "openai chat with tools": some, "openai responses": o200k, "openai responses stream": o200k,
	"openai responses with tools": some, "openai embeddings": bare, "openai moderations": some,
	"openai chat that calls": tool, "openai chat stream that calls": tool, "openai responses stream that calls": tool,
	"openai bad role": refused{"BadRequestError", 400, "invalid_value", "invalid_request_error", "messages[0].role",
		"400 Invalid value: 'wizard'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
	"openai unknown model": refused{"NotFoundError", 404, "model_not_found", "invalid_request_error", "", "404 The model `gpt-nope` does not exist"},
	"openai temperature 5": refused{"BadRequestError", 400, "decimal_above_max_value", "invalid_request_error", "temperature", "Expected a value <= 2, but got 5 instead."},
	"openai too much output": refused{"BadRequestError", 400, nil, "invalid_request_error", "max_tokens",
		"400 max_tokens is too large: 40000. This model supports at most 16384 completion tokens, whereas you provided 40000."},
	"openai too much output of responses": refused{"BadRequestError", 400, "integer_above_max_value", "invalid_request_error", "max_output_tokens", "<= 16384"},
	"openai no key":                       refused{"AuthenticationError", 401, "invalid_api_key", "invalid_request_error", "", "401 "},

	"anthropic messages": some, "anthropic messages stream": some, "anthropic messages with tools": some,
	"anthropic messages that call": tool, "anthropic messages stream that calls": tool,
	"anthropic bad role":      refused{"BadRequestError", 400, nil, "invalid_request_error", "", "messages.0.role: Input should be 'user' or 'assistant'"},
	"anthropic system first":  refused{"BadRequestError", 400, nil, "invalid_request_error", "", "top-level `system` parameter"},
	"anthropic unknown model": refused{"NotFoundError", 404, nil, "not_found_error", "", "model: claude-nope"},
	"anthropic temperature 5": refused{"BadRequestError", 400, nil, "invalid_request_error", "", "temperature: range: 0..1"},
	"anthropic too much output": refused{"BadRequestError", 400, nil, "invalid_request_error", "",
		"max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-sonnet-5"},
	"anthropic no key": refused{"AuthenticationError", 401, nil, "authentication_error", "", "invalid x-api-key"},

	"ai chat": o200k, "ai chat stream": o200k, "ai chat with tools": some, "ai responses": o200k, "ai responses stream": o200k, "ai embeddings": bare,
	"ai messages": some, "ai messages stream": some, "ai messages with tools": some,
	"ai responses that calls": ran, "ai responses stream that calls": ran, "ai chat that calls": ran, "ai chat stream that calls": ran,
	"ai messages that calls": ran, "ai messages stream that calls": ran,
	"ai unknown model":             refused{"APICallError", 404, "model_not_found", "invalid_request_error", "", "`gpt-nope`"},
	"ai unknown model of messages": refused{"APICallError", 404, nil, "not_found_error", "", "model: claude-nope"},
	"ai temperature 5":             refused{"APICallError", 400, "decimal_above_max_value", "invalid_request_error", "temperature", "<= 2"},
	"ai too much output":           refused{"APICallError", 400, nil, "invalid_request_error", "max_tokens", "40000"},
	"ai too much output, streamed": refused{"APICallError", 400, "integer_above_max_value", "invalid_request_error", "max_output_tokens", "40000"},
}

func TestNode(t *testing.T) {
	n := &node{path: need.Node(t, "../node")}
	t.Parallel()
	t.Run("calls", n.calls)
	t.Run("limits", n.limits)
}

func (n *node) calls(t *testing.T) {
	fast := []string{"--latency", "constant:0s", "--first", "constant:0s", "--tokens-per-second", "0", "--keys", "node"}
	gpt := serve(t, append(fast, "openai", "--rpm", "100000", "--tpm", "100000000")...)
	claude := serve(t, append(fast, "anthropic", "--rpm", "100000", "--input-tpm", "100000000", "--output-tpm", "100000000")...)
	said := n.run(t, "calls.mjs", "OPENAI="+gpt.url, "ANTHROPIC="+claude.url)
	seen := map[string]bool{}
	input, output := map[bool]int64{}, map[bool]int64{} // of Anthropic's; of OpenAI's
	sent := map[string]int{}
	for _, l := range said {
		name := l.SDK + " " + l.Call
		if seen[name] {
			t.Errorf("%s: twice", name)
		}
		seen[name] = true
		switch want := nodeCalls[name].(type) {
		case served:
			sent["accepted"]++
			l.served(t, want)
			its := strings.Contains(l.Call, "messages")
			input[its] += l.Input
			output[its] += l.Output
		case refused:
			sent[map[int]string{400: "malformed", 401: "unauthorized", 404: "unknown_model"}[want.status]]++
			l.refused(t, want)
		default:
			t.Errorf("%s: not known: %+v", name, l)
		}
	}
	if len(seen) != len(nodeCalls) {
		t.Errorf("%d calls of %d", len(seen), len(nodeCalls))
	}
	// What the judge saw is what the SDKs were told.
	for its, f := range map[bool]*process{false: gpt, true: claude} {
		r := f.ended(t)
		in, out := int64(0), int64(0)
		for _, a := range r.Accounts {
			if a.Model != "omni-moderation-latest" { // it says no usage
				in, out = in+a.Input, out+a.Output
			}
		}
		if in != input[its] || out != output[its] || r.Retries != 0 {
			t.Errorf("%d and %d tokens of %d and %d, %+v", input[its], output[its], in, out, r)
		}
		for verdict, count := range r.Verdicts {
			sent[verdict] -= count
		}
	}
	for verdict, missing := range sent {
		if missing != 0 {
			t.Errorf("%s: %d calls more than requests", verdict, missing)
		}
	}
	t.Logf("%d calls", len(said))
}

func (l *told) served(t *testing.T, want served) {
	t.Helper()
	name := l.SDK + " " + l.Call
	if l.Error != nil || l.Text == "" && l.Size == 0 || want.says != "" && l.Text != want.says {
		t.Errorf("%s: %+v, %+v", name, l, l.Error)
		return
	}
	if want.vocabulary == "" {
		return
	}
	if count := tiktoken.Vocabulary(want.vocabulary).Count(l.Prompt) + want.frame; l.Prompt == "" || l.Input != count {
		t.Errorf("%s: %d tokens of input, want %d", name, l.Input, count)
	}
}

func (l *told) refused(t *testing.T, want refused) {
	t.Helper()
	e := l.Error
	if e == nil || e.Class != want.class || e.Status != want.status || e.Code != want.code || e.Type != want.kind || e.Param != want.param || !strings.Contains(e.Message, want.says) {
		t.Errorf("%s %s: %+v, want %+v", l.SDK, l.Call, e, want)
	}
}

// At a limit of 5 requests, one more each second, 20 calls at once: each SDK sends a call three times at most and then gives up. That
// is what a Node user has today.
func (n *node) limits(t *testing.T) {
	slow := []string{"--latency", "constant:0s", "--first", "constant:0s", "--tokens-per-second", "0", "--rpm", "5", "--window", "5s"}
	gpt, claude := serve(t, append(slow, "openai")...), serve(t, append(slow, "anthropic")...)
	groq, gemini := serve(t, "groq", "--limit", "requests per minute=5/m"), serve(t, "gemini", "--limit", "5/m")
	said := n.run(t, "limits.mjs", "OPENAI="+gpt.url, "ANTHROPIC="+claude.url, "GROQ="+groq.url, "GEMINI="+gemini.url)
	requests := "requests"
	for _, want := range []struct {
		sdk, call string
		calls     int
		class     string
		code      any
		kind      string
		fake      *process
		retries   int // of a call, at most
	}{
		{"openai", "gpt-4o", 20, "RateLimitError", "rate_limit_exceeded", requests, gpt, 2},
		{"openai", "gpt-4.1", 20, "RateLimitError", "rate_limit_exceeded", requests, gpt, 0},
		{"ai", "gpt-4o-mini", 20, "RetryError", "rate_limit_exceeded", requests, gpt, 2},
		{"anthropic", "claude-sonnet-5", 20, "RateLimitError", nil, "rate_limit_error", claude, 2},
		{"anthropic", "claude-opus-5", 20, "RateLimitError", nil, "rate_limit_error", claude, 0},
		{"ai", "claude-haiku-5-5", 20, "RetryError", nil, "rate_limit_error", claude, 2},
		{"openai", "groq", 8, "RateLimitError", "rate_limit_exceeded", requests, groq, 0},
		{"openai", "gemini", 8, "RateLimitError", 429.0, "", gemini, 0},
	} {
		t.Run(fmt.Sprintf("%s %s, %d retries", want.sdk, want.call, want.retries), func(t *testing.T) {
			answered, failed, longest := 0, 0, int64(0)
			for _, l := range said {
				if l.SDK != want.sdk || l.Call != want.call {
					continue
				}
				longest = max(longest, l.MS)
				e := l.Error
				switch {
				case e == nil:
					answered++
				case e.Class != want.class || e.Status != 429 || e.Code != want.code || e.Type != want.kind:
					t.Errorf("%+v", e)
				default:
					failed++
				}
			}
			if answered+failed != want.calls || answered < 5 || failed == 0 {
				t.Errorf("%d answered and %d failed of %d", answered, failed, want.calls)
			}
			t.Logf("%d of %d calls answered, %d failed, after %d ms at most", answered, want.calls, failed, longest)
		})
	}
	for _, f := range []*process{gpt, claude} {
		r := f.ended(t)
		for _, a := range r.Accounts {
			sent := a.Accepted + a.Limited
			most := 60
			if strings.HasPrefix(a.Model, "gpt-4.1") || strings.HasPrefix(a.Model, "claude-opus") {
				most = 20
			}
			if sent > most || most > 20 && sent < 30 {
				t.Errorf("%s: %d sent for 20 calls, %d accepted", a.Model, sent, a.Accepted)
			}
			t.Logf("%s: %d sent, %d refused", a.Model, sent, a.Limited)
		}
	}
	for _, f := range []*process{groq, gemini} {
		f.ended(t)
	}
}
