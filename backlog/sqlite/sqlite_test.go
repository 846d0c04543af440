package sqlite_test

import (
	"path/filepath"
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
