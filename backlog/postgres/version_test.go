package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/postgres"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// older makes tables of version 1 of those that are there.
var older = []string{`ALTER TABLE paceline_request ALTER seq SET DEFAULT nextval('paceline_request_seq_seq')`,
	`ALTER TABLE paceline_backlog ALTER id SET DEFAULT nextval('paceline_backlog_id_seq')`,
	`ALTER TABLE paceline_worker DROP COLUMN ended`, `UPDATE paceline_backlog_version SET version = 1`}

// Tables of version 1 are brought to version 3, by many processes at once, while one of version 1 goes on. Requests
// stay in their order. Who does not own the tables gets a message that says who does it.
func TestOlderTables(t *testing.T) {
	url := need.PostgreSQL(t).URL
	running := opener(url)(t) // a process looks at the version when it begins
	c := connect(t, url)
	if err := all(t, c, append(older, `CREATE ROLE workers LOGIN`, `GRANT SELECT ON paceline_backlog_version TO workers`)...); err != nil {
		t.Fatal(err)
	}
	jobs, err := backlog.Open(t.Context(), running, "jobs", backlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(id string) {
		t.Helper()
		if n, err := jobs.Enqueue(t.Context(), backlog.Job{ID: id}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	add("1")
	_, err = postgres.OpenExisting(t.Context(), strings.Replace(url, "paceline@", "workers@", 1))
	if !errors.Is(err, backlog.ErrVersion) || !strings.Contains(fmt.Sprint(err), "their owner does so by paceline enqueue") {
		t.Errorf("who does not own the tables gets %v", err)
	}
	var openers sync.WaitGroup
	for range 8 {
		openers.Go(func() {
			s, err := postgres.OpenExisting(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	openers.Wait()
	add("2")
	if got := waiting(t, running, "jobs"); got != "1=/0/0 2=/0/0" {
		t.Errorf("there is %s", got)
	}
	var version int
	if err := c.QueryRow(t.Context(), `SELECT version FROM paceline_backlog_version`).Scan(&version); err != nil || version != 3 {
		t.Errorf("the tables are of version %d, %v", version, err)
	}
}

// Tables that a transaction uses for long are not waited for: who uses them meanwhile would wait, too.
func TestOlderTablesInUse(t *testing.T) {
	url := need.PostgreSQL(t).URL
	opener(url)(t)
	c := connect(t, url)
	if err := all(t, c, older...); err != nil {
		t.Fatal(err)
	}
	tx, err := c.BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM paceline_request`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), url); !errors.Is(err, backlog.ErrVersion) || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("tables in use: %v", err)
	}
}

// A failover loses a request that a worker holds. The next request has another number, so the worker's answer is not
// taken for its own.
func TestNumbersNeverComeAgain(t *testing.T) {
	server := need.PostgreSQL(t)
	store := opener(server.URL)(t)
	jobs, err := backlog.Open(t.Context(), store, "jobs", backlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := store.Find(t.Context(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	w, err := store.Register(t.Context(), info.ID, "host", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Enqueue(t.Context(), backlog.Job{ID: "lost"}); err != nil {
		t.Fatal(err)
	}
	o, err := store.Turn(t.Context(), info.ID, &backlog.Turn{Worker: w.Worker, Claims: []backlog.Claim{{N: 1}}})
	if err != nil || len(o.Claimed) != 1 {
		t.Fatal(o, err)
	}
	// The standby has not got the request, and numbers the next one likewise.
	c := connect(t, server.URL)
	if err := all(t, c, `DELETE FROM paceline_request`, `DELETE FROM paceline_queue`,
		`SELECT setval('paceline_request_seq_seq', 1, false)`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), `ALTER SYSTEM SET restore_command = 'false'`); err != nil {
		t.Fatal(err)
	}
	server.Crash()
	signal := filepath.Join(server.Folder, "data", "recovery.signal") // the server begins a new timeline
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	need.AsPostgres(t, signal)
	server.Start()
	server.Until(func() bool {
		var recovers bool
		err := connect(t, server.URL).QueryRow(t.Context(), `SELECT pg_is_in_recovery()`).Scan(&recovers)
		return err == nil && !recovers
	})
	store = opener(server.URL)(t)
	if jobs, err = backlog.Open(t.Context(), store, "jobs", backlog.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Enqueue(t.Context(), backlog.Job{ID: "next"}); err != nil {
		t.Fatal(err)
	}
	answer := backlog.End{Seq: o.Claimed[0].Seq, State: uint8(backlog.Done), Line: []byte("of the lost one")}
	if _, err := store.Turn(t.Context(), info.ID, &backlog.Turn{Worker: w.Worker, Beat: 1, Ends: []backlog.End{answer}}); err != nil {
		t.Fatal(err)
	}
	for r := range jobs.Results(t.Context(), 0) {
		t.Errorf("%s has the result %s", r.ID, r.Line)
	}
	if got := waiting(t, store, "jobs"); got != "next=/0/0" {
		t.Errorf("there is %s", got)
	}
}
