package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
	"github.com/paceline-go/paceline/share/sqlite"
)

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file with 100% of 'signs'?#.db")
	sharetest.Run(t, func(t *testing.T) share.Store {
		s, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database. ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{text: "not a database", filepath.Join(dir, "none", "x.db"): "no such file or directory", dir: "is a directory"} {
		s, err := sqlite.Open(file)
		if err == nil {
			s.Close()
			t.Errorf("%s is taken", file)
		} else if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s, or of which file", err, want)
		}
	}
}

// A store that was closed says so, and puts nothing.
func TestClosed(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Turn(context.Background(), "k", func(share.Reading) ([]byte, error) { return []byte("x"), nil }); err == nil {
		t.Error("a closed store takes turns")
	}
}
