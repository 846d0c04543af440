package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/viabatch"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// batchServer serves batches of OpenAI's API. It changes to a new folder, and the key is in KEY.
func batchServer(t *testing.T) (server *llm.Server, url string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("KEY", "sk-viabatch-0123456789")
	server, err := llm.New(llm.Config{Published: true, BatchPace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	return server, s.URL
}

// chatLine is a line of a batch file. fields are the first ones of its body.
func chatLine(id, fields string) string {
	return `{"custom_id":"` + id + `","method":"POST","url":"/v1/chat/completions","body":{` + fields +
		`,"messages":[{"role":"user","content":"Why?"}]}}` + "\n"
}

// Batches of the provider, and after them one command with nothing left: what is wrong in an input is a dead
// letter either way.
func TestRunViaBatch(t *testing.T) {
	server, url := batchServer(t)
	const cut, hot = `"model":"gpt-4o","max_tokens":9`, `"model":"gpt-4o","temperature":5`
	text := chatLine("a", cut) + chatLine("b", cut) + chatLine("c", cut) + chatLine("hot", hot)
	if err := os.WriteFile("in.jsonl", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--via", "batch", "--preset", "openai:tier1", "--poll", "20ms", "--base-url", url,
		"--key-env", "KEY", "--out", "out.jsonl", "in.jsonl"}
	code, _, stderr := paceline("", args...)
	const batches = "batches of the provider: 3 requests are done, 3 of them cut (--retry-dead=length), 1 dead, " +
		"0 left to send; at half the price"
	if code != cli.ExitSomeFailed || !strings.Contains(stderr, batches) || strings.Contains(stderr, "every window") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	// The summary of the batches is the only one.
	if strings.Contains(stderr, "plan: ") || strings.Contains(stderr, "done before") ||
		!strings.Contains(stderr, "4 requests of model gpt-4o went to the provider as batch batch_") {
		t.Errorf("said besides: %s", stderr)
	}
	out, _ := os.ReadFile("out.jsonl")
	dead, _ := os.ReadFile("out.errors.jsonl")
	if strings.Count(string(out), `"status_code":200`) != 3 || strings.Count(string(dead), `"status_code":400`) != 1 {
		t.Errorf("%s\n%s", out, dead)
	}
	if code, _, stderr := paceline("", args...); code != cli.ExitSomeFailed ||
		strings.Contains(stderr, "batches of") || !strings.Contains(stderr, "3 done before") {
		t.Errorf("again: exit %d: %s", code, stderr)
	}
	if n := len(server.Report().Verdicts); n != 0 {
		t.Errorf("%v were sent one by one", server.Report().Verdicts)
	}
	if _, _, stderr := paceline("", append(args, "--retry-dead")...); len(server.Report().Verdicts) != 1 ||
		!strings.Contains(stderr, "goes one by one, at the ordinary price") {
		t.Errorf("--retry-dead: %v: %s", server.Report().Verdicts, stderr)
	}
}

// A batch and single requests have the same dead letters, with the same reasons, also by --success and for an
// unknown model.
func TestViaBatchJudgesAlike(t *testing.T) {
	_, url := batchServer(t)
	text := chatLine("cut", `"model":"gpt-4o","max_tokens":9`) + chatLine("whole", `"model":"gpt-4o","max_tokens":4000`) +
		chatLine("hot", `"model":"gpt-4o","temperature":5`) + chatLine("none", `"model":"gpt-0","max_tokens":9`)
	if err := os.WriteFile("in.jsonl", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ends := map[string][]string{}
	for via, more := range map[string][]string{"batch": {"--poll", "5ms"}, "requests": {"--attempts", "1"}} {
		code, _, stderr := paceline("", append(more, "run", "--via", via, "--preset", "openai:tier1", "--base-url", url,
			"--key-env", "KEY", "--out", via+".jsonl", "--success", `.choices[0].finish_reason == "stop"`, "in.jsonl")...)
		if code != cli.ExitSomeFailed || via == "batch" && !strings.Contains(stderr, "1 request is done, 3 dead, 0 left to send") {
			t.Errorf("%s: exit %d: %s", via, code, stderr)
		}
		for _, file := range []string{via + ".jsonl", via + ".errors.jsonl"} {
			lines, _ := os.ReadFile(file)
			for line := range strings.Lines(string(lines)) {
				var r struct {
					ID       string `json:"custom_id"`
					Response *struct {
						Status int `json:"status_code"`
					}
					Error *struct{ Code, Message string }
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				end := r.ID + " of " + strings.TrimPrefix(file, via)
				if r.Response != nil {
					end += fmt.Sprint(" ", r.Response.Status)
				}
				if r.Error != nil {
					end += fmt.Sprint(" ", *r.Error)
				}
				ends[via] = append(ends[via], end)
			}
		}
		slices.Sort(ends[via])
	}
	if len(ends["batch"]) != 4 || !slices.Equal(ends["batch"], ends["requests"]) ||
		!strings.Contains(ends["batch"][0], "of which --success") {
		t.Errorf("%q, one by one %q", ends["batch"], ends["requests"])
	}
}

// Rows go to the provider's batches in one command. Its table, with --select and the columns of the rows, and its dead
// letters are those of single requests. What is wrong in the rows is said before anything is sent.
func TestRunRowsViaBatch(t *testing.T) {
	server, url := batchServer(t)
	rows := "id,model,text\n1,gpt-4o,\"Why \"\"so\"\"?\"\n2,gpt-0,How?\n3,gpt-4o-mini,Who?\n4,gpt-4o,When?\n"
	for name, text := range map[string]string{"rows.csv": rows, "bad.csv": rows + "5,gpt-4o,\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(more ...string) (code int, stderr string) {
		code, _, stderr = paceline("", append([]string{"run", "--prompt-column", "text", "--model", "{row.model}", "--max-tokens", "9", "--id", "{row.id}",
			"--preset", "openai:tier1", "--base-url", url, "--key-env", "KEY", "--ordered",
			"--select", "id=.id, asked=.row.text, by=.body.model, role=.body.choices[0].message.role, end=.finish"}, more...)...)
		return code, stderr
	}
	if code, stderr := run("bad.csv", "--via", "batch", "--out", "bad.out.csv"); code != cli.ExitConfig || !strings.Contains(stderr, `column text of id "5" is empty`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	tables, letters := map[string]string{}, map[string]string{}
	for via, more := range map[string][]string{"batch": {"--poll", "5ms"}, "requests": {"--attempts", "1"}} {
		file := via + ".csv"
		if code, stderr := run(append(more, "rows.csv", "--via", via, "--out", file)...); code != cli.ExitSomeFailed || strings.Contains(stderr, "lost its end") {
			t.Errorf("%s: exit %d: %s", via, code, stderr)
		}
		table, _ := os.ReadFile(file)
		dead, _ := os.ReadFile(file + ".dead.jsonl")
		var letter struct{ ID, Class, Request, Columns any }
		if err := json.Unmarshal(dead, &letter); err != nil {
			t.Errorf("%s: %v: %s", via, err, dead)
		}
		tables[via], letters[via] = string(table), fmt.Sprint(letter)
		if via == "batch" && len(server.Report().Verdicts) > 0 && len(tables) == 1 {
			t.Errorf("%v were sent one by one", server.Report().Verdicts)
		}
	}
	const want = "id,asked,by,role,end\n1,\"Why \"\"so\"\"?\",gpt-4o,assistant,length\n3,Who?,gpt-4o-mini,assistant,length\n4,When?,gpt-4o,assistant,length\n"
	if tables["batch"] != want || tables["requests"] != want || letters["batch"] != letters["requests"] || !strings.HasPrefix(letters["batch"], "{2 model map[") {
		t.Errorf("%q\n%q", tables, letters)
	}
	code, stderr := run("rows.csv", "--via", "batch", "--out", "batch.csv")
	if code != cli.ExitSomeFailed || strings.Contains(stderr, "went to the provider") || !strings.Contains(stderr, "3 done before") {
		t.Errorf("again: exit %d: %s", code, stderr)
	}
	// A field that cannot be selected is as bad as without batches.
	if code, stderr := run("rows.csv", "--via", "batch", "--poll", "5ms", "--first", "1", "--out", "miss.csv", "--select", "x=.body.model.name"); code != cli.ExitSomeFailed ||
		!strings.Contains(stderr, "the field is empty") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A key that is refused has an exit code and a way on of its own. How far the batches are is shown without a terminal,
// too.
func TestViaBatchTells(t *testing.T) {
	server, _ := batchServer(t)
	refuses := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses {
			http.Error(w, `{"error":{"message":"Incorrect API key"}}`, http.StatusUnauthorized)
			return
		}
		server.ServeHTTP(w, r)
	}))
	defer s.Close()
	if err := os.WriteFile("in.jsonl", []byte(chatLine("a", `"model":"gpt-4o","max_tokens":9`)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--via", "batch", "--preset", "openai:tier1", "--poll", "100ms", "--progress", "40ms", "--base-url", s.URL,
		"--key-env", "KEY", "--out", "out.jsonl", "in.jsonl"}
	code, _, stderr := paceline("", args...)
	if code != cli.ExitExhausted || !strings.Contains(stderr, "answered 401: Incorrect API key; expected another key in KEY. With that, the same command goes on") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	refuses = false
	code, _, stderr = paceline("", args...)
	if code != 0 || !strings.Contains(stderr, "0 of 1 request in 1 batch done, as the provider counts  next look at ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	plain := func(_, text string) string { return text }
	silent := viabatch.Progress{Silent: "answered 502", Next: time.Date(2026, 11, 30, 9, 5, 7, 0, time.Local)}
	if line := batchLine(&silent).Fit(0, plain); line != "no service: answered 502  next look at 09:05:07" {
		t.Errorf("%q", line)
	}
}

// Rows become a batch file, which the provider's batches take, and whose results have the ids of the rows.
func TestRunBatchFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KEY", "sk-viabatch-0123456789")
	if err := os.WriteFile("rows.csv", []byte("id,text\na,\"Why \"\"so\"\"?\"\nb,Who?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for preset, c := range map[string]struct {
		provider llm.Provider
		model    string
		done     string
	}{"openai:tier1": {llm.OpenAI, "gpt-4o", `"status_code":200`}, "anthropic:start": {llm.Anthropic, "claude-sonnet-4", `"type":"succeeded"`}} {
		server, err := llm.New(llm.Config{Provider: c.provider, Published: true, BatchPace: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(server)
		file := c.provider.String() + ".jsonl"
		args := []string{"run", "rows.csv", "--prompt-column", "text", "--model", c.model, "--max-tokens", "9", "--id", "{row.id}", "--preset", preset, "--base-url", s.URL,
			"--key-env", "KEY", "--batch-file", file}
		code, stdout, stderr := paceline("", args...)
		if code != 0 || stdout != "" || stderr != "2 prompts are in "+file+"; --via batch with this file sends them at half the price\n" {
			t.Errorf("%s: exit %d: %s%s", preset, code, stdout, stderr)
		}
		if code, _, stderr := paceline("", args...); code != cli.ExitConfig || !strings.Contains(stderr, "--batch-file "+file+" is there already, and is not overwritten") {
			t.Errorf("%s, again: exit %d: %s", preset, code, stderr)
		}
		if n := len(server.Report().Verdicts); n != 0 {
			t.Errorf("%s: %v was sent", preset, server.Report().Verdicts)
		}
		code, _, stderr = paceline("", "run", file, "--via", "batch", "--poll", "5ms", "--preset", preset, "--base-url", s.URL, "--key-env", "KEY", "--out", "out."+file)
		out, _ := os.ReadFile("out." + file)
		if code != 0 || strings.Count(string(out), c.done) != 2 || !strings.Contains(string(out), `"custom_id":"a"`) || !strings.Contains(string(out), `"custom_id":"b"`) {
			t.Errorf("%s: exit %d: %s\n%s", preset, code, stderr, out)
		}
		s.Close()
	}
	// It needs no key, at the provider's own address, too.
	t.Setenv("KEY", "")
	for _, more := range [][]string{{"--key-env", "KEY"}, nil} {
		file := fmt.Sprint("own", len(more), ".jsonl")
		args := append(more, "run", "rows.csv", "--prompt-column", "text", "--model", "gpt-4o", "--preset", "openai:tier1", "--batch-file", file)
		if code, _, stderr := paceline("", args...); code != 0 || !strings.Contains(stderr, "2 prompts are in "+file) {
			t.Errorf("exit %d: %s", code, stderr)
		}
	}
	for args, says := range map[string]string{"rows.csv --url http://127.0.0.1:1/{row.id}": "expected --prompt-column", "- --prompt-column text --model m --base-url http://127.0.0.1:1": "expected a file",
		"rows.csv --dry-run": "--batch-file with --dry-run"} {
		if code, _, stderr := paceline("text\nx\n", append([]string{"run", "--limit", "none", "--batch-file", "x.jsonl"}, strings.Fields(args)...)...); code != cli.ExitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}

// What does not go with batches of the provider is said before anything is sent.
func TestRunViaBatchRefuses(t *testing.T) {
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("K1", "sk-viabatch-0123456789")
	t.Setenv("K2", "sk-viabatch-9876543210")
	for name, text := range map[string]string{"urls.txt": "http://127.0.0.1:1/\n", "rows.csv": "url,n\na,1\n",
		"in.jsonl": `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","messages":[]}}` + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, says := range map[string]string{
		"--via mail --out o.jsonl in.jsonl":                               `--via "mail", expected requests or batch`,
		"--enqueued 5 --limit none --out o.jsonl in.jsonl":                "--enqueued is for --via batch",
		"--via batch --enqueued -1 --limit none --out o.jsonl in.jsonl":   "--enqueued -1",
		"--via batch --poll 0s --limit none --out o.jsonl in.jsonl":       "--poll 0s",
		"--via batch --limit none in.jsonl":                               "expected --out FILE",
		"--via batch --budget 5USD --limit none --out o.jsonl in.jsonl":   "--budget with --via batch",
		"--via batch --query a=b --limit none --out o.jsonl in.jsonl":     "--query with --via batch",
		"--via batch --limit none --out o.jsonl urls.txt":                 "--via batch is for batch files",
		"--via batch --key-env K1,K2 --limit none --out o.jsonl in.jsonl": "--via batch with 2 keys",
		"--via batch --out-dir d --limit none in.jsonl":                   "--out-dir with --via batch",
	} {
		if code, _, stderr := paceline("", append([]string{"run"}, strings.Fields(args)...)...); code != cli.ExitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	if code, _, stderr := paceline("", "run", "rows.csv", "--via", "batch", "--limit", "none", "--out", "o.jsonl", "--prompt-column", "n",
		"--model", "m", "--url", "http://127.0.0.1:1/chat/completions"); code != cli.ExitUsage || !strings.Contains(stderr, "expected /v1/ in its path") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	// The plan of a run has what its batches cost.
	code, stdout, stderr := paceline("", "run", "--via", "batch", "--dry-run", "--preset", "openai:tier1", "--key-env", "K1", "--out", "o.jsonl", "in.jsonl")
	if code != 0 || !strings.Contains(stdout, "batch API ") || !strings.Contains(stdout, "50 % less") {
		t.Errorf("--dry-run: exit %d: %s%s", code, stdout, stderr)
	}
	page, err := os.ReadFile(docs + "/batch.md")
	for _, no := range notByBatch {
		for name := range strings.FieldsSeq(no.flags) {
			if !strings.Contains(string(page), "`--"+name+"`") {
				t.Errorf("batch.md does not name --%s, %v", name, err)
			}
		}
	}
	if _, err := os.Stat("o.jsonl"); err == nil {
		t.Error("there are results")
	}
}
