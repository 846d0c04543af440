package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// shelf is a Backlog that a test fills.
type shelf struct {
	attempts map[string]int
	doubts   map[string]bool
	gone     map[string]bool // from the moment of the write on, if its request is not fresh
	unfresh  map[string]int  // how many writes are not fresh

	bodies map[string]string // the models of requests to a language model
	until  int               // how many ends drain the run; 0: it ends by itself

	run    *Run
	url    string
	ids    []string
	latest string

	mu    sync.Mutex
	lacks []string // models of requests that went back
	tried []string
	back  []string
	ended map[string]BacklogEnd
}

// Read gives a line at a time.
func (s *shelf) Read(b []byte) (int, error) {
	if len(s.ids) == 0 {
		return 0, io.EOF
	}
	s.latest, s.ids = s.ids[0], s.ids[1:]
	if s.latest == "broken" {
		return copy(b, `{"url":"ftp://server/"}`+"\n"), nil
	}
	if model := s.bodies[s.latest]; model != "" {
		return copy(b, fmt.Sprintf(`{"method":"POST","url":"%s/%s/chat/completions","body":{"model":%q,"messages":[]}}`+"\n", s.url, s.latest, model)), nil
	}
	return copy(b, fmt.Sprintf(`{"url":"%s/%s"}`+"\n", s.url, s.latest)), nil
}

func (s *shelf) Latest() (string, int, bool) {
	return s.latest, s.attempts[s.latest], s.doubts[s.latest]
}

func (s *shelf) May(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone[id] || s.unfresh[id] > 0
}

func (s *shelf) Return(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = append(s.back, id)
}

func (s *shelf) Money(_ context.Context, least sending.Money) (sending.Money, error) {
	return least, nil
}

func (s *shelf) Lacks(model string) { s.lacks = append(s.lacks, model) } // only the reader calls it

func (s *shelf) Fresh(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unfresh[id] > 0 {
		s.unfresh[id]--
		return false
	}
	return true
}

func (s *shelf) Tried(id string, doubt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, fmt.Sprint(id, " ", doubt))
}

func (s *shelf) Ended(id string, e BacklogEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.ended[id]; twice {
		panic(id + " ended twice")
	}
	e.Line = bytes.Clone(e.Line)
	if s.ended[id] = e; len(s.ended) == s.until {
		s.run.Drain()
	}
}

// sent runs lines whose ids are their paths, and returns how often the server got each.
func (s *shelf) sent(t *testing.T, c Config, ids ...string) (map[string]int, map[string]format.Result) {
	t.Helper()
	var mu sync.Mutex
	arrived := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		id, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
		mu.Lock()
		arrived[id]++
		mu.Unlock()
		if strings.HasPrefix(id, "bad") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	s.ended = map[string]BacklogEnd{}
	c.Backlog, c.Out, c.Stdout = s, "-", failingWriter{t}
	c.Backoff = pool.Backoff{Base: -1}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	s.url, s.ids, s.run = server.URL, ids, r
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Send(ctx, "backlog", s); err != nil {
		t.Fatal(err)
	}
	totals, err := r.Close()
	if err != nil {
		t.Fatal(err)
	}
	if ended := totals.Done + totals.Dead + totals.Expired; ended != len(s.ended) || totals.Input != ended+totals.Left || totals.Left > 0 && s.until == 0 || totals.Lost > 0 {
		t.Errorf("counted %d ends of %d requests, %d left, %d lost; expected %d", ended, totals.Input, totals.Left, totals.Lost,
			len(s.ended))
	}
	lines := map[string]format.Result{}
	for id, e := range s.ended {
		var line format.Result
		if err := json.Unmarshal(e.Line, &line); err != nil || line.ID != id || line.State != e.State.String() ||
			line.Attempts != e.Attempts || line.PossibleRepeat != e.Repeat || line.Class != e.Class.String() {
			t.Errorf("the line of %s is %s (%v), expected what its end says: %+v", id, e.Line, err, e)
		}
		lines[id] = line
	}
	return arrived, lines
}

// failingWriter fails a test whose run writes results.
type failingWriter struct{ t *testing.T }

func (w failingWriter) Write(b []byte) (int, error) {
	w.t.Errorf("the run wrote %q, expected its results in the backlog alone", b)
	return len(b), nil
}

