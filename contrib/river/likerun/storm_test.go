package likerun_test

import (
	"bytes"
	"context"
	"encoding/json"
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
	"testing"
	"time"

	"github.com/paceline-go/paceline/backlog"
	backlogpostgres "github.com/paceline-go/paceline/backlog/postgres"
	backlogsqlite "github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/contrib/river/likerun"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
)

// worksFor makes the test's program a worker of an engine, with its address.
const worksFor = "PACELINE_STORM"

func TestMain(m *testing.M) {
	if name, address, ok := strings.Cut(os.Getenv(worksFor), " "); ok {
		if err := engines[name].work(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// engine is a list of requests for many workers.
type engine struct {
	add     func(t *testing.T, address string, in []byte)
	work    func(address string) error // until the process is killed
	results func(t *testing.T, address string) map[string]result
}

var engines = map[string]engine{}

func init() { // TestMain reads it
	engines["river-sqlite"] = engine{
		add: func(t *testing.T, file string, in []byte) { addLines(t, openSQLite(t, file), in) },
		work: func(file string) error {
			s := openSQLite(&testing.B{}, file)
			return workLines(s)
		},
		results: func(t *testing.T, file string) map[string]result { return readLines(t, openSQLite(t, file)) },
	}
	engines["river-postgres"] = engine{
		add:     func(t *testing.T, url string, in []byte) { addLines(t, openPostgreSQL(t, url), in) },
		work:    func(url string) error { return workLines(openPostgreSQL(&testing.B{}, url)) },
		results: func(t *testing.T, url string) map[string]result { return readLines(t, openPostgreSQL(t, url)) },
	}
	for _, n := range []int{10, 64} { // 64: the default
		engines[fmt.Sprintf("backlog-%d-sqlite", n)] = backlogEngine(n, func(file string) (closing, error) {
			return backlogsqlite.Open(file)
		})
		engines[fmt.Sprintf("backlog-%d-postgres", n)] = backlogEngine(n, func(url string) (closing, error) {
			return backlogpostgres.Open(context.Background(), url)
		})
	}
}

func addLines[T any](t *testing.T, s *store[T], in []byte) {
	t.Helper()
	s.migrate(t)
	client, err := likerun.NewClient(s.driver, s.db, http.DefaultClient, nil)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := likerun.Jobs(bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	for len(jobs) > 0 {
		n := min(1000, len(jobs))
		if _, err := client.InsertMany(t.Context(), jobs[:n]); err != nil {
			t.Fatal(err)
		}
		jobs = jobs[n:]
	}
}

func workLines[T any](s *store[T]) error {
	client, err := likerun.NewClient(s.driver, s.db, http.DefaultClient, limit.MustRolling(1_000_000, time.Second))
	if err != nil {
		return err
	}
	if err := client.Start(context.Background()); err != nil {
		return err
	}
	select {}
}

func readLines[T any](t *testing.T, s *store[T]) map[string]result {
	t.Helper()
	lines, err := s.lines()
	if err != nil {
		t.Fatal(err)
	}
	return read(t, lines...)
}

// closing is a store of backlogs.
type closing interface {
	backlog.Store
	Close() error
}

func backlogEngine(concurrency int, open func(string) (closing, error)) engine {
	list := func(address string) (*backlog.Backlog, io.Closer, error) {
		s, err := open(address)
		if err != nil {
			return nil, nil, err
		}
		b, err := backlog.Open(context.Background(), s, "storm", backlog.Options{})
		return b, s, err
	}
	return engine{
		add: func(t *testing.T, address string, in []byte) {
			t.Helper()
			b, s, err := list(address)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var jobs []backlog.Job
			for line := range bytes.Lines(in) {
				var r struct{ ID, URL string }
				if err := json.Unmarshal(line, &r); err != nil {
					t.Fatal(err)
				}
				jobs = append(jobs, backlog.Job{ID: r.ID, Data: []byte(r.URL)})
			}
			if _, err := b.Enqueue(t.Context(), jobs...); err != nil {
				t.Fatal(err)
			}
		},
		work: func(address string) error {
			b, _, err := list(address)
			if err != nil {
				return err
			}
			w, err := backlog.NewWorker(backlog.WorkerConfig{Backlog: b, Concurrency: concurrency, Do: sendOne})
			if err != nil {
				return err
			}
			return w.Run(context.Background())
		},
		results: func(t *testing.T, address string) map[string]result {
			t.Helper()
			b, s, err := list(address)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			all := map[string]result{}
			for r, err := range b.Results(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				all[r.ID] = result{ID: r.ID, Repeat: r.Repeat}
			}
			return all
		},
	}
}

// sendOne sends a request of a backlog.
func sendOne(ctx context.Context, a *backlog.Attempt) backlog.Reply {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, string(a.Data), nil)
	if err != nil || !a.Fresh() {
		return backlog.NotSent()
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return backlog.Retry(time.Second, true, backlog.Answer{Class: "network"})
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return backlog.Retry(time.Second, true, backlog.Answer{Class: "network"})
	}
	return backlog.Finished(backlog.Answer{State: backlog.Done, Line: body})
}

// counting is a server that serves all, and counts.
type counting struct {
	mu    sync.Mutex
	calls map[string]int
	at    []time.Time
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(5 * time.Millisecond)
	c.mu.Lock()
	c.calls["q"+r.URL.Query().Get("id")]++
	c.at = append(c.at, time.Now())
	c.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	io.WriteString(w, "served")
}

func (c *counting) served() (jobs, doubled int, at []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.calls {
		if n > 1 {
			doubled++
		}
	}
	return len(c.calls), doubled, c.at
}

// TestStorm kills one of two workers six times, and looks for results that are lost, and for requests that
// were served twice without a name. The same storm for River with marks and for package backlog. It prints
// the rates of docs/queues.md: PACELINE_LONG=1 go test -run Storm -v .
func TestStorm(t *testing.T) {
	need.LongOnly(t, "minutes, in which River waits for its rescuer")
	for _, name := range []string{"river-sqlite", "river-postgres", "backlog-10-sqlite", "backlog-10-postgres", "backlog-64-sqlite",
		"backlog-64-postgres"} {
		t.Run(name, func(t *testing.T) {
			n, address := 6000, ""
			if strings.HasSuffix(name, "sqlite") {
				n, address = 3000, filepath.Join(t.TempDir(), "jobs.db")
			} else {
				address = need.PostgreSQL(t).URL
			}
			storm(t, name, address, n)
		})
	}
}

func storm(t *testing.T, name, address string, n int) {
	server := &counting{calls: map[string]int{}}
	host := httptest.NewServer(server)
	t.Cleanup(host.Close)
	e := engines[name]
	began := time.Now()
	e.add(t, address, input(host.URL, n))
	t.Logf("added %d in %v", n, time.Since(began).Round(time.Millisecond))
	var cpu time.Duration
	begin := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), worksFor+"="+name+" "+address)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *exec.Cmd) {
		c.Process.Kill()
		c.Wait()
		cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	began = time.Now()
	workers := []*exec.Cmd{begin(), begin()}
	for kill := range 6 {
		time.Sleep(1500*time.Millisecond + time.Duration(rand.IntN(500))*time.Millisecond)
		i := kill % 2
		end(workers[i])
		workers[i] = begin()
	}
	kills := time.Since(began)
	results := map[string]result{}
	for last := time.Now().Add(4 * time.Minute); len(results) < n && time.Now().Before(last); time.Sleep(500 * time.Millisecond) {
		results = e.results(t, address)
	}
	took := time.Since(began)
	for _, w := range workers {
		end(w)
	}
	jobs, doubled, at := server.served()
	named, unnamed := 0, 0
	for id, r := range results {
		if r.Repeat {
			named++
		}
		if server.calls[id] > 1 && !r.Repeat {
			unnamed++
		}
	}
	best, first := 0, 0 // requests in the best second
	for i, a := range at {
		for a.Sub(at[first]) > time.Second {
			first++
		}
		best = max(best, i-first+1)
	}
	t.Logf("%d jobs served, %d results after %v, kills until %v; %d in the best second, %v of CPU a job in workers; %d doubled, %d named, %d doubled and unnamed",
		jobs, len(results), took.Round(time.Second), kills.Round(time.Second), best, cpu/time.Duration(max(jobs, 1)), doubled, named, unnamed)
	if jobs != n || len(results) != n || unnamed != 0 {
		t.Errorf("%d of %d requests were served, %d have a result, %d were doubled and are not named", jobs, n, len(results), unnamed)
	}
}
