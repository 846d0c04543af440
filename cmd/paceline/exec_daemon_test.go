//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

func init() { daemonEnvironment = append(daemonEnvironment, asProgram, "PACELINE_TEST_RECENT") }

// ownDaemon are variables that give a test a daemon of its own. The daemon ends with the test.
func ownDaemon(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pl") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir}
	t.Cleanup(func() {
		c := program(t, "daemon", "stop", "--now")
		c.Env = append(c.Env, env...)
		_ = c.Run() // it may have been killed
		os.RemoveAll(dir)
	})
	return env
}

// daemonStatus is the Status of a test's daemon.
func daemonStatus(t *testing.T, env []string) (said daemon.Status) {
	t.Helper()
	c := program(t, "daemon", "status", "--json")
	c.Env = append(c.Env, env...)
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		t.Fatalf("status: %v, %s", err, out)
	}
	return said
}

// fleet runs n programs of 8 requests each at a server of 20 a second, 4 at a time. each is called
// while a program runs, with its number.
func fleet(t *testing.T, s *lawful, ca string, env []string, n int, each func(i int)) (failed int, said []string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	turns := make(chan struct{}, 4)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			c := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "sh", "-c",
				fmt.Sprintf("curl -sf $(seq -f '%s/?id=%%g' %d %d) >/dev/null", s.URL, 8*i, 8*i+7))
			c.Env = append(c.Env, env...)
			var out bytes.Buffer
			c.Stdout, c.Stderr = &out, &out
			if err := c.Start(); err != nil {
				t.Error(err)
				return
			}
			each(i)
			err := c.Wait()
			mu.Lock()
			defer mu.Unlock()
			said = append(said, out.String())
			if err != nil {
				failed++
			}
		})
	}
	all.Wait()
	return failed, said
}

// Runs after one another and at once count together: a strict server refuses none of them. In CI there
// are 16 runs.
func TestExecRunsTogether(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	n := 5
	if need.Whole() {
		n = 16
	}
	s, ca := strictTLS(t)
	failed, said := fleet(t, s, ca, ownDaemon(t), n, func(int) {})
	for _, one := range said {
		if failed > 0 || !strings.Contains(one, "8 requests to") || !strings.Contains(one, ", 0 refused") {
			t.Errorf("a run says %s", one)
		}
	}
	if refused, passed := s.told(); len(refused) > 0 || passed != 8*n {
		t.Errorf("%d of %d passed, refused: %v", passed, 8*n, refused)
	}
}

