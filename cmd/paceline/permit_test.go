//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// permits is a user with a daemon of its own.
type permits struct {
	t    *testing.T
	env  []string
	args []string
	at   *exec.Cmd // the daemon
}

// newPermits starts a daemon with flags for permits.
func newPermits(t *testing.T, args ...string) *permits {
	t.Helper()
	dir, err := os.MkdirTemp("", "paceline-permits-") // a path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	p := &permits{t: t, env: []string{"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir}, args: args}
	t.Cleanup(func() {
		p.kill()
		os.RemoveAll(dir)
	})
	return p
}

func (p *permits) socket() string {
	return filepath.Join(strings.TrimPrefix(p.env[0], "XDG_RUNTIME_DIR="), "paceline", "daemon.sock")
}

func (p *permits) program(args ...string) *exec.Cmd {
	c := program(p.t, args...)
	c.Env = append(c.Env, p.env...)
	return c
}

// begin starts the daemon, and waits until it listens.
func (p *permits) begin() *permits {
	p.t.Helper()
	p.at = p.program(append([]string{"daemon"}, p.args...)...)
	says, err := p.at.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.at.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(says)
	for before := ""; ; before = lines.Text() {
		if !lines.Scan() {
			p.t.Fatalf("the daemon ends, and says %q", before)
		}
		if strings.HasPrefix(lines.Text(), "listening at ") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, says) }()
	return p
}

// kill ends the daemon by kill -9.
func (p *permits) kill() {
	if p.at != nil {
		_ = p.at.Process.Kill()
		_ = p.at.Wait()
		p.at = nil
	}
}

// runs runs paceline permit.
func (p *permits) runs(args ...string) (code int, stdout, stderr string) {
	p.t.Helper()
	c := p.program(append([]string{"permit"}, args...)...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		p.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// counts are the outcomes that the daemon has counted.
func (p *permits) counts() (all struct{ Accepted, Limited, Failed, Unknown, Unsent int }) {
	p.t.Helper()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket())
	}}}
	defer c.CloseIdleConnections()
	a, err := c.Get(daemon.Base + "/v1/limits")
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Body.Close()
	if err := json.NewDecoder(a.Body).Decode(&all); err != nil {
		p.t.Fatal(err)
	}
	return all
}

// The exit code and the signal are the command's, and the limit learns the end of the request by them.
func TestPermitEnds(t *testing.T) {
	t.Parallel()
	p := newPermits(t, "--limit", "orders=100/s").begin()
	for _, row := range []struct {
		args   []string
		code   int
		stdout string
	}{
		{[]string{"orders", "--", "echo", "sent"}, 0, "sent\n"},
		{[]string{"orders", "--refused-code", "75,76", "--", "sh", "-c", "exit 76"}, 76, ""},
		{[]string{"orders", "--", "sh", "-c", "exit 42"}, 42, ""},
		{[]string{"orders", "--", "sh", "-c", "kill -TERM $$"}, -1, ""},
		{[]string{"orders", "--", "no-such-program"}, 127, ""},
		{[]string{"none", "--", "echo", "sent"}, cli.ExitConfig, ""},
		{[]string{"orders", "--cost", "tokens", "--", "echo", "sent"}, cli.ExitUsage, ""},
		{[]string{"orders", "echo", "sent"}, cli.ExitUsage, ""},
	} {
		if code, out, errs := p.runs(row.args...); code != row.code || out != row.stdout {
			t.Errorf("%q: exit code %d, prints %q %q", row.args, code, out, errs)
		}
	}
	if got := p.counts(); got.Accepted != 1 || got.Limited != 1 || got.Unknown != 2 || got.Unsent != 0 {
		t.Errorf("the daemon counts %+v", got)
	}
}

// A signal to paceline permit reaches the command. Before the turn it ends the wait, and nothing runs.
func TestPermitSignals(t *testing.T) {
	t.Parallel()
	p := newPermits(t, "--limit", "orders=1/h").begin()
	file := filepath.Join(t.TempDir(), "signal")
	c := p.program("permit", "orders", "--", "sh", "-c", "trap 'echo $$ >"+file+"; exit 7' USR1; echo ready; while :; do sleep 0.02; done")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(n, err)
	}
	_ = c.Process.Signal(syscall.SIGUSR1)
	if _ = c.Wait(); c.ProcessState.ExitCode() != 7 {
		t.Errorf("the command's trap ends it with 7, and this with %v", c.ProcessState)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	waits := p.program("permit", "orders", "--", "touch", file+"2")
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // in the end it waits; if not yet, the signal comes sooner
	_ = waits.Process.Signal(syscall.SIGTERM)
	if _ = waits.Wait(); waits.ProcessState.ExitCode() == 0 {
		t.Errorf("it ends with %v", waits.ProcessState)
	}
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("the command ran without a permit")
	}
}

// The permit of a command that runs for longer than a permit is held is renewed, and settled at its end.
func TestPermitIsRenewed(t *testing.T) {
	t.Parallel()
	need.WholeOnly(t, "a permit is held for ten seconds")
	p := newPermits(t, "--limit", "orders=1/h").begin()
	if code, _, errs := p.runs("orders", "--", "sleep", "12"); code != 0 {
		t.Fatalf("%d %q", code, errs)
	}
	if got := p.counts(); got.Accepted != 1 || got.Unknown != 0 {
		t.Errorf("the daemon counts %+v", got)
	}
}

