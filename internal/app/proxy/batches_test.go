package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/jobs"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// batching is a Config whose upstream keeps batches, and has a key.
func batching(t testing.TB, dir string, limits ...string) Config {
	c := to(mustURL(t, "http://llm.test"), limits...)
	u := &c.Upstreams[0]
	u.Path = "/llm"
	u.Keys = []Key{{Name: "k", Secret: "sk-upstream-1"}}
	u.Header = []Field{{"Authorization", "Bearer {key}"}, {"X-Api-Key", "{key}"}}
	u.Batches = Batches{Folder: dir}
	c.Clients.Header = "X-Who"
	return c
}

func newLLM(t testing.TB, c llm.Config) *llm.Server {
	t.Helper()
	c.Keys = []string{"sk-upstream-1"}
	l, err := llm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// patron is a client with batches.
type patron struct {
	x    *proxied
	name string
}

// do makes a request and reads the answer into to, unless it is nil.
func (p patron) do(method, path, kind, body string, to any) (int, string) {
	p.x.t.Helper()
	resp, text := p.x.do(method, "/llm"+path, body, "X-Who", p.name, "Content-Type", kind, "Authorization", "Bearer sk-of-the-client")
	if to != nil {
		if err := json.Unmarshal([]byte(text), to); err != nil || resp.StatusCode != http.StatusOK {
			p.x.t.Fatalf("%s %s: %d %v: %s", method, path, resp.StatusCode, err, text)
		}
	}
	return resp.StatusCode, text
}

// formOf is a form with a file. The purpose comes last, as SDKs may send it.
func formOf(purpose, text string) (kind, body string) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, _ := form.CreateFormFile("file", "prompts.jsonl") // a buffer takes all
	_, _ = part.Write([]byte(text))
	_ = form.WriteField("purpose", purpose)
	_ = form.Close()
	return form.FormDataContentType(), b.String()
}

func (p patron) upload(text string) string {
	p.x.t.Helper()
	var f struct{ ID string }
	kind, body := formOf("batch", text)
	p.do("POST", "/v1/files", kind, body, &f)
	return f.ID
}

// batchShown is a batch of either API.
type batchShown struct {
	ID, Status string
	Output     string         `json:"output_file_id"`
	Errors     string         `json:"error_file_id"`
	Created    int64          `json:"created_at"`
	Counts     map[string]int `json:"request_counts"`
	Metadata   map[string]string
	Mistakes   struct {
		Data []struct {
			Code string
			Line int
		}
	} `json:"errors"`
}

func (p patron) batch(text string) (b batchShown) {
	p.x.t.Helper()
	p.do("POST", "/v1/batches", "application/json", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"night":"1"}}`, p.upload(text)), &b)
	return b
}

// ended waits for the end of a batch.
func (p patron) ended(b batchShown, within time.Duration) batchShown {
	p.x.t.Helper()
	for until := time.Now().Add(within); time.Now().Before(until); time.Sleep(time.Second) {
		var now batchShown
		p.do("GET", "/v1/batches/"+b.ID, "", "", &now)
		if slices.Contains([]string{"completed", "failed", "cancelled", "expired"}, now.Status) {
			return now
		}
	}
	_, text := p.do("GET", "/v1/batches/"+b.ID, "", "", nil)
	p.x.t.Fatalf("not ended: %s", text)
	return b
}

// idsOf are the ids of a file's lines, sorted, and its text.
func (p patron) idsOf(file string) (ids []string, text string) {
	p.x.t.Helper()
	status, text := p.do("GET", "/v1/files/"+file+"/content", "", "", nil)
	if status != http.StatusOK {
		p.x.t.Fatalf("%d %s", status, text)
	}
	for line := range strings.Lines(text) {
		var l struct {
			ID string `json:"custom_id"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			p.x.t.Fatalf("%s: %v", line, err)
		}
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	return ids, text
}

const chatBody = `{"model":"%s","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]}`

func promptsOf(n int, model string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":`+chatBody+"}\n", i, model)
	}
	return b.String()
}

