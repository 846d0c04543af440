package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest/latency"
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
		{append([]string{"--rpm", "600", "--tpm", "5000", "--estimate", "0.05"}, rows...), 2, "an estimate of the output helps only where the server counts the output that was used, not with sum"},
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

const answerOf = "id=.id, answer=.body.choices[0].message.content"

// A batch may become rows, in the order of the input. Its errors keep the provider's format, and a later run
// sends those again, into their places.
func TestRunBatchAsRows(t *testing.T) {
	t.Parallel()
	healed := atomic.Bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		_, rest, _ := strings.Cut(string(body), "What is ")
		n, _, _ := strings.Cut(rest, "?")
		if n == "3" && !healed.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"It is, %s"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, n)
	}))
	defer srv.Close()
	models := strings.Replace(prompts(6), "gpt-4o", "gpt-4.1", 2)
	in := write(t, "in.jsonl", models+"}\n")
	for _, c := range []struct{ name, row string }{{"out.csv", "p%d,\"It is, %[1]d\"\n"}, {"out.jsonl", "{\"id\":\"p%d\",\"answer\":\"It is, %[1]d\"}\n"}} {
		out := filepath.Join(t.TempDir(), c.name)
		errs := strings.TrimSuffix(out, ".jsonl") + ".errors.jsonl"
		healed.Store(false)
		want := func(leaveOut int) string {
			text := ""
			if strings.HasSuffix(out, "csv") {
				text = "id,answer\n"
			}
			for i := range 6 {
				if i != leaveOut {
					text += fmt.Sprintf(c.row, i)
				}
			}
			return text
		}
		run := func(args ...string) (int, string) {
			code, _, stderr := paceline("", append([]string{"run", "--preset", "openai:tier1", "--attempts", "1", "--base-url", srv.URL, "--skip-invalid", "--select", answerOf, "--ordered", "--out", out, in}, args...)...)
			return code, stderr
		}
		code, stderr := run()
		if got := read(t, out); code != 3 || got != want(3) {
			t.Errorf("%d %s\n%s", code, stderr, got)
		}
		if text := read(t, errs); strings.Count(text, "\n") != 2 || !strings.Contains(text, `"custom_id":"p3","response":{"status_code":500,`) || !strings.Contains(text, `"code":"skipped"`) {
			t.Errorf("errors: %s", text)
		}
		if code, stderr := run(); code != 3 || !strings.Contains(stderr, "0 to send, ") || !strings.Contains(stderr, "5 done before, 1 dead before") {
			t.Errorf("again: %d %s", code, stderr)
		}
		healed.Store(true)
		code, stderr = run("--retry-dead=failed")
		if got := read(t, out); code != 3 || got != want(-1) || !strings.Contains(stderr, "1 to send, 1 done") {
			t.Errorf("%d %s\n%s", code, stderr, got)
		}
	}
	code, stdout, stderr := paceline("", "run", "--rpm", "6000", "--base-url", srv.URL, "--skip-invalid", "--select", answerOf, "--ordered", in)
	if code != 3 || strings.Count(stdout, "\n") != 6 || !strings.HasPrefix(stdout, `{"id":"p0","answer":"It is, 0"}`+"\n") {
		t.Errorf("on standard output: %d %s%s", code, stderr, stdout)
	}
	if code, _, stderr := paceline("", "run", "--rpm", "6000", "--base-url", srv.URL, "--out-dir", t.TempDir(), in); code != 2 || !strings.Contains(stderr, "--out-dir does not go with batches") {
		t.Errorf("files of bodies: %d %s", code, stderr)
	}
}

