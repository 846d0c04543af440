package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// chats is a batch of n requests for a model, custom_id NAME0, NAME1, …: 8 tokens in, and 100 out
// at most.
func chats(name, model string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%s%d","method":"POST","url":"/v1/chat/completions","body":{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"x"}]}}`+"\n", name, i, model)
	}
	return b.String()
}

// Prices of models come from the table, also for names with dates, and are in the plan and in the
// summary. A price from a flag replaces them. A model without a known price is named once.
func TestRunPrices(t *testing.T) {
	t.Parallel()
	l := newLLM(t, llm.Config{})
	known := chats("a", "gpt-4o-2024-08-06", 300) + chats("b", "gpt-4.1", 100)
	for _, c := range []struct {
		name, text, args string
		code             int
		want             []string
	}{
		{"known", known, "--dry-run", 0, []string{
			"  gpt-4o-2024-08-06", "at most 30,000 out, at most $0.31\n", "at most 10,000 out, at most $0.0816\n",
			"at most $0.39, by the prices of openai as of 20", " (paceline models)\n"}},
		{"given", known, "--dry-run --price-input 0 --price-output 1", 0, []string{"at most 30,000 out, at most $0.0300\n", "  at most $0.0400\n"}},
		{"unknown", known + chats("c", "gpt-9", 7) + chats("d", "ft:gpt-4o:org::id", 2), "--dry-run", 0, []string{
			"no price is known of gpt-9, ft:gpt-4o:org::id: --price-input and --price-output"}},
		{"sent", chats("a", "gpt-4o-2024-08-06", 3) + chats("b", "gpt-4.1", 2), "", 0, []string{
			"model gpt-4o-2024-08-06: 3 done, 3 tokens in, ", "model gpt-4.1: 2 done, 2 tokens in, ", "; 5 tokens in, ", " by prices as of 20"}},
		{"partly", chats("a", "gpt-4o", 1) + chats("b", "gpt-9", 1), "", 0, []string{" without gpt-9 by prices as of 20", "model gpt-9: 1 done, 1 tokens in, "}},
		{"a budget", known, "--budget 0.0005", 5, []string{"of the budget of $0.00050 are spent, and the next request may cost more than the rest"}},
		{"a budget of what", known + chats("c", "gpt-9", 300), "--budget 5", 4, []string{
			"paceline: bad configuration: no price is known of gpt-9, and --budget needs it: --price-input and --price-output, in USD per million tokens\n"}},
	} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		args := append([]string{"run", "--limit", "none", "--base-url", l.URL(), "--key-env", "A_KEY", "--out", out}, strings.Fields(c.args)...)
		code, stdout, stderr := paceline("", append(args, write(t, "in.jsonl", c.text))...)
		for _, want := range c.want {
			if got := stdout + stderr; code != c.code || strings.Count(got, want) != 1 {
				t.Errorf("%s: %d, expected %d and once %q in\n%s", c.name, code, c.code, want, got)
			}
		}
		if c.name == "a budget of what" {
			code, _, stderr = paceline(c.text, append(args, "-")...) // of a pipe it is known when it is read
			if code != 4 || !strings.Contains(stderr, "no price is known of gpt-9, and --budget needs it") {
				t.Errorf("%s: %d %s", c.name, code, stderr)
			}
		}
	}
}

