package main

import (
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// library is a server with bodies of many kinds, and counts who asks.
type library struct {
	*httptest.Server
	mu     sync.Mutex
	asked  map[string]int
	open   int // connections
	closed sync.Cond
}

func newLibrary(t *testing.T, serve http.HandlerFunc) *library {
	l := &library{asked: map[string]int{}}
	l.closed.L = &l.mu
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/fence" {
			return
		}
		l.mu.Lock()
		l.asked[q.URL.Query().Get("id")]++
		l.mu.Unlock()
		serve(w, q)
	}))
	l.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch s {
		case http.StateNew:
			l.open++
		case http.StateClosed:
			l.open--
			l.closed.Broadcast()
		}
	}
	l.Start()
	t.Cleanup(l.Close)
	return l
}

// settle waits until each request of the clients that have ended is counted. A slow machine may count
// the request of a killed client after the next client's. Connections are accepted in their order.
func (l *library) settle(t *testing.T) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/fence", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Close = true
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open > 0 {
		l.closed.Wait()
	}
}

func (l *library) count() (all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.asked {
		all += n
	}
	return all
}

// names are what is in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var some []string
	for _, f := range all {
		some = append(some, f.Name())
	}
	return some
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A file for each answer, as decoded; what is dead is beside it; a file that is gone is fetched
// again, and no other.
func TestRunOutDir(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 200<<10) // 3.1 MiB
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", q.URL.Query().Get("type"))
		switch q.URL.Path {
		case "/large":
			fmt.Fprint(w, large)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "unzipped")
			z.Close()
		case "/gone":
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, "no more")
		case "/empty":
		case "/echo":
			fmt.Fprint(w, strings.Repeat(".", 1<<20)+q.Header.Get("Authorization")+strings.Repeat("-", 1<<20)+q.Header.Get("Authorization"))
		default:
			fmt.Fprint(w, "the body of "+q.URL.Path)
		}
	})
	var in strings.Builder
	for _, r := range [][3]string{
		{"Ann", "/1", "application/json"}, {"ann", "/2", "application/json"}, {"../x", "/3", "text/html;charset=utf-8"}, {"con", "/4", ""},
		{"results", "/5", "application/x-ndjson"}, {"big", "/large", "application/pdf"}, {"zip", "/gzip", "text/csv"}, {"gone", "/gone", "text/plain"},
		{"empty", "/empty", "text/plain"}, {"echo", "/echo", "text/plain"},
	} {
		fmt.Fprintf(&in, "{\"id\":%q,\"url\":\"%s%s?type=%s&id=%s\"}\n", r[0], lib.URL, r[1], strings.ReplaceAll(r[2], ";", "%3b"), r[0])
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	args := []string{"run", "--limit", "500/s", "--out-dir", dir, "--key-env", "PL_TEST_KEY", "--header", "Authorization: {key}", "--progress", "off", write(t, "in.jsonl", in.String())}
	code, stdout, stderr := paceline("", args...)
	if code != 3 || stdout != "" || !strings.Contains(stderr, "9 done") || !strings.Contains(stderr, "the folder "+dir+" was not there, and is made") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	want := map[string]string{
		"Ann+1.json": "the body of /1", "ann.json": "the body of /2", "%2e.%2fx.html": "the body of /3", "%63on.bin": "the body of /4",
		"%72esults.jsonl": "the body of /5", "big.pdf": large, "zip.csv": "unzipped", "empty.txt": "",
		"echo.txt": strings.Repeat(".", 1<<20) + "[PL_TEST_KEY]" + strings.Repeat("-", 1<<20) + "[PL_TEST_KEY]",
	}
	for name, text := range want {
		if got := read(t, dir, name); got != text {
			t.Errorf("%s has %d bytes %.40q, want %d", name, len(got), got, len(text))
		}
		if info, err := os.Stat(filepath.Join(dir, name)); runtime.GOOS != "windows" && (err != nil || info.Mode() != 0o600) {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	index := results(t, filepath.Join(dir, "results.jsonl"))
	if got := len(names(t, dir)); got != len(want)+3 || len(index) != len(want) { // index, dead letters, journal
		t.Errorf("%q and %d lines", names(t, dir), len(index))
	}
	for _, r := range index {
		if text, ok := want[r.File]; !ok || r.Body != nil || r.Bytes != len(text) || len(r.SHA256) != 64 || r.BodyCut {
			t.Errorf("%+v", r)
		}
		if r.File == "echo.txt" && r.Hidden != 2 {
			t.Errorf("%d hidden", r.Hidden)
		}
	}
	if dead := results(t, filepath.Join(dir, "results.dead.jsonl")); len(dead) != 1 || dead[0].ID != "gone" || *dead[0].Body != "no more" {
		t.Errorf("%+v", dead)
	}
	if code, _, stderr = paceline("", args...); code != 3 || lib.count() != 10 || !strings.Contains(stderr, "0 to send") || !strings.Contains(stderr, "9 done before") {
		t.Errorf("again: %d asked %d %s", code, lib.count(), stderr)
	}
	if err := os.Remove(filepath.Join(dir, "ann.json")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = paceline("", args...); code != 3 || lib.count() != 11 || read(t, dir, "ann.json") != want["ann.json"] {
		t.Errorf("one gone: %d asked %d %s", code, lib.count(), stderr)
	}
}

// An answer longer than the bound of a file is a dead letter, and leaves no file behind.
func TestRunOutDirTooLong(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", map[string]int{"0": 1 << 20, "1": 1<<20 + 1}[q.URL.Query().Get("id")]))
	})
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"run", "--limit", "500/s", "--out-dir", dir, "--max-file", "1MiB", "--max-response", "64KiB", write(t, "in.jsonl", numbered(2, lib.URL))}
	code, _, stderr := paceline("", args...)
	dead := results(t, filepath.Join(dir, "results.dead.jsonl"))
	if code != 3 || lib.count() != 2 || len(dead) != 1 || dead[0].Class != "invalid" || dead[0].Error != "answered 200 OK, with a body of more than 1048576 bytes (--max-file)" {
		t.Errorf("%d asked %d %s %+v", code, lib.count(), stderr, dead)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"0.txt", "results.dead.jsonl", "results.jsonl", "results.jsonl.journal"}) {
		t.Errorf("%q", got)
	}
	if code, _, stderr = paceline("", append(args, "--retry-dead=invalid", "--max-file", "2MiB")...); code != 0 || len(read(t, dir, "1.txt")) != 1<<20+1 {
		t.Errorf("%d %s", code, stderr)
	}
}

