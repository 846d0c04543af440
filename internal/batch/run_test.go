package batch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/durable"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
)

// ran is what one run left behind.
type ran struct {
	Totals
	err     error
	results map[string]Result // the last of each id, from OUT
	lines   int               // in OUT
	dead    map[string]Result
	again   string // what the last line says of dead letters
	notices string
	log     string
}

type bench struct {
	t      *testing.T
	config Config
	tamper func(*Run) // between Open and Send
	drain  func(*Run) // beside Send

	network *pipes // not nil: in a bubble, with its clock
}

// newBench has results in a folder of its own, retries that do not wait, and no limits.
func newBench(t *testing.T) *bench {
	return &bench{t: t, config: Config{
		Out: filepath.Join(t.TempDir(), "out.jsonl"), Backoff: backoff.Policy{Base: -1}, Timeout: 5 * time.Second,
	}}
}

// made is a run, over the bench's network if it has one.
func (b *bench) made(c Config) *Run {
	b.t.Helper()
	if b.network != nil {
		c.clock = bubbleClock
	}
	r, err := New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.network != nil {
		over := newTransport(&r.c)
		over.DialContext = b.network.dial
		r.sender.over(over)
	}
	return r
}

// run sends lines. Whatever happens, the counts add up.
func (b *bench) run(lines ...string) ran {
	t := b.t
	t.Helper()
	var notices, log lockedBuffer
	c := b.config
	c.Notice = func(s string) { fmt.Fprintln(&notices, s) }
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := b.made(c)
	text := strings.Join(lines, "\n")
	if err := r.Check("in", strings.NewReader(text)); err != nil {
		return ran{err: err, notices: notices.String()}
	}
	if err := r.Open(); err != nil {
		return ran{err: err, notices: notices.String()}
	}
	if b.tamper != nil {
		b.tamper(r)
	}
	if b.drain != nil {
		go b.drain(r)
	}
	out := ran{err: r.Send(context.Background(), "in", strings.NewReader(text))}
	p := r.Progress()
	var err error
	if out.Totals, err = r.Close(); err != nil {
		t.Error(err)
	}
	n := out.Totals
	if n.Input != n.SkippedDone+n.SkippedDead+n.Done+n.Expired+n.Dead+n.Left+n.Lost || n.Offered < n.Done+n.Expired+n.Dead || p.InFlight != 0 {
		t.Errorf("the counts do not add up: %+v, in flight %d", n, p.InFlight)
	}
	if c.Out != "-" {
		out.results, out.lines = readResults(t, c.Out)
		out.dead, _ = readResults(t, DeadBeside(c.Out))
	}
	out.again = r.DeadAgain()
	out.notices, out.log = notices.String(), log.String()
	return out
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func readResults(t *testing.T, path string) (map[string]Result, int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, n := map[string]Result{}, 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var r Result
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[r.ID] = r
	}
	return all, n
}

func request(id, url string) string { return fmt.Sprintf(`{"id":%q,"url":%q}`, id, url) }

func requests(n int, url string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = request(fmt.Sprint("r", i), url)
	}
	return all
}

// counting serves and counts, by query.
func counting(t *testing.T, f http.HandlerFunc) (*httptest.Server, func(query string) int) {
	h, seen := counted(f)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv, seen
}

func counted(f http.HandlerFunc) (http.Handler, func(query string) int) {
	var mu sync.Mutex
	all := map[string]int{}
	h := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		all[q.URL.RawQuery]++
		mu.Unlock()
		f(w, q)
	})
	return h, func(query string) int {
		mu.Lock()
		defer mu.Unlock()
		return all[query]
	}
}

// virtualBench is a bench and a server that counts by query, in a bubble.
func virtualBench(t *testing.T, f http.HandlerFunc) (b *bench, url string, seen func(query string) int) {
	b = newBench(t)
	b.network = &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	h, seen := counted(f)
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(b.network) }()
	t.Cleanup(func() { _ = srv.Close() })
	return b, "http://server/", seen
}

