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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// modelOf reads the model of a request, and lets its body be read again.
func modelOf(q *http.Request) string {
	raw, _ := io.ReadAll(q.Body)
	q.Body = io.NopCloser(bytes.NewReader(raw))
	var body struct{ Model string }
	_ = json.Unmarshal(raw, &body)
	return body.Model
}

// fresh is a store of a backlog whose limits begin at once.
func fresh(t *testing.T) string {
	t.Helper()
	store := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	said(t, cli.ExitOK, "share", "new", store+".limits")
	return store
}

// Three workers keep the limits of requests and of tokens of two models together. One model refuses all until the
// other's requests are done, although its requests come first in the backlog.
func TestBacklogOfTwoModels(t *testing.T) {
	t.Parallel()
	const n, most = 30, 20 * time.Second
	limits := llm.Limits{Requests: n - 1, Tokens: 100 * (n - 1)} // of each model one request has to wait for both
	l := newLLM(t, llm.Config{Limits: limits, First: latency.Uniform(0, 40*time.Millisecond)})
	var mu sync.Mutex
	seen, paused := map[string]int{}, 0
	var first, last time.Time
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		model := modelOf(q)
		mu.Lock()
		if seen["gpt-4o"] < n && model == "gpt-4.1" {
			if paused++; first.IsZero() {
				first = time.Now()
			}
			mu.Unlock()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if seen[model]++; model == "gpt-4o" {
			last = time.Now()
		}
		mu.Unlock()
		l.ServeHTTP(w, q)
	}))
	defer front.Close()
	store := fresh(t)
	in := write(t, "in.jsonl", chats("b", "gpt-4.1", n)+chats("a", "gpt-4o", n))
	said(t, cli.ExitOK, "enqueue", in, "--base-url", front.URL, "--backlog", store)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			if code, _, errs := paceline("", "work", "--backlog", store, "--preset", "openai:tier1", "--rpm", fmt.Sprint(n-1), "--tpm", fmt.Sprint(100*(n-1)),
				"--rejects-free", "--key-env", "A_KEY", "--base-url", front.URL, "--until-empty", "--progress", "off"); code != cli.ExitOK {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
	workers.Wait()
	t.Logf("%d refusals, %v; %v", paused, last.Sub(first), time.Since(first))
	if took := last.Sub(first); paused == 0 || took > most {
		t.Errorf("the requests of the free model took %v beside %d refusals of the other, expected %v at most", took, paused, most)
	}
	accepted := 0
	for verdict, k := range l.Report().Verdicts {
		if accepted += k; verdict != "accepted" {
			t.Errorf("%d requests were %v", k, verdict)
		}
	}
	if accepted != 2*n {
		t.Errorf("the server got %d requests, expected %d", accepted, 2*n)
	}
	out, _ := said(t, cli.ExitOK, "backlog", "results", store)
	for i, r := range inOrder(t, out, append(ids("b", n), ids("a", n)...)...) {
		if r.State != "done" || r.OutputTokens == 0 || r.PossibleRepeat || i >= n && r.Refused > 0 {
			t.Errorf("%+v", r)
		}
	}
}

func ids(name string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(name, i))
	}
	return all
}

