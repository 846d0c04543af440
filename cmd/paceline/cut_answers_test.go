package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Answers that were cut are counted and said, and asked for again with more tokens, whatever the forms of input
// and results. No other request goes again, and none of --retry-dead alone.
func TestRunAnswersThatAreCut(t *testing.T) {
	t.Parallel()
	asked, broken := atomic.Int32{}, atomic.Bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		raw, _ := io.ReadAll(q.Body)
		var body struct {
			MaxTokens int `json:"max_tokens"`
			Messages  []struct{ Content string }
		}
		_ = json.Unmarshal(raw, &body)
		text, reason := body.Messages[0].Content+" Because.", "stop"
		if broken.Load() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if strings.Contains(text, "1?") && body.MaxTokens < 100 {
			text, reason = "Bec", "length"
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":%q}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, text, reason)
	}))
	defer srv.Close()
	url := srv.URL + "/v1/chat/completions"
	var table, lines, batch strings.Builder
	table.WriteString("id,text\n")
	for i := range 4 {
		fmt.Fprintf(&table, "p%d,Why %d?\n", i, i)
		body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":20,"messages":[{"role":"user","content":"Why %d?"}]}`, i)
		fmt.Fprintf(&lines, `{"id":"p%d","method":"POST","url":%q,"body":%s}`+"\n", i, url, body)
		fmt.Fprintf(&batch, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", i, body)
	}
	in := func(name, text string) string { return write(t, name, text) }
	prompt := []string{"--prompt-column", "text", "--model", "gpt-4o", "--url", url, "--id", "{row.id}", "--max-tokens", "20", in("q.csv", table.String())}
	for _, c := range []struct {
		name, out string
		args      []string
		rows      string // of OUT in the end, if they are in order
	}{
		{"a batch", "out.jsonl", []string{"--base-url", srv.URL, in("b.jsonl", batch.String())}, ""},
		{"lines", "out.jsonl", []string{"--count", "sum", in("l.jsonl", lines.String())}, ""},
		{"a batch as rows", "out.csv", []string{"--base-url", srv.URL, "--select", "id=.id, answer=.body.choices[0].message.content, finish=.finish, out=.output_tokens", "--ordered", in("b.jsonl", batch.String())},
			"id,answer,finish,out\np0,Why 0? Because.,,2\np1,%s\np2,Why 2? Because.,,2\np3,Why 3? Because.,,2\n"},
		{"prompts", "out.csv", append([]string{"--ordered"}, prompt...), "id,answer\np0,Why 0? Because.\np1,%s\np2,Why 2? Because.\np3,Why 3? Because.\n"},
	} {
		out := filepath.Join(t.TempDir(), c.out)
		broken.Store(false)
		step := func(what string, code, sends int, says string, row string, args ...string) {
			t.Helper()
			before := asked.Load()
			got, _, stderr := paceline("", append(append([]string{"run", "--rpm", "60000", "--attempts", "1", "--out", out}, c.args...), args...)...)
			if got != code || int(asked.Load()-before) != sends || !strings.Contains(stderr, says) {
				t.Errorf("%s, %s: exit %d, %d sends, want %d and %d, %q:\n%s", c.name, what, got, asked.Load()-before, code, sends, says, stderr)
			}
			if want := fmt.Sprintf(c.rows, row); c.rows != "" && read(t, out) != want {
				t.Errorf("%s, %s: %s, want %s", c.name, what, read(t, out), want)
			}
		}
		cut, whole := "Bec", "Why 1? Because."
		if strings.Contains(c.rows, "finish") {
			cut, whole = cut+",length,2", whole+",,2"
		}
		step("at first", 0, 4, "1 answer was cut at the most tokens that the request allows; --retry-dead=length --max-tokens N", cut)
		step("again", 0, 0, "4 done before", cut)
		step("dead letters", 0, 0, "4 done before", cut, "--retry-dead")
		if !strings.Contains(strings.Join(c.args, " "), "--max-tokens") {
			step("with the same bound", 0, 1, "--retry-dead=length without --max-tokens asks again with the bounds that the requests have", cut, "--retry-dead=length")
		}
		plan := []string{"--dry-run", "-o", "json", "--retry-dead=length", "--max-tokens", "30"}
		plan = append(append([]string{"run", "--rpm", "60000", "--out", out}, c.args...), plan...)
		if _, text, _ := paceline("", plan...); !strings.Contains(text, `"output_tokens_expected": 30,`) {
			t.Errorf("%s: of an answer that was cut, the plan expects something else than all that is allowed: %s", c.name, text)
		}
		broken.Store(true)
		step("in vain", 3, 1, "1 dead", cut, "--retry-dead=length", "--max-tokens", "30")
		broken.Store(false)
		step("after that", 0, 0, "4 done before", cut)
		step("with more", 0, 1, "1 to send, 1 done", whole, "--retry-dead=length", "--max-tokens", "500")
		step("once more", 0, 0, "4 done before", whole, "--retry-dead=length", "--max-tokens", "500")
	}
}

