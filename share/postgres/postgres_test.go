package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/sharetest"
)

// These tests have one server, and a database each: a server takes a second to be made.
func TestOnOneServer(t *testing.T) {
	s := need.PostgreSQL(t)
	for _, c := range []struct {
		name string
		test func(t *testing.T, url string)
	}{
		{"store", func(t *testing.T, url string) { sharetest.Run(t, opener(url)) }},
		{"restored", restored},
		{"table_dropped", tableDropped},
		{"synchronous_commit", synchronousCommit},
		{"pgbouncer", func(t *testing.T, _ string) { pooled(t, opener(need.PgBouncer(t, s).URL)) }}, // of the database postgres
	} {
		t.Run(c.name, func(t *testing.T) {
			rows(t, s.URL, `CREATE DATABASE `+c.name)
			t.Parallel()
			c.test(t, strings.Replace(s.URL, "/postgres?", "/"+c.name+"?", 1))
		})
	}
}

// opener returns a function that opens the store.
func opener(url string) func(t *testing.T) share.Store {
	return func(t *testing.T) share.Store {
		s, err := postgres.Open(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
}

// rows runs statements at the database.
func rows(t *testing.T, url string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, s := range statements {
		if _, err := c.Exec(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// A copy of the rows is put back, as pg_restore does, or all of them at once, as a machine does that
// goes back to a snapshot.
func restored(t *testing.T, url string) {
	sharetest.Restored(t, opener(url), func(t *testing.T) func() {
		rows(t, url, `DROP TABLE IF EXISTS backup`, `CREATE TABLE backup AS SELECT * FROM paceline_share`)
		return func() {
			rows(t, url, `BEGIN`, `LOCK TABLE paceline_share`, `DELETE FROM paceline_share`, `INSERT INTO paceline_share SELECT * FROM backup`, `COMMIT`)
		}
	})
}

// The table is dropped while processes are connected, as where an empty standby takes over: a turn
// makes it again.
func tableDropped(t *testing.T, url string) {
	s, other := opener(url)(t), opener(url)(t)
	turn := func(s share.Store, blob string, f func()) (was string) {
		t.Helper()
		err := s.Turn(t.Context(), "a", func(r share.Reading) ([]byte, error) {
			was = string(r.Blob)
			f()
			return []byte(blob), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return was
	}
	nothing := func() {}
	turn(s, "one", nothing)
	rows(t, url, `DROP TABLE paceline_share`)
	if was := turn(s, "two", nothing); was != "" {
		t.Errorf("a table that was made again has %q", was)
	}
	if was := turn(other, "three", nothing); was != "two" {
		t.Errorf("another process reads %q", was)
	}
	once := func() func() {
		done := false
		return func() {
			if !done {
				done = true
				rows(t, url, `DROP TABLE paceline_share`)
			}
		}
	}
	if was := turn(s, "four", once()); was != "" {
		t.Errorf("a table that was dropped between the halves of a turn has %q", was)
	}
	if was := turn(s, "five", nothing); was != "four" {
		t.Errorf("after that it has %q", was)
	}
}

func TestUnreachable(t *testing.T) {
	for _, url := range []string{"postgres://paceline@127.0.0.1:1/x?sslmode=disable", "http://x", "postgres://%"} {
		if s, err := postgres.Open(context.Background(), url); err == nil {
			s.Close()
			t.Errorf("%s is open", url)
		}
	}
}