// repeating is a server of a language model that repeats the prompt. The prompt "die" is refused.
func repeating(t *testing.T) (*httptest.Server, func() []string) {
	var mu sync.Mutex
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		raw, _ := io.ReadAll(q.Body)
		var body struct {
			Max      int `json:"max_tokens"`
			Messages []struct{ Content string }
		}
		_ = json.Unmarshal(raw, &body)
		prompt := body.Messages[len(body.Messages)-1].Content
		mu.Lock()
		got = append(got, fmt.Sprintf("%s %s %s %s%s %d %s", q.Method, q.URL.Path, q.Header.Get("Content-Type"), q.Header.Get("Authorization"),
			q.Header.Get("X-Api-Key")+q.Header.Get("Anthropic-Version"), body.Max, raw))
		mu.Unlock()
		w.Header().Set("X-Request-Id", "of "+prompt)
		if prompt == "die" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"content":[{"text":%q}],"usage":{"prompt_tokens":5,"completion_tokens":2,"input_tokens":5,"output_tokens":2}}`,
			"you said "+prompt, "you said "+prompt)
	}))
	t.Cleanup(srv.Close)
	return srv, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { got = nil }()
		slices.Sort(got)
		return got
	}
}

// The same prompts have the same requests and the same results with a backlog and without, in each form of input.
func TestBacklogPromptsAsRun(t *testing.T) {
	t.Parallel()
	srv, got := repeating(t)
	table := write(t, "q.csv", "id,text\n1,Why?\n2,\"Who, \"\"and\"\" what?\"\n3,die\n")
	batch := write(t, "in.jsonl", strings.ReplaceAll(chats("a", "gpt-4o", 3), `"content":"x"`, `"content":"Why?"`)+
		strings.Replace(chats("b", "gpt-4.1", 1), `"content":"x"`, `"content":"die"`, 1))
	array := write(t, "in.json", "["+strings.Join(strings.Split(strings.TrimSpace(chats("a", "gpt-4o", 3)), "\n"), ",\n")+"]")
	messages := write(t, "m.jsonl", `{"custom_id":"m","params":{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]}}`+"\n")
	for name, c := range map[string]struct {
		code int
		ext  string
		args []string
	}{
		"a table":   {cli.ExitSomeFailed, ".csv", []string{table, "--prompt-column", "text", "--model", "gpt-4o", "--system", "Be brief.", "--id", "{row.id}", "--max-tokens", "70"}},
		"Anthropic": {cli.ExitSomeFailed, ".csv", []string{table, "--prompt-column", "text", "--model", "claude-haiku-4-5", "--url", srv.URL + "/v1/messages", "--id", "{row.id}", "--max-tokens", "70"}},
		"a batch":   {cli.ExitSomeFailed, ".jsonl", []string{batch, "--max-tokens", "80"}},
		"an array":  {cli.ExitOK, ".jsonl", []string{array}},
		"messages":  {cli.ExitOK, ".jsonl", []string{messages}},
	} {
		var files [2]string
		var requests [2][]string
		for i := range files {
			files[i] = filepath.Join(t.TempDir(), "out"+c.ext)
			args := append([]string{"run", "--limit", "none", "--base-url", srv.URL, "--key-env", "A_KEY", "--progress", "off", "--out", files[i]}, c.args...)
			if i == 1 {
				args = append(args, "--backlog", "sqlite:"+filepath.Join(t.TempDir(), "jobs.db"))
			} else if c.ext == ".csv" {
				args = append(args, "--ordered")
			}
			said(t, c.code, args...)
			requests[i] = got()
		}
		if !slices.Equal(requests[0], requests[1]) {
			t.Errorf("%s: the requests of run\n%s\nwith a backlog\n%s", name, strings.Join(requests[0], "\n"), strings.Join(requests[1], "\n"))
		}
		for _, suffix := range []string{"", ".errors.jsonl"} {
			var all [2]string
			for i, file := range files {
				if suffix != "" {
					file = strings.TrimSuffix(file, c.ext) + suffix
				}
				text, err := os.ReadFile(file)
				if err != nil && suffix == "" {
					t.Fatal(err)
				}
				all[i] = string(text)
				if c.ext == ".jsonl" {
					all[i] = bare(t, all[i])
				}
			}
			if all[0] != all[1] || suffix == "" && all[0] == "" {
				t.Errorf("%s%s: run writes\n%s\nwith a backlog\n%s", name, suffix, all[0], all[1])
			}
		}
	}
}

// bare are lines of a batch's results in the order of their ids, without what depends on the time, and on the address
// in the request.
func bare(t *testing.T, text string) string {
	var all []string
	for line := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		delete(v, "paceline")
		delete(v, "request_digest")
		all = append(all, string(format.LineOf(v)))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// enqueue stores prompts whole, without a key, and a worker that knows only the key sends them. Results come as a table,
// or in the form of either provider.
func TestBacklogPrompts(t *testing.T) {
	t.Parallel()
	srv, got := repeating(t)
	table := write(t, "q.csv", "id,text\n1,Why?\n2,die\n3,Who?\n")
	batch := write(t, "in.jsonl", chats("a", "gpt-4o", 2))
	worker := func(store, key string) []string {
		said(t, cli.ExitSomeFailed, "work", "--backlog", store, "--limit", "none", "--key-env", "A_KEY", "--base-url", srv.URL, "--until-empty", "--progress", "off")
		all := got()
		for _, q := range all {
			if !strings.Contains(q, key) {
				t.Errorf("sent %s, expected %s in it", q, key)
			}
		}
		return all
	}
	secret := os.Getenv("A_KEY")
	store := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	said(t, cli.ExitOK, "enqueue", table, "--prompt-column", "text", "--model", "gpt-4o", "--base-url", srv.URL, "--max-tokens", "70", "--id", "{row.id}", "--backlog", store)
	said(t, cli.ExitOK, "enqueue", batch, "--base-url", srv.URL, "--max-tokens", "70", "--backlog", store)
	said(t, cli.ExitOK, "backlog", "cancel", store, "default", "a1")
	if _, errs := said(t, cli.ExitUsage, "work", "--backlog", store, "--limit", "none", "--key-env", "A_KEY"); !strings.Contains(errs, "--key-host") {
		t.Errorf("without a host: %s", errs)
	}
	if n := len(worker(store, " Bearer "+secret+" 70 {")); n != 4 {
		t.Errorf("%d requests were sent, expected 4", n)
	}
	for _, c := range []struct{ args, want string }{
		{"--select id=.id,answer=.body.choices[0].message.content --format csv", "id,answer\n1,you said Why?\n3,you said Who?\na0,you said x\n"},
		{"--format openai-batch --state done", `"custom_id":"a0","response":{"status_code":200,"request_id":"of x","body":{"choices":[`},
		{"--format openai-batch --state dead", `"custom_id":"2","response":{"status_code":400,"request_id":"of die"`},
		{"--format openai-batch --state cancelled", `"custom_id":"a1","response":null,"error":{"code":"batch_cancelled","message":"it was cancelled`},
		{"--format anthropic-batch --state cancelled", `{"custom_id":"a1","result":{"type":"canceled"}`},
	} {
		if out, _ := said(t, cli.ExitOK, append([]string{"backlog", "results", store}, strings.Fields(c.args)...)...); !strings.Contains(out, c.want) {
			t.Errorf("%s: %s, expected %s", c.args, out, c.want)
		}
	}
	messages := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	said(t, cli.ExitOK, "enqueue", table, "--prompt-column", "text", "--model", "claude-haiku-4-5", "--url", srv.URL+"/v1/messages", "--max-tokens", "70", "--backlog", messages)
	worker(messages, " "+secret+"2023-06-01 70 {")
	if out, _ := said(t, cli.ExitOK, "backlog", "results", messages, "--format", "anthropic-batch", "--state", "done"); strings.Count(out, `"result":{"type":"succeeded","message":{`) != 2 {
		t.Errorf("in the form of Anthropic: %s", out)
	}
}

// A worker knows the models that the backlog has when it begins. For one that comes later it begins again: one of enqueue,
// and one that a program has added without a lane.
func TestBacklogOfANewModel(t *testing.T) {
	t.Parallel()
	arrived, more := make(chan string, 9), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		model := modelOf(q)
		if arrived <- model; model == "gpt-4o" {
			<-more
		}
		fmt.Fprint(w, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	}))
	defer srv.Close()
	store := fresh(t)
	said(t, cli.ExitOK, "enqueue", write(t, "a.jsonl", chats("a", "gpt-4o", 1)), "--base-url", srv.URL, "--backlog", store)
	words := make(chan string)
	go func() {
		code, _, errs := paceline("", "work", "--backlog", store, "--preset", "openai:tier1", "--key-env", "A_KEY", "--base-url", srv.URL,
			"--until-empty", "--progress", "off")
		words <- fmt.Sprint(code, errs)
	}()
	<-arrived
	said(t, cli.ExitOK, "enqueue", write(t, "b.jsonl", chats("b", "gpt-4.1", 1)), "--base-url", srv.URL, "--backlog", store)
	s, err := openBacklogs(t.Context(), store, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := backlog.Open(t.Context(), s, defaultBacklog, backlog.Options{Format: work.Format})
	if err == nil {
		_, err = b.Enqueue(t.Context(), backlog.Job{ID: "c", Data: fmt.Appendf(nil,
			`{"method":"POST","url":%q,"body":{"model":"o3","messages":[]}}`, srv.URL+"/v1/chat/completions")})
	}
	if err != nil {
		t.Fatal(err)
	}
	close(more)
	if text := <-words; !strings.HasPrefix(text, "0") || !strings.Contains(text, "this process begins again") {
		t.Errorf("work: %s", text)
	}
	out, _ := said(t, cli.ExitOK, "backlog", "results", store)
	for _, r := range inOrder(t, out, "a0", "b0", "c") {
		if r.State != "done" || r.Attempts != 1 || r.PossibleRepeat {
			t.Errorf("%+v", r)
		}
	}
	if note, err := work.ReadNote(t.Context(), b); err != nil || fmt.Sprint(note.Models) != "[gpt-4o gpt-4.1 o3]" || note.API != srv.URL+"/v1/chat/completions" {
		t.Errorf("the note is %+v, %v", note, err)
	}
}