// The daemon is killed in the middle: its programs' connections are refused, and the next run begins a
// new one, which reads what was sent. The server refuses none.
func TestExecKilledDaemon(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	n := 8
	if need.Whole() {
		n = 16
	}
	s, ca := strictTLS(t)
	dir := t.TempDir()
	env := append(ownDaemon(t), "TMPDIR="+dir)
	// A daemon ends half a second after its last run. So it is sought once a run of the second half has sent: on a busy
	// machine the first half may have ended long before.
	var killed, sent sync.Once
	underway := make(chan struct{})
	s.more = func(_ http.ResponseWriter, _ *http.Request, id int) bool {
		if id >= 8*(n/2) {
			sent.Do(func() { close(underway) })
		}
		return false
	}
	failed, said := fleet(t, s, ca, env, n, func(i int) {
		if i < n/2 {
			return
		}
		killed.Do(func() {
			select {
			case <-underway:
			case <-time.After(patient):
				t.Error("no request of the second half came")
				return
			}
			if err := syscall.Kill(daemonStatus(t, env).PID, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})
	})
	refused, passed := s.told()
	if len(refused) > 0 || failed > 5 || passed < 8*(n-failed) {
		t.Errorf("%d passed, %d programs failed, refused: %v\n%s", passed, failed, refused, said)
	}
	// The next run removes what a killed daemon left. On a busy machine all of the second half had begun before.
	next := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "true")
	next.Env = append(next.Env, env...)
	if out, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "paceline-exec-*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// A program whose daemon is killed reaches nothing: its connections are refused, and nothing passes.
func TestExecDaemonGone(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	s, ca := strictTLS(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "sh", "-c",
		`kill -9 $("$1" daemon status --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p') || exit 9
		for i in 1 2 3 4 5; do curl -s "$0" && exit 8; done; exit 7`, s.URL+"/?id=0", self)
	c.Env = append(c.Env, ownDaemon(t)...)
	out, err := c.CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 7 {
		t.Errorf("%v, expected 7: %s", err, out)
	}
	if _, passed := s.told(); passed > 0 {
		t.Error("a request went past the daemon")
	}
}

// What goes wrong is an error before the program starts, which names it and the way out.
func TestExecJoinErrors(t *testing.T) {
	t.Parallel()
	race.Without(t)
	s, ca := strictTLS(t)
	env := ownDaemon(t)
	touched := filepath.Join(t.TempDir(), "touched")
	says := func(env []string, args ...string) string {
		t.Helper()
		c := program(t, append(append([]string{"exec", "--to", s.URL, "--ca-file", ca}, args...), "--", "touch", touched)...)
		c.Env = append(c.Env, env...)
		out, err := c.CombinedOutput()
		if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 4 {
			t.Errorf("%q: %v, want 4: %s", args, err, out)
		}
		if _, err := os.Stat(touched); err == nil {
			t.Errorf("%q: the program was started", args)
		}
		return string(out)
	}
	holder := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "sh", "-c", "echo ready; cat")
	holder.Env = append(holder.Env, env...)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if got := says(env, "--limit", "30/s"); !strings.Contains(got, "20/s") || !strings.Contains(got, "30/s") || !strings.Contains(got, "--apart") {
		t.Errorf("other limits: %s", got)
	}
	if got := says(env, "--limit", "20/s", "-H", "X-Key: secret1234567"); !strings.Contains(got, "--header") || strings.Contains(got, "secret1234567") {
		t.Errorf("another field: %s", got)
	}
	if got := says(append(env, "HTTPS_PROXY=http://127.0.0.1:1"), "--limit", "20/s"); !strings.Contains(got, "HTTPS_PROXY is another one") {
		t.Errorf("another proxy: %s", got)
	}
	c := program(t, "exec", "--to", s.URL, "--apart", "--limit", "30/s", "--ca-file", ca, "--", "true")
	c.Env = append(c.Env, env...)
	if b, err := c.CombinedOutput(); err != nil {
		t.Errorf("--apart: %v %s", err, b)
	}
	in.Close()
	if err := holder.Wait(); err != nil {
		t.Error(err)
	}
	c = program(t, "exec", "--to", s.URL, "--limit", "30/s", "--ca-file", ca, "--", "true")
	c.Env = append(c.Env, env...)
	if b, err := c.CombinedOutput(); err != nil {
		t.Errorf("another limit after the end of the run: %v %s", err, b)
	}

	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "paceline"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := says([]string{"XDG_RUNTIME_DIR=" + dir}, "--limit", "20/s"); !strings.Contains(got, "0700") {
		t.Errorf("a folder that others enter: %s", got)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if got := says([]string{"XDG_RUNTIME_DIR=" + dir}, "--limit", "20/s"); !strings.Contains(got, "another user's") {
			t.Errorf("a folder of another user: %s", got)
		}
	}
	other := ownDaemon(t)
	place := strings.TrimPrefix(other[0], "XDG_RUNTIME_DIR=") + "/paceline"
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", place+"/daemon.sock")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			l.Close()
		}
		daemon.Answer(w, http.StatusOK, daemon.Status{Version: "v0.0.1"})
	})}
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() { h.Close() })
	if got := says(other, "--limit", "20/s"); !strings.Contains(got, "v0.0.1") || !strings.Contains(got, "paceline daemon stop") {
		t.Errorf("another version: %s", got)
	}
}

var tokenIn = regexp.MustCompile(`HTTPS_PROXY=http://paceline:([A-Z2-7]{26})@(\S+)\n`)