// chats asks n times, evenly in a time, and returns how long each waited, sorted.
func (p patron) chats(n int, every time.Duration, all *sync.WaitGroup, took func(time.Duration)) {
	for range n {
		all.Go(func() {
			began := time.Now()
			if status, text := p.do("POST", "/v1/chat/completions", "application/json", fmt.Sprintf(chatBody, "gpt-4o"), nil); status != http.StatusOK {
				p.x.t.Errorf("%s: %d %s", p.name, status, text)
			}
			took(time.Since(began))
		})
		time.Sleep(every)
	}
}

// A batch takes what people leave. Nobody is refused, and people beside it wait little, the batch's own client too.
func TestBatchBesidePeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 600, Tokens: 1e9}, First: latency.Constant(200 * time.Millisecond)})
		c := batching(t, t.TempDir(), "600/m")
		c.Upstreams[0].Limits[0].Bucket = true // as OpenAI counts, and so does its fake
		x := virtual(t, server, c)
		ann, bob := patron{x, "ann"}, patron{x, "bob"}
		b := ann.batch(strings.ReplaceAll(promptsOf(900, "gpt-4o"), `"p7"`, `"seven"`))
		if b.Status != "validating" || b.Created < 946684800 || b.Created > 946684810 {
			t.Errorf("%+v", b)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var took []time.Duration
		note := func(d time.Duration) { mu.Lock(); took = append(took, d); mu.Unlock() }
		all.Go(func() { ann.chats(45, time.Second, &all, note) })
		bob.chats(45, time.Second, &all, note)
		all.Wait()
		b = ann.ended(b, 10*time.Minute)
		ids, text := ann.idsOf(b.Output)
		if b.Status != "completed" || b.Counts["completed"] != 900 || len(slices.Compact(ids)) != 900 || strings.Contains(text, "paceline") || b.Metadata["night"] != "1" || b.Errors != "" {
			t.Errorf("%+v, %d ids", b, len(ids))
		}
		slices.Sort(took)
		if p95 := took[len(took)*95/100]; len(took) != 90 || p95 > time.Second {
			t.Errorf("%d people, p95 %v", len(took), p95)
		}
		if r := server.Report(); r.Verdicts["limited"] != 0 || r.Verdicts["accepted"] != 990 {
			t.Errorf("%v", r.Verdicts)
		}
		// What is ann's is nobody else's.
		for _, path := range []string{"/v1/batches/" + b.ID, "/v1/files/" + b.Output, "/v1/files/" + b.Output + "/content"} {
			if status, text := bob.do("GET", path, "", "", nil); status != 404 {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		if status, _ := bob.do("POST", "/v1/batches/"+b.ID+"/cancel", "", "", nil); status != 404 {
			t.Error(status)
		}
	})
}

// A batch counts in the own limit of its client, with the client's other requests.
func TestBatchCountsInTheClientsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		server := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 6000, Tokens: 1e9}})
		seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			if got := r.Header.Get("Authorization"); got != "Bearer sk-upstream-1" {
				t.Errorf("sent with %q", got)
			}
			server.ServeHTTP(w, r)
		})
		c := batching(t, t.TempDir(), "6000/m")
		c.Clients.Default.Limits = rates(t, "30/m")
		c.MaxWait = 5 * time.Minute // a chat that comes right after 30 lines waits a minute
		c.State = filepath.Join(t.TempDir(), "state")
		c.clock = bubbleClock
		x := virtual(t, seen, c)
		ann := patron{x, "ann"}
		var all sync.WaitGroup
		b := ann.batch(promptsOf(60, "gpt-4o"))
		ann.chats(10, 5*time.Second, &all, func(time.Duration) {})
		all.Wait()
		if b = ann.ended(b, 10*time.Minute); b.Counts["completed"] != 60 {
			t.Errorf("%+v", b)
		}
		slices.SortFunc(at, time.Time.Compare)
		for i := 30; i < len(at); i++ {
			if d := at[i].Sub(at[i-30]); d < time.Minute {
				t.Fatalf("31 in %v", d)
			}
		}
		// A client that stands in for the line of the batches counts in the same limit.
		if status, _ := (patron{x, "ann (batch)"}).do("POST", "/v1/chat/completions", "application/json", fmt.Sprintf(chatBody, "gpt-4o"), nil); status != 200 {
			t.Error(status)
		}
		if len(at) != 71 {
			t.Errorf("%d sent", len(at))
		}
	})
}