func TestRun(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the server's
	var unavailable, limited atomic.Int32
	srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "7")
		w.Header().Set("Secret-Sauce", "x")
		switch q.URL.Path {
		case "/echo":
			body, _ := io.ReadAll(q.Body)
			fmt.Fprintf(w, "%s %s %s", q.Method, q.Header.Get("Content-Type"), body)
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0})
		case "/moved":
			http.Redirect(w, q, "/echo", http.StatusFound)
		case "/missing":
			http.Error(w, "no such thing", http.StatusNotFound)
		case "/unavailable":
			if unavailable.Add(1) < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "/limited":
			if limited.Add(1) == 1 {
				w.Header().Set("Retry-After", "0.01")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b := newBench(t)
	lines := []string{
		fmt.Sprintf(`{"id":"post","method":"POST","url":"%s/echo?post","body":{"a": 1},"priority":2,"cost":0}`, srv.URL),
		request("binary", srv.URL+"/binary?binary"), request("moved", srv.URL+"/moved?moved"),
		request("missing", srv.URL+"/missing?missing"), request("unavailable", srv.URL+"/unavailable?unavailable"),
		request("limited", srv.URL+"/limited?limited"), request("broken", srv.URL+"/broken?broken"),
		fmt.Sprintf(`{"id":"late","url":"%s/echo?late","deadline":"2020-01-01T00:00:00Z"}`, srv.URL),
		fmt.Sprintf(`{"url":"%s/echo?plain"}`, srv.URL),
	}
	got := b.run(lines...)
	if got.err != nil || got.Done != 6 || got.Dead != 2 || got.Expired != 1 || got.Rejected != 1 || got.Lost != 0 || got.Offered != 9 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	body := func(r Result) string {
		if r.Body == nil {
			return "none"
		}
		return *r.Body
	}
	plain := ""
	for id := range got.results {
		if strings.HasPrefix(id, "line-9-") {
			plain = id
		}
	}
	for _, c := range []struct {
		id, state        string
		status, attempts int
		body, err        string
	}{
		{"post", "done", 200, 1, `POST application/json {"a":1}`, ""},
		{"binary", "done", 200, 1, "none", ""},
		{"moved", "done", 302, 1, "<a href=\"/echo\">Found</a>.\n\n", ""},
		{"unavailable", "done", 200, 3, "", ""},
		{"limited", "done", 200, 2, "", ""},
		{plain, "done", 200, 1, "GET  ", ""},
		{"late", "expired", 0, 0, "none", "the deadline passed before it could be sent"},
	} {
		r := got.results[c.id]
		if r.State != c.state || r.Status != c.status || r.Attempts != c.attempts || body(r) != c.body || r.Error != c.err || r.PossibleRepeat || r.At == "" {
			t.Errorf("%s: %s", c.id, r.line())
		}
	}
	if r := got.results["binary"]; !bytes.Equal(r.BodyBase64, []byte{0xff, 0}) || r.Headers["x-ratelimit-remaining"] != "7" || r.Headers["secret-sauce"] != "" || r.Key != "default" || r.LatencyMS <= 0 {
		t.Errorf("%s", r.line())
	}
	for _, c := range []struct {
		id, err  string
		attempts int
	}{
		{"missing", "answered 404 Not Found", 1}, {"broken", "answered 500 Internal Server Error", 5},
	} {
		r := got.dead[c.id]
		if r.State != "dead" || r.Attempts != c.attempts || r.Error != c.err || string(r.Request) != request(c.id, srv.URL+"/"+c.id+"?"+c.id) {
			t.Errorf("%s: %s", c.id, r.line())
		}
	}
	if !strings.Contains(got.log, "msg=answer id=post attempt=1 key=default result=accepted") || !strings.Contains(got.log, "msg=expired id=late") {
		t.Errorf("log:\n%s", got.log)
	}

	// Again: everything has ended, the dead are left alone.
	again := b.run(lines...)
	if again.err != nil || again.SkippedDone != 7 || again.SkippedDead != 2 || again.Offered != 0 || again.Sends != 0 || again.Lost != 0 {
		t.Fatalf("%+v, %v", again.Totals, again.err)
	}
	// Again, the dead as well; one of them is done now and stays done.
	unavailable.Store(9)
	lines[3] = request("missing", srv.URL+"/echo?missing")
	b.config.RetryDead = AllDead
	again = b.run(lines...)
	if again.err != nil || again.SkippedDone != 7 || again.Done != 1 || again.Dead != 1 || again.Lost != 0 || again.results["missing"].State != "done" {
		t.Fatalf("%+v, %v", again.Totals, again.err)
	}
	again = b.run(lines...)
	if again.SkippedDone != 8 || again.Dead != 1 {
		t.Fatalf("%+v, %v", again.Totals, again.err)
	}
	if seen("missing") != 2 || seen("broken") != 15 || seen("post") != 1 {
		t.Errorf("the server saw missing %d, broken %d, post %d times", seen("missing"), seen("broken"), seen("post"))
	}
	// Another input on the same line is another request.
	lines[8] = fmt.Sprintf(`{"url":"%s/echo?other"}`, srv.URL)
	b.config.RetryDead = 0
	if again = b.run(lines...); again.Done != 1 || seen("other") != 1 {
		t.Errorf("an edited line without id: %+v", again.Totals)
	}
}

