package main

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// A folder that is removed, or renamed, while results are written into it takes them along, and every write into it succeeds all the
// same. The run says so once and fails, also if a folder of that name is there again, and the same command begins anew.
func TestRunFolderIsGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be removed there")
	}
	for name, c := range map[string]struct {
		args  []string
		again bool
	}{
		"results":      {[]string{"--out", "x.jsonl"}, false},
		"a new folder": {[]string{"--out", "x.jsonl"}, true},
		"rows":         {[]string{"--out", "x.csv", "--select", "id=.id"}, false},
		"bodies":       {[]string{"--out-dir", "."}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "results")
			var remove sync.Once
			lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Query().Get("id") != "2" {
					return
				}
				remove.Do(func() {
					if err := os.Rename(dir, dir+".gone"); err != nil { // at once, whatever is being written
						t.Error(err)
					}
					if c.again {
						_ = os.Mkdir(dir, 0o700)
					}
				})
			})
			args := []string{"run", "--limit", "500/s", "--concurrency", "1", "--progress", "off", write(t, "in.jsonl", numbered(6, lib.URL))}
			for _, a := range c.args {
				if !strings.HasPrefix(a, "--") && !strings.Contains(a, "=") {
					a = filepath.Join(dir, a)
				}
				args = append(args, a)
			}
			code, _, stderr := paceline("", args...)
			if code != cli.ExitFailure || strings.Count(stderr, " is no longer there: it was removed or renamed while ") != 1 || !strings.Contains(stderr, "paceline: cannot write: "+dir) {
				t.Errorf("%d %s", code, stderr)
			}
			if code, _, stderr := paceline("", args...); code != 0 || !strings.Contains(stderr, "6 done, ") {
				t.Errorf("again: %d %s", code, stderr)
			}
		})
	}
}
