package viabatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// base is a provider in the same process. hooks sees each request before it.
type base struct {
	server http.Handler
	hook   func(r *http.Request) (*http.Response, error) // nil, or its first result is nil: the server answers
	mu     sync.Mutex                                    // guards seen
	seen   map[string]int
}

func (b *base) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.seen[r.Method+" "+r.URL.Path[:min(len(r.URL.Path), 20)]]++
	b.mu.Unlock()
	if b.hook != nil {
		if resp, err := b.hook(r); resp != nil || err != nil {
			return resp, err
		}
	}
	return b.serve(r), nil
}

func (b *base) serve(r *http.Request) *http.Response {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, in)
	resp := w.Result()
	resp.Request = r
	return resp
}

// bench is an input, and where its results go.
type bench struct {
	t      *testing.T
	base   *base
	config Config
	said   []string
}

func newBench(t *testing.T, p format.Provider, c llm.Config, text string) *bench {
	t.Helper()
	c.Provider = map[format.Provider]llm.Provider{format.OpenAI: llm.OpenAI, format.Anthropic: llm.Anthropic}[p]
	c.Published = true
	server, err := llm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: "http://llm.test"})
	if err != nil {
		t.Fatal(err)
	}
	header, err := format.ParseHeaders([]string{p.KeyHeader()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &bench{t: t, base: &base{server: server, seen: map[string]int{}}}
	b.config = Config{Format: l, Input: filepath.Join(dir, "in.jsonl"), Out: filepath.Join(dir, "out.jsonl"), Dead: filepath.Join(dir, "out.errors.jsonl"),
		Key: format.Key{Name: "K", Secret: "sk-Zq81kdTTw0pXv27LmAa93bYcQ"}, Header: header, Base: b.base, Notice: func(s string) { b.said = append(b.said, s) }}
	b.config.Judge = judging(t, l)
	if err := os.WriteFile(b.config.Input, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// judging judges as a run does.
func judging(t testing.TB, l *format.LLM) func(*format.Request, int, []byte) Verdict {
	t.Helper()
	r, err := run.New(run.Config{Format: l, Out: "-", Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return func(q *format.Request, status int, body []byte) Verdict { return Verdict(r.Judge(q, status, body)) }
}

func (b *bench) run() error {
	_, err := Run(b.t.Context(), b.config)
	return err
}

// results are the ids of a file of results, sorted, as the run that follows reads them.
func (b *bench) results(path string, isDead bool) (ids []string) {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		e, ok := b.config.Format.Entry(line, isDead)
		if !ok || e.Digest == "" {
			b.t.Errorf("%s is no result", line)
		}
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// rest runs what the batches left, and returns how many were sent, and the totals.
func (b *bench) rest() (sent, done, dead int) {
	b.t.Helper()
	in, err := os.Open(b.config.Input)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	r, err := run.New(run.Config{Format: b.config.Format, Base: b.base, Out: b.config.Out, Notice: func(s string) { b.said = append(b.said, s) }})
	if err == nil {
		err = r.Check("in", in)
	}
	if err == nil {
		_, err = in.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = r.Open()
	}
	if err == nil {
		err = r.Send(b.t.Context(), "in", in)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	t, err := r.Close()
	if err != nil {
		b.t.Error(err)
	}
	return t.Offered, t.SkippedDone, t.SkippedDead
}

func openAILine(id, model, more string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":"Why?"}]%s}}`+"\n", id, model, more)
}

func anthropicLine(id, model, more string) string {
	return fmt.Sprintf(`{"custom_id":%q,"params":{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":"Why?"}]%s}}`+"\n", id, model, more)
}

// many are n requests, by turns to two models; each seventh is wrong.
func many(n int, line func(id, model, more string) string, models ...string) string {
	var b strings.Builder
	for i := range n {
		more := ""
		if i%7 == 6 {
			more = `,"temperature":5`
		}
		b.WriteString(line(fmt.Sprint("p", i), models[i%len(models)], more))
	}
	return b.String()
}

// Requests become batches by model and size, and these become results. The run that follows has nothing left to send.
func TestBatches(t *testing.T) {
	for _, c := range []struct {
		p      format.Provider
		text   string
		create string
	}{
		{format.OpenAI, many(70, openAILine, "gpt-4o", "gpt-4o-mini"), "POST /v1/batches"},
		{format.Anthropic, many(70, anthropicLine, "claude-sonnet-5", "claude-sonnet-4"), "POST /v1/messages/batches"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, c.p, llm.Config{}, c.text)
			b.config.MostLines = 20
			if err := b.run(); err != nil {
				t.Fatal(err)
			}
			if n := b.base.seen[c.create]; n != 4 { // 35 of each model, by 20
				t.Errorf("%v: %d batches: %v", c.p, n, b.base.seen)
			}
			done, dead := b.results(b.config.Out, false), b.results(b.config.Dead, true)
			if len(done) != 60 || len(dead) != 10 || len(slices.Compact(append(done, dead...))) != 70 {
				t.Errorf("%v: %d done, %d dead", c.p, len(done), len(dead))
			}
			if last := b.said[len(b.said)-1]; !strings.Contains(last, "60 requests are done, 60 of them cut (--retry-dead=length), 10 dead, 0 left") || !strings.Contains(last, "at half the price they cost 0.") {
				t.Errorf("%q", b.said)
			}
			if sent, done, dead := b.rest(); sent != 0 || done != 60 || dead != 10 {
				t.Errorf("%v: %d sent after that, %d, %d: %q", c.p, sent, done, dead, b.said)
			}
			before := fmt.Sprint(b.base.seen)
			if err := b.run(); err != nil || fmt.Sprint(b.base.seen) != before { // there is nothing to do
				t.Errorf("%v: %v, then %v", err, before, b.base.seen)
			}
		})
	}
}

// Wherever a command is killed, the next one goes on: each request is in one batch, and has one result.
func TestGoesOn(t *testing.T) {
	for _, c := range []struct {
		p      format.Provider
		text   string
		create string
	}{
		{format.OpenAI, many(30, openAILine, "gpt-4o"), "/v1/batches"},
		{format.Anthropic, many(30, anthropicLine, "claude-sonnet-5"), "/v1/messages/batches"},
	} {
		for stop := range 14 {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.p, llm.Config{BatchPace: 10 * time.Second}, c.text)
				b.config.MostLines = 10
				n, made := 0, 0
				ctx, kill := context.WithCancel(t.Context())
				b.base.hook = func(r *http.Request) (*http.Response, error) {
					served := b.base.serve(r) // the provider has it in any case
					if r.Method == http.MethodPost && r.URL.Path == c.create {
						made++
					}
					if n++; n == stop+1 {
						kill()
						return nil, context.Canceled // and the command never learns
					}
					return served, nil
				}
				if _, err := Run(ctx, b.config); err == nil && stop < 6 {
					t.Fatalf("stop %d: it was not stopped", stop)
				}
				for _, path := range []string{b.config.Out, b.config.Out + ".batches"} { // half a line, as a kill leaves it
					f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = f.WriteString(c.p.BaseURL()[:5])
					f.Close()
				}
				time.Sleep(time.Second)
				if err := b.run(); err != nil {
					t.Fatalf("stop %d: %v", stop, err)
				}
				done, dead := b.results(b.config.Out, false), b.results(b.config.Dead, true)
				if all := append(done, dead...); len(all) != 30 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 30 || made != 3 {
					t.Errorf("%v, stop %d: %d results of 30, %d batches", c.p, stop, len(all), made)
				}
			})
		}
	}
}

// What a batch did not serve in its time goes the ordinary way.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, format.OpenAI, llm.Config{BatchPace: time.Hour, Limits: llm.Limits{Requests: 1000, Tokens: 1e9}}, many(40, openAILine, "gpt-4o"))
		b.config.Poll = 10 * time.Minute
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		done, dead := b.results(b.config.Out, false), b.results(b.config.Dead, true)
		if len(done) < 15 || len(done)+len(dead) != 24 {
			t.Errorf("%d, %d", len(done), len(dead))
		}
		b.config.Key.Secret = ""
		b.base.hook = func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Authorization", "Bearer sk-Zq81kdTTw0pXv27LmAa93bYcQ")
			return nil, nil
		}
		if sent, before, _ := b.rest(); sent != 40-len(done)-len(dead) || before != len(done) {
			t.Errorf("%d sent, %d done before", sent, before)
		}
	})
}