func TestBacklogGetsTheEnds(t *testing.T) {
	s := &shelf{attempts: map[string]int{"bad-twice": 3}, doubts: map[string]bool{"doubt": true}}
	arrived, lines := s.sent(t, Config{}, "one", "two", "doubt", "bad-twice", "bad")
	for id, n := range map[string]int{"one": 1, "two": 1, "doubt": 1, "bad-twice": 2, "bad": 5} {
		if arrived[id] != n {
			t.Errorf("%s was sent %d times, expected %d", id, arrived[id], n)
		}
	}
	if l := lines["bad-twice"]; l.State != "dead" || l.Attempts != 5 || l.Class != format.DeadFailed.String() {
		t.Errorf("a request with 3 attempts elsewhere is %s after %d, of class %q; expected dead after 5, failed", l.State, l.Attempts, l.Class)
	}
	if !lines["doubt"].PossibleRepeat || lines["one"].PossibleRepeat {
		t.Error("expected possible_repeat in the result of the request that another process may have sent, and in no other")
	}
	if n := len(slices.DeleteFunc(slices.Clone(s.tried), func(tried string) bool { return tried != "bad-twice true" })); n != 2 {
		t.Errorf("the backlog learned of %v; expected two attempts at bad-twice, which may have been served", s.tried)
	}
}

// A request that another process has got in the meantime is not written, and has no result here. One whose turn is
// only late goes again, and keeps no room in the meantime.
func TestBacklogTakesRequestsBack(t *testing.T) {
	s := &shelf{gone: map[string]bool{"gone": true}, unfresh: map[string]int{"gone": 1, "late": 5}} // there is room for two answers
	arrived, lines := s.sent(t, Config{Concurrency: 1}, "one", "gone", "late", "two")
	if arrived["gone"] != 0 || arrived["late"] != 1 || arrived["one"] != 1 || arrived["two"] != 1 {
		t.Errorf("sent %v, expected one, late and two once each", arrived)
	}
	if !slices.Equal(s.back, []string{"gone"}) {
		t.Errorf("given back: %q, expected the request that may not be sent, once", s.back)
	}
	if l := lines["late"]; l.State != "done" || l.Attempts != 1 || len(lines) != 3 {
		t.Errorf("late: %+v; in all %d results; expected it done at its first attempt, and 3", l, len(lines))
	}
}

// All attempts of a request may have ended with their processes. It is a dead letter then, and is not sent again.
func TestBacklogAttemptsAreUsedUp(t *testing.T) {
	s := &shelf{attempts: map[string]int{"deadly": 5, "held": 1}, doubts: map[string]bool{"deadly": true, "held": true}}
	arrived, lines := s.sent(t, Config{HoldUnanswered: true, Timeout: time.Second}, "deadly", "held", "one")
	if len(arrived) != 1 {
		t.Errorf("sent %v, expected one alone", arrived)
	}
	if l := lines["held"]; l.Class != format.DeadHeld.String() || l.Attempts != 1 {
		t.Errorf("held: %+v; expected a dead letter of class held after one attempt", l)
	}
	s = &shelf{attempts: map[string]int{"deadly": 5}, doubts: map[string]bool{"deadly": true}}
	if arrived, lines = s.sent(t, Config{}, "deadly"); len(arrived) != 0 || lines["deadly"].Class != format.DeadOutage.String() ||
		!lines["deadly"].PossibleRepeat || lines["deadly"].Attempts != 5 {
		t.Errorf("sent %v; deadly: %+v; expected nothing sent, and a dead letter of class outage after 5 attempts", arrived, lines["deadly"])
	}
}

// A request to a model that has limits of its own elsewhere, and not here, goes back. If no more models can have them,
// it is a dead letter.
func TestBacklogLacksAModel(t *testing.T) {
	for n, c := range map[int]struct {
		class string
		lacks []string
	}{1: {"", []string{"gpt-4.1"}}, MostModels: {format.DeadInvalid.String(), nil}} {
		m, err := meter.New(meter.Config{LimitsOf: "openai"})
		if err != nil {
			t.Fatal(err)
		}
		each := format.Rate{N: 600, Per: time.Minute, Unit: limit.Requests, Bucket: true, EachModel: true, Text: "600/m"}
		s := &shelf{bodies: map[string]string{"old": "gpt-4o-2024-08-06", "new": "gpt-4.1", "older": "gpt-4o"}}
		config := Config{Meter: m, Limits: []format.Rate{each}, Models: slices.Repeat([]string{"gpt-4o"}, n)}
		if d := config.Division(); d != "with limits of each model" {
			t.Errorf("%q", d)
		}
		arrived, lines := s.sent(t, config, "old", "new", "older")
		if lines["new"].Class != c.class || !slices.Equal(s.lacks, c.lacks) || arrived["new"] != 0 || arrived["old"]+arrived["older"] != 2 {
			t.Errorf("%d models: sent %v; new: %+v, lacking %q; expected it dead of class %q, or lacking: %q", n, arrived, lines["new"], s.lacks,
				c.class, c.lacks)
		}
	}
}