// An answer that is cut and is no success is not asked for again with the same bound: it would be cut again, and paid
// again. Its dead letter names the bound. One that is cut and has all that --success asks for is not told as cut.
func TestRunCutAnswersAndSuccess(t *testing.T) {
	t.Parallel()
	asked := atomic.Int32{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		raw, _ := io.ReadAll(q.Body)
		text := `{"label":1,"why":"Bec`
		switch {
		case bytes.Contains(raw, []byte(`"max_tokens":500`)):
			text += `ause."}`
		case bytes.Contains(raw, []byte("2?")):
			text = `{"label":1}`
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, text)
	}))
	defer srv.Close()
	file := write(t, "q.csv", "id,text\np1,Why 1?\np2,Why 2?\n")
	batch := write(t, "b.jsonl", `{"custom_id":"p1","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":20,"messages":[{"role":"user","content":"Why 1?"}]}}`+"\n"+
		`{"custom_id":"p2","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":20,"messages":[{"role":"user","content":"Why 2?"}]}}`+"\n")
	dir, out := t.TempDir(), ""
	table := []string{"--prompt-column", "text", "--model", "gpt-4o", "--url", srv.URL + "/v1/chat/completions", "--id", "{row.id}", file}
	lines := []string{"--base-url", srv.URL, batch}
	const again = "1 dead: 1 length; --retry-dead=length sends those again, once the cause that their errors name is gone (length: with a larger --max-tokens)"
	for _, c := range []struct {
		what        string
		out         string
		in          []string
		code, sends int
		says        string
		args        []string
	}{
		{"at first", "a.csv", table, 3, 2, again, []string{"--max-tokens", "20"}},
		{"not of that class", "a.csv", table, 3, 0, again, []string{"--max-tokens", "500", "--retry-dead=invalid"}},
		{"with more", "a.csv", table, 0, 1, "1 to send, 1 done", []string{"--max-tokens", "500", "--retry-dead=length"}},
		{"at first, as lines", "b.jsonl", lines, 3, 2, again, nil},
		{"all dead letters, as lines", "b.jsonl", lines, 0, 1, "1 to send, 1 done", []string{"--max-tokens", "500", "--retry-dead"}},
	} {
		out = filepath.Join(dir, c.out)
		before := asked.Load()
		code, _, stderr := paceline("", append(append([]string{"run", "--rpm", "60000", "--out", out,
			"--success", `.choices[0].message.content|fromjson|has("label")`}, c.in...), c.args...)...)
		if n := int(asked.Load() - before); code != c.code || n != c.sends || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d, %d sends, want %d and %d, %q:\n%s", c.what, code, n, c.code, c.sends, c.says, stderr)
		}
		name := out + ".dead.jsonl"
		if c.out == "b.jsonl" {
			name = filepath.Join(dir, "b.errors.jsonl")
		}
		if dead := read(t, name); !strings.Contains(dead, "cut at the most tokens that the request allows (--max-tokens)") {
			t.Errorf("%s: the dead letters are %s", c.what, dead)
		}
	}
}

// --retry-dead=unselected asks again for the answers on which --select failed, and for no other. An answer that was
// cut, too, also goes with --retry-dead=length.
func TestRunAnswersOnWhichSelectFailed(t *testing.T) {
	t.Parallel()
	asked, mended := atomic.Int32{}, atomic.Bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		raw, _ := io.ReadAll(q.Body)
		text, reason := `{"label":"good"}`, "stop"
		switch {
		case mended.Load():
		case bytes.Contains(raw, []byte("Why 1?")):
			text = "I think it is good."
		case bytes.Contains(raw, []byte("Why 2?")):
			text, reason = `{"label":"go`, "length"
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":%q}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, text, reason)
	}))
	defer srv.Close()
	file := write(t, "q.csv", "id,text\np0,Why 0?\np1,Why 1?\np2,Why 2?\n")
	for _, c := range []struct {
		class string
		sends int
		table string
	}{
		{"unselected", 2, "id,label\np0,good\np1,good\np2,good\n"}, {"length", 1, "id,label\np0,good\np1,\np2,good\n"}, {"all", 0, "id,label\np0,good\np1,\np2,\n"},
	} {
		out := filepath.Join(t.TempDir(), "out.csv")
		run := func(args ...string) (n, code int, stderr string) {
			before := asked.Load()
			code, _, stderr = paceline("", append([]string{"run", "--rpm", "60000", "--out", out, "--prompt-column", "text", "--model", "gpt-4o", "--max-tokens", "20",
				"--url", srv.URL + "/v1/chat/completions", "--id", "{row.id}", "--ordered", "--select", "id=.id, label=(.body.choices[0].message.content|fromjson|.label)", file}, args...)...)
			return int(asked.Load() - before), code, stderr
		}
		mended.Store(false)
		if n, code, stderr := run(); n != 3 || code != 3 || !strings.Contains(stderr, "--select failed on 2 answers") || !strings.Contains(stderr, "--retry-dead=unselected asks for them again") {
			t.Errorf("%s, at first: exit %d, %d sends:\n%s", c.class, code, n, stderr)
		}
		mended.Store(true)
		if n, code, stderr := run("--retry-dead=" + c.class); n != c.sends || code != 0 || read(t, out) != c.table {
			t.Errorf("%s: exit %d, %d sends, want %d:\n%s%s", c.class, code, n, c.sends, read(t, out), stderr)
		}
	}
}
