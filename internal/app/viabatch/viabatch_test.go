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
	"github.com/paceline-go/paceline/internal/app/run/input"
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
	t         *testing.T
	base      *base
	form      *format.LLM
	of        run.Config
	config    Config // but Run and Each
	input     string
	out, dead string
	results   string          // the file of the results
	start     string          // the beginning of a result
	ended     func() []string // the ids of all results and dead letters, sorted
	said      []string
	at        []Progress
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
	b := &bench{t: t, base: &base{server: server, seen: map[string]int{}}, form: l, input: filepath.Join(dir, "in.jsonl"),
		out: filepath.Join(dir, "out.jsonl"), dead: filepath.Join(dir, "out.errors.jsonl")}
	b.of = run.Config{Format: l, Keys: []format.Key{{Name: "K", Secret: secretKey}}, Header: header, Notice: b.says, Out: b.out}
	b.config = Config{Provider: p, API: l.Base(), Seller: l.Seller(), Ledger: b.out + ".batches", Key: b.of.Keys[0],
		Header: header, Base: b.base, Notice: b.says, Progress: func(p Progress) { b.at = append(b.at, p) }}
	b.results, b.start = b.out, l.Start()[:5]
	b.ended = func() []string {
		all := append(b.read(b.out, false), b.read(b.dead, true)...)
		slices.Sort(all)
		return all
	}
	if err := os.WriteFile(b.input, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

const secretKey = "sk-Zq81kdTTw0pXv27LmAa93bYcQ"

func (b *bench) says(line string) { b.said = append(b.said, line) }

// run is a command with the input of the bench.
func (b *bench) run() error { return b.until(b.t.Context()) }

func (b *bench) until(ctx context.Context) error {
	b.t.Helper()
	r, err := run.New(b.of)
	if err != nil {
		b.t.Fatal(err)
	}
	each := func(read func(io.Reader) error) error {
		in, err := os.Open(b.input)
		if err != nil {
			return err
		}
		defer in.Close()
		return read(in)
	}
	c := b.config
	c.Run, c.Each = r, func(f func(*format.Request) error) error {
		return each(func(in io.Reader) error { return r.Each("in", in, f) })
	}
	if err := each(func(in io.Reader) error { return r.Check("in", in) }); err != nil {
		return err
	}
	_, err = Run(ctx, c)
	return err
}

// each runs a part of a test in virtual time, beside other parts: most of the time is the disk's.
func each(t *testing.T, f func(t *testing.T)) {
	t.Run("", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

// rowsBench is a bench whose input is rows with a wrong temperature here and there, and whose results are a table.
func rowsBench(t *testing.T, p format.Provider, c llm.Config, text string) *bench {
	b := newBench(t, p, c, "id,temperature\n"+text)
	items, err := format.NewItems(format.ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: "http://llm.test/v1/chat/completions",
		ID: "{row.id}", HasBody: true, Body: `{"model":"gpt-4o","max_tokens":9,"temperature":{row.temperature},"messages":[{"role":"user","content":"Why?"}]}`})
	if err != nil {
		t.Fatal(err)
	}
	shape, err := output.CompileShape("id=.id, was=.row.id, role=.body.choices[0].message.role", output.CSV)
	if err != nil {
		t.Fatal(err)
	}
	b.of.Format, b.of.Meter, b.of.Shape, b.of.Out = items, b.form.Meter, shape, b.out+".csv"
	b.config.Rows = true
	b.results, b.dead, b.start = output.RowsOf(b.of.Out), b.of.Out+".dead.jsonl", `{"id":"p`
	b.ended = func() (ids []string) {
		rows, err := os.ReadFile(b.of.Out)
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(strings.TrimPrefix(string(rows), "id,was,role\n")) {
			id, rest, _ := strings.Cut(row, ",")
			if rest != id+",assistant\n" {
				t.Errorf("%q is no row of %s", row, id)
			}
			ids = append(ids, id)
		}
		letters, err := os.ReadFile(b.dead)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(letters) {
			e, ok := format.Plain{}.Entry(line, true)
			if !ok || !bytes.Contains(line, []byte(`"columns":{"id":"`+e.ID+`","temperature":"5"}`)) {
				t.Errorf("%s is no dead letter of a row", line)
			}
			ids = append(ids, e.ID)
		}
		slices.Sort(ids)
		return ids
	}
	return b
}

func rowLine(id, _, more string) string {
	_, wrong, is := strings.Cut(more, ":")
	if !is {
		wrong = "1"
	}
	return id + "," + wrong + "\n"
}

// read returns the ids of a file of results, sorted, as the run that follows reads them.
func (b *bench) read(path string, isDead bool) (ids []string) {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		e, ok := b.form.Entry(line, isDead)
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
	in, err := os.Open(b.input)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	r, err := run.New(run.Config{Format: b.form, Base: b.base, Out: b.out, Notice: func(s string) { b.said = append(b.said, s) }})
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
			done, dead := b.read(b.out, false), b.read(b.dead, true)
			if len(done) != 60 || len(dead) != 10 || len(slices.Compact(append(done, dead...))) != 70 {
				t.Errorf("%v: %d done, %d dead", c.p, len(done), len(dead))
			}
			if last := strings.Join(b.said[4:], "\n"); !strings.Contains(last, "60 requests are done, 60 of them cut (--retry-dead=length), 10 dead, 0 left") || !strings.Contains(last, "at half the price they cost 0.") {
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

// Wherever a command is killed, the next one goes on: each request is in one batch, and has one result. Rows whose
// results are a table do so, too.
func TestGoesOn(t *testing.T) {
	for _, c := range []struct {
		p      format.Provider
		text   string
		create string
		make   func(*testing.T, format.Provider, llm.Config, string) *bench
	}{
		{format.OpenAI, many(20, openAILine, "gpt-4o"), "/v1/batches", newBench},
		{format.Anthropic, many(20, anthropicLine, "claude-sonnet-5"), "/v1/messages/batches", newBench},
		{format.OpenAI, many(20, rowLine, "gpt-4o"), "/v1/batches", rowsBench},
	} {
		for stop := range 12 {
			each(t, func(t *testing.T) {
				b := c.make(t, c.p, llm.Config{BatchPace: time.Second}, c.text)
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
				if err := b.until(ctx); err == nil && stop < 4 {
					t.Fatalf("stop %d: it was not stopped", stop)
				}
				for path, half := range map[string]string{b.results: b.start, b.config.Ledger: `{"na`} { // half a line, as a kill leaves it
					f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = f.WriteString(half)
					f.Close()
				}
				time.Sleep(time.Second)
				if err := b.run(); err != nil {
					t.Fatalf("stop %d: %v", stop, err)
				}
				all := b.ended()
				if len(all) != 20 || len(slices.Compact(all)) != 20 || made != 2 {
					t.Errorf("%v, stop %d: %d results of 20, %d batches: %q", c.p, stop, len(all), made, b.said)
				}
			})
		}
	}
}

// Ids of any form go to Anthropic, which takes only short ones of letters, digits, _ and -. The results have them.
func TestAnyID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []string{"a@example.com", "ok_1-", strings.Repeat("x", 65), "Ä"}
		var text strings.Builder
		for _, id := range all {
			text.WriteString(anthropicLine(id, "claude-sonnet-5", ""))
		}
		b := newBench(t, format.Anthropic, llm.Config{}, text.String())
		took := ""
		b.base.hook = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				sent, _ := io.ReadAll(r.Body)
				took, r.Body = string(sent), io.NopCloser(bytes.NewReader(sent))
			}
			return nil, nil
		}
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		for id := range strings.SplitSeq(took, `"custom_id":"`) {
			if id, _, is := strings.Cut(id, `"`); is && id != `{` && !ids.MatchString(id) {
				t.Errorf("%q went to the provider", id)
			}
		}
		slices.Sort(all)
		if done := b.read(b.out, false); !slices.Equal(done, all) || !strings.Contains(took, `"ok_1-"`) {
			t.Errorf("%q are done, %s: %q", done, took, b.said)
		}
	})
}