// Each hop of a redirect is admitted like another request: the limit holds for what the server sees.
func TestRedirectsAreAdmitted(t *testing.T) {
	var mu sync.Mutex
	var arrivals []time.Time
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		arrivals = append(arrivals, time.Now())
		mu.Unlock()
		if n, _ := strconv.Atoi(q.URL.Query().Get("n")); n > 0 {
			http.Redirect(w, q, fmt.Sprintf("/?n=%d", n-1), http.StatusSeeOther)
		}
	})
	b := newBench(t)
	b.config.Limits = []Rate{{N: 2, Per: 60 * time.Millisecond, Text: "2/60ms"}}
	b.config.Redirects = 3
	got := b.run(request("a", srv.URL+"/?n=3"), request("b", srv.URL+"/?n=4"), request("c", srv.URL+"/?n=1"))
	if got.err != nil || got.Done != 3 || got.Sends != 10 || got.Rejected != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	if a, b := got.results["a"], got.results["b"]; a.Status != 200 || a.Attempts != 1 || a.Location != srv.URL+"/?n=0" || b.Status != 303 {
		t.Errorf("%s%s", a.line(), b.line())
	}
	for i := 2; i < len(arrivals); i++ {
		if d := arrivals[i].Sub(arrivals[i-2]); d <= 60*time.Millisecond {
			t.Errorf("arrivals %d and %d are %v apart: three in a window of two", i-2, i, d)
		}
	}
}

// A request that costs nothing passes a limit that is used up.
func TestCostOfNothing(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.config.Limits = []Rate{{N: 1, Per: time.Hour, Text: "1/h"}}
	got := b.run(request("a", srv.URL), fmt.Sprintf(`{"id":"b","url":%q,"cost":0,"deadline":"5s"}`, srv.URL), fmt.Sprintf(`{"id":"c","url":%q,"cost":0,"deadline":"5s"}`, srv.URL))
	if got.err != nil || got.Done != 3 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}

// A banned key stops, and the work goes on with the others; when all are banned nothing is lost.
func TestBannedKeys(t *testing.T) {
	var banned atomic.Value
	banned.Store("secret-a")
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(banned.Load().(string), q.Header.Get("Key")) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	b := newBench(t)
	b.config.Keys = []Key{{"A", "secret-a"}, {"B", "secret-b"}}
	b.config.BanStatus = []int{401}
	b.config.Header, _ = ParseHeaders([]string{"Key: {key}"})
	got := b.run(requests(20, srv.URL)...)
	if got.err != nil || got.Done != 20 || got.Dead != 0 || !strings.Contains(got.notices, "key A is banned: answered 401 Unauthorized") || strings.Count(got.notices, "banned") != 1 {
		t.Fatalf("%+v, %v, %s", got.Totals, got.err, got.notices)
	}
	for id, r := range got.results {
		if r.Key != "B" || r.Attempts != 1 {
			t.Errorf("%s: %s", id, r.line())
		}
	}
	banned.Store("secret-a secret-b")
	got = b.run(requests(40, srv.URL)...)
	if !errors.Is(got.err, dispatch.ErrExhausted) || got.SkippedDone != 20 || got.Left != 20 || got.Lost != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	banned.Store("")
	if got = b.run(requests(40, srv.URL)...); got.err != nil || got.Done != 20 || got.Repeats != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
}