// Own rows as prompts, for two models, over Ctrl-C and kill -9: each has its row once, in the order of the table,
// and the plan is that of a batch with the same prompts.
func TestRunPromptsKilled(t *testing.T) {
	race.Without(t) // TestRunRowsKilled has the same processes
	t.Parallel()
	need.NotShort(t, "TestRunRowsKilled kills a run with rows")
	if runtime.GOOS == "windows" {
		t.Skip("no kill -9")
	}
	const n, inFlight = 3000, 64
	l := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 1e9, Tokens: 1e12}, First: latency.Uniform(0, 20*time.Millisecond)})
	var table, batch strings.Builder
	table.WriteString("id,model,text\n")
	for i := range n { // all of one model come first
		model := [...]string{"gpt-4o", "gpt-4.1"}[i*2/n]
		fmt.Fprintf(&table, "p%d,%s,\"\"\"Why %d?\"\"\"\n", i, model, i)
		fmt.Fprintf(&batch, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", i,
			strings.NewReplacer("{row.model}", model, "{row.text}", fmt.Sprintf(`"Why %d?"`, i)).Replace(promptBody))
	}
	out := filepath.Join(t.TempDir(), "q.csv")
	flags := []string{"run", "--preset", "openai:tier1", "--rpm", "50000000", "--tpm", "90000000000", "--header", "Authorization: Bearer k",
		"--out", out, "--progress", "off", "--concurrency", fmt.Sprint(inFlight)}
	rows := append(flags, "--url", l.URL()+"/v1/chat/completions", "--body", promptBody, "--id", "{row.id}", "--select", answerOf, "--ordered", write(t, "q.csv", table.String()))
	lines := append(flags[:len(flags):len(flags)], "--out", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", l.URL(), write(t, "in.jsonl", batch.String()))
	var plans []run.Plan
	for _, args := range [][]string{rows, lines} {
		code, stdout, stderr := paceline("", append(args[:len(args):len(args)], "--dry-run", "-o", "json")...)
		var p run.Plan
		if err := json.Unmarshal([]byte(stdout), &p); code != 0 || err != nil || p.Requests != n || len(p.Models) != 2 || !p.EachModel {
			t.Fatalf("%d %s%s: %v", code, stdout, stderr, err)
		}
		p.Format, p.Lines, p.Bytes, p.ReadingSeconds, p.First, p.Finish, p.Largest.Line = "", 0, 0, 0, nil, time.Time{}, 0
		plans = append(plans, p)
	}
	if !reflect.DeepEqual(plans[0], plans[1]) {
		t.Errorf("the plans differ: %+v\n%+v", plans[0], plans[1])
	}
	shown := func() int {
		if _, err := os.Stat(out); err != nil {
			return 0
		}
		text := read(t, out)
		got := csvRows(t, text[:strings.LastIndexByte(text, '\n')+1])
		for i, row := range got {
			if i > 0 && (row[0] != fmt.Sprint("p", i-1) || row[1] == "") {
				t.Fatalf("row %d is %q", i, row)
			}
		}
		return len(got) - 1
	}
	asked := func() (all int) {
		for _, n := range l.Report().Verdicts {
			all += n
		}
		return all
	}
	for i, how := range []os.Signal{os.Interrupt, os.Kill, os.Kill, nil} {
		p := program(t, rows...)
		var errs syncBuffer
		p.Stderr = &errs
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patient); how != nil && asked() < (i+1)*n/5; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("stuck: %s", errs.String())
			}
		}
		if how != nil {
			_ = p.Process.Signal(how)
		}
		if err := p.Wait(); (err == nil) != (how == nil) {
			t.Fatalf("%v: %v %s", how, err, errs.String())
		}
		t.Log(shown(), "rows after", asked(), "sends")
	}
	if got := shown(); got != n {
		t.Errorf("%d rows, want %d", got, n)
	}
	// Answers that are rows calibrate the plan of the rest, too.
	var p run.Plan
	code, stdout, stderr := paceline("", append(rows[:len(rows):len(rows)], "--dry-run", "-o", "json")...)
	if err := json.Unmarshal([]byte(stdout), &p); code != 0 || err != nil || p.DoneBefore != n || p.Answers != n || p.Expected == nil {
		t.Errorf("%d %s: %v, %+v", code, stderr, err, p)
	}
	if sent := asked(); sent < n || sent > n+3*2*inFlight || l.Report().Verdicts["accepted"] != sent {
		t.Errorf("%d sends of %d requests: %v", sent, n, l.Report().Verdicts)
	}
}

