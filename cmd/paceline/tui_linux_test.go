package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/ratetest"
)

// typist is a person at a terminal, before a program.
type typist struct {
	t        *testing.T
	terminal *need.Terminal
	before   need.TerminalState
	c        *exec.Cmd

	mu   sync.Mutex
	seen bytes.Buffer // all that the program wrote
}

// newTypist starts a program at a terminal of 80 × 24. Its results go to a file.
func newTypist(t *testing.T, args ...string) *typist {
	t.Helper()
	return startTypist(t, "TERM=xterm", args...)
}

func startTypist(t *testing.T, env string, args ...string) *typist {
	t.Helper()
	p := &typist{t: t, terminal: need.OpenTerminal(t), c: program(t, args...)}
	p.terminal.Resize(80, 24)
	p.before = p.terminal.State()
	p.c.Env = append(append(p.c.Env, env, "NO_COLOR=1"), ownDaemon(t)...)
	p.c.Stdin, p.c.Stdout, p.c.Stderr = p.terminal.File, p.terminal.File, p.terminal.File
	p.c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.c.Process.Kill() })
	go func() { _, _ = io.Copy(p, p.terminal.Person) }()
	return p
}

// Write implements io.Writer, for what the program writes.
func (p *typist) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Write(b)
}

func (p *typist) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// sees waits until the program has written a text, after what it had written before.
func (p *typist) sees(from int, want string) {
	p.t.Helper()
	for began := time.Now(); !strings.Contains(p.all()[from:], want); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patient {
			p.t.Fatalf("%q is not seen in %q", want, p.all()[from:])
		}
	}
}

// types types keys, and waits until the program shows what they do.
func (p *typist) types(keys, want string) {
	p.t.Helper()
	from := len(p.all())
	if _, err := p.terminal.Person.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
	p.sees(from, want)
}

// ends waits for the end of the program, and returns its exit code, and what stands on the terminal then.
func (p *typist) ends() (code int, left string) {
	p.t.Helper()
	_ = p.c.Wait()
	fmt.Fprint(p.terminal.File, "the shell's prompt") // comes after all that the program wrote
	p.sees(0, "the shell's prompt")
	before, rest, _ := strings.Cut(p.all(), "\x1b[?1049h")
	_, after, _ := strings.Cut(rest, "\x1b[?1049l")
	if strings.Contains(after, "\x1b[?1049") || strings.Count(after, "\x1b[?25") > 0 {
		p.t.Errorf("after the screen: %q", after)
	}
	if is := p.terminal.State(); is != p.before {
		p.t.Errorf("the terminal is left as %+v, and was %+v", is, p.before)
	}
	return p.c.ProcessState.ExitCode(), before + after
}

// Each key of the screen changes the run, at a server that bans who sends too much: it refuses nothing. After the screen
// the run goes on, and all messages and the summary stand on the terminal.
func TestScreenSteersARun(t *testing.T) {
	t.Parallel()
	x, err := ratetest.NewExchange(ratetest.Config{Limit: 50, Keys: []string{environment["KEY_A"], environment["KEY_B"]}, AnyNonce: true})
	if err != nil {
		t.Fatal(err)
	}
	j := newJudge(t, x.ServeHTTP)
	in := write(t, "in.jsonl", numbered(20000, j.URL+ratetest.Path)) // more than can be sent while keys are typed
	p := newTypist(t, "run", "--tui", "--limit", "20/s", "--limit", "6000/m", "--key-env", "KEY_A,KEY_B", "--query", "api_key={key}",
		"--query", "req_id={id}", "--out", filepath.Join(t.TempDir(), "out.jsonl"), in)
	p.sees(0, "6000/m")
	p.types("p", "all keys paused until paceline ctl resume")
	p.types("p", "all keys resumed")
	p.types("\t ", "KEY_B paused until paceline ctl resume")
	p.types(" ", "KEY_B resumed")
	p.types("-", "58 in flight at most")
	p.types("+", "63 in flight at most")
	p.types("0", "as many in flight as at the start")
	p.types("l", "another rate, such as 10/s")
	p.types("quick\r", `"quick" does not say per what time`)
	p.types("l4/h\r", "may be for each of several limits")
	p.types("l10/s\r", "limit 20/s is 10/s now")
	p.types("l10/s 50/s\r", "limit 10/s is 50/s now")
	sent := j.count()
	p.terminal.Resize(100, 30)
	p.types("", "\x1b[2J")
	for began := time.Now(); j.count() < sent+150; time.Sleep(5 * time.Millisecond) { // a full window of each key at least
		if time.Since(began) > patient {
			t.Fatalf("%d requests came", j.count())
		}
	}
	from := len(p.all())
	p.types("q", "\x1b[?1049l")
	p.sees(from, "/20,000  ") // the progress line
	p.types("\x03", "interrupted: ")
	code, left := p.ends()
	var missing []string
	for _, want := range []string{"--tui: all keys paused until paceline ctl resume\r\n", "--tui: all keys resumed\r\n",
		"--tui: KEY_B paused until paceline ctl resume\r\n", "--tui: limit 10/s is 50/s now\r\n", "0 rejected, 0 expired, 0 dead, 0 lost, "} {
		if strings.Count(left, want) != 1 {
			missing = append(missing, want)
		}
	}
	r := x.Report()
	all := r.Judge.Total
	if code != cli.ExitInterrupted || len(missing) > 0 || all.Accepted != j.count() || all.Limited+all.Banned+r.Malformed != 0 {
		t.Errorf("exit %d, %+v of %d; %q is missing in\n%s", code, r, j.count(), missing, left)
	}
}

