package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// server answers each request after a while, unless its batch stops before that.
type server struct {
	mu     sync.Mutex
	takes  time.Duration
	asked  map[string]int // by prompt
	paths  map[string]int
	answer func(prompt string) (status int, body string) // nil: a fine one
}

func newServer() *server {
	return &server{takes: time.Second, asked: map[string]int{}, paths: map[string]int{}}
}

type trip struct {
	*server
	way Way
}

func (l trip) RoundTrip(q *http.Request) (*http.Response, error) {
	select {
	case <-time.After(l.takes):
	case <-l.way.Waits.Done():
		return nil, &sending.Unsent{Err: errors.New("no turn")}
	}
	var ask struct {
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(q.Body).Decode(&ask); err != nil {
		return nil, err
	}
	prompt := ask.Messages[0].Content
	l.mu.Lock()
	l.asked[prompt]++
	l.paths[q.URL.String()]++
	l.mu.Unlock()
	status, body := 200, fmt.Sprintf(`{"id":%q,"choices":[{"message":{"content":"fine"}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, prompt)
	if l.answer != nil {
		status, body = l.answer(prompt)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
}

// opened returns a Store in a folder that sends to l. It ends with the test.
func opened(t *testing.T, dir string, l *server, change func(*Config)) *Store {
	t.Helper()
	c := Config{Folder: dir, To: &url.URL{Scheme: "https", Host: "api.test"}, Base: func(w Way) http.RoundTripper { return trip{l, w} }}
	if change != nil {
		change(&c)
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}

func closed(s *Store) {
	s.Stop()
	s.Wait()
}

func prompt(id string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%[1]q}]}}`+"\n", id)
}

func prompts(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(prompt(fmt.Sprint("p", i)))
	}
	return b.String()
}