// A request whose model waits for its limit holds up no request of another model. That holds for the first request of a
// name of the model, too, for whose answer the others of that name wait in a run of a file.
func TestBacklogOfModels(t *testing.T) {
	for of, c := range map[string]struct{ division, fast string }{
		"":       {"with limits of gpt-4o and of all others", "any"},
		"openai": {"with limits of each model", "gpt-4.1"},
	} {
		m, err := meter.New(meter.Config{Host: "h", LimitsOf: of})
		if err != nil {
			t.Fatal(err)
		}
		slow := format.Rate{N: 1, Per: time.Hour, Unit: limit.Requests, Bucket: true, Burst: 1, Text: "1/h", Model: "gpt-4o"}
		s := &shelf{bodies: map[string]string{"a": "gpt-4o-2024-08-06", "b": "gpt-4o", "c": "gpt-4o", "d": c.fast}, until: 2}
		config := Config{Meter: m, Limits: []format.Rate{slow}, Models: []string{"gpt-4.1"}}
		if d := config.Division(); d != c.division {
			t.Errorf("%q, expected %q", d, c.division)
		}
		if arrived, _ := s.sent(t, config, "a", "b", "c", "d"); arrived["a"] != 1 || arrived["d"] != 1 || arrived["b"]+arrived["c"] > 0 {
			t.Errorf("%q: sent %v, expected one of the slow model, and that of the other", of, arrived)
		}
	}
}

// A line that cannot be sent is a dead letter, and those behind it go on.
func TestBacklogWithABrokenLine(t *testing.T) {
	s := &shelf{}
	arrived, lines := s.sent(t, Config{}, "one", "broken", "two")
	if l := lines["broken"]; l.State != "dead" || l.Class != format.DeadInvalid.String() || !strings.Contains(l.Error, "url") ||
		string(l.Request) != `{"url":"ftp://server/"}` {
		t.Errorf("broken: %+v, expected a dead letter of class invalid that says why", l)
	}
	if arrived["one"] != 1 || arrived["two"] != 1 || len(lines) != 3 {
		t.Errorf("sent %v, expected the others", arrived)
	}
}

func TestBacklogRefusesWhatItCannotKeep(t *testing.T) {
	for name, c := range map[string]Config{
		"a file":  {Out: "results.jsonl"},
		"order":   {Out: "-", Ordered: true},
		"nonces":  {Out: "-", Header: []format.Template{must(format.ParseHeaders([]string{"N: {nonce}"}))[0]}},
		"unknown": {Out: "-", Auto: &Auto{}},
		"homes": {Out: "-", Keys: []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}},
			Header: must(format.ParseHeaders([]string{"X-Key: {key}"}))},
	} {
		c.Backlog, c.Stdout = &shelf{}, failingWriter{t}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "backlog") {
			t.Errorf("%s: %v, expected a refusal", name, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// endless is a Backlog of n requests that keeps nothing. At each ten-thousandth it waits until all before it have
// ended, and takes the size of the heap.
type endless struct {
	n, next int
	sizes   []uint64
	latest  string
	ended   atomic.Int64
	some    chan struct{} // some have ended
}

func (e *endless) Read(b []byte) (int, error) {
	if e.next == e.n {
		return 0, io.EOF
	}
	if e.next++; e.next%10_000 == 0 {
		for e.ended.Load() < int64(e.next-1) {
			<-e.some
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		e.sizes = append(e.sizes, m.HeapAlloc)
	}
	e.latest = fmt.Sprint("request-number-", e.next)
	return copy(b, fmt.Sprintf(`{"url":"http://server/%d"}`+"\n", e.next)), nil
}

func (e *endless) Latest() (string, int, bool) { return e.latest, 0, false }
func (e *endless) May(string) bool             { return true }
func (e *endless) Fresh(string) bool           { return true }
func (e *endless) Return(string)               {}
func (e *endless) Tried(string, bool)          {}
func (e *endless) Lacks(string)                {}
func (e *endless) Money(_ context.Context, least sending.Money) (sending.Money, error) {
	return least, nil
}
func (e *endless) Ended(string, BacklogEnd) {
	e.ended.Add(1)
	select {
	case e.some <- struct{}{}:
	default:
	}
}

// served is a network whose server answers at once.
type served struct{}

func (served) RoundTrip(q *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: q, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// A worker sends for days. What it has sent must not stay in its memory.
func TestBacklogLeavesNothingInMemory(t *testing.T) {
	race.Without(t) // it measures memory
	need.NotShort(t, "120,000 requests; other tests have each step of one")
	e := &endless{n: need.Fewer(120_001, 180_001), some: make(chan struct{}, 1)}
	r, err := New(Config{Backlog: e, Base: served{}, Out: "-", Stdout: io.Discard})
	if err == nil {
		err = r.Open()
	}
	if err == nil {
		err = r.Send(t.Context(), "backlog", e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if totals, err := r.Close(); err != nil || totals.Done != e.n {
		t.Fatal(totals, err)
	}
	first, last := slices.Min(e.sizes[3:6]), slices.Min(e.sizes[len(e.sizes)-3:]) // by then, tables have their size
	if each := (float64(last) - float64(first)) / float64(e.n-60_000); each > 10 {
		t.Errorf("each request leaves %.1f bytes (%d)", each, e.sizes)
	}
}