// What a client's limit of money cannot take is an error of its line, with the reason, and the others go on.
func TestBatchWithoutAPrice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 6000, Tokens: 1e9}})
		c := batching(t, t.TempDir(), "6000/m")
		c.Upstreams[0].Prices = []Price{{Model: "m", Input: 1, Output: 1}}
		c.Clients.Default.Limits = rates(t, "5USD/d")
		ann := patron{virtual(t, server, c), "ann"}
		b := ann.batch(promptsOf(5, "m") + strings.ReplaceAll(promptsOf(3, "dear"), `"p`, `"d`))
		b = ann.ended(b, time.Minute)
		failed, text := ann.idsOf(b.Errors)
		if b.Counts["completed"] != 5 || fmt.Sprint(failed) != "[d0 d1 d2]" || strings.Count(text, "paceline_no_price") != 3 {
			t.Errorf("%+v: %s", b, text)
		}
	})
}

// A proxy that ends and begins again goes on with its batches. Stop does not wait for those that wait for a turn.
func TestBatchOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		server := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 6000, Tokens: 1e9}, First: latency.Constant(300 * time.Millisecond)})
		first := virtual(t, server, batching(t, dir, "60/m"))
		b := (patron{first, "ann"}).batch(promptsOf(100, "gpt-4o"))
		time.Sleep(20 * time.Second)
		began := time.Now()
		first.once.Do(func() {
			first.server.Stop()
			if err := first.server.Wait(); err != nil {
				t.Error(err)
			}
		})
		if d := time.Since(began); d > time.Second {
			t.Errorf("stopped after %v", d)
		}
		second := virtual(t, server, batching(t, dir, "600/m"))
		ann := patron{second, "ann"}
		b = ann.ended(b, 10*time.Minute)
		if ids, _ := ann.idsOf(b.Output); b.Status != "completed" || len(slices.Compact(ids)) != 100 {
			t.Errorf("%+v: %d", b, len(ids))
		}
		if n := server.Report().Verdicts["accepted"]; n != 100 {
			t.Errorf("%d served", n)
		}
	})
}