// Batches of a model never have more tokens enqueued than the bound. One that the provider has no room for comes later.
func TestEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, format.OpenAI, llm.Config{BatchPace: time.Second}, many(40, openAILine, "gpt-4o"))
		open, most, refused := map[string]bool{}, 0, 0
		b.config.Enqueued = 100 // of some 8 each
		b.base.hook = func(r *http.Request) (*http.Response, error) {
			resp := b.base.serve(r)
			if !strings.HasPrefix(r.URL.Path, "/v1/batches") {
				return resp, nil
			}
			text, _ := io.ReadAll(resp.Body)
			var s made
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			if r.Method == http.MethodPost {
				open[s.ID] = true
				most = max(most, len(open))
			}
			if s.Status == "completed" && refused == 0 { // as if the first had found no room
				refused++
				text = []byte(`{"id":"` + s.ID + `","status":"failed","errors":{"data":[{"code":"token_limit_exceeded","message":"Enqueued token limit reached"}]}}`)
			}
			if s.Status == "completed" {
				delete(open, s.ID)
			}
			resp.Body = io.NopCloser(bytes.NewReader(text))
			return resp, nil
		}
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		if done, dead := b.results(b.config.Out, false), b.results(b.config.Dead, true); len(done)+len(dead) != 40 || most != 1 || refused != 1 {
			t.Errorf("%d, %d; %d at once", len(done), len(dead), most)
		}
	})
}