// The usage of each model is shown if its provider has, or may have, limits for each model. Names
// that share a limit are one model.
func TestRunEachModelAlone(t *testing.T) {
	t.Parallel()
	two := chats("a", "gpt-4o", 200) + chats("b", "gpt-4o-2024-08-06", 100) + chats("c", "gpt-4.1", 100) + chats("d", "o3", 1)
	for _, c := range []struct {
		name, text, args string
		want             []string // none: no note
	}{
		{"a preset", two, "--preset openai:tier1 --rpm 60", []string{
			"OpenAI has limits of each model, and so has the run: gpt-4o 4m0s (60/m requests binds), gpt-4.1 40s (60/m requests binds), o3 0s",
			"The run uses them for gpt-4.1, o3, too, which may be wrong"}},
		{"another limit for each", chats("a", "gpt-4o", 200) + strings.ReplaceAll(chats("b", "o3", 10), `"max_tokens":100`, `"max_tokens":3000`), "--rpm 100 --tpm 6000",
			[]string{"o3 4m0s (6000/m tokens binds), gpt-4o 2m20s (6000/m tokens binds)"}},
		{"per second, too", two, "--preset openai:tier1 --rpm 60 --per-second", []string{"limits of each model, and so has the run: gpt-4o 4m59s (1/s requests binds), "}},
		{"one that is for all", two, "--preset openai:tier1 --rpm 60 --limit 100/m", []string{
			"OpenAI has limits of each model, and the run keeps to those given for all 3 together; alone they take: gpt-4o 4m0s (60/m requests binds), "}},
		{"nobody knows whose", two, "--rpm 60 --base-url http://127.0.0.1:1", []string{"the provider may have limits of each model, "}},
		{"one", chats("a", "gpt-4o", 200) + chats("b", "gpt-4o-2024-08-06", 100), "--preset openai:tier1", nil},
		{"no limit", two, "--limit none", nil},
		{"nothing to gain", two, "--rpm 6000", nil},
	} {
		_, stdout, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(c.args)...), write(t, "in.jsonl", c.text))...)
		for _, want := range c.want {
			if strings.Count(squeezed(stdout), want) != 1 {
				t.Errorf("%s: expected %q in\n%s%s", c.name, want, stdout, stderr)
			}
		}
		if strings.Contains(stdout, "limits of each model") != (c.want != nil) || c.want == nil && strings.Contains(stdout, "same numbers") {
			t.Errorf("%s: %s", c.name, stdout)
		}
	}
}

// The provider's own batch API is a row of the plan, where it is the provider that is asked.
func TestRunBatchAPI(t *testing.T) {
	race.Without(t)
	t.Parallel()
	anthropic := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"custom_id":"p%d","params":{"model":"claude-haiku-4-5","max_tokens":1000,"messages":[{"role":"user","content":"x"}]}}`+"\n", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text, args, want string
	}{
		{"one", chats("a", "gpt-4o", 400), "", "OpenAI's own: 50 % less, at most $0.20, within 24 h, in 1 file (https://platform.openai.com/docs/guides/batch)"},
		{"a file for each model, and 50,000 requests", chats("a", "gpt-4o", 50_001) + chats("b", "gpt-4.1", 1), "", " within 24 h, in 3 files ("},
		{"no price", chats("a", "gpt-9", 4), "", "OpenAI's own: 50 % less, within 24 h, in 1 file ("},
		{"Anthropic", anthropic(400), "", "Anthropic's own: 50 % less, at most $1.00, within 24 h, in 1 file (https://platform.claude.com/"},
		{"another server", chats("a", "gpt-4o", 4), "--base-url http://127.0.0.1:1", ""},
		{"nothing", "", "--format openai-batch", ""},
	} {
		args := append([]string{"run", "--rpm", "5000", "--dry-run"}, strings.Fields(c.args)...)
		_, stdout, stderr := paceline("", append(args, write(t, "in.jsonl", c.text))...)
		if !strings.Contains(squeezed(stdout), strings.TrimSpace(c.want)) || strings.Contains(stdout, "batch API") != (c.want != "") {
			t.Errorf("%s: expected %q in\n%s%s", c.name, c.want, stdout, stderr)
		}
	}
}

// A line that is no request is among the errors, once, and nothing follows from it: not even for
// the request whose custom_id it has.
func TestRunSkippedLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ good, bad, want string }{
		"OpenAI": {chats("a", "gpt-4o", 2), `{"custom_id":"bad","method":"GET","url":"/v1/responses","body":{}}` + "\n}\n" + chats("a", "gpt-4o", 1),
			`"custom_id":"bad","response":null,"error":{"code":"skipped","message":"IN:3:29: method \"GET\", expected \"POST\""}}` + "\n"},
		"Anthropic": {`{"custom_id":"a0","params":{"model":"claude-haiku-4-5","max_tokens":9,"messages":[]}}` + "\n", `{"custom_id":"bad"}` + "\n}\n",
			`{"custom_id":"bad","result":{"type":"errored","error":{"error":{"message":"IN:2:1: there is no params, expected custom_id, params","type":"invalid_request_error"},"type":"error"}},"skipped":"batch_req_`},
	} {
		served := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			served++
			_, _ = io.WriteString(w, `{"usage":{"input_tokens":8,"output_tokens":5}}`)
		}))
		in, out := write(t, "in.jsonl", c.good+c.bad), filepath.Join(t.TempDir(), "out.jsonl")
		n, bad := strings.Count(c.good, "\n"), strings.Count(c.bad, "\n")
		for range 3 {
			for _, text := range []string{"", c.good + c.bad} { // a file, and a pipe
				args := []string{"run", "--limit", "none", "--concurrency", "1", "--base-url", srv.URL, "--skip-invalid", "--out", out}
				if text == "" {
					args = append(args, in)
				}
				if code, _, stderr := paceline(text, args...); code != 3 || served != n {
					t.Errorf("%s: exit %d, %d served\n%s", name, code, served, stderr)
				}
			}
		}
		srv.Close()
		errs, _ := os.ReadFile(strings.TrimSuffix(out, ".jsonl") + ".errors.jsonl")
		text := strings.ReplaceAll(string(errs), in, "IN")
		if got := strings.Count(text, "\n"); got != bad || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d lines, expected %d with %s in\n%s", name, got, bad, c.want, text)
		}
	}
}