// Mistakes of requests, each in OpenAI's words, and with a status that says whose fault it is.
func TestBatchRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := batching(t, dir, "600/m")
		c.Upstreams[0].Batches.Most = 20_000
		ann := patron{virtual(t, newLLM(t, llm.Config{}), c), "ann"}
		id := ann.upload(promptsOf(3, "gpt-4o"))
		large, largeBody := formOf("batch", strings.Repeat("x", 30_000))
		other, otherBody := formOf("assistants", "x")
		for _, c := range []struct {
			method, path, kind, body string
			status                   int
			says                     string
		}{
			{"POST", "/v1/files", "application/json", "{}", 400, "multipart"},
			{"POST", "/v1/files", other, otherBody, 400, `"param":"purpose"`},
			{"POST", "/v1/files", other, otherBody[:40], 400, "breaks off"},
			{"POST", "/v1/files", large, largeBody, 507, "insufficient_storage"},
			{"POST", "/v1/batches", "application/json", "[]", 400, "could not parse"},
			{"POST", "/v1/batches", "application/json", `{"endpoint":"/v1/figs"}`, 400, `"param":"endpoint"`},
			{"POST", "/v1/batches", "application/json", `{"endpoint":"/v1/responses","completion_window":"8d"}`, 400, `"param":"completion_window"`},
			{"POST", "/v1/batches", "application/json", `{"endpoint":"/v1/responses","completion_window":"24h","metadata":[1]}`, 400, `"param":"metadata"`},
			{"POST", "/v1/batches", "application/json", `{"endpoint":"/v1/responses","completion_window":"24h","input_file_id":"../` + id + `"}`, 400, `"param":"input_file_id"`},
			{"GET", "/v1/batches/x", "", "", 404, "No such"},
			{"GET", "/v1/batches?limit=x", "", "", 400, `"param":"limit"`},
			{"GET", "/v1/batches?after=x", "", "", 400, `"param":"after"`},
			{"GET", "/v1/files/..%2f..%2flock/content", "", "", 400, "bad-path"},
			{"PUT", "/v1/files/" + id, "", "", 404, "unknown_url"},
			{"GET", "/v1/messages/batches/x", "", "", 404, "not_found_error"},
			{"POST", "/v1/messages/batches", "application/json", `{"requests":[]}`, 400, "at least 1 item"},
			{"POST", "/v1/messages/batches", "application/json", `{"requests":[{"custom_id":"a","params":{}},{"custom_id":"a","params":{}}]}`, 400, "is there twice"},
			{"POST", "/v1/messages/batches", "application/json", `{"requests":[{"custom_id":"a","params":{"model":"m","max_tokens":1,"messages":[]`, 400, "requests.0"},
			{"POST", "/v1/messages/batches", "application/json", `{"requests":[{"custom_id":"a/b","params":{}}]}`, 400, "requests.0.custom_id"},
			{"POST", "/v1/messages/batches", "application/json", `{"requests":[{"custom_id":"a"}]}`, 400, "requests.0.params"},
			{"POST", "/v1/messages/batches", "application/json", `{"requests":[{"custom_id":"a","params":{"model":"m","stream":true,"max_tokens":1,"messages":[]}}]}`, 400, "requests.0."},
		} {
			if status, says := ann.do(c.method, c.path, c.kind, c.body, nil); status != c.status || !strings.Contains(says, c.says) {
				t.Errorf("%s %s %.60s: %d %s, want %d with %s", c.method, c.path, c.body, status, says, c.status, c.says)
			}
		}
		var list struct {
			Data []struct{ ID string }
			More bool `json:"has_more"`
		}
		if ann.do("GET", "/v1/files?limit=1", "", "", &list); len(list.Data) != 1 || list.More || list.Data[0].ID != id {
			t.Errorf("%+v", list)
		}
		if left := leftIn(t, dir); len(left) != 3 { // the lock, the file and its record
			t.Errorf("%v is left", left)
		}
		if status, _ := ann.do("DELETE", "/v1/files/"+id, "", "", nil); status != 200 {
			t.Error(status)
		}
		// A folder that is gone fails as a full disk does.
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		kind, body := formOf("batch", "x")
		if status, says := ann.do("POST", "/v1/files", kind, body, nil); status != 507 || !strings.Contains(says, "cannot be written") {
			t.Errorf("%d %s", status, says)
		}
	})
}

func leftIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// Anthropic's batches over the same store: inline, with results at an address, and a version of the API in each request.
func TestMessageBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLLM(t, llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 600, Input: 1e9, Output: 1e9}, First: latency.Constant(time.Second)})
		x := virtual(t, server, batching(t, t.TempDir(), "600/m"))
		ann := patron{x, "ann"}
		type shown struct {
			ID, Type   string
			Processing string         `json:"processing_status"`
			Counts     map[string]int `json:"request_counts"`
			Results    string         `json:"results_url"`
			Ended      *time.Time     `json:"ended_at"`
		}
		create := func(n int) (b shown) {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf(`{"params":{"model":"claude-sonnet-4","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]},"custom_id":"p%d"}`, i))
			}
			ann.do("POST", "/v1/messages/batches", "application/json", `{"note":{"x":[1]},"requests":[`+strings.Join(all, ",\n")+`]}`, &b)
			return b
		}
		end := func(b shown) shown {
			for b.Processing != "ended" {
				time.Sleep(time.Second)
				ann.do("GET", "/v1/messages/batches/"+b.ID, "", "", &b)
			}
			return b
		}
		b := create(40)
		time.Sleep(time.Millisecond) // as the newer one
		other := create(300)
		if b.Type != "message_batch" || b.Processing != "in_progress" || b.Counts["processing"] != 40 || b.Ended != nil || !strings.HasPrefix(b.ID, "msgbatch_") {
			t.Errorf("%+v", b)
		}
		if status, says := ann.do("GET", "/v1/messages/batches/"+b.ID+"/results", "", "", nil); status != 404 || !strings.Contains(says, "no results yet") {
			t.Errorf("%d %s", status, says)
		}
		if status, says := ann.do("DELETE", "/v1/messages/batches/"+b.ID, "", "", nil); status != 400 {
			t.Errorf("%d %s", status, says)
		}
		if b = end(b); b.Counts["succeeded"] != 40 || b.Counts["processing"] != 0 || b.Ended == nil || b.Results != "http://"+x.addr+"/llm/v1/messages/batches/"+b.ID+"/results" {
			t.Errorf("%+v", b)
		}
		_, text := ann.do("GET", "/v1/messages/batches/"+b.ID+"/results", "", "", nil)
		if strings.Count(text, `"type":"succeeded","message":{`) != 40 || strings.Contains(text, "paceline") || strings.Contains(text, "digest") {
			t.Errorf("%.400s", text)
		}
		if ann.do("POST", "/v1/messages/batches/"+other.ID+"/cancel", "", "", &other); other.Processing != "canceling" {
			t.Errorf("%+v", other)
		}
		other = end(other)
		_, text = ann.do("GET", "/v1/messages/batches/"+other.ID+"/results", "", "", nil)
		if n := strings.Count(text, `"result":{"type":"canceled"}`); n == 0 || n != other.Counts["canceled"] || n+other.Counts["succeeded"] != 300 || strings.Count(text, "\n") != 300 {
			t.Errorf("%+v, %d", other, n)
		}
		var list struct{ Data []shown }
		if ann.do("GET", "/v1/messages/batches", "", "", &list); len(list.Data) != 2 || list.Data[0].ID != other.ID {
			t.Errorf("%+v", list)
		}
		if status, _ := ann.do("DELETE", "/v1/messages/batches/"+b.ID, "", "", nil); status != 200 {
			t.Error(status)
		}
		if status, _ := ann.do("GET", "/v1/messages/batches/"+b.ID, "", "", nil); status != 404 {
			t.Error(status)
		}
		if v := server.Report().Verdicts; v["limited"] != 0 || v["accepted"] != 40+other.Counts["succeeded"] {
			t.Errorf("%v", v)
		}
	})
}

// A request of a batch that breaks off may have been served. So the proxy sends it once, and leaves it to the batch what to do.
func TestBrokenOffInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			sent++
			panic(http.ErrAbortHandler)
		}), batching(t, t.TempDir(), "600/m"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, "POST", "http://llm.test/v1/chat/completions", strings.NewReader(fmt.Sprintf(chatBody, "gpt-4o")))
		if err != nil {
			t.Fatal(err)
		}
		b := &bulk{x.proxy.common, x.proxy.config.Upstreams[0].Name, jobs.Way{Owner: "ann", Waits: ctx}, false}
		_, err = b.RoundTrip(q)
		if _, unsent := errors.AsType[*sending.Unsent](err); err == nil || unsent || sent != 1 {
			t.Errorf("sent %d times: %v", sent, err)
		}
	})
}

// Without a folder these paths go to the upstream, as all others do.
func TestBatchesPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := batching(t, "", "600/m")
		ann := patron{virtual(t, newLLM(t, llm.Config{BatchPace: time.Millisecond}), c), "ann"}
		b := ann.ended(ann.batch(promptsOf(3, "gpt-4o")), time.Minute)
		if ids, _ := ann.idsOf(b.Output); len(ids) != 3 || len(strings.TrimPrefix(b.ID, "batch_")) == 32 {
			t.Errorf("%+v", b)
		}
	})
}

