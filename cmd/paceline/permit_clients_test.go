//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// clientLimits are the limits that the tests of the clients want.
var clientLimits = []string{"--limit", "fast=100000/s", "--limit", "pair=2/h", "--limit", "hour=1/h", "--limit", "left=1/h",
	"--limit", "answers=100000/s", "--limit", "http=100000/s", "--limit", "refusing=100000/s"}

// client is a program of another language beside a daemon.
func (p *permits) client(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Env = append(c.Environ(), p.env...)
	return c
}

const (
	pythonTests = top + "/clients/python/tests/"
	scriptTests = top + "/clients/javascript/tests/"
	clientKey   = "a-key-that-nobody-guesses"
)

// newClients is newPermits with what the tests of the clients want.
func newClients(t *testing.T) *permits {
	t.Helper()
	at := need.Address(t)
	p := newPermits(t, append([]string{"--listen", at, "--key-env", "PERMIT_KEY"}, clientLimits...)...)
	p.env = append(p.env, "PERMIT_KEY="+clientKey, "PERMIT_URL=http://"+at, "PACELINE_SOCKET="+p.socket(), "K_ONE=sk-5f0c81b97d2e",
		"K_TWO=sk-91d27ab6c03f")
	p.begin().runOf("--to", "http://127.0.0.1:9", "--limit", "1/h")
	p.runOf("--to", "http://127.0.0.1:8", "--limit", "1/h", "--key-env", "K_ONE,K_TWO", "--header", "X-Key: {key}")
	return p
}

// clientTestsWithin bounds the tests of a client. At a load of 50 they take less than a tenth of it.
const clientTestsWithin = 4 * time.Minute

// pass runs the tests of a client.
func (p *permits) pass(program string, args ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeoutCause(p.t.Context(), clientTestsWithin,
		fmt.Errorf("the tests have not ended within %v", clientTestsWithin))
	defer cancel()
	if b, err := endsBy(ctx, p.client(program, args...), 10*time.Second); err != nil {
		p.t.Errorf("%v\n%s", err, b)
	}
}

// endsBy runs a program with its children, and returns what they write. At the end of ctx it interrupts them, so that
// they can say where they are. After the grace it kills them: a child that lives has the output open.
func endsBy(ctx context.Context, c *exec.Cmd, grace time.Duration) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	all := -c.Process.Pid
	kills := time.AfterFunc(time.Hour, func() { _ = syscall.Kill(all, syscall.SIGKILL) })
	defer kills.Stop()
	inTime := context.AfterFunc(ctx, func() {
		_ = syscall.Kill(all, syscall.SIGINT)
		kills.Reset(grace)
	})
	err := c.Wait()
	if !inTime() {
		err = context.Cause(ctx)
	}
	return out.Bytes(), err
}

// A program that hangs is interrupted and then killed, with its children. Its output is there.
func TestEndsBy(t *testing.T) {
	t.Parallel()
	sh := need.Program(t, "sh")
	hangs := errors.New("it hangs")
	for _, row := range []struct {
		script, said, err string
		grace             time.Duration
	}{
		{"echo done", "done\n", "<nil>", 0},
		{"echo failed; exit 3", "failed\n", "exit status 3", 0},
		{"trap 'echo in the second; exit 0' INT; echo begun; echo >&3; while :; do sleep 0.01; done", "begun\nin the second\n",
			"it hangs", time.Hour},
		{"trap '' INT; echo deaf; echo >&3; sleep 1000", "deaf\n", "it hangs", 0},
	} {
		heard, says, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, hang := context.WithCancelCause(t.Context())
		go func() {
			if n, _ := heard.Read(make([]byte, 1)); n > 0 {
				hang(hangs)
			}
		}()
		c := exec.Command(sh, "-c", row.script)
		c.ExtraFiles = []*os.File{says}
		b, err := endsBy(ctx, c, row.grace)
		says.Close() // the reader ends
		hang(nil)
		if string(b) != row.said || fmt.Sprint(err) != row.err {
			t.Errorf("%s: %q, %v", row.script, b, err)
		}
		heard.Close()
	}
}

// The tests of the client of Python pass, at a real daemon.
func TestPythonPermits(t *testing.T) {
	t.Parallel()
	race.Without(t)
	python := "python3"
	if need.Whole() {
		python = need.Python(t, "httpx")
	} else {
		need.Program(t, python)
	}
	newClients(t).pass(python, "-W", "error", pythonTests+"test_paceline.py")
}