func uploaded(t *testing.T, s *Store, who, text string) File {
	t.Helper()
	u, err := s.Upload(who)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(u, text); err != nil {
		t.Fatal(err)
	}
	f, err := u.Keep("prompts.jsonl", purposeBatch, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func created(t *testing.T, s *Store, who, text string) Batch {
	t.Helper()
	return createdFor(t, s, who, text, 24*time.Hour)
}

func createdFor(t *testing.T, s *Store, who, text string, window time.Duration) Batch {
	t.Helper()
	f := uploaded(t, s, who, text)
	b, err := s.Create(Batch{Owner: who, Endpoint: "/v1/chat/completions", Input: f.ID, Window: "24h", Deadline: time.Now().Add(window)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func look(t *testing.T, s *Store, b Batch) Batch {
	t.Helper()
	now, err := s.Batch(b.Owner, b.ID)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// ended waits for the end of a batch.
func ended(t *testing.T, s *Store, b Batch, within time.Duration) Batch {
	t.Helper()
	for until := time.Now().Add(within); time.Now().Before(until); time.Sleep(time.Second) {
		if now := look(t, s, b); now.State.Ended() {
			return now
		}
	}
	t.Fatalf("%+v has not ended", look(t, s, b))
	return b
}

// ids are the ids of the lines of a file, and its text.
func ids(t *testing.T, s *Store, who, id string) (all []string, text string) {
	t.Helper()
	in, _, err := s.Content(who, id)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var l struct {
			ID string `json:"custom_id"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, l.ID)
	}
	return all, string(b)
}

// A batch goes through its states. Its files have each id once, and nothing but the API's members.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer()
		l.answer = func(prompt string) (int, string) {
			if prompt == "p3" {
				return 400, `{"error":{"message":"no","type":"invalid_request_error"}}`
			}
			return 200, `{"id":"x","choices":[]}`
		}
		s := opened(t, t.TempDir(), l, func(c *Config) { c.Concurrency = 10 })
		defer func() { closed(s) }()
		b := created(t, s, "ann", prompts(100))
		if b.State != Validating {
			t.Errorf("%+v", b)
		}
		time.Sleep(5500 * time.Millisecond) // the first goes alone
		if now := look(t, s, b); now.State != InProgress || now.Counts.Total != 100 || now.Counts.Done < 30 || now.Counts.Done > 50 || now.ETA.IsZero() {
			t.Errorf("%+v", now)
		}
		b = ended(t, s, b, time.Minute)
		if b.State != Completed || b.Counts != (Counts{Total: 100, Done: 99, Failed: 1}) || !b.OutputMade || !b.ErrorsMade {
			t.Errorf("%+v", b)
		}
		done, text := ids(t, s, "ann", b.Output)
		slices.Sort(done)
		if len(slices.Compact(done)) != 99 || strings.Contains(text, "digest") || strings.Contains(text, "paceline") {
			t.Errorf("%d of %d: %.300s", len(slices.Compact(done)), len(done), text)
		}
		var first map[string]json.RawMessage
		if err := json.Unmarshal([]byte(strings.SplitAfter(text, "\n")[0]), &first); err != nil || len(first) != 4 || !strings.Contains(string(first["response"]), `"status_code":200,"request_id":"req_1","body":{"id":"x"`) {
			t.Errorf("%v: %s", err, first)
		}
		if failed, text := ids(t, s, "ann", b.Errors); fmt.Sprint(failed) != "[p3]" || !strings.Contains(text, `"status_code":400`) {
			t.Errorf("%v %s", failed, text)
		}
		if l.paths["https://api.test/v1/chat/completions"] != 100 {
			t.Errorf("%v", l.paths)
		}
		if rest := entries(filepath.Join(s.owners["ann"].dir, "batches", b.ID)); len(rest) != 1 {
			t.Errorf("%v is left beside the record", rest)
		}
		used := s.owners["ann"].used.Load()
		closed(s)
		if s = opened(t, s.c.Folder, l, nil); s.owners["ann"].used.Load() != used || used < 30_000 || used > sizeOf(s.owners["ann"].dir) {
			t.Errorf("%d bytes are counted, then %d, and %d are there", used, s.owners["ann"].used.Load(), sizeOf(s.owners["ann"].dir))
		}
	})
}

// After a stop and a start every batch goes on. What has a result is not sent again.
func TestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newServer(), t.TempDir()
		few := func(c *Config) { c.Concurrency = 5 }
		s := opened(t, dir, l, few)
		b := created(t, s, "ann", prompts(50))
		time.Sleep(4500 * time.Millisecond)
		closed(s)
		before := 0
		for _, n := range l.asked {
			before += n
		}
		s = opened(t, dir, l, few)
		defer closed(s)
		b = ended(t, s, b, time.Minute)
		if b.State != Completed || b.Counts.Done != 50 || before < 10 || before > 30 {
			t.Errorf("%d before: %+v", before, b)
		}
		for id, n := range l.asked {
			if n != 1 {
				t.Errorf("%s was asked %d times", id, n)
			}
		}
		if done, _ := ids(t, s, "ann", b.Output); len(done) != 50 {
			t.Errorf("%d in the output", len(done))
		}
	})
}

// A cancelled batch keeps what was served, and says of each other request that it was not.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer()
		s := opened(t, t.TempDir(), l, func(c *Config) { c.Concurrency = 5 })
		defer closed(s)
		b := created(t, s, "ann", prompts(50))
		time.Sleep(4500 * time.Millisecond)
		now, err := s.Cancel("ann", b.ID)
		if err != nil || now.State != Cancelling {
			t.Errorf("%v %+v", err, now)
		}
		b = ended(t, s, b, 5*time.Second)
		done, _ := ids(t, s, "ann", b.Output)
		rest, text := ids(t, s, "ann", b.Errors)
		all := slices.Sorted(slices.Values(append(done, rest...)))
		if b.State != Cancelled || len(done) != b.Counts.Done || len(slices.Compact(all)) != 50 || strings.Count(text, `"batch_cancelled"`) != len(rest) || b.Counts.Cancelled != len(rest) {
			t.Errorf("%+v: %d and %d", b, len(done), len(rest))
		}
		if _, err := s.Cancel("ann", b.ID); !errors.Is(err, errEnded) {
			t.Error(err)
		}
	})
}

// A batch whose time is over ends, also while the Store was away.
func TestExpires(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, dir := newServer(), t.TempDir()
			l.takes = 30 * time.Second
			s := opened(t, dir, l, func(c *Config) { c.Concurrency = 2 })
			defer func() { closed(s) }()
			b := createdFor(t, s, "ann", prompts(80), 12*time.Minute)
			time.Sleep(3*time.Minute + time.Second)
			if away {
				closed(s)
				time.Sleep(10 * time.Minute)
				s = opened(t, dir, l, nil)
			}
			b = ended(t, s, b, 12*time.Minute)
			if _, text := ids(t, s, "ann", b.Errors); b.State != Expired || b.Counts.Done == 0 || b.Counts.Done+b.Counts.Expired != 80 || strings.Count(text, `"batch_expired"`) != b.Counts.Expired {
				t.Errorf("away %v: %+v", away, b)
			}
		})
	}
}

// Mistakes are in the batch, each with its line, and nothing is sent.
func TestMistakes(t *testing.T) {
	race.Without(t) // nothing is sent
	synctest.Test(t, func(t *testing.T) {
		l := newServer()
		s := opened(t, t.TempDir(), l, nil)
		defer closed(s)
		var many strings.Builder
		for i := range mostLines + 1 {
			many.WriteString(prompt(fmt.Sprint(i)))
		}
		for name, c := range map[string]struct {
			text string
			want map[int]string
		}{
			"ids twice": {prompt("a") + prompt("b") + prompt("a"), map[int]string{3: "duplicate_custom_id"}},
			"another endpoint": {prompt("a") + strings.Replace(prompt("b"), "chat/completions", "embeddings", 1) + strings.Replace(strings.Replace(prompt("c"), "chat/completions", "embeddings", 1), `"messages"`, `"input":"x","more"`, 1),
				map[int]string{2: "mismatched_url", 3: "mismatched_url"}},
			"no lines of JSON": {"%PDF-1.7\n\x00\x01\n", map[int]string{1: "invalid_json_line", 2: "invalid_json_line"}},
			"half a line":      {prompt("a") + `{"custom_id":"b`, map[int]string{2: "invalid_json_line"}},
			"a stream":         {strings.Replace(prompt("a"), `"max_tokens"`, `"stream":true,"max_tokens"`, 1), map[int]string{1: "invalid_request"}},
			"nothing":          {"\n", map[int]string{0: "empty_file"}},
			"too many":         {many.String(), map[int]string{mostLines + 1: "too_many_requests"}},
		} {
			b := ended(t, s, created(t, s, "ann", c.text), time.Minute)
			got := map[int]string{}
			for _, m := range b.Mistakes {
				got[m.Line] = m.Code
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) || b.State != Failed || b.Counts != (Counts{}) || b.OutputMade {
				t.Errorf("%s: %v, want %v: %+v", name, got, c.want, b.Mistakes)
			}
		}
		if len(l.asked) != 0 {
			t.Errorf("%d were sent", len(l.asked))
		}
	})
}

// A model that is not there is in the errors of each of its requests, with the server's words.
func TestUnknownModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer()
		l.answer = func(string) (int, string) {
			return 404, `{"error":{"message":"The model m does not exist","type":"invalid_request_error","code":"model_not_found"}}`
		}
		s := opened(t, t.TempDir(), l, nil)
		defer closed(s)
		b := ended(t, s, created(t, s, "ann", prompts(20)), time.Minute)
		failed, text := ids(t, s, "ann", b.Errors)
		if b.State != Completed || b.OutputMade || len(failed) != 20 || strings.Count(text, "The model m does not exist") != 20 || len(l.asked) != 1 {
			t.Errorf("%+v, %d sent: %s", b, len(l.asked), text)
		}
	})
}

// An owner sees its own, and ids from elsewhere lead nowhere.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, dir, newServer(), nil)
		defer closed(s)
		names := []string{"ann", "Ann", "../ann", "a/b", "lock", "..", "ann (batch)", strings.Repeat("n", 300)}
		made := map[string]string{}
		for _, who := range names {
			made[who] = uploaded(t, s, who, prompts(1)).ID
		}
		for _, who := range names {
			for owner, id := range made {
				if _, err := s.File(who, id); (err == nil) != (who == owner) {
					t.Errorf("%q asks for the file of %q: %v", who, owner, err)
				}
			}
			if n := len(s.Files(who)); n != 1 {
				t.Errorf("%q has %d files", who, n)
			}
		}
		for _, id := range []string{"", "..", "../../lock", made["ann"] + "/../" + made["Ann"], strings.ToUpper(made["ann"]), made["ann"][:20]} {
			if _, _, err := s.Content("ann", id); !errors.Is(err, errNotThere) {
				t.Errorf("%q: %v", id, err)
			}
			if err := s.Remove("ann", id); !errors.Is(err, errNotThere) {
				t.Errorf("%q: %v", id, err)
			}
			if _, err := s.Create(Batch{Owner: "ann", Input: id}); !errors.Is(err, errNotThere) {
				t.Errorf("%q: %v", id, err)
			}
		}
		if _, err := s.Create(Batch{Owner: "ann", Input: made["Ann"]}); !errors.Is(err, errNotThere) {
			t.Errorf("a batch of another's file: %v", err)
		}
		if n := len(entries(filepath.Dir(dir))); n != 1 {
			t.Errorf("%d beside the folder", n)
		}
		b := created(t, s, "ann", prompts(1))
		for _, do := range []func(who string) error{
			func(who string) error { _, err := s.Batch(who, b.ID); return err },
			func(who string) error { _, err := s.Cancel(who, b.ID); return err },
			func(who string) error { return s.RemoveBatch(who, b.ID) },
			func(who string) error { _, _, err := s.Results(who, b.ID); return err },
		} {
			if err := do("Ann"); !errors.Is(err, errNotThere) {
				t.Error(err)
			}
		}
	})
}

