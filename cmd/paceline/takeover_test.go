//go:build unix

package main

import (
	"bytes"
	"context"
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A proxy is replaced under load, many times, by SIGUSR2 and by --takeover in turn. No request of
// HTTP/1.1, of HTTP/2 or with a streamed answer is lost, refused by the proxy, or refused by a strict
// server. In the long form, that gets at least 98 % of what it allows.
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestProxyTakenOver -v       20 times, over 10,000 requests
func TestProxyTakenOver(t *testing.T) {
	t.Parallel()
	const perSecond = 250
	times, apart := 3, 1200*time.Millisecond
	if need.Long() {
		times, apart = 20, 2200*time.Millisecond
	}
	server := newLawful(t, perSecond, time.Second)
	var arrivals arrivals
	server.more = func(w http.ResponseWriter, r *http.Request, id int) bool {
		arrivals.add()
		return streamsThree(w, r, id)
	}
	state := filepath.Join(t.TempDir(), "s")
	p := newPassing(t, nil, "--to", server.URL, "--limit", fmt.Sprintf("%d/s", perSecond), "--state", state, "--idle-timeout", "5s", "--log", "off")
	family := &family{passing: p}
	t.Cleanup(family.end)
	family.begin()
	k := &takenOver{passing: p, server: server}
	var clients sync.WaitGroup
	for i := range 40 {
		clients.Go(func() { k.client(i) })
	}
	for i := range times {
		time.Sleep(apart + rand.N(apart/4))
		if about, err := os.Stat(state + ".sock"); err != nil || about.Mode().Perm() != 0o600 {
			t.Fatalf("the socket: %v %v, expected the mode 0600", about, err)
		}
		if i%2 == 0 {
			if err := p.process.Process.Signal(syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			// The next one is no child of this test: --takeover finds it.
		} else {
			family.begin("--takeover")
		}
		family.arrive(i + 2)
	}
	time.Sleep(apart)
	k.over.Store(true)
	clients.Wait()
	refused, _ := server.told()
	share := arrivals.inSeconds() / perSecond
	t.Logf("%d takeovers, %d requests: %d lost, %d answered otherwise; the server refused %d, and got %.1f %% of its limit", times,
		k.asked.Load(), k.lost.Load(), k.told.Load(), len(refused), 100*share)
	if k.lost.Load() > 0 || k.told.Load() > 0 || len(refused) > 0 {
		t.Errorf("lost %d, answered otherwise %d, refused %v: %s", k.lost.Load(), k.told.Load(), clipped(refused), p.said.String())
	}
	if began := strings.Count(p.said.String(), begun); began != times+1 {
		t.Errorf("%d processes began, expected %d: %s", began, times+1, p.said.String())
	}
	if need.Long() && share < 0.98 { // beside other tests, it measures the machine
		t.Errorf("the server got %.1f %% of its limit", 100*share)
	}
}

// family is a proxy and those that take over from it. They end together.
type family struct {
	*passing
	all []*exec.Cmd
}

// begin starts another one, beside those that run.
func (f *family) begin(more ...string) {
	args := f.args
	f.args = append(slices.Clone(args), more...)
	f.tune = func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
	f.passing.begin()
	f.args = args
	f.all = append(f.all, f.process)
}

// arrive waits until so many of them have begun. On a busy machine that takes seconds, and a takeover from a process that
// is itself about to take over is none.
func (f *family) arrive(n int) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); strings.Count(f.said.String(), begun) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d processes began: %s", strings.Count(f.said.String(), begun), n, f.said.String())
		}
	}
}

// begun is in the greeting of a proxy, which it says once it serves.
const begun = "passing on from"

// end ends all of them, with their children.
func (f *family) end() {
	for _, c := range f.all {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
}

// The next process reports itself to systemd as the main one, and no process reports a stop: that is
// `systemctl reload`. A next process that does not come up changes nothing.
func TestTakeoverUnderSystemd(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "n"), Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	defer notices.Close()
	notice := func() string {
		t.Helper()
		b := make([]byte, 100)
		_ = notices.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := notices.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	server := newLawful(t, 100, time.Second)
	p := newPassing(t, nil)
	text := fmt.Sprintf("version: 1\nlisten: %s\nadmin: %s\nstate: %s\nbounds: {idle_timeout: 1s}\nupstreams: [{to: %s, limits: [100/s]}]\n",
		p.at, p.admin, filepath.Join(dir, "s"), server.URL)
	file := write(t, "proxy.yaml", text)
	p.args = []string{"proxy", "--config", file}
	p.env = []string{"NOTIFY_SOCKET=" + notices.LocalAddr().String()}
	family := &family{passing: p}
	t.Cleanup(family.end)
	family.begin()
	if said := notice(); said != "READY=1" {
		t.Errorf("%q", said)
	}
	ask := func(id int) {
		t.Helper()
		resp, err := http.Get(fmt.Sprintf("http://%s/?id=%d", p.at, id))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%d", resp.StatusCode)
		}
	}
	signal := func() {
		t.Helper()
		if err := p.process.Process.Signal(syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
	}
	ask(1)
	if err := os.WriteFile(file, []byte(text+"lisen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	signal()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.said.String(), `"lisen" is not known`); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(p.said.String())
		}
	}
	p.hears("the next process has ended before it took over, as it says above; this one goes on\" err=\"exit status 4\"")
	ask(2)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	signal()
	ready, next, _ := strings.Cut(notice(), "\nMAINPID=")
	if pid, err := strconv.Atoi(next); ready != "READY=1" || err != nil || pid == p.process.Process.Pid {
		t.Errorf("%q, MAINPID=%q, expected another than %d", ready, next, p.process.Process.Pid)
	}
	p.hears(fmt.Sprintf("; taken over from process %d; paceline %s, process %s;", p.process.Process.Pid, cli.Version(), next))
	ask(3)
	// The former process ends by itself. (Its Wait does not return as long as the next one has its stderr.)
	for end := time.Now().Add(time.Minute); syscall.Kill(p.process.Process.Pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the former process does not end: %s", p.said.String())
		}
	}
	ask(4)
	_ = notices.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := notices.Read(make([]byte, 100)); err == nil {
		t.Errorf("systemd got more, %d bytes", n)
	}
}