// The daemon gets nothing of a run's environment, and shows no token. When the program is killed, its
// files, its port and its token are gone within half a second, and nothing of the caller's stays open.
func TestExecLeavesNothing(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	s, ca := strictTLS(t)
	env := ownDaemon(t)
	inherited, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	c := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--key-env", "SECRET_OF_RUN", "-H", "X-Key: {key}", "--quiet", "--",
		"sh", "-c", `env; curl -s "$0"; echo; echo ready; exec sleep 1000`, s.URL+"/?id=0")
	c.Env = append(append(c.Env, env...), "SECRET_OF_RUN=hidden-7654321", "OTHER_SECRET=hidden-1234567")
	c.ExtraFiles = []*os.File{w}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var said strings.Builder
	for b := make([]byte, 4096); !strings.Contains(said.String(), "\nready\n"); {
		n, err := out.Read(b)
		said.Write(b[:n])
		if err != nil {
			t.Fatal(err, said.String())
		}
	}
	token := tokenIn.FindStringSubmatch(said.String())
	bundle := regexp.MustCompile(`SSL_CERT_FILE=(.*)\n`).FindStringSubmatch(said.String())
	if token == nil || bundle == nil || strings.Contains(said.String(), "hidden-7654321") {
		t.Fatalf("the program's environment: %s", said.String())
	}
	status := daemonStatus(t, env)
	if len(status.Held) != 1 || !strings.HasPrefix(status.Held[0], "sh (process ") {
		t.Errorf("it serves %q", status.Held)
	}
	shown, _ := json.Marshal(status)
	log, err := os.ReadFile(status.Log)
	if err != nil {
		t.Error(err)
	}
	journal, err := os.ReadFile(filepath.Join(filepath.Dir(status.Log), "daemon.state"))
	if err != nil {
		t.Error(err)
	}
	seen := map[string][]byte{"status": shown, "log": log, "journal": journal}
	if runtime.GOOS == "linux" {
		for _, name := range []string{"environ", "cmdline"} {
			if seen[name], err = os.ReadFile(fmt.Sprintf("/proc/%d/%s", status.PID, name)); err != nil {
				t.Error(err)
			}
		}
		if bytes.Contains(seen["environ"], []byte("PATH=")) {
			t.Errorf("the daemon's environment: %q", seen["environ"])
		}
		if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", status.PID)); err != nil || at != "/" {
			t.Errorf("the daemon's folder: %s, %v", at, err)
		}
	}
	for where, b := range seen {
		if bytes.Contains(b, []byte(token[1])) || bytes.Contains(b, []byte("hidden-")) {
			t.Errorf("a secret in the %s: %s", where, b)
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = c.Wait()
	gone := func() bool {
		_, err := os.Stat(filepath.Dir(bundle[1]))
		conn, refused := net.Dial("tcp", strings.TrimSuffix(token[2], "/"))
		if refused == nil {
			conn.Close()
		}
		return err != nil && refused != nil
	}
	for !gone() {
		if time.Since(killed) > patient {
			t.Fatal("files or port are still there")
		}
		time.Sleep(time.Millisecond)
	}
	if d := time.Since(killed); d > 2*time.Second { // half a second on a machine that nobody shares
		t.Errorf("gone after %v, want half a second", d)
	} else {
		t.Logf("gone after %v", d)
	}
	if b, err := io.ReadAll(inherited); len(b) > 0 || err != nil { // ends when nobody holds the other end
		t.Error(b, err)
	}
}

// A run whose flags hold for a whole proxy has one of its own. All others join the daemon.
func TestExecAlone(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"": false, "--weight 3 --head-start 5s --max-wait 1m": false, "--attempts 1 --max-pause 5m": false,
		"--apart": true, "--state /tmp/s": true, "--share sqlite:/tmp/s": true, "--max-body 1KiB": true, "--final-only": true,
	} {
		x, cmd := newExecFlags()
		if err := cmd.ParseFlags(append(strings.Fields(args), "--to", "http://127.0.0.1:1", "--limit", "20/s")); err != nil {
			t.Fatal(args, err)
		}
		c, err := x.configured(cmd)
		if err != nil {
			t.Fatal(args, err)
		}
		if got := x.alone(&c); got != want {
			t.Errorf("%s: alone %v, want %v", args, got, want)
		}
		client := x.runOf(c, "job", 7).Client
		if strings.Contains(args, "--weight") != (client.Weight == 3 && client.HeadStart == 5*time.Second && client.MaxWait == time.Minute) {
			t.Errorf("%s: the run's client is %+v", args, client)
		}
	}
}