// One owner's room does not depend on another's. What fails leaves nothing behind.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, dir, newServer(), func(c *Config) { c.Most = 20_000 })
		defer closed(s)
		f := uploaded(t, s, "ann", strings.Repeat("x", 15_000))
		u, err := s.Upload("ann")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(u, strings.Repeat("x", 15_000)); !errors.Is(err, errNoRoom) {
			t.Error(err)
		}
		u.Drop()
		uploaded(t, s, "bob", strings.Repeat("x", 15_000))
		if all := entries(filepath.Join(s.owners["ann"].dir, "files")); len(all) != 2 || s.owners["ann"].used.Load() != 15_000 {
			t.Errorf("%v, %d", all, s.owners["ann"].used.Load())
		}
		if err := s.Remove("ann", f.ID); err != nil {
			t.Error(err)
		}
		uploaded(t, s, "ann", strings.Repeat("x", 15_000))
	})
}

// A batch whose owner has no room left rests, and goes on when there is some.
func TestRoomOfResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer()
		l.answer = func(string) (int, string) { return 200, `{"id":"` + strings.Repeat("x", 2000) + `"}` }
		s := opened(t, t.TempDir(), l, func(c *Config) { c.Most, c.Concurrency = 400_000, 4 })
		defer closed(s)
		f := uploaded(t, s, "ann", strings.Repeat("x", 250_000))
		b := created(t, s, "ann", prompts(100))
		time.Sleep(2 * time.Minute)
		if now := look(t, s, b); now.State != InProgress || now.Counts.Done == 0 || now.Counts.Done > 90 || !strings.Contains(now.Why, "all the room") {
			t.Errorf("%+v", now)
		}
		if err := s.Remove("ann", f.ID); err != nil {
			t.Error(err)
		}
		b = ended(t, s, b, 10*time.Minute)
		if done, _ := ids(t, s, "ann", b.Output); b.State != Completed || len(done) != 100 {
			t.Errorf("%+v", b)
		}
		for id, n := range l.asked {
			if n != 1 {
				t.Errorf("%s was asked %d times", id, n)
			}
		}
	})
}