// What a batch did not serve in its time goes the ordinary way.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, format.OpenAI, llm.Config{BatchPace: time.Hour, Limits: llm.Limits{Requests: 1000, Tokens: 1e9}}, many(40, openAILine, "gpt-4o"))
		b.config.Poll = 10 * time.Minute
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		done, dead := b.read(b.out, false), b.read(b.dead, true)
		if len(done) < 15 || len(done)+len(dead) != 24 {
			t.Errorf("%d, %d", len(done), len(dead))
		}
		b.config.Key.Secret = ""
		b.base.hook = func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Authorization", "Bearer "+secretKey)
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
		if done, dead := b.read(b.out, false), b.read(b.dead, true); len(done)+len(dead) != 40 || most != 1 || refused != 1 {
			t.Errorf("%d, %d; %d at once", len(done), len(dead), most)
		}
	})
}

// A refusal ends it, with the provider's words and without a key. Failures are asked again.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
		b.base.hook = func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"Incorrect API key ` + secretKey + `"}}`))}, nil
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
		if done := b.read(b.out, false); len(done) != 3 {
			t.Errorf("%v", done)
		}
		if said := strings.Join(b.said, "\n"); strings.Count(said, "llm.test does not serve (answered 429); it is asked again until it does") != 1 ||
			strings.Count(said, "does not serve") != 1 || strings.Count(said, "serves again") != 1 {
			t.Errorf("%q", b.said)
		}
		waits := slices.ContainsFunc(b.at, func(p Progress) bool { return p.Silent == "answered 503" && time.Until(p.Next) < 0 && !p.Next.IsZero() })
		if last := b.at[len(b.at)-1]; !waits || last.Silent != "" || last.Batches != 1 || last.Requests != 3 {
			t.Errorf("%+v", b.at)
		}
		if _, err := os.Stat(output.JournalOf(b.out)); err != nil {
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
		if n := b.read(b.out, false); len(n) != 0 {
			t.Errorf("%v", n)
		}
	})
}

// A file that is none of ours is left alone.
func TestForeignFiles(t *testing.T) {
	b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
	if err := os.WriteFile(b.out, []byte("a letter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.run(); err == nil || !strings.Contains(err.Error(), "out.jsonl:1: not a result of paceline") {
		t.Error(err)
	}
	if text, _ := os.ReadFile(b.out); string(text) != "a letter\n" {
		t.Errorf("%q", text)
	}
}

// The journal of a run that goes on is left alone: its lock is that of the results.
func TestBesideARun(t *testing.T) {
	b := newBench(t, format.OpenAI, llm.Config{}, many(3, openAILine, "gpt-4o"))
	run, err := durable.Open(b.out)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Discard()
	if err := b.run(); err == nil || !strings.Contains(err.Error(), "is in use by another run") {
		t.Error(err)
	}
	if _, err := os.Stat(output.JournalOf(b.out)); !errors.Is(err, os.ErrNotExist) {
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
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
			b := newBench(t, p, llm.Config{}, "")
			r, err := run.New(run.Config{Format: b.form, Out: b.out})
			if err != nil {
				t.Fatal(err)
			}
			o, err := r.Outside()
			if err != nil {
				t.Fatal(err)
			}
			of := &batches{Config: b.config, results: o}
			waiting := map[string]*format.Request{}
			for _, id := range []string{"a", "b"} {
				waiting[id] = &format.Request{ID: id, Method: http.MethodPost, URL: b.form.Base().JoinPath("/v1/chat/completions"), Digest: "0123456789abcdef"}
			}
			for range 2 {
				_ = o.Begin()
				_ = of.take([]byte(text), waiting) // a wrong line is the provider's fault, and said
			}
			if _, err := o.Close(); err != nil {
				t.Fatal(err)
			}
			done, dead := b.read(b.out, false), b.read(b.dead, true)
			for _, id := range append(done, dead...) {
				if id != "a" && id != "b" {
					t.Fatalf("%q became a result of %q", text, id)
				}
			}
			if n := len(done) + len(dead); n > 1 || n != 2-len(waiting) {
				t.Fatalf("%q: %d results, %d left", text, n, len(waiting))
			}
		}
	})
}