// The client of Python is typed, by mypy's strictest rules.
func TestPythonTypes(t *testing.T) {
	t.Parallel()
	need.LongOnly(t, "mypy is slow, and no program fails for a type")
	c := exec.Command(need.Program(t, "mypy"), "--strict", "--python-version", "3.9", "--cache-dir", t.TempDir(), "paceline.py")
	c.Dir = filepath.Join(pythonTests, "..")
	if b, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

// The tests of the client of JavaScript pass, at a real daemon.
func TestJavaScriptPermits(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "node")
	newClients(t).pass("node", "--expose-gc", "--test", scriptTests+"paceline.test.mjs")
}

// crowd is programs of Python that send by permits, each with 12 threads, to a strict server of 200 a
// second.
type crowd struct {
	t      *testing.T
	p      *permits
	server *lawful
	first  int // id of the next program's first request

	mu  sync.Mutex
	all []*exec.Cmd
}

func (c *crowd) join(seconds time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.p.client("python3", pythonTests+"strict.py", c.server.URL, "strict", fmt.Sprint(seconds.Seconds()), "12", strconv.Itoa(c.first))
	c.first += 20_000
	if err := x.Start(); err != nil {
		c.t.Error(err)
	}
	c.all = append(c.all, x)
}

// Four programs of Python with 12 threads each keep to a strict limit, and use it.
func TestPermitsStrict(t *testing.T) {
	race.Without(t)
	t.Parallel()
	need.NotShort(t, "forty threads for four seconds; package permit has the limit in virtual time")
	need.Program(t, "python3")
	seconds := 4 * time.Second
	if need.Whole() {
		seconds = 20 * time.Second
	}
	c := &crowd{t: t, p: newPermits(t, "--limit", "strict=200/s", "--late", "2s").begin(), server: newLawful(t, 200, time.Second)}
	c.p.env = append(c.p.env, "PACELINE_SOCKET="+c.p.socket())
	for range 4 {
		c.join(seconds)
	}
	for _, x := range c.all {
		if err := x.Wait(); err != nil {
			t.Error(err)
		}
	}
	refused, passed := c.server.told()
	if len(refused) > 0 {
		t.Errorf("%d are refused: %v", len(refused), refused[0])
	}
	spent := c.server.span()
	ideal := time.Duration((passed+199)/200-1) * time.Second
	t.Logf("%d requests in %v, 0 refused: %.1f %% of the ceiling", passed, spent, 100*ideal.Seconds()/spent.Seconds())
	if passed < 200*int(seconds.Seconds())/2 { // this machine may be busy; the log has the figure
		t.Errorf("%d requests in %v", passed, seconds)
	}
}

// Two daemons with one store keep to a strict limit together, and a kill of one is not noticed.
func TestPermitsShared(t *testing.T) {
	race.Without(t)
	need.WholeOnly(t, "a new store is silent for eight seconds")
	need.Program(t, "python3")
	t.Run("sqlite", func(t *testing.T) { sharedPermits(t, "sqlite:"+filepath.Join(t.TempDir(), "limits.db")) })
	t.Run("postgres", func(t *testing.T) {
		need.LongOnly(t, "the daemon knows nothing of the kind of store")
		address, _ := engines["postgres"](t)
		sharedPermits(t, address)
	})
}

