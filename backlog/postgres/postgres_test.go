package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/backlogtest"
	"github.com/paceline-go/paceline/backlog/postgres"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

func TestMain(m *testing.M) { os.Exit(need.Copied(m)) }

func opener(url string) func(t testing.TB) backlog.Store {
	return func(t testing.TB) backlog.Store {
		t.Helper()
		s, err := postgres.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

func TestStore(t *testing.T) { backlogtest.Run(t, opener(need.PostgreSQL(t).URL)) }

// PostgreSQL 17 is the same store.
func TestStore17(t *testing.T) {
	need.LongOnly(t, "npm installs a PostgreSQL 17 for it")
	db := need.PostgreSQL17(t)
	c, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var version string
	if err := c.QueryRow(t.Context(), "SHOW server_version").Scan(&version); err != nil || !strings.HasPrefix(version, "17.") {
		t.Fatalf("the server is of version %q, %v", version, err)
	}
	backlogtest.Run(t, opener(db.URL))
}
