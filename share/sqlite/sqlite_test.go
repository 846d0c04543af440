package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
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
	err = s.Turn(context.Background(), "k", func(share.Reading) ([]byte, error) { return []byte("x"), nil })
	if !errors.Is(err, sql.ErrConnDone) {
		t.Errorf("a closed store takes turns: %v", err)
	}
}

// checkpointed has the file alone have all that was put, and no log beside it.
func checkpointed(t *testing.T, file string) []byte {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for busy := 1; busy != 0; {
		var log, done int
		if err := db.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A copy of the file is put back while processes have it open: in place of the file, or into it.
func TestRestored(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		t.Run(map[bool]string{false: "replaced", true: "overwritten"}[inPlace], func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "limits.db")
			open := func(t *testing.T) share.Store {
				s, err := sqlite.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
			sharetest.Restored(t, open, func(t *testing.T) func() {
				backup := checkpointed(t, file)
				return func() {
					if inPlace {
						checkpointed(t, file)
					} else {
						for _, end := range []string{"", "-wal", "-shm"} {
							os.Remove(file + end)
						}
					}
					if err := os.WriteFile(file, backup, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// A file that is removed while it is open is made again: processes that come later share it.
func TestRemoved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.db")
	put := func(s *sqlite.Store, blob string) (was string) {
		t.Helper()
		err := s.Turn(t.Context(), "a", func(r share.Reading) ([]byte, error) {
			was = string(r.Blob)
			return []byte(blob), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return was
	}
	open := func() *sqlite.Store {
		s, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	first := open()
	put(first, "one")
	for _, end := range []string{"", "-wal", "-shm"} {
		os.Remove(file + end)
	}
	second := open()
	if was := put(second, "two"); was != "" {
		t.Errorf("the new file has %q", was)
	}
	if was := put(first, "three"); was != "two" {
		t.Errorf("who had the removed file open reads %q", was)
	}
}

// The table is dropped while processes have the file open: a turn makes it again, and they share it.
func TestTableDropped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.db")
	var all []*sqlite.Store
	for range 3 {
		s, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all = append(all, s)
	}
	turns := func() (last int) {
		for i := range 6 {
			err := all[i%3].Turn(t.Context(), "a", func(r share.Reading) ([]byte, error) {
				last = len(r.Blob)
				return append(r.Blob, 'x'), nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return last
	}
	turns()
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec(`DROP TABLE share`)
	}
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if n := turns(); n != 5 {
		t.Errorf("of 6 turns after that the last reads those of %d", n)
	}
}

// A database in memory is refused, as nobody else can share it.
func TestInMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{":memory:", ":MEMORY:", "file::memory:", "file::memory:?cache=shared", "file:x?mode=memory", "x?cache=shared&mode=memory", "file:/x?vfs=memdb"} {
		s, err := sqlite.Open(name)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "in memory") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
}