// sharedPermits runs two daemons with one store, each with two programs.
func sharedPermits(t *testing.T, store string) {
	const seconds = 25 * time.Second
	server := newLawful(t, 200, time.Second)
	var all []*crowd
	for i := range 2 {
		c := &crowd{t: t, p: newPermits(t, "--limit", "strict=200/s", "--late", "2s", "--share", store).begin(), server: server,
			first: i * 100_000}
		c.p.env = append(c.p.env, "PACELINE_SOCKET="+c.p.socket())
		c.join(seconds)
		c.join(seconds)
		all = append(all, c)
	}
	time.Sleep(15 * time.Second)
	before, _ := server.told()
	all[0].p.kill()
	all[0].p.begin()
	for _, c := range all {
		for _, x := range c.all {
			if err := x.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	refused, passed := server.told()
	spent := server.span()
	t.Logf("%d requests in %v: %.1f %% of the limit, with a kill after 15 s", passed, spent, 100*float64(passed)/200/spent.Seconds())
	if len(refused) > 0 {
		t.Errorf("%d are refused, of them %d before the kill: %v", len(refused), len(before), refused[0])
	}
	if passed < 1000 {
		t.Errorf("only %d were sent", passed)
	}
}

// Kills of programs and of the daemon, and programs that are stopped for a while, put no more than the
// limit into any window.
func TestPermitsStrictKills(t *testing.T) {
	need.LongOnly(t, "it takes a minute")
	need.Program(t, "python3")
	const seconds = 50 * time.Second
	c := &crowd{t: t, p: newPermits(t, "--limit", "strict=200/s", "--late", "2s").begin(), server: newLawful(t, 200, time.Second)}
	c.p.env = append(c.p.env, "PACELINE_SOCKET="+c.p.socket())
	began := time.Now()
	for range 4 {
		c.join(seconds)
	}
	events := slices.Concat(slices.Repeat([]string{"kill"}, 15), slices.Repeat([]string{"stop"}, 9), slices.Repeat([]string{"daemon"}, 4))
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, event := range events {
		time.Sleep(seconds / time.Duration(len(events)+2))
		x := c.all[len(c.all)-1-rand.IntN(4)]
		switch event {
		case "kill":
			_ = x.Process.Kill()
			c.mu.Lock()
			c.all = slices.DeleteFunc(c.all, func(y *exec.Cmd) bool { return x == y })
			c.mu.Unlock()
			_ = x.Wait()
			c.join(seconds - time.Since(began))
		case "stop":
			_ = x.Process.Signal(syscall.SIGSTOP)
			time.AfterFunc(time.Duration(rand.Int64N(int64(4*time.Second))), func() { _ = x.Process.Signal(syscall.SIGCONT) })
		case "daemon":
			c.p.kill()
			c.p.begin()
		}
	}
	for _, x := range c.all {
		_ = x.Wait()
	}
	refused, passed := c.server.told()
	t.Logf("%d requests in %v, %d refused", passed, time.Since(began), len(refused))
	if len(refused) > 0 {
		t.Errorf("%d are refused: %v", len(refused), refused[0])
	}
	if passed < 2000 {
		t.Errorf("only %d were sent", passed)
	}
}

// How many permits a second one program gets, by the call and in batches, beside a server that echoes
// the same messages over a socket:
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestPermitsPerSecond -v
func TestPermitsPerSecond(t *testing.T) {
	need.LongOnly(t, "it measures")
	p := newPermits(t, append([]string{"--state", "off", "--late", "1ms"}, "--limit", "fast=100000000/s")...).begin()
	echo := filepath.Join(filepath.Dir(p.socket()), "echo.sock")
	l, err := net.Listen("unix", echo)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	p.env = append(p.env, "PACELINE_SOCKET="+p.socket(), "PERMIT_ECHO="+echo,
		fmt.Sprint("PERMIT_DAEMON=", p.at.Process.Pid))
	time.Sleep(3 * time.Second) // until what an earlier daemon may have granted counts no more
	for _, language := range [][]string{{"python3", pythonTests + "speed.py"}, {"node", scriptTests + "speed.mjs"}} {
		need.Program(t, language[0])
		sizes := []string{"1", "echo", "1", "10", "100", "1", "echo", "each:10", "each:100"}
		got := map[string][3][]float64{} // permits a second, and µs of CPU of the client and of the daemon
		for range 5 {
			b, err := p.client(language[0], append(language[1:], append([]string{"1"}, sizes...)...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(b)) {
				var what string
				var n [3]float64
				if _, err := fmt.Sscan(line, &what, &n[0], &n[1], &n[2]); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				all := got[what]
				for i := range n {
					all[i] = append(all[i], n[i])
				}
				got[what] = all
			}
		}
		median := func(what string) (m [3]float64) {
			for i, all := range got[what] {
				m[i] = slices.Sorted(slices.Values(all))[len(all)/2]
			}
			return m
		}
		one, bare := median("1"), median("echo")
		t.Logf("%s: echo %.0f, single %.0f (%.2f of it), CPU of a permit %.1f µs here and %.1f µs in the daemon", language[0],
			bare[0], one[0], one[0]/bare[0], one[1], one[2])
		for _, what := range sizes[3:] {
			if m := median(what); what != "1" && what != "echo" {
				t.Logf("\t%s a call: %.0f (%.1f times single); CPU %.2f and %.2f µs (%.1f times less)", what, m[0], m[0]/one[0], m[1], m[2],
					(one[1]+one[2])/(m[1]+m[2]))
			}
		}
	}
}
