//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// storm is processes of work on one backlog, at a strict server that counts the requests of each path.
type storm struct {
	t      *testing.T
	store  string // its address
	server *strictly
	url    string
	n      int

	// trouble, if not nil, answers in place of the server, which has taken the request.
	trouble func(w http.ResponseWriter) (done bool)

	mu   sync.Mutex
	seen map[string]int
	tell map[string]int // the attempts that the results state
}

// newStorm adds n requests to a backlog whose limit is per second. Without a store it is in a new file.
func newStorm(t *testing.T, store string, n int, limit int64) *storm {
	t.Helper()
	limits := store
	if store == "" {
		store = "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
		limits = store + ".limits"
	}
	s := &storm{t: t, store: store, server: serveStrictly(t, limit, time.Second), n: n, seen: map[string]int{}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		s.seen[q.URL.Path]++
		s.mu.Unlock()
		if s.trouble != nil && s.trouble(w) {
			return
		}
		s.server.Config.Handler.ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	s.url = front.URL
	ripeStore(t, limits, defaultBacklog, perSecondKeeper(limit))
	said(t, cli.ExitOK, "enqueue", urlFile(t, s.url, n), "--backlog", store)
	return s
}

func (s *storm) worker(limit int64) (*exec.Cmd, *bytes.Buffer) {
	return process(s.t, "work", "--backlog", s.store, "--limit", fmt.Sprintf("%d/s", limit), "--until-empty", "--progress", "off")
}

func (s *storm) open() (backlog.Store, *backlog.Backlog) {
	s.t.Helper()
	store, err := openBacklogs(s.t.Context(), s.store, true)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := backlog.Open(s.t.Context(), store, defaultBacklog, backlog.Options{Existing: true, Format: work.Format})
	if err != nil {
		s.t.Fatal(err)
	}
	return store, b
}

// giveUp does at once what the others do after 15 s without a beat of a process. That process must have ended.
func (s *storm) giveUp(dead *exec.Cmd) {
	s.t.Helper()
	store, b := s.open()
	defer store.Close()
	all, err := b.Workers(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, w := range all {
		if w.PID == dead.Process.Pid && !w.Dead {
			if done, err := store.GiveUp(s.t.Context(), backlog.Beat{Worker: w.ID, Beat: w.Beat}); err != nil || !done {
				s.t.Fatal(done, err)
			}
		}
	}
}

// judge checks the promises: each request has one result, those that arrived twice are named, and nothing was refused.
// It returns how many arrived twice, and how many are named.
func (s *storm) judge() (twice, named int) {
	s.t.Helper()
	var out, errs strings.Builder
	if code := execute(context.Background(), []string{"backlog", "results", s.store}, strings.NewReader(""), &out, &errs); code != cli.ExitOK || errs.Len() > 0 {
		s.t.Fatalf("results: exit %d, %s", code, &errs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got := map[string]int{}
	s.tell = map[string]int{}
	for line := range strings.Lines(out.String()) {
		var r format.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatal(err)
		}
		got[r.ID]++
		s.tell[r.ID] = r.Attempts
		var n int
		if _, err := fmt.Sscanf(r.ID, "line-%d-", &n); err != nil {
			s.t.Fatal(err)
		}
		if r.PossibleRepeat {
			named++
		}
		if times := s.seen[fmt.Sprintf("/%d", n-1)]; times > 1 {
			if twice++; !r.PossibleRepeat {
				s.t.Errorf("%s arrived %d times, and is not named", r.ID, times)
			}
		} else if times == 0 || r.State != "done" {
			s.t.Errorf("%s is %s, and arrived %d times", r.ID, r.State, times)
		}
	}
	if len(got) != s.n {
		s.t.Errorf("%d requests have results, expected %d", len(got), s.n)
	}
	for id, times := range got {
		if times != 1 {
			s.t.Errorf("%s has %d results", id, times)
		}
	}
	if _, refused := s.server.count(); refused > 0 {
		s.t.Errorf("%d were refused", refused)
	}
	return twice, named
}

// Three processes drain one backlog within one limit, while one is killed and one is stopped for a while. Each request
// has one result, and nothing is refused.
func TestBacklogProcesses(t *testing.T) {
	t.Parallel()
	const limit = 200
	s := newStorm(t, "", 500, limit)
	var workers []*exec.Cmd
	var words []*bytes.Buffer
	for range 3 {
		w, errs := s.worker(limit)
		workers, words = append(workers, w), append(words, errs)
	}
	s.server.wait(100)
	workers[0].Process.Kill()
	workers[0].Wait()
	s.giveUp(workers[0])
	workers[1].Process.Signal(syscall.SIGSTOP)
	time.Sleep(time.Second)
	workers[1].Process.Signal(syscall.SIGCONT)
	for i, w := range workers[1:] {
		if err := w.Wait(); err != nil {
			t.Errorf("worker %d: %v\n%s", i+1, err, words[i+1])
		}
	}
	twice, named := s.judge()
	t.Logf("%d arrived twice, %d are named, %.0f/s", twice, named, s.server.rate())
}

// Ctrl-C waits for what is in flight, and gives the rest back at once: another process has it without a wait.
func TestBacklogInterrupted(t *testing.T) {
	t.Parallel()
	const limit = 50
	s := newStorm(t, "", 150, limit)
	w, errs := s.worker(limit)
	s.server.wait(40)
	w.Process.Signal(syscall.SIGINT)
	if err := w.Wait(); w.ProcessState.ExitCode() != cli.ExitInterrupted || !strings.Contains(errs.String(), "what was not sent is back in the backlog") {
		t.Errorf("%v\n%s", err, errs)
	}
	store, b := s.open()
	counts, err := b.Count(t.Context())
	if store.Close(); err != nil || counts.Held > 0 || counts.Left() == 0 {
		t.Errorf("%+v (%v), expected some left, and none with a worker", counts, err)
	}
	if w, errs = s.worker(limit); w.Wait() != nil {
		t.Error(errs)
	}
	if twice, named := s.judge(); twice+named > 0 {
		t.Errorf("%d arrived twice, %d are named, expected none", twice, named)
	}
}

// Ctrl-C ends enqueue at a pipe that does not end. What was read is in the backlog.
func TestBacklogEnqueueInterrupted(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	c := another(t, "enqueue", "-", "--backlog", store)
	errs := new(bytes.Buffer)
	c.Stderr = errs
	pipe, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	fmt.Fprintln(pipe, `{"id":"a","url":"http://h/"}`)
	for deadline := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		if out := new(strings.Builder); execute(t.Context(), []string{"backlog", "show", store}, strings.NewReader(""), out, io.Discard) == cli.ExitOK &&
			strings.Contains(out.String(), "1 request, 1 ready") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was added")
		}
	}
	c.Process.Signal(syscall.SIGINT)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case <-done:
	case <-time.After(patient):
		t.Fatal("enqueue did not end")
	}
	if c.ProcessState.ExitCode() != cli.ExitInterrupted || !strings.Contains(errs.String(), "interrupted; 1 was added") {
		t.Errorf("exit %d: %s", c.ProcessState.ExitCode(), errs)
	}
}

