//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// steering has programs of its own that paceline ctl finds.
type steering struct {
	t   *testing.T
	env []string
}

func newSteering(t *testing.T) *steering {
	return &steering{t, append(ownDaemon(t), "KEY_A=sk-large-5f0c81b97d2e", "KEY_B=sk-small-91d27ab6c03f")}
}

// start starts a program. Its standard error is in errs once it has ended.
func (s *steering) start(args ...string) (c *exec.Cmd, errs *bytes.Buffer) {
	s.t.Helper()
	c, errs = program(s.t, args...), new(bytes.Buffer)
	c.Env, c.Stderr = append(c.Env, s.env...), errs
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill() })
	return c, errs
}

// ctl runs paceline ctl.
func (s *steering) ctl(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	c := program(s.t, append([]string{"ctl"}, args...)...)
	var out, errs bytes.Buffer
	c.Env, c.Stdout, c.Stderr = append(c.Env, s.env...), &out, &errs
	_ = c.Run()
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// says checks an answer of paceline ctl.
func (s *steering) says(code int, want string, args ...string) {
	s.t.Helper()
	got, stdout, stderr := s.ctl(args...)
	said := stdout
	if code != 0 {
		said = stderr
	}
	if got != code || !strings.Contains(said, want) {
		s.t.Errorf("ctl %s: exit %d, %q, want %d with %q", strings.Join(args, " "), got, stdout+stderr, code, want)
	}
}

// until waits for programs that paceline ctl lists.
func (s *steering) until(n int) (states []ctlState) {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < patient; time.Sleep(20 * time.Millisecond) {
		_, out, _ := s.ctl("-o", "json")
		if err := json.Unmarshal([]byte(out), &states); err == nil && len(states) == n {
			return states
		}
	}
	s.t.Fatalf("ctl does not list %d programs", n)
	return nil
}

func (s *steering) urls(n int, url string) string {
	s.t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "%s/%d\n", url, i)
	}
	file := filepath.Join(s.t.TempDir(), "urls.txt")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// paceline ctl lists runs, changes one, and says what is wrong with a change that cannot be made.
func TestCtlOfRuns(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer srv.Close()
	s := newSteering(t)
	s.says(0, "no run of this user goes on")
	s.says(cli.ExitFailure, "no run of this user goes on", "pause")
	file := s.urls(400, srv.URL)
	a, errs := s.start("run", file, "--limit", "1/s", "--limit", "300/m", "--key-env", "KEY_A,KEY_B",
		"-H", "X-Key: {key}", "--out", filepath.Join(t.TempDir(), "a.jsonl"))
	s.until(1)
	b, _ := s.start("run", file, "--limit", "1/h", "--out", filepath.Join(t.TempDir(), "b.jsonl"))
	s.until(2)
	pid := strconv.Itoa(a.Process.Pid)
	s.says(cli.ExitUsage, "2 programs go on, expected --pid ", "pause")
	s.says(cli.ExitUsage, "--pid 1: no such program, expected --pid ", "pause", "--pid", "1")
	s.says(0, "all requests: ok", "show", "--pid", strconv.Itoa(b.Process.Pid))
	if err := b.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.Wait()
	s.until(1) // its socket is left, and counts no more
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"pause KEY_A --until 2h", 0, "KEY_A paused until 20"},
		{"show", 0, "key KEY_A: paused until 20"},
		{"show", 0, "key KEY_B: ok"},
		{"pause --pid " + pid, 0, "all keys paused until paceline ctl resume"},
		{"show", 0, "key KEY_B: paused, by its user"},
		{"show", 0, "waiting: paceline ctl resume"},
		{"pause KEY_C", cli.ExitConfig, `no key "KEY_C", expected KEY_A or KEY_B, or no name for all of them`},
		{"pause --until 25:00", cli.ExitUsage, `--until "25:00", expected a time of day`},
		{"limit 4/h", cli.ExitConfig,
			"4/h may be for each of several limits; expected the name of one before it: 1/s or 300/m"},
		{"limit 2/s 1/s", cli.ExitConfig, `no limit "2/s", expected 1/s or 300/m`},
		{"limit 1/s quick", cli.ExitUsage, `RATE "quick" does not say per what time`},
		{"limit 1/s 200", cli.ExitUsage, `RATE "200" does not say per what time`},
		{"limit", cli.ExitUsage, ""},
		{"limit 1/s 2/s 3/s", cli.ExitUsage, ""},
		{"concurrency many", cli.ExitUsage, `"many" requests in flight, expected 1 or more`},
		{"concurrency 9999999", cli.ExitConfig, "9999999 in flight, expected 1 to "},
		{"stop", cli.ExitUsage, `unknown command "stop" for "paceline ctl"`},
		{"-o yaml", cli.ExitUsage, `--output "yaml", expected text or json`},
		{"concurrency 7", 0, "7 in flight at most"},
		{"limit 1/s 900/s", 0, "limit 1/s is 900/s now"},
		{"limit 300/m 54000/m", 0, "limit 300/m is 54000/m now"},
		{"show", 0, "limit 900/s\nlimit 54000/m\n"},
		{"show", 0, "(7 at most)"},
	} {
		s.says(c.code, c.want, strings.Fields(c.args)...)
	}
	if n := served.Load(); n > 300 {
		t.Errorf("%d served although all keys are paused", n)
	}
	if err := a.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.says(cli.ExitFailure, "program "+pid+" does not answer, maybe since it is suspended", "pause")
	if err := a.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.says(0, "all keys resumed", "resume")
	if err := a.Wait(); err != nil {
		t.Errorf("the run: %v\n%s", err, errs)
	}
	for _, want := range []string{"paceline ctl: all keys paused until paceline ctl resume\n",
		"paceline ctl: limit 1/s is 900/s now\n",
		"paceline ctl: 7 in flight at most\n", "400 done, 0 rejected"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("the run says %q, want %q", errs, want)
		}
	}
	s.says(0, "no run of this user goes on")
}
