package postgres_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// give writes a file into a PostgreSQL's folder, as its user.
func give(t *testing.T, s *need.Service, name string, text []byte) {
	t.Helper()
	path := filepath.Join(s.Folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	need.AsPostgres(t, path)
}