// A refusal ends it, with the provider's words and without a key. Failures are asked again.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
		b.base.hook = func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"Incorrect API key sk-Zq81kdTTw0pXv27LmAa93bYcQ"}}`))}, nil
		}
		if err := b.run(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "answered 401: Incorrect API key [K]") {
			t.Errorf("%v", err)
		}
		n := 0
		b.base.hook = func(r *http.Request) (*http.Response, error) {
			if n++; n < 4 {
				return &http.Response{StatusCode: []int{429, 503, 500}[n-1], Header: http.Header{"Retry-After": {"2"}}, Body: http.NoBody}, nil
			}
			return nil, nil
		}
		if err := b.run(); err != nil {
			t.Error(err)
		}
		if done := b.results(b.config.Out, false); len(done) != 3 {
			t.Errorf("%v", done)
		}
		if _, err := os.Stat(output.JournalOf(b.config.Out)); err != nil {
			t.Error(err)
		}
	})
}

// A batch that fails as a whole is said, and its requests go the ordinary way.
func TestFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
		b.base.hook = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/batches/") {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"status":"failed","errors":{"data":[{"code":"x","message":"no such endpoint","line":2}]}}`))}, nil
			}
			return nil, nil
		}
		if err := b.run(); err != nil || !strings.Contains(strings.Join(b.said, "\n"), "failed: no such endpoint (line 2); its requests are sent one by one") {
			t.Errorf("%v %q", err, b.said)
		}
		if n := b.results(b.config.Out, false); len(n) != 0 {
			t.Errorf("%v", n)
		}
	})
}

// A file that is none of ours is left alone.
func TestForeignFiles(t *testing.T) {
	b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
	if err := os.WriteFile(b.config.Out, []byte("a letter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.run(); err == nil || !strings.Contains(err.Error(), "out.jsonl:1: not a result of paceline") {
		t.Error(err)
	}
	if text, _ := os.ReadFile(b.config.Out); string(text) != "a letter\n" {
		t.Errorf("%q", text)
	}
}

// The journal of a run that goes on is left alone: its lock is that of the results.
func TestBesideARun(t *testing.T) {
	b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
	run, err := durable.Open(b.config.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Discard()
	if err := b.run(); err == nil || !strings.Contains(err.Error(), "is in use by another run") {
		t.Error(err)
	}
	if _, err := os.Stat(output.JournalOf(b.config.Out)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal was written: %v", err)
	}
}

// Whatever the results of a provider are, only requests of the batch get one, each once, and the run that follows reads them all.
func FuzzTake(f *testing.F) {
	f.Add(`{"custom_id":"a","response":{"status_code":200,"body":{"usage":{}}},"error":null}`)
	f.Add(`{"custom_id":"b","response":{"status_code":400,"body":{"error":{"message":"no"}}}}`)
	f.Add(`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"not_found_error"}}}}`)
	f.Add(`{"custom_id":"c","response":{"status_code":200,"body":1}}`)
	f.Add("{\n")
	forms, judges := map[bool]*format.LLM{}, map[*format.LLM]func(*format.Request, int, []byte) Verdict{}
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		l, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: "http://llm.test"})
		if err != nil {
			f.Fatal(err)
		}
		forms[p == format.OpenAI], judges[l] = l, judging(f, l)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range forms {
			var out, dead bytes.Buffer
			b := &batches{Config: Config{Format: l, Judge: judges[l]}, done: map[string]bool{}, out: durable.Stream("out", &out), dead: durable.Stream("dead", &dead)}
			b.remote = newRemote(&b.Config)
			e := &entry{Name: "n", Model: "m", Path: "/v1/chat/completions"}
			digests := map[string]format.Digest{"a": "0123456789abcdef", "b": "0123456789abcdee"}
			for range 2 {
				_ = b.take(e, []byte(text), digests) // a wrong line is the provider's fault, and said
			}
			n := 0
			for isDead, lines := range map[bool][]byte{false: out.Bytes(), true: dead.Bytes()} {
				for line := range bytes.Lines(lines) {
					r, ok := l.Entry(line, isDead)
					if n++; !ok || r.ID != "a" && r.ID != "b" || !b.done[r.ID] || (r.State == "done") == isDead {
						t.Fatalf("%q became %q", text, line)
					}
				}
			}
			if n > 1 || n != 2-len(digests) {
				t.Fatalf("%q: %d results, %d left", text, n, len(digests))
			}
		}
	})
}