// A server that refuses what keeps to its limit, as far as the promised latency is right: that is said once.
func TestRetreatIsSaid(t *testing.T) {
	var n atomic.Int64
	srv, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	b := newBench(t)
	b.config.Limits = []Rate{{N: 1000, Per: time.Second, Text: "1000/s"}}
	b.config.Arrivals = limit.Arrivals{OneWayMax: 50 * time.Millisecond}
	got := b.run(requests(20, srv.URL)...)
	if got.err != nil || got.Done != 20 || strings.Count(got.notices, "OneWayMax of requests is wrong") != 1 {
		t.Fatalf("%+v, %v, %s", got.Totals, got.err, got.notices)
	}
}

// The value of a key is nowhere: not where the server says it, not where a connection fails.
func TestSecretsStaySecret(t *testing.T) {
	const value = "s3cr/et+v4lueX9"
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-RateLimit-Key", q.Header.Get("Key"))
		if q.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, "no such key: %s, in %s", q.Header.Get("Key"), q.URL)
	})
	b := newBench(t)
	b.config.Keys = []Key{{"A", value}}
	b.config.Header, _ = ParseHeaders([]string{"Key: {key}"})
	b.config.Query, _ = ParseQuery([]string{"k={key}"})
	b.config.Attempts = 1
	b.config.Redirects = 1
	for _, h := range []string{srv.URL, "http://127.0.0.1:1", "http://no-such-host.invalid"} {
		p, err := secret.ParsePlace(h)
		if err != nil {
			t.Fatal(err)
		}
		b.config.KeyHosts = append(b.config.KeyHosts, p)
	}
	got := b.run(request("ok", srv.URL), request("bad", srv.URL+"/bad"), request("gone", "http://127.0.0.1:1/"), request("nowhere", "http://no-such-host.invalid/"))
	if got.Done != 1 || got.Dead != 1 || got.Left != 2 || !errors.Is(got.err, ErrHost) {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	if body := *got.results["ok"].Body; body != "no such key: [A], in /?k=[A]" {
		t.Errorf("body %q", body)
	}
	var all strings.Builder
	all.WriteString(got.notices + got.log + fmt.Sprint(got.err))
	for _, path := range []string{b.config.Out, DeadBeside(b.config.Out), b.config.Out + ".journal"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(string(text))
	}
	for _, form := range []string{value, "s3cr%2Fet", "s3cr"} {
		if i := strings.Index(all.String(), form); i >= 0 {
			t.Errorf("the key's value is shown: %s", all.String()[max(0, i-100):i+50])
		}
	}
}

// full is a file on a disk that is full after so many lines, until there is room again.
type full struct {
	durable.Handle
	lines atomic.Int32
}

func (f *full) Write(b []byte) (int, error) {
	n := int32(bytes.Count(b, []byte("\n")))
	if room := f.lines.Add(-n) + n; room < n {
		f.lines.Add(n) // what is written of it is cut off again
		fits := 0
		for range room {
			fits += bytes.IndexByte(b[fits:], '\n') + 1
		}
		n, _ := f.Handle.Write(b[:fits+bytes.IndexByte(b[fits:], '\n')/2])
		return n, errors.New("no space left on device")
	}
	return f.Handle.Write(b)
}