// What makes no sense is refused, with its place. A change of the folder needs another start; one of a weight does not.
func TestBatchesConfig(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(*Config){
		"Upstreams[0].Batches.Folder: it is empty":      func(c *Config) { c.Upstreams[0].Batches = Batches{Keep: 1} },
		"Upstreams[0].Batches: the upstream has no":     func(c *Config) { c.Upstreams[0].Keys, c.Upstreams[0].Header = nil, nil },
		"Upstreams[0].Batches.Most: -1 is negative":     func(c *Config) { c.Upstreams[0].Batches.Most = -1 },
		"Upstreams[0].Batches.Keep: -1s, expected":      func(c *Config) { c.Upstreams[0].Batches.Keep = -time.Second },
		"Upstreams[0].Batches.Weight: -1, expected":     func(c *Config) { c.Upstreams[0].Batches.Weight = -1 },
		"Upstreams[0].Batches.Reserve: 2, expected":     func(c *Config) { c.Upstreams[0].Batches.Reserve = 2 },
		"Upstreams[0].Batches.HeadStart: -1s, expected": func(c *Config) { c.Upstreams[0].Batches.HeadStart = -time.Second },
		"Upstreams[0].Batches.Concurrency: -1 is":       func(c *Config) { c.Upstreams[0].Batches.Concurrency = -1 },
		"Upstreams[1].Batches.Folder: ": func(c *Config) {
			u := c.Upstreams[0]
			u.Path, u.Name = "/other", "other"
			c.Upstreams = append(c.Upstreams, u)
		},
		"Clients.List[0].Name: \"ann (batch)\" is what": func(c *Config) { c.Clients.List = []Client{{Name: "ann (batch)"}} },
	} {
		c := batching(t, dir)
		change(&c)
		if _, err := c.Checked(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(batching(t, file)); err == nil || !strings.HasPrefix(err.Error(), "Upstreams[0].Batches.Folder: ") {
			t.Errorf("a file as the folder: %v", err)
		}
		c := batching(t, filepath.Join(t.TempDir(), "new"), "600/m")
		c.Live = true
		x := virtual(t, newLLM(t, llm.Config{}), c)
		next := c
		next.Upstreams = slices.Clone(c.Upstreams)
		next.Listen, next.Admin = "127.0.0.1:0", "127.0.0.1:0"
		next.Upstreams[0].Batches.Weight = 3
		if err := x.proxy.Apply(next); err != nil {
			t.Error(err)
		}
		next.Upstreams = slices.Clone(c.Upstreams)
		next.Upstreams[0].Batches.Folder = filepath.Join(t.TempDir(), "elsewhere")
		if err := x.proxy.Apply(next); err == nil || !strings.HasPrefix(err.Error(), "Upstreams[0].Batches: ") {
			t.Errorf("%v", err)
		}
	})
}

// A batch goes to several targets as other requests do, each with its key.
func TestBatchOverTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 6000, Tokens: 1e9}})
		var mu sync.Mutex
		seen := map[string]int{}
		c := batching(t, t.TempDir())
		u := &c.Upstreams[0]
		key := Key{Name: "k", Secret: "sk-upstream-1"}
		for _, host := range []string{"one.test", "two.test"} {
			u.Targets = append(u.Targets, Target{Name: host, To: mustURL(t, "http://"+host), Limits: limitsOf("10/s"), Keys: []Key{key}, Header: u.Header})
			key = Key{Name: "l", Secret: "sk-upstream-2"}
		}
		u.To, u.Keys, u.Header = nil, nil, nil
		ann := patron{virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen[r.Host+" "+r.Header.Get("Authorization")]++
			mu.Unlock()
			r.Header.Set("Authorization", "Bearer sk-upstream-1")
			server.ServeHTTP(w, r)
		}), c), "ann"}
		b := ann.ended(ann.batch(promptsOf(100, "gpt-4o")), time.Minute)
		if ids, _ := ann.idsOf(b.Output); b.Status != "completed" || len(slices.Compact(ids)) != 100 {
			t.Errorf("%+v, %d", b, len(ids))
		}
		if one, two := seen["one.test Bearer sk-upstream-1"], seen["two.test Bearer sk-upstream-2"]; one+two != 100 || min(one, two) < 30 {
			t.Errorf("%v", seen)
		}
	})
}
