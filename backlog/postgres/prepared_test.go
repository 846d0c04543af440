package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// registered opens a store with a backlog, whose number it returns, and a worker of it.
func registered(t *testing.T, url string, jobs ...backlog.Job) (s *Store, list int64, w backlog.Beat) {
	t.Helper()
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b, err := backlog.Open(t.Context(), s, "jobs", backlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	info, err := b.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w, err = s.Register(t.Context(), info.ID, "host", 1); err != nil {
		t.Fatal(err)
	}
	return s, info.ID, w
}

// prepared takes turns through one connection, and returns how many statements the database has by name then, and how
// often it planned one for its arguments.
func prepared(t *testing.T, url string) (names, custom int) {
	t.Helper()
	s, list, w := registered(t, url+"&pool_max_conns=1")
	for i := range int64(8) {
		turn := &backlog.Turn{Worker: w.Worker, Beat: w.Beat + i, Claims: []backlog.Claim{{N: 1 + int(i)}},
			Ends: []backlog.End{{Seq: 1 + i}}, Returns: []backlog.Return{{Seq: 100 + i}}}
		if o, err := s.Turn(t.Context(), list, turn); err != nil || !o.Fits {
			t.Fatalf("turn %d fits: %v, %v", i, o.Fits, err)
		}
	}
	err := s.pool.QueryRow(t.Context(), `SELECT count(*), coalesce(sum(custom_plans), 0) FROM pg_prepared_statements`,
		pgx.QueryExecModeExec).Scan(&names, &custom)
	if err != nil {
		t.Fatal(err)
	}
	return names, custom
}

// The statements of a turn are parsed and planned once a connection. Behind a pooler, where a connection has many
// processes of the database, none has a name.
func TestPrepared(t *testing.T) {
	db := need.PostgreSQL(t)
	if names, custom := prepared(t, db.URL); names != 5 || custom != 0 {
		t.Errorf("%d statements have names, and %d plans were made for arguments; expected 5 and 0", names, custom)
	}
	if names, _ := prepared(t, db.URL+"&default_query_exec_mode=cache_describe"); names != 0 {
		t.Errorf("%d statements have names against the address", names)
	}
	if names, _ := prepared(t, need.PgBouncer(t, db).URL); names != 0 {
		t.Errorf("%d statements have names behind a pooler", names)
	}
}