// Without a daemon nothing runs. A daemon that comes later, or comes back, is waited for.
func TestPermitWaitsForDaemon(t *testing.T) {
	t.Parallel()
	p := newPermits(t, "--limit", "orders=2/m", "--late", "100ms") // none of the calls waits a window
	if code, out, errs := p.runs("orders", "--daemon-wait", "100ms", "--", "echo", "sent"); code != cli.ExitFailure || out != "" ||
		!strings.Contains(errs, "the daemon is away for 100ms, and nothing goes without a permit") {
		t.Errorf("without a daemon: %d %q %q", code, out, errs)
	}
	waits := p.program("permit", "orders", "--", "echo", "sent")
	var out bytes.Buffer
	waits.Stdout = &out
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	p.begin()
	if err := waits.Wait(); err != nil || out.String() != "sent\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if code, _, errs := p.runs("orders", "--max-wait", "0", "--cost", "requests=3", "--", "true"); code != cli.ExitConfig ||
		!strings.Contains(errs, "larger than the limit") {
		t.Errorf("%d %q", code, errs)
	}
	if code, _, errs := p.runs("orders", "--", "true"); code != 0 {
		t.Errorf("%d %q", code, errs)
	}
	if code, _, errs := p.runs("orders", "--max-wait", "1ms", "--cost", "requests=2", "--", "true"); code != cli.ExitBudget ||
		!strings.Contains(errs, "the call would wait") {
		t.Errorf("%d %q", code, errs)
	}
}

// A kill of the daemon forgets nothing that counts, by its state file.
func TestPermitKilledDaemon(t *testing.T) {
	t.Parallel()
	p := newPermits(t, "--limit", "orders=2/h").begin()
	for range 2 {
		if code, _, errs := p.runs("orders", "--", "true"); code != 0 {
			t.Fatalf("%d %q", code, errs)
		}
	}
	p.kill()
	p.begin()
	if code, _, errs := p.runs("orders", "--max-wait", "10m", "--", "true"); code != cli.ExitBudget {
		t.Errorf("after a kill the third goes: %d %q", code, errs)
	}
}

// Wrong flags of the daemon are named, before it begins.
func TestDaemonLimitFlags(t *testing.T) {
	t.Parallel()
	race.Without(t)
	p := newPermits(t)
	for _, row := range [][]string{
		{"NAME=RATE", "--limit", "50/s"},
		{"does not say per what time", "--limit", "orders=50"},
		{"name of up to 64", "--limit", "or ders=50/s"},
		{"expected the name of a --limit", "--limit", "a=1/s", "--provider", "b=openai"},
		{"provider \"nobody\" is not known", "--limit", "a=1/s", "--provider", "a=nobody"},
		{"expected a weight from", "--limit", "a=1/s", "--client", "x=0"},
		{"expected a span such as", "--limit", "a=1/s", "--head-start", "x=1"},
		{"no --limit", "--client", "x=1"},
		{"an address of this machine", "--limit", "a=1/s", "--listen", "0.0.0.0:7881"},
		{"without --key-env", "--limit", "a=1/s", "--listen", "127.0.0.1:7881"},
		{"that nobody guesses", "--limit", "a=1/s", "--listen", "127.0.0.1:7881", "--key-env", "SECRET"},
		{"--state beside --share", "--limit", "a=1/s", "--share", "sqlite:x.db", "--state", "off"},
		{"--share-weight without --share", "--limit", "a=1/s", "--share-weight", "2"},
		{"expected a span above 0", "--limit", "a=1/s", "--late", "0s"},
	} {
		b, err := p.program(append([]string{"daemon"}, row[1:]...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(b), row[0]) {
			t.Errorf("%q: %v %s", row[1:], err, b)
		}
	}
	if b, err := p.program("daemon", "--schema").Output(); err != nil || string(b) != permit.Schema {
		t.Errorf("--schema prints %q, %v", b, err)
	}
}

// A port with a key serves the same permits.
func TestDaemonPort(t *testing.T) {
	t.Parallel()
	const key = "a-key-that-nobody-guesses"
	at := need.Address(t)
	p := newPermits(t, "--limit", "orders=1/h", "--listen", at, "--key-env", "PERMIT_KEY")
	p.env = append(p.env, "PERMIT_KEY="+key)
	p.begin()
	says := func(key string) int {
		r, err := http.NewRequest(http.MethodPost, "http://"+at+"/v1/acquire", strings.NewReader(`{"limit":"orders","max_wait":0}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	if got := fmt.Sprint(says("another-key-of-that-length"), says(key), says(key)); got != "401 200 429" {
		t.Errorf("a wrong key, the key, and again: %s", got)
	}
	if code, _, _ := p.runs("orders", "--max-wait", "1s", "--", "true"); code != cli.ExitBudget {
		t.Errorf("by the socket: %d", code)
	}
}
