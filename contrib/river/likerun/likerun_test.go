package likerun_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"

	"github.com/paceline-go/paceline/contrib/river/likerun"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
)

// moody is a server whose answers depend on the id: most are served, some after a 503 or a 429, some never.
type moody struct {
	mu    sync.Mutex
	calls map[string]int
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	m.mu.Lock()
	m.calls[id]++
	n := m.calls[id]
	m.mu.Unlock()
	switch {
	case strings.HasSuffix(id, "3") && n == 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	case id == "17" && n == 1:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case strings.HasSuffix(id, "5"):
		http.Error(w, "no such thing", http.StatusNotFound)
	default:
		fmt.Fprintf(w, "served %s", id)
	}
}

// input has lines of run's input.
func input(url string, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"id":"q%d","url":"%s/?id=%d"}`+"\n", i, url, i)
	}
	return b.Bytes()
}

// result is what of a result's line does not depend on time.
type result struct {
	ID, State, Class string
	Status, Attempts int
	Body             string
	Repeat           bool `json:"possible_repeat"`
	Refused          int
}

func read(t *testing.T, lines ...[]byte) map[string]result {
	t.Helper()
	all := map[string]result{}
	for line := range bytes.SplitSeq(bytes.Join(lines, []byte("\n")), []byte("\n")) {
		var r result
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if _, twice := all[r.ID]; twice {
			t.Errorf("%s has two results", r.ID)
		}
		all[r.ID] = r
	}
	return all
}

// byRun returns the results of `paceline run` for an input.
func byRun(t *testing.T, in []byte) map[string]result {
	t.Helper()
	dir := t.TempDir()
	paceline := filepath.Join(dir, "paceline")
	build := exec.Command("go", "build", "-o", paceline, "./cmd/paceline")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "in.jsonl"), in, 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(paceline, "run", "in.jsonl", "--limit", "100/s", "--out", "out.jsonl")
	run.Dir = dir
	out, err := run.CombinedOutput() // its exit code says that there are dead letters
	served, err1 := os.ReadFile(filepath.Join(dir, "out.jsonl"))
	died, err2 := os.ReadFile(filepath.Join(dir, "out.dead.jsonl"))
	if err1 != nil || err2 != nil {
		t.Fatalf("%v, %v, %v: %s", err, err1, err2, out)
	}
	return read(t, served, died)
}

// store is a database with River's tables and those of the example.
type store[T any] struct {
	driver riverdriver.Driver[T]
	db     likerun.Database
	exec   func(query string) error
	lines  func() ([][]byte, error) // the results
}

func (s *store[T]) migrate(t testing.TB) {
	t.Helper()
	m, err := rivermigrate.New(s.driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.exec(likerun.Tables); err != nil {
		t.Fatal(err)
	}
}

func openSQLite(t testing.TB, file string) *store[*sql.Tx] {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(20000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return &store[*sql.Tx]{riversqlite.New(db), likerun.SQLite{DB: db},
		func(q string) error { _, err := db.Exec(q); return err },
		func() (all [][]byte, err error) {
			rows, err := db.Query("SELECT line FROM call_result")
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					return nil, err
				}
				all = append(all, []byte(line))
			}
			return all, rows.Err()
		}}
}

func openPostgreSQL(t testing.TB, url string) *store[pgx.Tx] {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &store[pgx.Tx]{riverpgxv5.New(pool), likerun.PostgreSQL{Pool: pool},
		func(q string) error { _, err := pool.Exec(context.Background(), q); return err },
		func() ([][]byte, error) {
			rows, err := pool.Query(context.Background(), "SELECT line FROM call_result")
			if err != nil {
				return nil, err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			var all [][]byte
			for _, line := range lines {
				all = append(all, []byte(line))
			}
			return all, err
		}}
}

// work works an input until it has n results.
func work[T any](t *testing.T, s *store[T], in []byte, n int, own limit.Limiter) [][]byte {
	t.Helper()
	client, err := likerun.NewClient(s.driver, s.db, http.DefaultClient, own)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := likerun.Jobs(bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.InsertMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	if err := client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer client.Stop(ctx)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		lines, err := s.lines()
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) >= n {
			return lines
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d results", len(lines), n)
		}
	}
}

func likeRun[T any](t *testing.T, s *store[T]) {
	t.Parallel()
	const n = 60
	s.migrate(t)
	first, second := httptest.NewServer(&moody{calls: map[string]int{}}), httptest.NewServer(&moody{calls: map[string]int{}})
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	want := byRun(t, input(first.URL, n))
	got := read(t, work(t, s, input(second.URL, n), n, limit.MustRolling(100, time.Second))...)
	for id, w := range want {
		if g := got[id]; g != w {
			t.Errorf("%s: River has %+v, run %+v", id, g, w)
		}
	}
	if len(got) != len(want) || len(want) != n {
		t.Errorf("%d results, and %d of run", len(got), len(want))
	}
}

// River's results are those of `paceline run`: served, after a 503, after a 429, and not at all.
func TestLikeRunSQLite(t *testing.T) {
	likeRun(t, openSQLite(t, filepath.Join(t.TempDir(), "jobs.db")))
}

func TestLikeRunPostgreSQL(t *testing.T) { likeRun(t, openPostgreSQL(t, need.PostgreSQL(t).URL)) }