// A folder that is not writable is an error at once. One that goes away fails what is begun, and leaves nothing.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Folder: filepath.Join(dir, "file", "below")}); err == nil {
		t.Error("a folder in a file")
	}
	first, err := Open(Config{Folder: filepath.Join(dir, "new")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Folder: filepath.Join(dir, "new")}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("two at once: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new", "ann"), nil, 0o600); err != nil { // where ann's folder would be
		t.Fatal(err)
	}
	if _, err := first.Upload("ann"); !is[*diskError](err) {
		t.Errorf("%v", err)
	}
	if _, err := first.CreateInline(Batch{Owner: "ann", Form: format.Anthropic}, func(io.Writer) error { return nil }); !is[*diskError](err) {
		t.Errorf("%v", err)
	}
	closed(first)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// What is old goes, with all that it takes.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, t.TempDir(), newServer(), func(c *Config) { c.Keep = 48 * time.Hour })
		defer closed(s)
		b := ended(t, s, created(t, s, "ann", prompts(3)), time.Minute)
		time.Sleep(47 * time.Hour)
		if n := len(s.Files("ann")); n != 2 {
			t.Errorf("%d files", n)
		}
		time.Sleep(3 * time.Hour)
		if _, err := s.Batch("ann", b.ID); !errors.Is(err, errNotThere) || len(s.Files("ann")) != 0 || s.owners["ann"].used.Load() != 0 || sizeOf(s.owners["ann"].dir) != 0 {
			t.Errorf("%v, %v, %d", err, s.Files("ann"), s.owners["ann"].used.Load())
		}
	})
}