// The short form makes the prompts of a column, in the shape of the API at the address. The text before them is
// sent as it is.
func TestRunPromptColumn(t *testing.T) {
	t.Parallel()
	type got struct{ path, key, version, body string }
	asked := make(chan got, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		asked <- got{q.URL.Path, q.Header.Get("Authorization") + q.Header.Get("X-Api-Key"), q.Header.Get("Anthropic-Version"), string(body)}
		_, _ = io.WriteString(w, map[string]string{
			"/v1/chat/completions": `{"choices":[{"message":{"content":"Yes, \"so\""}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`,
			"/v1/responses":        `{"output":[{"type":"reasoning"},{"content":[{"text":"Yes, "},{"text":"\"so\""}]}],"usage":{"input_tokens":5,"output_tokens":2}}`,
			"/v1/messages":         `{"content":[{"type":"thinking"},{"text":"Yes, \"so\""}],"usage":{"input_tokens":5,"output_tokens":2}}`,
		}[q.URL.Path])
	}))
	defer srv.Close()
	const system = "Use {row.text} & <b>\nas \"is\""
	table := write(t, "q.csv", "id,text,model\na,\"Is \"\"it\"\"\nso?\",gpt-4o\n")
	file := write(t, "s.txt", system)
	schema := write(t, "schema.json", `{"type": "object",`+"\n"+`"properties": {"label": {"type": "string"}}}`)
	const sent = `{"type":"object","properties":{"label":{"type":"string"}}}`
	for _, c := range []struct {
		args []string
		want got
	}{
		{[]string{"--url", srv.URL + "/v1/chat/completions", "--model", "gpt-4o", "--json-schema", schema},
			got{"/v1/chat/completions", "Bearer h1dden-Va7ueQ9", "", `{"model":"gpt-4o","messages":[{"role":"system","content":SYSTEM},{"role":"user","content":"Is \"it\"\nso?"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + sent + `}}}`}},
		{[]string{"--url", srv.URL + "/v1/responses", "--model", "gpt-4o", "--json-schema", schema},
			got{"/v1/responses", "Bearer h1dden-Va7ueQ9", "", `{"model":"gpt-4o","instructions":SYSTEM,"input":"Is \"it\"\nso?",` +
				`"text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":` + sent + `}}}`}},
		{[]string{"--preset", "anthropic:start", "--base-url", srv.URL + "/v1", "--model", "claude-sonnet-5", "--max-tokens", "20", "--json-schema", schema},
			got{"/v1/messages", "h1dden-Va7ueQ9", "2023-06-01", `{"model":"claude-sonnet-5","system":SYSTEM,"messages":[{"role":"user","content":"Is \"it\"\nso?"}],` +
				`"output_config":{"format":{"type":"json_schema","schema":` + sent + `}},"max_tokens":20}`}},
		{[]string{"--url", srv.URL + "/v1/chat/completions", "--model", "gpt-4o"},
			got{"/v1/chat/completions", "Bearer h1dden-Va7ueQ9", "", `{"model":"gpt-4o","messages":[{"role":"system","content":SYSTEM},{"role":"user","content":"Is \"it\"\nso?"}]}`}},
		{[]string{"--base-url", srv.URL, "--model", "{row.model}", "--max-tokens", "20"},
			got{"/v1/chat/completions", "Bearer h1dden-Va7ueQ9", "", `{"model":"gpt-4o","messages":[{"role":"system","content":SYSTEM},{"role":"user","content":"Is \"it\"\nso?"}],"max_tokens":20}`}},
		{[]string{"--url", srv.URL + "/v1/responses", "--model", "gpt-4o", "--max-tokens", "20"},
			got{"/v1/responses", "Bearer h1dden-Va7ueQ9", "", `{"model":"gpt-4o","instructions":SYSTEM,"input":"Is \"it\"\nso?","max_output_tokens":20}`}},
		{[]string{"--preset", "anthropic:start", "--base-url", srv.URL + "/v1", "--model", "claude-sonnet-5", "--max-tokens", "20"},
			got{"/v1/messages", "h1dden-Va7ueQ9", "2023-06-01", `{"model":"claude-sonnet-5","system":SYSTEM,"messages":[{"role":"user","content":"Is \"it\"\nso?"}],"max_tokens":20}`}},
	} {
		out := filepath.Join(t.TempDir(), "a.csv")
		args := append([]string{"run", "--rpm", "600", "--prompt-column", "text", "--system", "@" + file, "--id", "{row.id}", "--key-env", "A_KEY", "--out", out, table}, c.args...)
		code, _, stderr := paceline("", args...)
		if code != 0 || read(t, out) != "id,answer\na,\"Yes, \"\"so\"\"\"\n" {
			t.Fatalf("%v: %d %s%s", c.args, code, stderr, read(t, out))
		}
		is := <-asked
		if _, text, ok := strings.Cut(is.body, `Use \u007brow.text} & <b>\nas \"is\"`); !ok || text == "" {
			t.Errorf("%v: %s", c.args, is.body)
		}
		is.body = strings.Replace(is.body, `"Use \u007brow.text} & <b>\nas \"is\""`, "SYSTEM", 1)
		if is != c.want {
			t.Errorf("%v:\n%+v, want\n%+v", c.args, is, c.want)
		}
		if strings.Contains(stderr, "no vocabulary") != strings.Contains(strings.Join(c.args, " "), "claude") {
			t.Errorf("%v: %s", c.args, stderr)
		}
		// Another bound does not make another request of it.
		if code, _, stderr := paceline("", append(args, "--max-tokens", "40")...); code != 0 || !strings.Contains(stderr, "1 done before") || len(asked) != 0 {
			t.Errorf("%v, again: %d %s", c.args, code, stderr)
		}
	}
}