// A disk that gets full, under each of the files: the sending stops, nothing is lost, and running again resumes.
func TestFullDisk(t *testing.T) {
	for _, which := range []string{"results", "dead letters", "journal"} {
		t.Run(which, func(t *testing.T) {
			srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
				if which == "dead letters" {
					w.WriteHeader(http.StatusBadRequest)
				}
			})
			b := newBench(t)
			b.config.Concurrency = 4
			lines := make([]string, 50)
			for i := range lines {
				lines[i] = request(fmt.Sprint(i), fmt.Sprintf("%s/?%d", srv.URL, i))
			}
			b.tamper = func(r *Run) {
				through := map[string]func(func(durable.Handle) durable.Handle){
					"results": r.store.out.Through, "dead letters": r.store.dead.Through, "journal": r.store.journal.Through}[which]
				through(func(h durable.Handle) durable.Handle {
					f := &full{Handle: h}
					f.lines.Store(11)
					return f
				})
			}
			first := b.run(lines...)
			if !errors.Is(first.err, ErrOutput) || !strings.Contains(first.err.Error(), "no space left") || first.Left == 0 || first.Lost != 0 {
				t.Fatalf("%+v, %v", first.Totals, first.err)
			}
			if sent := first.Sends; sent > 11+4+4 {
				t.Errorf("%d were sent although only 11 lines could be written", sent)
			}
			b.tamper = nil
			second := b.run(lines...)
			if second.err != nil || second.Left != 0 || second.Lost != 0 || first.Done+second.Done+first.Dead+second.Dead != 50 {
				t.Fatalf("again: %+v, %v", second.Totals, second.err)
			}
			all := second.results
			if which == "dead letters" {
				all = second.dead
			}
			if len(all) != 50 || second.lines != map[string]int{"results": 50, "dead letters": 0, "journal": 50}[which] {
				t.Errorf("%d ids, %d lines", len(all), second.lines)
			}
			for i := range lines {
				id := fmt.Sprint(i)
				if n := seen(id); n != 1 && !(n == 2 && all[id].PossibleRepeat) {
					t.Errorf("%s was sent %d times, possible repeat: %v", id, n, all[id].PossibleRepeat)
				}
				if all[id].PossibleRepeat && !strings.Contains(second.notices, "unanswered: "+id+"\n") {
					t.Errorf("%s may be a repeat, and is not named:\n%s", id, second.notices)
				}
			}
		})
	}
}

// unanswered is a disk on which no answer fits into the journal.
type unanswered struct{ durable.Handle }

