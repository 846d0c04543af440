package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

// serveLLMVerb runs the verb, posts bodies to it and checks the status of each answer. It returns the greeting, stdout and
// the bodies of the answers.
func serveLLMVerb(t *testing.T, path string, bodies []string, want []int, args ...string) (greeting, stdout string, answers []string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out bytes.Buffer
	stderr := &written{line: make(chan string, 1)}
	root := newServe()
	root.SetArgs(append(args, "--addr", "127.0.0.1:0", "--latency", "constant:1ms", "--first", "constant:0s", "--tokens-per-second", "0"))
	root.SetOut(&out)
	root.SetErr(stderr)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	select {
	case greeting = <-stderr.line:
	case err := <-done:
		t.Fatalf("ended: %v", err)
	}
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(greeting)
	for i, body := range bodies {
		r, err := http.NewRequest("POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer alice")
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("X-Stainless-Retry-Count", "1")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(w.Body) // which some faults break off
		w.Body.Close()
		answers = append(answers, string(text))
		if w.StatusCode != want[i] {
			t.Errorf("%s: %d %s, want %d", body, w.StatusCode, text, want[i])
		}
	}
	interrupt()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return greeting, out.String(), answers
}

const llmBody = `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"Hello, world"}]}`

func TestServeOpenAI(t *testing.T) {
	log := filepath.Join(t.TempDir(), "requests.jsonl")
	args := []string{"openai", "--rpm", "3", "--tpm", "60", "--keys", "alice,bob", "--models", "m", "--log", log}
	bodies := []string{llmBody, strings.Replace(llmBody, "{", `{"stream":true,`, 1), llmBody, llmBody, "{}"}
	codes := []int{200, 200, 429, 200, 400}
	greeting, out, answers := serveLLMVerb(t, "/v1/chat/completions", bodies, codes, append(args, "--script", "no-usage,ok,429", "-o", "json")...)
	var r llm.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Verdicts["accepted"] != 3 || r.Verdicts["malformed"] != 1 || r.Faults["429"] != 1 || r.Faults["no-usage"] != 1 || r.Retries != 5 ||
		len(r.Accounts) != 1 || r.Accounts[0].Key != "alice" || len(r.Accounts[0].Limits) != 2 || r.Accounts[0].Limits[1].Counted != 60 {
		t.Errorf("%v: %s", err, out)
	}
	if !strings.Contains(greeting, "openai, 3 requests, 60 tokens per 1m0s for each key and model") {
		t.Error(greeting)
	}
	if strings.Contains(answers[0], `"usage"`) || !strings.HasSuffix(answers[1], "data: [DONE]\n\n") || !strings.Contains(answers[2], "rate_limit_exceeded") {
		t.Errorf("%q", answers)
	}
	lines, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	again, err := llm.Judge(llm.Config{Limits: llm.Limits{Requests: 3, Tokens: 60}}, lines)
	if err != nil || again.Wrong != 0 || again.Verdicts["accepted"] != 3 {
		t.Errorf("%+v, %v", again, err)
	}
	_, out, _ = serveLLMVerb(t, "/v1/chat/completions", bodies[:4], []int{200, 200, 200, 429}, append(args, "-o", "csv")...)
	if !regexp.MustCompile(`(?m)^alice,m,3,1,requests,3,3,3,100\.00,4,133\.33$`).MatchString(out) {
		t.Error(out)
	}
	_, out, _ = serveLLMVerb(t, "/v1/chat/completions", bodies[:4], []int{200, 200, 200, 429}, args...)
	if !regexp.MustCompile(`(?m)^ *alice +m +3 +1 +requests +3 +3 +100\.0 +4 +133\.3$`).MatchString(out) || !strings.Contains(out, "3 accepted and 1 limited in ") {
		t.Error(out)
	}
}

func TestServeAnthropic(t *testing.T) {
	greeting, out, answers := serveLLMVerb(t, "/v1/messages", []string{llmBody, llmBody, llmBody, llmBody}, []int{529, 500, 200, 400},
		"anthropic", "--models", "any", "--fault", "error-event=1", "--script", "overloaded,500,ok,unpaid")
	if !strings.Contains(greeting, "anthropic, 50 requests, 30000 input tokens, 8000 output tokens per 1m0s") {
		t.Error(greeting)
	}
	if !strings.Contains(out, "; otherwise refused: faulty 2; faults: 500 1, overloaded 1, unpaid 1; 4 retries of SDKs") || !strings.Contains(answers[0], "overloaded_error") {
		t.Error(out, answers)
	}
}