// A wrong column, an empty prompt, an address of no chat: each a message with its place or its flag.
func TestRunPromptColumnRefuses(t *testing.T) {
	t.Parallel()
	table := write(t, "q.csv", "id,text\na,Why?\nb,\"\n \"\nc,\n")
	rows := write(t, "q.jsonl", `{"id":"a","text":"Why?"}`+"\n"+`{"id":"b","text":""}`+"\n")
	form, filled := write(t, "f.json", `{"name":"x","schema":{}}`), write(t, "g.json", `{"title":"{row.text}"}`)
	const url = "http://127.0.0.1:1/v1/chat/completions"
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--prompt-column text --url " + url + " --model gpt-4o " + table, table + ":3:3: column text is empty, expected a text\n" + table + ":5:3: column text is empty", 4},
		{"--prompt-column text --id {row.id} --url " + url + " --model gpt-4o " + table, table + ":3:3: column text of id \"", 4},
		{"--prompt-column text --url " + url + " --model gpt-4o " + rows, "q.jsonl:2:18: column text is empty, expected a text\n", 4},
		{"--prompt-column txt --url " + url + " --model gpt-4o " + table, `q.csv:1:1: --prompt-column txt: there is no column "txt", expected one of id, text`, 2},
		{"--prompt-column text --model gpt-4o " + table, "--prompt-column without --url: expected the address of the API, such as --url https://api.openai.com/v1/chat/completions, or a --preset of openai or anthropic", 2},
		{"--prompt-column text --model m --preset groq:free " + table, "--prompt-column without --url", 2},
		{"--prompt-column text --url " + url + " " + table, "--prompt-column without --model, expected such as --model gpt-4o", 2},
		{"--prompt-column text --url http://h/v1/embeddings --model m " + table, "--prompt-column with this --url: expected one that ends in /chat/completions, /responses or /messages", 2},
		{"--prompt-column text --url " + url + " --body {} --model m " + table, "--prompt-column with --body, expected one of them", 2},
		{"--prompt-column {x} --url " + url + " --model m " + table, `--prompt-column "{x}", expected the name of a column, or its number`, 2},
		{"--preset anthropic:start --prompt-column text --model m " + table, "--prompt-column without --max-tokens, expected such as --max-tokens 500: Anthropic's API needs a bound of each answer", 2},
		{"--preset openai:tier1 --prompt-column text --model m " + table, "https://api.openai.com asks for a key: name its environment variable with --key-env", 4},
		{"--prompt-column text --url " + url + " --model m --system @nowhere " + table, "--system: open nowhere: ", 2},
		{"--preset openai:tier9 --prompt-column text --model m " + table, `--preset "openai:tier9": no limits are published by that name`, 2},
		{"--prompt-column text --url " + url + " --model m --json-schema nowhere " + table, "--json-schema: open nowhere: ", 2},
		{"--prompt-column text --url " + url + " --model m --json-schema " + table + " " + table, "expected an object with a JSON schema", 2},
		{"--prompt-column text --url " + url + " --model m --json-schema " + form + " " + table, "expected the schema alone", 2},
		{"--prompt-column text --url " + url + " --model m --json-schema " + filled + " " + table, "nothing in it is filled in", 2},
		{"--model m --url " + url + " " + table, "--model is for prompts, a row each: expected --prompt-column with the column that has them", 2},
		{"--max-tokens 0 --url " + url + " " + table, "--max-tokens 0, expected 1 to 17592186044416", 2},
		{"--max-tokens 5 --method POST --body {} --url http://127.0.0.1:1/v1/embeddings " + table, "--max-tokens: embeddings has no bound of its output that is known here, expected requests to /chat/completions, /responses or /messages", 4},
	} {
		args := append([]string{"run", "--out", filepath.Join(t.TempDir(), "out.csv")}, strings.Fields(c.args)...)
		if !strings.Contains(c.args, "--preset") {
			args = append(args, "--rpm", "60")
		}
		if !strings.Contains(c.args, "--prompt-column") {
			args[2] = strings.TrimSuffix(args[2], ".csv")
		}
		code, stdout, stderr := paceline("", args...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("run %s\n got %d %s%s\nwant %d %s", c.args, code, stderr, stdout, c.code, c.want)
		}
	}
}
