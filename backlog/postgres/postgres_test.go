package postgres_test

import (
	"testing"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/backlogtest"
	"github.com/paceline-go/paceline/backlog/postgres"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

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
