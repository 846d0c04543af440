//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// Short jobs one after the other, each with other files or none: what one sent counts in the next. So a
// strict server refuses nothing. Before, it refused the second job, and an exchange banned its key.
func TestRunsOneAfterTheOther(t *testing.T) {
	t.Setenv("PL_RECENT_A", "sk-recent-Of-9a7Kq31")
	t.Setenv("PL_RECENT_B", "sk-recent-Of-8b6Lp72")
	keys := []string{"--key-env", "PL_RECENT_A,PL_RECENT_B", "--header", "Authorization: Bearer {key}"}
	for name, c := range map[string]struct {
		flags []string
		out   func(job int) []string
		after func(out string) // what the user does after a job
	}{
		"files of their own": {keys, jobFile, nil},
		"no files":           {keys, func(int) []string { return nil }, nil},
		"removed files":      {keys, jobFile, func(out string) { os.RemoveAll(filepath.Dir(out)) }},
		"no key":             {nil, jobFile, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newLawful(t, 10, 400*time.Millisecond)
			folder := t.TempDir()
			jobs := func(from, to int, more ...string) {
				for job := from; job < to; job++ {
					args := []string{"run", write(t, "in.jsonl", numbered(15, server.URL)), "--limit", "10/400ms", "--progress", "off"}
					out := ""
					if flags := c.out(job); flags != nil {
						out = filepath.Join(folder, fmt.Sprint("of", job), flags[1])
						args = append(args, flags[0], out)
					}
					if code, _, stderr := paceline("", append(append(args, c.flags...), more...)...); code != 0 {
						t.Errorf("job %d: exit %d: %s", job, code, stderr)
					}
					if c.after != nil && out != "" {
						c.after(out)
					}
				}
			}
			jobs(0, 4, "--recent")
			if len(server.refused) > 0 {
				t.Errorf("%d requests are refused: %v", len(server.refused), server.refused)
			}
			if jobs(4, 6, "--recent=false", "--attempts", "9"); len(server.refused) == 0 {
				t.Error("the server refuses nothing either where runs do not count each other")
			}
		})
	}
}

func jobFile(job int) []string { return []string{"--out", fmt.Sprintf("j%d.jsonl", job)} }

// What a run sent that was killed counts, too. A run beside another says that the two do not count together.
func TestRunsBesideAndKilled(t *testing.T) {
	t.Parallel()
	server := newLawful(t, 10, time.Second)
	dir := t.TempDir()
	args := func(out string, n int) []string {
		return []string{"run", write(t, "in.jsonl", numbered(n, server.URL)), "--limit", "10/s", "--progress", "off", "--recent",
			"--out", filepath.Join(dir, out)}
	}
	first := program(t, args("a.jsonl", 1000)...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Process.Kill() })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		server.mu.Lock()
		n := server.passed
		server.mu.Unlock()
		if n >= 10 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the first run sends nothing")
		}
	}
	_, _, stderr := paceline("", args("beside.jsonl", 1)...)
	want := fmt.Sprintf("process %d (paceline run) sends with the same key to the same server at this moment", first.Process.Pid)
	if !strings.Contains(stderr, want) {
		t.Errorf("beside a run: %s", stderr)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	server.mu.Lock()
	server.refused = nil // by the one beside
	server.mu.Unlock()
	if code, _, stderr := paceline("", args("b.jsonl", 5)...); code != cli.ExitOK || len(server.refused) > 0 {
		t.Errorf("after kill -9: exit %d, %v refused: %s", code, server.refused, stderr)
	}
}