// Published models are known, others are not unless they are named, and the input is what the vocabulary of the model counts.
func TestServeLLMModels(t *testing.T) {
	body := func(model string) string { return strings.Replace(llmBody, `"m"`, `"`+model+`"`, 1) }
	bodies := []string{body("gpt-4o"), body("gpt-4-0613"), body("mine"), body("gpt-nope")}
	_, out, answers := serveLLMVerb(t, "/v1/chat/completions", bodies, []int{200, 200, 200, 404}, "openai", "--models", "published,mine")
	for i, want := range []string{`"prompt_tokens":10,`, `"prompt_tokens":10,`, `"prompt_tokens":`, `"model_not_found"`} { // Hello , world, and 7 about it
		if !strings.Contains(answers[i], want) {
			t.Errorf("%s, want %s", answers[i], want)
		}
	}
	if !strings.Contains(out, "otherwise refused: unknown model 1;") {
		t.Error(out)
	}
	serveLLMVerb(t, "/v1/chat/completions", bodies, []int{200, 200, 404, 404}, "openai")
	serveLLMVerb(t, "/v1/chat/completions", bodies, []int{200, 200, 200, 200}, "openai", "--models", "any")
	serveLLMVerb(t, "/v1/messages", append(bodies, body("claude-sonnet-5")), []int{404, 404, 404, 404, 200}, "anthropic")
}

// How much a model may answer is written down twice, for estimates and for the fake: they agree.
func TestMostOutput(t *testing.T) {
	l, err := llm.New(llm.Config{Published: true, Limits: llm.Limits{Requests: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, model := range []string{"gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5.1", "gpt-5.5", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-2024-08-06",
		"gpt-4o-mini", "chatgpt-4o-latest", "o1", "o3", "o4-mini", "gpt-4-turbo", "gpt-4", "gpt-3.5-turbo"} {
		text := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"x"}]}`, model)
		e, err := vocabularies().Estimate(tokens.Chat, []byte(text))
		if err != nil || !e.Assumed {
			t.Fatal(e, err)
		}
		for more, want := range []int{200, 400} {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(strings.Replace(text, "{", fmt.Sprintf(`{"max_tokens":%d,`, e.MaxOutput+int64(more)), 1)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer k")
			w := httptest.NewRecorder()
			if l.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s: %d tokens: %d %.200s, want %d", model, e.MaxOutput+int64(more), w.Code, w.Body, want)
			}
		}
	}
}

// TestServeLLMLimit: --limit says what --rpm, --tpm, --rpd and --window say together.
func TestServeLLMLimit(t *testing.T) {
	greeting, _, _ := serveLLMVerb(t, "/v1/chat/completions", []string{llmBody, llmBody, llmBody}, []int{200, 200, 429},
		"openai", "--models", "any", "--limit", "2/90s", "--limit", "tokens=100k/90s", "--limit", "900/d")
	if !strings.Contains(greeting, "openai, 2 requests, 100000 tokens per 1m30s for each key and model, 900 requests per day") {
		t.Error(greeting)
	}
}

func TestServeLLMBadFlags(t *testing.T) {
	for want, args := range map[string]string{
		"--rpm -1: want 0 or more":                            "openai --rpm -1",
		"--tpd -1: want 0 or more":                            "anthropic --tpd -1",
		"--window 1.5ms: want a whole number of milliseconds": "openai --window 1.5ms",
		`--count "x": want one of documented, reserved`:       "openai --count x",
		"--per-second: want buckets, not --rolling":           "openai --per-second --rolling",
		"unknown flag: --per-second":                          "anthropic --per-second",
		"--refused-count: want --rolling":                     "openai --refused-count",
		"--models any,gpt-4o: any is all of them":             "openai --models any,gpt-4o",
		"--tokens-per-second NaN":                             "openai --tokens-per-second NaN",
		"--cached 2: want 0 to 1":                             "openai --cached 2",
		"--reasoning -1: want 0 to 1":                         "openai --reasoning -1",
		"--retry-after -1s":                                   "openai --retry-after -1s",
		`--output "xml": want text, json or csv`:              "anthropic -o xml",
		"--latency: ":                                         "openai --latency fast",
		`--limit: "figs=5/m": no limit "figs", expected one`:  "openai --limit figs=5/m",
		`--limit: "5" does not say per what time`:             "openai --limit 5",
		`another limit has a window of 1m0s`:                  "anthropic --limit 5/m --limit input=9/s",
		`"5/s" has a window, and so has --window`:             "openai --limit 5/s --window 1m",
		`there is a limit of requests already`:                "openai --limit 5/m --rpm 7",
		`"tokens=5/d": there is a limit of tokens already`:    "openai --limit tokens=5/d --tpd 7",
		"--first: ":                            "openai --first fast",
		`--fault "cut": want NAME=PROBABILITY`: "openai --fault cut",
		`no fault is called "fire"`:            "openai --fault fire=1 --addr 127.0.0.1:0",
		"probabilities are 1.5 together":       "openai --fault cut=1,reset=0.5 --addr 127.0.0.1:0",
		`Script[0]: no fault is called "x"`:    "openai --script x --addr 127.0.0.1:0",
		`Keys: "a" is empty or there twice`:    "openai --keys a,a --addr 127.0.0.1:0",
	} {
		var says strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what starts all the same ends at once
		code := execute(ctx, append([]string{"serve"}, strings.Fields(args)...), strings.NewReader(""), io.Discard, &says)
		if code != cli.ExitUsage || !strings.Contains(says.String(), want) {
			t.Errorf("%s: %d, %s, want %s", args, code, &says, want)
		}
	}
}
