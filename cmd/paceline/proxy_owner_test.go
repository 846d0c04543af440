//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// ends starts a proxy that does not come up, and returns its exit code and what it says.
func (p *passing) ends(args ...string) (code int, says string) {
	p.t.Helper()
	c := program(p.t, args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer late.Stop()
	_ = c.Wait()
	return c.ProcessState.ExitCode(), errs.String()
}

// instead returns the arguments with another value of a flag.
func instead(args []string, flag, value string) []string {
	args = slices.Clone(args)
	args[slices.Index(args, flag)+1] = value
	return args
}

// A state file is of one process. A second one with the same addresses or with others does not begin, and changes no
// file of the first. That holds after the second was killed, and after takeovers that fail and that succeed. A
// process that is killed leaves the file free, with all that it has sent.
func TestProxyStateIsOfOneProcess(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	state := filepath.Join(dir, "state")
	p := newPassing(t, nil, "--to", server.URL, "--limit", "3/h", "--state", state, "--max-wait", "1s", "--idle-timeout", "1s")
	family := &family{passing: p}
	t.Cleanup(family.end)
	family.begin()
	ask := func(want int) {
		t.Helper()
		resp, err := http.Get("http://" + p.at)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d, expected %d", resp.StatusCode, want)
		}
	}
	elsewhere := instead(instead(p.args, "--listen", "127.0.0.1:0"), "--admin", "127.0.0.1:0")
	alone := func(when string, pid int) {
		t.Helper()
		files := [2]os.FileInfo{}
		look := func(i int) os.FileInfo {
			about, err := os.Lstat([]string{state, state + ".sock"}[i])
			if err != nil {
				t.Fatal(when, err)
			}
			return about
		}
		files[0], files[1] = look(0), look(1)
		for what, args := range map[string][]string{"is in use, maybe": p.args,
			fmt.Sprintf("--state %s is in use by process %d; expected another file, or --takeover", state, pid): elsewhere} {
			if code, says := p.ends(args...); code != cli.ExitFailure || !strings.Contains(says, what) {
				t.Errorf("%s: exit code %d, expected %d and %q: %s", when, code, cli.ExitFailure, what, says)
			}
		}
		if !os.SameFile(files[0], look(0)) || !os.SameFile(files[1], look(1)) {
			t.Errorf("%s: a second process has replaced a file of the first", when)
		}
	}
	ask(200)
	alone("beside the first", p.process.Process.Pid)

	// One that takes over, and then cannot have an address: the lock came to it, and goes back.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	code, says := p.ends(append(slices.Clone(p.args), "--takeover", "--metrics", taken.Addr().String())...)
	if code == cli.ExitOK || !strings.Contains(says, "is in use, maybe") {
		t.Errorf("a takeover without its address: exit code %d: %s", code, says)
	}
	ask(200)
	alone("after a takeover that failed", p.process.Process.Pid)

	former := p.process
	family.begin("--takeover")
	family.arrive(2)
	alone("after a takeover", p.process.Process.Pid)
	endsItself(t, former)
	alone("after the end of the former process", p.process.Process.Pid)
	ask(200)
	p.kill()
	p.begin()
	ask(http.StatusTooManyRequests) // the three of the hour are known
	p.stop()
}

// endsItself waits for the end of a process. Its Wait may not return as long as another one has its standard error.
func endsItself(t *testing.T, c *exec.Cmd) {
	t.Helper()
	for end := time.Now().Add(time.Minute); syscall.Kill(c.Process.Pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the former process does not end")
		}
	}
}

// hears waits until the process has said something.
func (p *passing) hears(text string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.said.String(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("it does not say %q: %s", text, p.said.String())
		}
	}
}

// A takeover without a process to take over from says so, and begins.
func TestTakeoverOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPassing(t, nil, "--to", "http://127.0.0.1:1", "--limit", "3/h", "--handover", filepath.Join(dir, "s"), "--state", filepath.Join(dir, "t"), "--takeover")
	p.begin()
	p.hears("so this one takes nothing over")
	p.hears(begun)
	p.stop()
}