// The first ctrl-c waits for what is in flight, below the screen. The second leaves the screen, and breaks that off.
func TestScreenIsInterrupted(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	j := newJudge(t, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the server waits for its requests
	p := newTypist(t, "run", "--tui", "--limit", "20/s", "--out", filepath.Join(t.TempDir(), "out.jsonl"), write(t, "in.jsonl", numbered(50, j.URL)))
	p.sees(0, "all requests")
	for j.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.types("\x03", "interrupted: waiting for ")
	if strings.Contains(p.all(), "\x1b[?1049l") {
		t.Error("the first ctrl-c leaves the screen")
	}
	p.types("\x03", "\x1b[?1049l")
	if code, left := p.ends(); code != cli.ExitInterrupted || strings.Count(left, "once more breaks ") != 1 ||
		!strings.Contains(left, "interrupted again: breaking off") || !strings.Contains(left, " 0 done, ") {
		t.Errorf("exit %d:\n%s", code, left)
	}
}

// A run that ends by itself leaves the summary, and all that was said.
func TestScreenEndsWithTheRun(t *testing.T) {
	t.Parallel()
	j := newJudge(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("id") == "3" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	p := newTypist(t, "run", "-v", "--tui", "--limit", "1000/s", "--out", filepath.Join(t.TempDir(), "out.jsonl"),
		write(t, "in.jsonl", numbered(30, j.URL)))
	if code, left := p.ends(); code != cli.ExitSomeFailed || !strings.Contains(left, "30 to send, 29 done, 0 rejected") ||
		strings.Count(left, "msg=answer id=") != 30 {
		t.Errorf("exit %d:\n%s", code, left)
	}
}

// Without a terminal, or where something else stands against it, --tui says what is expected, and nothing is sent.
func TestScreenIsRefused(t *testing.T) {
	in := write(t, "in.jsonl", numbered(3, "http://127.0.0.1:1"))
	for _, c := range []struct {
		flags string
		code  int
		says  string
	}{
		{"--out r.jsonl", cli.ExitUsage, "--tui: standard error is no terminal; expected a terminal, or --page for a page in a browser"},
		{"--out r.jsonl -q", cli.ExitUsage, "-q and --tui: one asks for nothing and the other for all, expected one of them"},
		{"--dry-run", cli.ExitOK, ""},
	} {
		args := append(strings.Fields("run --tui --limit 20/s "+c.flags), in)
		if code, _, stderr := paceline("", args...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d, %s", c.flags, code, stderr)
		}
	}
	for env, says := range map[string]string{"TERM=xterm": "--tui: the results go to the terminal, too; expected --out FILE",
		"TERM=dumb": "--tui: TERM is dumb: "} {
		p := startTypist(t, env, append(strings.Fields("run --tui --limit 20/s"), append(map[string][]string{"TERM=dumb": {"--out", "r.jsonl"}}[env], in)...)...)
		if code, left := p.ends(); code != cli.ExitUsage || !strings.Contains(left, says) {
			t.Errorf("%s: exit %d, %s", env, code, left)
		}
	}
}
