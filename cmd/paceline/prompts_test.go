package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/ratetest/llm"
)

const promptBody = `{"model":"{row.model}","max_tokens":50,"messages":[{"role":"user","content":{row.text}}]}`

// promptRows is a table of prompts for two models, as JSON within its cells.
func promptRows(n int) string {
	var b strings.Builder
	b.WriteString("id,model,text\n")
	for i := range n {
		fmt.Fprintf(&b, "p%d,%s,\"\"\"Why %d?\"\"\"\n", i, [...]string{"gpt-4o", "gpt-4.1"}[i%2], i)
	}
	return b.String()
}

// Flags for tokens hold for any form of input whose path is of a known API. Elsewhere they are refused, with
// the paths that are known.
func TestRunTokensOfAnyInput(t *testing.T) {
	t.Parallel()
	l := newLLM(t, llm.Config{})
	table := write(t, "q.csv", promptRows(4))
	rows := []string{"--url", l.URL() + "/v1/chat/completions", "--body", promptBody, "--id", "{row.id}", table}
	line := func(method, url, body string) string {
		return write(t, "in.jsonl", fmt.Sprintf(`{"id":"a","method":%q,"url":%q,"body":%s}`+"\n", method, url, body))
	}
	const known = "cannot be counted, expected POST to a path that ends in /chat/completions, /responses, "
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{append([]string{"--tpm", "90000", "--dry-run"}, rows...), 0, "  gpt-4.1             2, "},
		{append([]string{"--rpm", "600", "--count", "sum", "--dry-run"}, rows...), 0, "counted"},
		{append([]string{"--limit", "none", "--budget", "1USD", "--dry-run"}, rows...), 0, "money"},
		{append([]string{"--limit", "9/s", "--dry-run"}, rows...), 0, "limit 9/s  4: "},
		{append([]string{"--rpm", "600", "--tpm", "5000", "--estimate", "0.05"}, rows...), 2, "an estimate of the output helps only where the server counts what was used, not with sum"},
		{append([]string{"--tpm", "20", "--skip-invalid=false"}, rows...), 4, table + `:2:1: id "p0" can never go: it counts `},
		{[]string{"--tpm", "5000", line("GET", l.URL()+"/v1/models", "null")}, 2, "paceline: --tpm: the tokens of GET /v1/models " + known},
		{[]string{"--rpm", "5", "--price-input", "1", "--price-output", "1", line("POST", l.URL()+"/pay?key=s3cret", "{}")}, 2, "paceline: --price-input: the tokens of POST /pay " + known},
		{[]string{"--limit", "none", "--budget", "1USD", line("POST", l.URL()+"/pay", "{}")}, 2, "paceline: --budget without a price: --price, "},
		{[]string{"--tpm", "5000", "--input-format", "urls", write(t, "urls.txt", l.URL()+"/v1/models\n")}, 2, "paceline: --tpm: the tokens of GET /v1/models " + known},
		{[]string{"--tpm", "5000", write(t, "two.jsonl", string(must(os.ReadFile(line("POST", l.URL()+"/v1/responses", `{"model":"gpt-4o","input":"x","max_output_tokens":5}`))))+
			`{"id":"b","method":"POST","url":"`+l.URL()+`/v1/audio","body":{}}`+"\n")}, 4, `two.jsonl:2:33: the tokens of POST /v1/audio ` + known},
		{[]string{"--tpm", "5000", line("POST", l.URL()+"/v1/responses", `{"max_output_tokens":-1}`)}, 4, ": body: responses request: malformed body: max_output_tokens: -1 is not a whole number"},
		{[]string{"--limit", "none", "--limit-model", "gpt-4o=rpm:5", line("GET", l.URL()+"/", "null")}, 2, "paceline: --limit-model gpt-4o: the tokens of GET / " + known},
	} {
		code, stdout, stderr := paceline("", append([]string{"run", "--out", filepath.Join(t.TempDir(), "out")}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stderr, "s3cret") {
			t.Errorf("run %s\n got %d %s%s\nwant %d %s", strings.Join(c.args, " "), code, stderr, stdout, c.code, c.want)
		}
	}
	if n := l.Report(); len(n.Verdicts) != 0 {
		t.Errorf("something was sent: %v", n.Verdicts)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Streams are metered by their events: the tokens of the summary are those that the server produced.
func TestRunStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"model":"gpt-4o","max_tokens":50,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Why %d?"}]}`},
		{"/v1/responses", `{"model":"gpt-4o","max_output_tokens":50,"stream":true,"input":"Why %d?"}`},
	} {
		l := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 1e6, Tokens: 1e9}})
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, `{"id":"p%d","method":"POST","url":%q,"body":`+c.body+"}\n", i, l.URL()+c.path, i)
		}
		code, _, stderr := paceline("", "run", "--header", "Authorization: Bearer k", "--tpm", "10000000", "--price-input", "1", "--price-output", "2", "--out", filepath.Join(t.TempDir(), "out"), write(t, "in.jsonl", b.String()))
		a := l.Report().Accounts
		if code != 0 || len(a) != 1 || a[0].Accepted != 20 || !strings.Contains(stderr, fmt.Sprintf("; %d tokens in, %d out, $", a[0].Input, a[0].Output)) || a[0].Output == 0 {
			t.Errorf("%s: %d %s; the server: %+v", c.path, code, stderr, a)
		}
	}
}