// Whatever a crash leaves, the next Store opens, counts what is there, and takes no half for a whole.
func TestLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newServer(), t.TempDir()
		s := opened(t, dir, l, nil)
		f := uploaded(t, s, "ann", prompts(2))
		b := ended(t, s, created(t, s, "ann", prompts(2)), time.Minute)
		closed(s)
		files, batches := filepath.Join(dir, "ann", "files"), filepath.Join(dir, "ann", "batches")
		half := newID(filePrefix)
		for path, text := range map[string]string{
			filepath.Join(files, half+partSuffix): "x", filepath.Join(files, newID(filePrefix)+dataSuffix): "x",
			filepath.Join(files, newID(filePrefix)+".json"): "{", filepath.Join(files, "stranger"): "x",
			filepath.Join(files, f.ID+".json.new"): "x",
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(batches, newID(batchPrefix)), 0o700); err != nil {
			t.Fatal(err)
		}
		// As if the crash had come between the files of a batch and its record.
		record := filepath.Join(batches, b.ID, recordName)
		text, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte(`"State":"completed"`), []byte(`"State":"cancelling"`), 1)
		if err := os.WriteFile(record, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s = opened(t, dir, l, nil)
		defer closed(s)
		if n := len(s.Files("ann")); n != 3 {
			t.Errorf("%d files", n)
		}
		if now := ended(t, s, b, time.Minute); now.State != Cancelled || len(s.Batches("ann", format.OpenAI)) != 1 {
			t.Errorf("%+v", now)
		}
	})
}

// Whatever an input is, its mistakes are found without a panic, and what has none is what the engine reads.
func FuzzMistakes(f *testing.F) {
	f.Add(prompt("a")+prompt("b"), "/v1/chat/completions")
	f.Add(prompt("a")+"{\n\n\xff", "/v1/embeddings")
	f.Add(`{"custom_id":"a","params":{"model":"m","max_tokens":1,"messages":[]}}`, "")
	f.Fuzz(func(t *testing.T, text, endpoint string) {
		for _, form := range []format.Provider{format.OpenAI, format.Anthropic} {
			l, err := format.NewLLM(format.LLMConfig{Provider: form, BaseURL: "https://api.test"})
			if err != nil {
				t.Fatal(err)
			}
			total, wrong, err := mistakes(l, endpoint, strings.NewReader(text), func(*format.Request) string { return "" })
			if err == nil && total == 0 && len(wrong) == 0 {
				t.Fatalf("%q has nothing, and nothing is wrong", text)
			}
			if len(wrong) > 0 || err != nil {
				continue
			}
			ids := map[string]bool{}
			for line := range strings.Lines(text) {
				var l struct {
					ID string `json:"custom_id"`
				}
				if json.Unmarshal([]byte(line), &l) == nil {
					ids[l.ID] = true
				}
			}
			if len(ids) != total {
				t.Fatalf("%q: %d requests, %d ids", text, total, len(ids))
			}
		}
	})
}

// Only ids of ours are read from a folder.
func TestIDs(t *testing.T) {
	id := newID(filePrefix)
	if !isID(id, filePrefix) || isID(id, batchPrefix) || newID(filePrefix) == id {
		t.Error(id)
	}
	for _, s := range []string{"", "file-", id[:len(id)-1], id + "0", strings.ToUpper(id), "file-" + strings.Repeat("/", 32), "file-../" + strings.Repeat("0", 29)} {
		if isID(s, filePrefix) {
			t.Errorf("%q", s)
		}
	}
}

// An upload to a full disk fails, and gives its room back.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err) // no such device here; TestFolder has other errors of a disk
	}
	s := opened(t, t.TempDir(), newServer(), nil)
	defer closed(s)
	u, err := s.Upload("ann")
	if err != nil {
		t.Fatal(err)
	}
	u.out.Close()
	u.out = full
	if _, err := io.WriteString(u, "text"); !is[*diskError](err) || !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	u.Drop()
	if left := entries(filepath.Join(s.owners["ann"].dir, "files")); len(left) != 0 || s.owners["ann"].used.Load() != 0 || len(s.Files("ann")) != 0 {
		t.Errorf("%v, %d", left, s.owners["ann"].used.Load())
	}
}

// A batch whose results cannot be written says why, and goes on when they can. Each id is in the output once.
func TestResultsCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer()
		s := opened(t, t.TempDir(), l, func(c *Config) { c.Concurrency = 4 })
		defer closed(s)
		b := created(t, s, "ann", prompts(60))
		time.Sleep(3500 * time.Millisecond)
		dir := s.owners["ann"].batches[b.ID].dir
		if err := os.Rename(filepath.Join(dir, resultsName), filepath.Join(dir, "gone")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if now := look(t, s, b); now.State != InProgress || !strings.Contains(now.Why, "no longer there") {
			t.Errorf("%+v", now)
		}
		b = ended(t, s, b, 5*time.Minute)
		if done, _ := ids(t, s, "ann", b.Output); b.State != Completed || b.Counts.Done != 60 || len(slices.Compact(slices.Sorted(slices.Values(done)))) != 60 {
			t.Errorf("%+v, %d", b, len(done))
		}
	})
}
