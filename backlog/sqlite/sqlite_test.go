package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/backlogtest"
	"github.com/paceline-go/paceline/backlog/sqlite"
)

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file with 100% of 'signs'?#.db")
	backlogtest.Run(t, func(t testing.TB) backlog.Store {
		s, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// What cannot be used is said, with the file: no file, a file without tables, tables of another version, a
// file that is no database.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.db")
	if _, err := sqlite.OpenExisting(file); !errors.Is(err, backlog.ErrNoStore) || !strings.Contains(err.Error(), file) {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was made")
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE users (id INTEGER)`)
	if _, err := sqlite.OpenExisting(file); !errors.Is(err, backlog.ErrNoStore) {
		t.Errorf("a file without tables: %v", err)
	}
	s, err := sqlite.Open(file) // beside the user's own
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	exec(`UPDATE paceline_backlog_version SET version = 99`)
	if _, err := sqlite.Open(file); !errors.Is(err, backlog.ErrVersion) || !strings.Contains(err.Error(), "99, expected 2") {
		t.Errorf("tables of another version: %v", err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database. ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{text: "not a database", filepath.Join(dir, "none", "x.db"): "no such file", ":memory:": "expected a file"} {
		if _, err := sqlite.Open(file); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Tables of version 1 are brought to version 2, by many processes at once, while one of version 1 goes on.
func TestOlderTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	running, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{`ALTER TABLE paceline_worker DROP COLUMN ended`, `UPDATE paceline_backlog_version SET version = 1`} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := backlog.Open(t.Context(), running, "jobs", backlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var openers sync.WaitGroup
	for range 8 {
		openers.Go(func() {
			s, err := sqlite.OpenExisting(file)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	openers.Wait()
	if n, err := jobs.Enqueue(t.Context(), backlog.Job{ID: "1"}); n != 1 || err != nil {
		t.Error(n, err)
	}
	if all, err := jobs.Workers(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("workers %v, %v", all, err)
	}
	version := 0
	if err := db.QueryRow(`SELECT version FROM paceline_backlog_version`).Scan(&version); err != nil || version != 2 {
		t.Errorf("the tables are of version %d, %v", version, err)
	}
}

// Processes start together, at a file that none has made yet.
func TestOpenedAtOnce(t *testing.T) {
	for range 5 {
		file := filepath.Join(t.TempDir(), "jobs.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := sqlite.Open(file)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if _, err := backlog.Open(t.Context(), s, "jobs", backlog.Options{Format: "x"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