// The same command may be started as often as one likes: its processes share the file, the limit and the results.
func TestBacklogRunByThree(t *testing.T) {
	t.Parallel()
	const limit = 100
	s := newStorm(t, "", 150, limit)
	out := filepath.Join(t.TempDir(), "results.jsonl")
	var runs []*exec.Cmd
	var words []*bytes.Buffer
	for range 3 {
		c, errs := process(t, "run", urlFile(t, s.url, 150), "--backlog", s.store, "--limit", "100/s", "--out", out, "--progress", "off")
		runs, words = append(runs, c), append(words, errs)
	}
	for i, c := range runs {
		if err := c.Wait(); err != nil || !strings.Contains(words[i].String(), "150 were there already") {
			t.Errorf("%v\n%s", err, words[i])
		}
	}
	if twice, named := s.judge(); twice+named > 0 {
		t.Errorf("%d arrived twice, %d are named, expected none", twice, named)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if results, _ := said(t, cli.ExitOK, "backlog", "results", s.store); string(text) != results {
		t.Errorf("%d bytes of results in the file, and %d in the backlog", len(text), len(results))
	}
	if left, err := filepath.Glob(out + ".*"); err != nil || len(left) > 0 {
		t.Errorf("%q are left beside the results (%v)", left, err)
	}
}

// Urgent requests that come while many wait go first: the median of 200 within 3 s, at 200 a second.
func TestBacklogUrgent(t *testing.T) {
	t.Parallel()
	limit, waiting, urgent := int64(100), 2000, 20
	if need.Long() {
		limit, waiting, urgent = 200, 2700, 200
	}
	s := newStorm(t, "", waiting, limit)
	w, errs := s.worker(limit)
	s.server.wait(int(limit) + 20)
	dir := t.TempDir()
	lines := make([]string, urgent)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"id":"urgent-%d","url":"%s/urgent-%d"}`, i, s.url, i)
	}
	began := time.Now()
	said(t, cli.ExitOK, "enqueue", linesFile(t, dir, "urgent.jsonl", lines...), "--backlog", s.store, "--priority", "3")
	median := time.Duration(0)
	for n := 0; n < urgent; time.Sleep(20 * time.Millisecond) {
		n = 0
		s.mu.Lock()
		for path := range s.seen {
			if strings.HasPrefix(path, "/urgent") {
				n++
			}
		}
		s.mu.Unlock()
		if n >= urgent/2 && median == 0 {
			median = time.Since(began)
		}
		if time.Since(began) > patient {
			t.Fatalf("%d of %d went\n%s", n, urgent, errs)
		}
	}
	w.Process.Kill()
	took := time.Since(began)
	t.Logf("half of %d urgent ones went within %v, all within %v", urgent, median, took)
	// Before them go what the worker holds, for 2 s at most, and what it takes until it looks at the front, each 3 s.
	if took > 8*time.Second || need.Long() && median > 3*time.Second {
		t.Errorf("the urgent ones took %v, half of them %v; at least %d s would pass if they went last", took, median,
			waiting/int(limit)-2)
	}
}

// Two processes send what is in PostgreSQL. Their limit is in the same database.
func TestBacklogPostgreSQL(t *testing.T) {
	t.Parallel()
	need.NotShort(t, "TestBacklogProcesses has processes, and backlog/postgres the database")
	s := newStorm(t, need.PostgreSQL(t).URL, 150, 100)
	first, errs := s.worker(100)
	second, more := s.worker(100)
	if err := errors.Join(first.Wait(), second.Wait()); err != nil {
		t.Fatalf("%v\n%s%s", err, errs, more)
	}
	if twice, named := s.judge(); twice+named > 0 {
		t.Errorf("%d arrived twice, %d are named, expected none", twice, named)
	}
	if out, _ := said(t, cli.ExitOK, "share", "ls", s.store); !strings.Contains(out, defaultBacklog) {
		t.Errorf("the limits are not in the database of the backlog: %q", out)
	}
	// A program in any language adds a request by SQL.
	db, err := pgx.Connect(t.Context(), s.store)
	if err == nil {
		_, err = db.Exec(t.Context(), "SELECT paceline_enqueue('default', 'from-sql', $1)", `{"url":"`+s.url+`/sql"}`)
	}
	if err != nil {
		t.Fatal(err)
	}
	db.Close(t.Context())
	said(t, cli.ExitOK, "work", "--backlog", s.store, "--limit", "100/s", "--until-empty", "--progress", "off")
	if out, _ := said(t, cli.ExitOK, "backlog", "results", s.store); s.seen["/sql"] != 1 || !strings.Contains(out, `{"id":"from-sql","state":"done"`) {
		t.Errorf("the request from SQL arrived %d times", s.seen["/sql"])
	}
}

// The long form: kills, stops of 9 and 20 s, and new workers. PostgreSQL crashes, too.
func TestBacklogStorm(t *testing.T) {
	need.LongOnly(t, "a dead worker is given up after 15 s")
	t.Run("SQLite", func(t *testing.T) { storms(t, newStorm(t, "", 12000, 200), nil) })
	t.Run("PostgreSQL", func(t *testing.T) {
		database := need.PostgreSQL(t)
		storms(t, newStorm(t, database.URL, 12000, 200), func() {
			database.Crash()
			time.Sleep(3 * time.Second)
			database.Start()
		})
	})
}

func storms(t *testing.T, s *storm, crash func()) {
	var workers []*exec.Cmd
	words := map[*exec.Cmd]*bytes.Buffer{}
	start := func() {
		w, errs := s.worker(200)
		workers, words[w] = append(workers, w), errs
	}
	for range 8 {
		start()
	}
	kills, stops, crashes := 0, 0, 0
	for served := 0; served < s.n*8/10; served, _ = s.server.count() {
		time.Sleep(4 * time.Second)
		i := rand.IntN(len(workers))
		w := workers[i]
		switch rand.IntN(5) {
		case 0, 1:
			kills++
			w.Process.Kill()
			w.Wait()
			workers = append(workers[:i], workers[i+1:]...)
			start()
		case 2, 3:
			stops++
			w.Process.Signal(syscall.SIGSTOP)
			time.AfterFunc(time.Duration(9+11*rand.IntN(2))*time.Second, func() { w.Process.Signal(syscall.SIGCONT) })
		default:
			if crash != nil {
				crashes++
				crash()
			}
		}
	}
	for _, w := range workers {
		// A process that is stopped within a turn keeps a SQLite file. One that begins then gives up after 10 s.
		if err := w.Wait(); err != nil && !strings.Contains(words[w].String(), "database is locked") {
			t.Errorf("%v\n%s", err, words[w])
		}
	}
	twice, named := s.judge()
	t.Logf("%d kills, %d stops, %d crashes: %d arrived twice, %d are named, %.0f/s", kills, stops, crashes, twice, named, s.server.rate())
}

// The long form: some answers fail, and some are cut off, while workers are killed. Attempts are counted over all
// workers.
func TestBacklogRetries(t *testing.T) {
	need.LongOnly(t, "a dead worker is given up after 15 s")
	s := newStorm(t, "", 20_000, 200)
	s.trouble = func(w http.ResponseWriter) bool {
		switch n := rand.IntN(100); {
		case n > 1 || !s.server.arrive():
			return false
		case n == 0:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			panic(http.ErrAbortHandler)
		}
		return true
	}
	var workers []*exec.Cmd
	for range 4 {
		w, _ := s.worker(200)
		workers = append(workers, w)
	}
	for i := range 4 {
		s.server.wait(4000 * (i + 1))
		workers[i].Process.Kill()
		workers[i].Wait()
		w, _ := s.worker(200)
		workers = append(workers, w)
	}
	for _, w := range workers[4:] {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	twice, named := s.judge()
	again := 0
	for id, attempts := range s.tell {
		var n int
		_, _ = fmt.Sscanf(id, "line-%d-", &n)
		if times := s.seen[fmt.Sprintf("/%d", n-1)]; attempts < times {
			t.Errorf("%s arrived %d times, and its result has %d attempts", id, times, attempts)
		} else if attempts > 1 {
			again++
		}
	}
	t.Logf("%d were tried again, %d arrived twice, %d are named", again, twice, named)
}

// Ten workers without a fault send as much as ten runs with the same shared limit and no backlog, until what is left is
// held by some of them alone. That end costs half a second, however long the backlog is. The figures are those of
// decision 85.
func TestBacklogRate(t *testing.T) {
	need.LongOnly(t, "it measures the machine")
	const limit, n, each = 200, 10_000, 10
	alone := serveStrictly(t, limit, time.Second)
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, address, "api", perSecondKeeper(limit))
	var runs []*exec.Cmd
	for range each {
		c, _ := process(t, "run", urlFile(t, alone.URL, n/each), "--limit", "200/s", "--share", address, "--share-name", "api", "--progress", "off")
		runs = append(runs, c)
	}
	for _, c := range runs {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	s := newStorm(t, "", n, limit)
	var workers []*exec.Cmd
	for range each {
		w, _ := s.worker(limit)
		workers = append(workers, w)
	}
	for _, w := range workers {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	if twice, named := s.judge(); twice+named > 0 {
		t.Errorf("%d arrived twice, %d are named, expected none without a fault", twice, named)
	}
	store, b := s.open()
	defer store.Close()
	all, err := b.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	least, most := int64(n), int64(0)
	for _, w := range all {
		least, most = min(least, w.Results), max(most, w.Results)
	}
	for name, server := range map[string]*strictly{"alone": alone, "backlog": s.server} {
		var seconds []int
		for at := server.first; at.Before(server.last); at = at.Add(time.Second) {
			seconds = append(seconds, server.between(at, at.Add(time.Second)))
		}
		t.Logf("%s, in each second: %v", name, seconds)
	}
	without, with := alone.rateOf(n/8, 7*n/8), s.server.rateOf(n/8, 7*n/8)
	t.Logf("the middle three quarters: the limit alone: %.1f/s; with a backlog: %.1f/s: %.1f %%", without, with, 100*with/without)
	if with < 0.98*without {
		t.Error("the backlog slows them down")
	}
	t.Logf("the limit alone: %.1f/s; with a backlog: %.1f/s; each worker %d to %d", alone.rate(), s.server.rate(), least, most)
}
