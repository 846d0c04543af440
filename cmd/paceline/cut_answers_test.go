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
	out := filepath.Join(t.TempDir(), "out.csv")
	file := write(t, "q.csv", "id,text\np1,Why 1?\np2,Why 2?\n")
	for _, c := range []struct {
		what        string
		code, sends int
		says        string
		args        []string
	}{
		{"at first", 3, 2, "1 dead", []string{"--max-tokens", "20"}},
		{"with more", 0, 1, "1 to send, 1 done", []string{"--max-tokens", "500", "--retry-dead=invalid"}},
	} {
		before := asked.Load()
		code, _, stderr := paceline("", append([]string{"run", "--rpm", "60000", "--out", out, "--prompt-column", "text", "--model", "gpt-4o",
			"--url", srv.URL + "/v1/chat/completions", "--id", "{row.id}", "--success", `.choices[0].message.content|fromjson|has("label")`,
			file}, c.args...)...)
		if n := int(asked.Load() - before); code != c.code || n != c.sends || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "retry-dead=length") {
			t.Errorf("%s: exit %d, %d sends, want %d and %d, %q:\n%s", c.what, code, n, c.code, c.sends, c.says, stderr)
		}
		if dead := read(t, out+".dead.jsonl"); !strings.Contains(dead, "cut at the most tokens that the request allows (--max-tokens)") {
			t.Errorf("%s: the dead letters are %s", c.what, dead)
		}
	}
}
