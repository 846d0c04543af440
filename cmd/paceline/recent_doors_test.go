//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest"
)

// doors are commands that send with one key to an exchange that bans it at its first refusal.
type doors struct {
	t     *testing.T
	x     *ratetest.Exchange
	at    string
	limit string
	env   []string
	proxy *passing
	sent  int
}

func newDoors(t *testing.T, banAfter int, window time.Duration) *doors {
	x, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"key-of-doors-7Qz4"}, AnyNonce: true, BanAfter: banAfter, Limit: 10,
		Window: window})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(x)
	t.Cleanup(s.Close)
	return &doors{t: t, x: x, at: s.URL, limit: fmt.Sprintf("10/%dms", window.Milliseconds()), env: append(ownDaemon(t), "PACELINE_TEST_RECENT=1", "K=key-of-doors-7Qz4", "HOME="+t.TempDir())}
}

// does runs a command, and returns what it says.
func (d *doors) does(args ...string) string {
	d.t.Helper()
	c := program(d.t, args...)
	c.Env = append(c.Env, d.env...)
	out, err := c.CombinedOutput()
	if err != nil {
		d.t.Errorf("paceline %s: %v: %s", args[0], err, out)
	}
	return string(out)
}

// run sends eight requests by paceline run.
func (d *doors) run(flags ...string) string {
	d.t.Helper()
	in := write(d.t, "in.txt", strings.Repeat(d.at+ratetest.Path+"\n", 8))
	d.sent += 8
	return d.does(append([]string{"run", in, "--limit", d.limit, "--key-env", "K", "--query", "api_key={key}", "--ban-status", "403", "--progress", "off"}, flags...)...)
}

// asks are arguments of a shell in which curl sends eight requests, with the key of the bot itself.
func (d *doors) asks(at string) []string {
	return []string{"sh", "-c", fmt.Sprintf(`curl -s -o /dev/null "%s?api_key=$K&i=[1-8]"`, at+ratetest.Path)}
}

func (d *doors) exec() string {
	d.t.Helper()
	d.sent += 8
	return d.does(append([]string{"exec", "--quiet", "--to", d.at, "--limit", d.limit, "--max-wait", "5s", "--"}, d.asks(d.at)...)...)
}

// says checks what a command says of those beside it; empty: nothing.
func (d *doors) says(out, want string) {
	d.t.Helper()
	if is := strings.Contains(out, "at this moment"); want == "" && is || !strings.Contains(out, want) {
		d.t.Errorf("it says %q, want %q", out, want)
	}
}

// starts starts a proxy for the exchange, if there is none.
func (d *doors) starts(flags ...string) {
	if d.proxy == nil {
		d.proxy = newPassing(d.t, nil, append([]string{"--to", d.at, "--limit", d.limit, "--max-wait", "5s", "--log", "off"}, flags...)...)
		d.proxy.env = d.env
		d.proxy.begin()
	}
}

func (d *doors) byProxy() {
	d.t.Helper()
	d.starts()
	d.sent += 8
	asks := d.asks("http://" + d.proxy.at)
	c := exec.Command(asks[0], asks[1:]...)
	c.Env = append(os.Environ(), d.env...)
	if out, err := c.CombinedOutput(); err != nil {
		d.t.Errorf("%v: %s", err, out)
	}
}

// Commands that send with one key, one after the other within a window, are refused nothing, whichever these
// are. Without the notes, the exchange bans the key.
func TestDoorsCountTogether(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	for name, does := range map[string]func(d *doors){
		"exec, then run": func(d *doors) { d.exec(); d.says(d.run(), "") },
		"run, then exec": func(d *doors) { d.run(); d.exec() },
		"exec, run, then exec by the same daemon": func(d *doors) { d.exec(); d.run(); d.exec() },
		"run, then a proxy":                       func(d *doors) { d.run(); d.byProxy() },
		"a proxy that serves on, then run": func(d *doors) {
			d.byProxy()
			d.says(d.run(), fmt.Sprintf("process %d (paceline proxy) sends with the same key to the same server at this moment, and the two "+
				"do not count together: expect refusals; with http://%s in place of %s in its requests, they do",
				d.proxy.process.Process.Pid, d.proxy.at, d.at))
		},
		"a proxy that waits, run, the proxy": func(d *doors) { d.starts(); d.run(); d.byProxy() },
		"a proxy that has ended, then exec":  func(d *doors) { d.byProxy(); d.proxy.stop(); d.exec() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoors(t, 1, 1500*time.Millisecond)
			does(d)
			if total := d.x.Report().Judge.Total; total.Accepted != d.sent || total.Total() != d.sent {
				t.Errorf("of %d requests: %v", d.sent, total)
			}
		})
	}
}

// A run beside exec says so, with what makes the two one; exec beside a run tells its program's user. A daemon
// without a program is beside nobody.
func TestDoorsBeside(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	d := newDoors(t, -1, 50*time.Millisecond)
	c := program(t, append([]string{"exec", "--quiet", "--to", d.at, "--limit", d.limit, "--", "sh", "-c", `echo ready; read x; eval "$0"; echo ready; cat`},
		d.asks(d.at)[2])...)
	c.Env = append(c.Env, d.env...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready := func() {
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
	}
	ready()
	d.says(d.run(), "") // it has sent nothing yet
	fmt.Fprintln(in)
	ready()
	d.says(d.run(), fmt.Sprintf("(paceline exec) sends with the same key to the same server at this moment, and the two do not count "+
		"together: expect refusals; with this in front of the command, they do: paceline exec --capture --to '%s' --limit %s --", d.at, d.limit))
	in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	for len(daemonStatus(t, d.env).Held) > 0 { // until the daemon has seen the end of the program
	}
	d.says(d.run(), "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.says(d.does("exec", "--to", d.at, "--limit", d.limit, "--", self, "run", write(t, "in.txt", d.at+ratetest.Path+"\n"), "--limit",
		d.limit, "--key-env", "K", "--query", "api_key={key}", "--progress", "off"),
		"so requests go past paceline exec: they count by the limits of this run alone")
	beside := program(t, "run", write(t, "in.txt", strings.Repeat(d.at+ratetest.Path+"\n", 1000)), "--limit", d.limit, "--key-env", "K",
		"--query", "api_key={key}", "--progress", "off")
	beside.Env = append(beside.Env, d.env...)
	results, err := beside.StdoutPipe()
	if err == nil {
		err = beside.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = beside.Process.Kill(), beside.Wait() }()
	if _, err := results.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	d.says(d.exec(), fmt.Sprintf("process %d (paceline run) sends with the same key to the same server at this moment", beside.Process.Pid))
}
