package batch

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// What is made is for the user's eyes only, and stays so when the journal is compacted.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such modes")
	}
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.RawQuery == "1" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	b := newBench(t)
	for range 2 { // the second opens and compacts
		b.run(requests(3, srv.URL)...)
		for _, path := range []string{b.config.Out, DeadBeside(b.config.Out), b.config.Out + ".journal"} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %v", filepath.Base(path), info.Mode())
			}
		}
	}
}

// A link where the journal is compacted to leads nowhere.
func TestCompactFollowsNoLink(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, b.config.Out+".journal.new"); err != nil {
		t.Skip(err)
	}
	got := b.run(requests(3, srv.URL)...)
	if text, _ := os.ReadFile(precious); got.Done != 3 || string(text) != "precious" {
		t.Errorf("%+v, %v; then it says %.30q", got.Totals, got.err, text)
	}
}