func (u *unanswered) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"answer"`)) {
		return 0, errors.New("no space left on device")
	}
	return u.Handle.Write(b)
}

// Where the results are written and that they were answered is not, the sending stops as well: a restart would count windows that are over.
func TestFullDiskForAnswers(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.config.Concurrency = 1
	b.tamper = func(r *Run) { r.store.journal.Through(func(h durable.Handle) durable.Handle { return &unanswered{h} }) }
	if got := b.run(requests(50, srv.URL)...); !errors.Is(got.err, ErrOutput) || got.Left == 0 || got.Lost != 0 || got.Done != len(got.results) {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}

// What swallows a line: a file system that lies, another process. The counts are compared with what is there.
type swallowing struct {
	durable.Handle
	lines atomic.Int32
}

func (f *swallowing) Write(b []byte) (int, error) {
	kept := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		if f.lines.Add(-1) != 0 {
			kept = append(kept, line...)
		}
	}
	if n, err := f.Handle.Write(kept); err != nil {
		return n, err
	}
	return len(b), nil
}

func TestLostIsFound(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.tamper = func(r *Run) {
		r.store.out.Through(func(h durable.Handle) durable.Handle {
			f := &swallowing{Handle: h}
			f.lines.Store(3)
			return f
		})
	}
	var notices lockedBuffer
	c := b.config
	c.Notice = func(s string) { fmt.Fprintln(&notices, s) }
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(requests(10, srv.URL), "\n")
	if err := errors.Join(r.Check("in", strings.NewReader(text)), r.Open()); err != nil {
		t.Fatal(err)
	}
	b.tamper(r)
	if err := r.Send(context.Background(), "in", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Close(); err != nil || got.Lost != 1 || got.Done != 10 {
		t.Errorf("one result of ten was swallowed: %+v, %v", got, err)
	}
}

// An attempt without an answer may have been served. It is sent again and says so, or is held back.
func TestUnanswered(t *testing.T) {
	for _, hold := range []bool{false, true} {
		var n atomic.Int32
		srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {
			if n.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
		})
		b := newBench(t)
		b.config.HoldUnanswered = hold
		got := b.run(request("x", srv.URL+"/?x"))
		if r := got.results["x"]; !hold && (got.Done != 1 || !r.PossibleRepeat || got.Repeats != 1 || seen("x") != 2) {
			t.Errorf("resend: %+v, %s", got.Totals, r.line())
		}
		if r := got.dead["x"]; hold && (got.Dead != 1 || seen("x") != 1 || !strings.Contains(r.Error, "it may have been served, and is held back")) {
			t.Errorf("hold: %+v, %s", got.Totals, r.line())
		}
	}
	// What a dead process left: the same choice.
	for _, hold := range []bool{false, true} {
		srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {})
		b := newBench(t)
		b.config.HoldUnanswered = hold
		journal := fmt.Sprintf("{\"run\":\"x\",\"timeout\":1}\n{\"send\":1,\"id\":\"x\",\"key\":\"default\",\"cost\":1,\"at\":%d}\n", time.Now().Add(-time.Hour).UnixNano())
		if err := os.WriteFile(b.config.Out+".journal", []byte(journal), 0o644); err != nil {
			t.Fatal(err)
		}
		got := b.run(request("x", srv.URL+"/?x"), request("y", srv.URL+"/?y"))
		if !strings.Contains(got.notices, "1 request was sent but not answered") || !strings.Contains(got.notices, "unanswered: x\n") || got.results["y"].PossibleRepeat {
			t.Errorf("notices:\n%s", got.notices)
		}
		if !hold && (seen("x") != 1 || !got.results["x"].PossibleRepeat || got.Repeats != 1) {
			t.Errorf("resend: %+v", got.Totals)
		}
		if hold && (seen("x") != 0 || got.Dead != 1 || got.Repeats != 0 || got.dead["x"].Error == "") {
			t.Errorf("hold: %+v, %v", got.Totals, got.dead)
		}
	}
}

// What may have been served and is then invalid is a dead letter that says both: whoever mends it has to know.
func TestUnansweredAndDead(t *testing.T) {
	var n atomic.Int32
	srv, seen := counting(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusBadRequest)
	})
	got := newBench(t).run(request("x", srv.URL+"/?x"))
	if r := got.dead["x"]; got.Dead != 1 || !r.PossibleRepeat || seen("x") != 2 {
		t.Errorf("%+v, %s", got.Totals, r.line())
	}
}

// Nonces rise over runs, even if the clock is behind what the journal says.
func TestNoncesRise(t *testing.T) {
	var mu sync.Mutex
	var nonces []uint64
	srv, _ := counting(t, func(_ http.ResponseWriter, q *http.Request) {
		n, _ := strconv.ParseUint(q.URL.Query().Get("nonce"), 10, 64)
		mu.Lock()
		nonces = append(nonces, n)
		mu.Unlock()
	})
	b := newBench(t)
	b.config.Query, _ = ParseQuery([]string{"nonce={nonce}"})
	journal := fmt.Sprintf("{\"key\":\"default\",\"nonce\":%d}\n", time.Now().Add(time.Hour).UnixMilli())
	if err := os.WriteFile(b.config.Out+".journal", []byte(journal), 0o644); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		b.run(requests(5*(n+1), srv.URL)...)
	}
	if len(nonces) != 15 || !slices.IsSorted(nonces) || len(slices.Compact(slices.Clone(nonces))) != 15 || nonces[0] <= uint64(time.Now().UnixMilli()) {
		t.Errorf("nonces %v", nonces)
	}
}

// Whoever reads the results slowly holds up the sending, not the memory.
func TestSlowReader(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	reader, writer := io.Pipe()
	c := newBench(t).config
	c.Out, c.Stdout, c.Concurrency = "-", writer, 3
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- r.Send(context.Background(), "in", strings.NewReader(strings.Join(requests(200, srv.URL), "\n")))
	}()
	sends := func() int { r.tally.mu.Lock(); defer r.tally.mu.Unlock(); return r.tally.totals.Sends }
	for last := 0; last == 0 || last != sends(); time.Sleep(20 * time.Millisecond) {
		last = sends()
	}
	if n := sends(); n == 0 || n > 3*c.Concurrency+1 {
		t.Errorf("%d were sent while nobody read a result", n)
	}
	lines := make(chan int)
	go func() {
		n := 0
		for s := bufio.NewScanner(reader); s.Scan(); n++ {
		}
		lines <- n
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	writer.Close()
	if n := <-lines; n != 200 {
		t.Errorf("%d results", n)
	}
	if got, err := r.Close(); err != nil || got.Lost != 0 || got.Done != 200 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A stream stops at a bad line: what was read before is finished.
func TestStreamStops(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	text := request("a", srv.URL) + "\n{\"url\":1}\n" + request("b", srv.URL) + "\n" + request("a", srv.URL) + "\n"
	for _, skip := range []bool{false, true} {
		c := newBench(t).config
		var notices lockedBuffer
		c.SkipInvalid, c.Notice = skip, func(s string) { fmt.Fprintln(&notices, s) }
		r, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		err = r.Send(context.Background(), "stdin", strings.NewReader(text))
		got, cerr := r.Close()
		if cerr != nil || got.Lost != 0 || got.Left != 0 {
			t.Errorf("%+v, %v", got, cerr)
		}
		if !skip && (!errors.Is(err, ErrInput) || errors.Is(err, ErrUnsent) || got.Done != 1 ||
			err.Error() != "invalid input: stdin:2:8: url is a number, expected a string; reading stops here, what was read before is finished") {
			t.Errorf("%+v, %v", got, err)
		}
		want := "stdin:2:8: url is a number, expected a string\nstdin:4:7: id \"a\" is already on line 1, expected each id once\n"
		if skip && (err != nil || got.Done != 2 || got.Invalid != 2 || notices.String() != want) {
			t.Errorf("%+v, %v, notices:\n%s", got, err, notices.String())
		}
	}
}

// Interrupted: what is in flight is answered, what waits is left, and a reader stuck in its input does not hold it up.
func TestDrain(t *testing.T) {
	began, release := make(chan struct{}, 10), make(chan struct{})
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) { began <- struct{}{}; <-release })
	c := newBench(t).config
	c.Concurrency = 2
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	defer feed.Close()
	go func() { fmt.Fprintln(feed, strings.Join(requests(5, srv.URL), "\n")) }()
	go func() {
		<-began
		<-began
		for r.Progress().Waiting != 3 {
			time.Sleep(time.Millisecond)
		}
		if p := r.Progress(); p.Why != "answers: 2 in flight is the most that --concurrency allows" {
			t.Errorf("why: %q", p.Why)
		}
		r.Drain()
		close(release)
	}()
	if err := r.Send(context.Background(), "stdin", in); err != nil {
		t.Error(err)
	}
	if got, err := r.Close(); err != nil || got.Done != 2 || got.Left != 3 || got.Lost != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhy(t *testing.T) {
	release := make(chan struct{})
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) { <-release })
	b := newBench(t)
	b.config.Limits = []Rate{{N: 2, Per: time.Hour, Text: "2/h"}, {N: 1000, Per: time.Second, Text: "1000/s"}}
	b.drain = func(r *Run) {
		wait := func(done int, want string) Progress {
			for range 2000 {
				if p := r.Progress(); p.Done == done && strings.HasPrefix(p.Why, want) {
					return p
				}
				time.Sleep(time.Millisecond)
			}
			t.Errorf("waiting for %q, want %q", r.Progress().Why, want)
			return r.Progress()
		}
		wait(0, "limit 2/h, until an answer comes")
		close(release)
		if p := wait(2, "limit 2/h, 1h0m"); p.Total != 3 || p.ETA != 1800*time.Second || p.Percent != 100 {
			t.Errorf("%+v", p)
		}
		r.Drain()
	}
	if got := b.run(requests(3, srv.URL)...); got.Done != 2 || got.Left != 1 {
		t.Errorf("%+v", got.Totals)
	}
}
