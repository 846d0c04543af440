//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// runOf starts a program under paceline exec, and waits until it runs. The program lasts until its
// standard input ends, with the test or before.
func (p *permits) runOf(args ...string) (in io.Closer) {
	p.t.Helper()
	c := p.program(append(append([]string{"exec", "--quiet"}, args...), "--", "sh", "-c", "echo runs; cat >/dev/null")...)
	in, err := c.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "runs\n" {
		_ = c.Wait()
		p.t.Fatalf("the program does not run: %s", errs.String())
	}
	p.t.Cleanup(func() { in.Close(); _ = c.Wait() })
	return in
}

// ofRuns is a user without a daemon, which the first run starts.
func ofRuns(t *testing.T) *permits {
	p := &permits{t: t, env: ownDaemon(t)}
	return p
}

// A program under paceline exec and one that sends by permits count in one limit: a strict server refuses
// neither.
func TestPermitsAtUpstream(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "python3")
	need.Program(t, "curl")
	s := newLawful(t, 20, time.Second)
	p := ofRuns(t)
	p.runOf("--to", s.URL, "--limit", "20/s")
	c := p.program("exec", "--quiet", "--to", s.URL, "--limit", "20/s", "--", "sh", "-c",
		fmt.Sprintf("curl -sf $(seq -f '%s/?id=%%g' 0 39) >/dev/null", s.URL))
	p.env = append(p.env, "PACELINE_SOCKET="+p.socket())
	by := p.client("python3", pythonTests+"strict.py", s.URL, strings.TrimPrefix(s.URL, "http://"), "3", "3", "1000")
	for _, x := range []*exec.Cmd{c, by} {
		if err := x.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []*exec.Cmd{c, by} {
		if err := x.Wait(); err != nil {
			t.Error(err)
		}
	}
	refused, passed := s.told()
	if len(refused) > 0 {
		t.Errorf("%d are refused: %v", len(refused), refused[0])
	}
	if passed < 50 { // 40 by HTTP, and some by permits
		t.Errorf("%d passed", passed)
	}
	if code, out, errs := p.runs(strings.TrimPrefix(s.URL, "http://"), "--", "echo", "sent"); code != 0 || out != "sent\n" {
		t.Errorf("paceline permit at a server of a run: exit code %d, %s %s", code, out, errs)
	}
}

// A command learns which of several keys its permit counts for. The names of an outer permit are not its.
func TestPermitNamesKey(t *testing.T) {
	t.Parallel()
	p := newPermits(t, "--limit", "orders=100/s").begin()
	p.env = append(p.env, "K_ONE=sk-5f0c81b97d2e", "K_TWO=sk-91d27ab6c03f", permitKey+"=outer")
	p.runOf("--to", "http://127.0.0.1:9", "--limit", "1/h", "--key-env", "K_ONE,K_TWO", "--header", "X-Key: {key}")
	tell := []string{"--max-wait", "0", "--", "sh", "-c", "echo $" + permitKey}
	var named []string
	for range 2 {
		code, out, errs := p.runs(append([]string{"127.0.0.1:9"}, tell...)...)
		if code != 0 {
			t.Fatalf("%d %q", code, errs)
		}
		named = append(named, strings.TrimSpace(out))
	}
	if slices.Sort(named); !slices.Equal(named, []string{"K_ONE", "K_TWO"}) {
		t.Errorf("the two permits name %q", named)
	}
	if code, out, _ := p.runs(append([]string{"127.0.0.1:9"}, tell...)...); code != cli.ExitBudget {
		t.Errorf("a third permit: exit code %d, %s", code, out)
	}
	if code, out, errs := p.runs(append([]string{"orders"}, tell...)...); code != 0 || out != "\n" {
		t.Errorf("at a limit without keys: exit code %d, %q %q", code, out, errs)
	}
}

// paceline daemon --limit joins the daemon that a run has started. Its limits last as long as that
// daemon, and differ from none that is there.
func TestDaemonJoins(t *testing.T) {
	t.Parallel()
	p := ofRuns(t)
	p.runOf("--to", "http://127.0.0.1:9", "--limit", "20/s")
	if code, _, errs := p.runs("orders", "--", "echo", "sent"); code != cli.ExitConfig || !strings.Contains(errs, "127.0.0.1:9") {
		t.Errorf("without a limit: exit code %d, %s", code, errs)
	}
	p.args = []string{"--limit", "orders=2/h", "--client", "ops=2"}
	p.begin()
	for _, row := range []struct{ args, want string }{
		{"--limit orders=3/h", "limit orders: it is 2/h at the daemon already, and 3/h here"},
		{"--limit mail=1/s --late 1s", "--late beside a daemon that runs already"},
		{"--limit mail=1/s --client ops=3", "client ops has weight 2"},
		{"--limit mail=1/x", "--limit mail"},
		{"", "runs already"},
	} {
		c := p.program(append([]string{"daemon"}, strings.Fields(row.args)...)...)
		if b, err := c.CombinedOutput(); err == nil || !strings.Contains(string(b), row.want) {
			t.Errorf("daemon %s: %v, says %s, expected %q", row.args, err, b, row.want)
		}
	}
	for _, want := range []string{"sent\n", "sent\n", ""} {
		if code, out, errs := p.runs("orders", "--max-wait", "1s", "--", "echo", "sent"); out != want {
			t.Errorf("a permit: exit code %d, %q, %s", code, out, errs)
		}
	}
	if err := p.at.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.at.Wait(); err != nil {
		t.Errorf("after a signal: %v", err)
	}
	if code, _, errs := p.runs("orders", "--max-wait", "1s", "--", "echo", "sent"); code != cli.ExitBudget {
		t.Errorf("what was granted counts after the one that joined has ended: exit code %d, %s", code, errs)
	}
	p.args = []string{"--limit", "orders=2/h", "--limit", "mail=1/h"}
	p.begin()
	stop := p.program("daemon", "stop", "--now")
	if b, err := stop.CombinedOutput(); err != nil {
		t.Fatalf("%v, %s", err, b)
	}
	if err := p.at.Wait(); err != nil {
		t.Errorf("after a stop of the daemon: %v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(p.socket()), "permits.state")); err != nil {
		t.Errorf("no file of what was granted: %v", err)
	}
	p.at = nil
}