// The JSON for programs says the same.
func TestRunPricesAsJSON(t *testing.T) {
	in := write(t, "in.jsonl", chats("a", "gpt-4o", 10)+chats("b", "gpt-9", 3))
	_, stdout, stderr := paceline("", "run", "--rpm", "5", "--dry-run", "-o", "json", in)
	var p run.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	m := p.Models[0]
	if p.USDMax != nil || len(p.Unpriced) != 1 || p.Unpriced[0] != "gpt-9" || p.PricesOf != "openai" || p.PricesAsOf == "" || p.Models[1].USDMax != nil {
		t.Errorf("%+v", p)
	}
	if m.USDMax == nil || *m.USDMax != (10*8*2.5+1000*10)/1e6 || *m.USDInput != 2.5 || *m.USDOutput != 10 {
		t.Errorf("%+v", m)
	}
}

// A model that does not exist is found by its first answer, whatever is in the file besides. Its others
// are dead letters that were not sent, and go once there is such a model. How many requests that costs,
// TestFirstOfAModel and TestLateWrongModel of package run tell in virtual time.
func TestRunWrongModel(t *testing.T) {
	race.Without(t) // what follows from one answer; TestRunBatchKilled sends as much
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		{"OpenAI", 404, `{"error":{"message":"The model gpt-9 does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`},
		{"a project without it", 403, `{"error":{"message":"Project x does not have access to it","type":"invalid_request_error","code":"model_not_found"}}`},
		{"DeepSeek", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`},
		{"Mistral", 400, `{"object":"error","message":"Invalid model: gpt-9","type":"invalid_model","param":null,"code":"1500"}`},
	} {
		var mu sync.Mutex
		asked, exists := 0, false
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			body, _ := io.ReadAll(q.Body)
			mu.Lock()
			defer mu.Unlock()
			if bytes.Contains(body, []byte(`"gpt-9"`)) {
				if asked++; !exists {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
					return
				}
			}
			_, _ = io.WriteString(w, `{"id":"x","usage":{"prompt_tokens":8,"completion_tokens":5}}`)
		}))
		out := filepath.Join(t.TempDir(), "out.jsonl")
		args := []string{"run", "--limit", "none", "--base-url", srv.URL, "--key-env", "A_KEY", "--out", out, write(t, "in.jsonl", chats("a", "gpt-4o", 50)+chats("b", "gpt-9", 400)+chats("c", "gpt-4o", 50))}
		began := time.Now()
		code, _, stderr := paceline("", args...)
		took := time.Since(began)
		errs, _ := os.ReadFile(strings.TrimSuffix(out, ".jsonl") + ".errors.jsonl")
		// The first goes alone for 3 s. On a machine with little to spare for this test, its answer comes later.
		first := asked
		if first != 1 && took < 3*time.Second {
			t.Errorf("%s: asked %d times in %v, expected once", c.name, first, took)
		}
		unsent := fmt.Sprintf("model gpt-9: %d requests were not sent", 400-first)
		if code != 3 || strings.Count(stderr, "model gpt-9: answered ") != 1 || !strings.Contains(stderr, unsent) ||
			!strings.Contains(stderr, "100 done") || !strings.Contains(stderr, "400 dead: 400 model; --retry-dead=model sends those again, once the cause that their errors name is gone") {
			t.Errorf("%s: exit %d, asked %d times\n%s", c.name, code, asked, stderr)
		}
		if n := bytes.Count(errs, []byte(`"response":null,"error":{"code":"model","message":"not sent: answered `)); n != 400-first {
			t.Errorf("%s: %d lines say that they were not sent:\n%.600s", c.name, n, errs)
		}
		mu.Lock()
		exists = true
		mu.Unlock()
		code, _, stderr = paceline("", append(args, "--retry-dead=model")...)
		if code != 0 || asked != 400+first || !strings.Contains(stderr, "400 done") {
			t.Errorf("%s: again: exit %d, asked %d times\n%s", c.name, code, asked, stderr)
		}
		srv.Close()
	}
}