// The states that a crash may leave between the steps of one file. A body without a line is
// nothing. A line with a whole body is done. A line with half a body, or another one, is not.
func TestRunOutDirBroken(t *testing.T) {
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "body of "+q.URL.Query().Get("id")) })
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"run", "--limit", "500/s", "--out-dir", dir, write(t, "in.jsonl", numbered(6, lib.URL))}
	if code, _, stderr := paceline("", args...); code != 0 {
		t.Fatal(stderr)
	}
	at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	if err := os.Mkdir(at("results.unfinished"), 0o700); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(read(t, dir, "results.jsonl")) {
		if !strings.HasPrefix(line, `{"id":"0"`) {
			kept = append(kept, line)
		}
	}
	for name, text := range map[string]string{"0.txt": "body of 0", "1.txt": "body of 1", "2.txt": "body o", "3.txt": "body of 4", "4.txt": ""} {
		if err := os.Remove(at(name)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at("results.unfinished", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("results.jsonl"), []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	lib.mu.Lock()
	clear(lib.asked)
	lib.mu.Unlock()
	code, _, stderr := paceline("", args...)
	if code != 0 || fmt.Sprint(lib.asked) != "map[0:1 2:1 3:1 4:1]" || strings.Contains(strings.Join(names(t, dir), " "), "unfinished") {
		t.Errorf("%d asked %v %q %s", code, lib.asked, names(t, dir), stderr)
	}
	for i := range 6 {
		if got, want := read(t, dir, fmt.Sprintf("%d.txt", i)), fmt.Sprintf("body of %d", i); got != want {
			t.Errorf("%d has %q", i, got)
		}
	}
}

// killedUntilDone runs the program and kills it, again and again, until it ends by itself. Ids that
// are there before a run must not be sent again. It returns the number of kills.
func killedUntilDone(t *testing.T, lib *library, there func() (ids []string), args ...string) (kills int) {
	t.Helper()
	before, inVain := -1, 0
	for done := false; !done; {
		had, asked := there(), map[string]int{}
		if inVain++; len(had) > before {
			before, inVain = len(had), 0
		}
		lib.mu.Lock()
		for _, id := range had {
			asked[id] = lib.asked[id]
		}
		lib.mu.Unlock()
		if done = endsBeforeTheKill(t, inVain, args...); !done {
			kills++
		}
		lib.settle(t)
		lib.mu.Lock()
		for id, n := range asked {
			if lib.asked[id] != n {
				t.Errorf("the answer to %s was there, and it was sent again", id)
			}
		}
		lib.mu.Unlock()
	}
	if kills == 0 {
		t.Error("it was never killed")
	}
	return kills
}

// endsBeforeTheKill runs the program, kills it after a while, and reports whether it had ended by
// then. The while doubles with each kill in a row without progress, so that a slow machine gets on,
// too.
func endsBeforeTheKill(t *testing.T, inVain int, args ...string) bool {
	t.Helper()
	p := program(t, args...)
	var errs strings.Builder
	p.Stderr = &errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	unit := time.Millisecond
	if race.Enabled {
		unit *= 10 // so much longer it takes to begin
	}
	kill := time.AfterFunc(time.Duration(15+rand.IntN(60)+20<<min(inVain, 12)-20)*unit, func() { _ = p.Process.Kill() })
	err := p.Wait()
	kill.Stop()
	if err != nil && p.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return err == nil
}

// However often a run is killed: no file is there by half, and nothing is sent again that has its
// file.
func TestRunOutDirKilled(t *testing.T) {
	race.Without(t) // TestRunBatchKilled resumes with it
	t.Parallel()
	need.NotShort(t, "TestRunRowsKilled kills a run")
	if runtime.GOOS == "windows" {
		t.Skip("no kill -9")
	}
	const n = 300
	body := func(id string) string {
		if strings.HasSuffix(id, "7") {
			return strings.Repeat("large "+id+"\n", 40<<10)
		}
		return "small " + id
	}
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, body(q.URL.Query().Get("id"))) })
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"run", "--limit", "none", "--concurrency", "8", "--out-dir", dir, "--max-response", "16KiB", "--progress", "off", write(t, "in.jsonl", numbered(n, lib.URL))}
	whole := func() (ids []string) {
		all, _ := os.ReadDir(dir)
		for _, f := range all {
			if id, is := strings.CutSuffix(f.Name(), ".txt"); is {
				if ids = append(ids, id); read(t, dir, f.Name()) != body(id) {
					t.Fatalf("%s is not whole", f.Name())
				}
			}
		}
		return ids
	}
	kills := killedUntilDone(t, lib, whole, args...)
	if got := whole(); len(got) != n {
		t.Errorf("%d files", len(got))
	}
	if got := names(t, dir); len(got) != n+3 { // index, dead letters, journal
		t.Errorf("%d names, of them %q", len(got), slices.DeleteFunc(got, func(s string) bool { return strings.HasSuffix(s, ".txt") }))
	}
	seen := map[string]bool{}
	for _, r := range results(t, output.IndexOf(dir)) {
		if seen[r.ID] {
			t.Errorf("%s has two lines", r.ID)
		}
		seen[r.ID] = true
		if lib.asked[r.ID] > 1 && !r.PossibleRepeat {
			t.Errorf("%s was asked for %d times, and that is not said", r.ID, lib.asked[r.ID])
		}
	}
	t.Log(kills, "kills,", lib.count(), "sends of", n)
}