// A takeover that fails changes nothing for the programs of the former process: the file of certificates is as it was.
// After one that succeeds, it has the certificate of the next process.
func TestFailedTakeoverLeavesTheBundle(t *testing.T) {
	for _, fails := range []bool{true, false} {
		dir, err := os.MkdirTemp("", "s") // the path of a socket is short
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path, bundle := filepath.Join(dir, "s"), filepath.Join(dir, "ca.pem")
		former, err := daemon.ListenForHandover(path)
		if err == nil {
			err = former.Serve(nil)
		}
		if err == nil {
			err = os.WriteFile(bundle, []byte("of the former process"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var says earshot
		ended := make(chan int, 1)
		go func() {
			args := "proxy --to http://127.0.0.1:1 --limit 1/s --listen 127.0.0.1:0 --admin off --takeover --forward 127.0.0.1:0"
			more := []string{"--state", filepath.Join(dir, "state"), "--handover", path, "--forward-bundle", bundle}
			ended <- execute(ctx, append(strings.Fields(args), more...), strings.NewReader(""), io.Discard, &says)
		}()
		next := <-former.Next()
		if err := next.Give(daemon.Offer{PID: os.Getpid()}, nil); err != nil {
			t.Fatal(err)
		}
		if fails {
			next.Close()
		} else {
			if err := former.HandOver(next, time.Minute); err != nil {
				t.Error(err)
			}
			for !strings.Contains(says.String(), begun) && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			next.Close()
			cancel()
		}
		code := <-ended
		text, err := os.ReadFile(bundle)
		changed := string(text) != "of the former process"
		if err != nil || changed == fails || (code == cli.ExitOK) == fails {
			t.Errorf("fails: %v: exit code %d, changed: %v, %v: %s", fails, code, changed, err, says.String())
		}
		if left, _ := filepath.Glob(bundle + "*"); len(left) != 1 {
			t.Errorf("fails: %v: left are %v", fails, left)
		}
		former.Close()
	}
}

// arrivals are the instants of requests.
type arrivals struct {
	mu  sync.Mutex
	all []time.Time
}

func (a *arrivals) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, time.Now())
}

// inSeconds is how many came in a second, of the whole seconds from the first one on.
func (a *arrivals) inSeconds() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	seconds := a.all[len(a.all)-1].Sub(a.all[0]).Truncate(time.Second)
	n := 0
	for _, at := range a.all {
		if at.Sub(a.all[0]) < seconds {
			n++
		}
	}
	return float64(n) / seconds.Seconds()
}

// streamsThree answers a path of a stream in three parts.
func streamsThree(w http.ResponseWriter, r *http.Request, id int) bool {
	if r.URL.Path != "/stream" {
		return false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range 3 {
		fmt.Fprintf(w, "of %d\n", id)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(100 * time.Millisecond)
	}
	return true
}

// takenOver is a proxy that other processes replace while clients send.
type takenOver struct {
	*passing
	server            *lawful
	last              atomic.Int64
	over              atomic.Bool
	asked, lost, told atomic.Int64
}

// client sends until it is over: by HTTP/1.1, by HTTP/2, or for streams.
func (k *takenOver) client(i int) {
	way := &http.Transport{Protocols: new(http.Protocols), DisableKeepAlives: i%8 == 7}
	way.Protocols.SetHTTP1(i%4 < 2)
	way.Protocols.SetUnencryptedHTTP2(i%4 >= 2)
	c := http.Client{Transport: way}
	defer c.CloseIdleConnections()
	path, times := "/things", 1
	if i%2 == 1 {
		path, times = "/stream", 3
	}
	for !k.over.Load() {
		id := k.last.Add(1)
		r, err := http.NewRequest("POST", fmt.Sprintf("http://%s%s?id=%d", k.at, path, id), bytes.NewReader([]byte("{}")))
		if err != nil {
			k.t.Error(err)
			return
		}
		k.asked.Add(1)
		resp, err := c.Do(r)
		if err != nil {
			k.lost.Add(1)
			k.t.Logf("%d by %d: %v", id, i, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		want := strings.Repeat(fmt.Sprintf("of %d\n", id), times)
		switch {
		case err != nil || resp.StatusCode == http.StatusOK && strings.TrimSpace(string(text)) != strings.TrimSpace(want):
			k.lost.Add(1)
			k.t.Logf("%d by %d: %v %q", id, i, err, text)
		case resp.StatusCode != http.StatusOK:
			k.told.Add(1)
			k.t.Logf("%d by %d: %d %s", id, i, resp.StatusCode, text)
		}
		if n := k.server.times(int(id)); n != 1 {
			k.t.Errorf("%d was served %d times", id, n)
		}
	}
}