// The example of docs/batch.md: limits of one model beside those of the others, in the plan.
func TestRunLimitModel(t *testing.T) {
	t.Parallel()
	const example = "--preset openai:tier1 --limit-model o3=rpm:100,tpm:200000"
	page, err := os.ReadFile("../../docs/batch.md")
	if err != nil || !strings.Contains(string(page), "paceline run "+example+" ") {
		t.Fatalf("docs/batch.md has no %q: %v", example, err)
	}
	in := write(t, "in.jsonl", chats("a", "gpt-4o", 600)+chats("b", "o3", 300))
	code, stdout, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(example)...), in)...)
	for _, want := range []string{
		"limit 500/m requests   600: 12s, for gpt-4o\n", "limit 100/m requests   300: 2m0s, for o3  <- binds\n", "limit 200000/m tokens  30,000: 0s, for o3\n",
	} {
		if code != 0 || strings.Count(stdout, want) != 1 {
			t.Errorf("%d %s, no %q in\n%s", code, stderr, want, stdout)
		}
	}
	if strings.Contains(stdout, "which may be wrong") {
		t.Errorf("o3 has numbers of its own:\n%s", stdout)
	}
	// A name that nothing is for is said: it may be wrong.
	_, _, stderr = paceline("", "run", "--dry-run", "--rpm", "60", "--limit-model", "gpt-4p=rpm:9", in)
	if !strings.Contains(stderr, "no request that is to be sent is for gpt-4p, which has limits of its own (--limit-model); those are for gpt-4o, o3") {
		t.Errorf("%s", stderr)
	}
	for _, c := range []struct {
		code       int
		args, want string
	}{
		{2, "--rpm 60 --limit-model gpt-4o", `--limit-model "gpt-4o": expected NAME=rpm:N,tpm:N,itpm:N,otpm:N`},
		{2, "--rpm 60 --limit-model gpt-4o=", `--limit-model "gpt-4o=": expected NAME=rpm:N`},
		{2, "--rpm 60 --limit-model gpt-4o=rps:5", `--limit-model "gpt-4o=rps:5": "rps:5", expected rpm:N, tpm:N, itpm:N or otpm:N`},
		{2, "--rpm 60 --limit-model gpt-4o=rpm:0", `"rpm:0", expected rpm:N with N from 1 to`},
		{2, "--rpm 60 --limit-model gpt-4o=rpm:5,rpm:6", `rpm is given twice`},
		{2, "--rpm 60 --limit-model gpt-4o=rpm:5 --limit-model gpt-4o=tpm:6", `gpt-4o is given twice, expected once, with all of its limits`},
		{2, "--limit-model gpt-4o=rpm:5", "--limit-model is beside --limit, --preset or --rpm"},
		{4, "--rpm 60 --limit-model o3=tpm:50", `in.jsonl:601:14: custom_id "b0" can never go: it counts`},
		{4, "--rpm 60 --nonce-gap 1ms --header X:{nonce} --limit-model o3=rpm:50", "limits of a model (--limit-model) with {nonce} or --nonce-gap"},
	} {
		code, _, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(c.args)...), in)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, want %d and %q in\n%s", c.args, code, c.code, c.want, stderr)
		}
	}
	code, _, stderr = paceline(chats("a", "o3", 2), "run", "--rpm", "60", "--limit-model", "o3=rpm:9", "--base-url", "http://127.0.0.1:1", "-")
	if code != 4 || !strings.Contains(stderr, "limits of a model (--limit-model) with a pipe or a compressed file, expected a plain file") {
		t.Errorf("a pipe: %d %s", code, stderr)
	}
}
