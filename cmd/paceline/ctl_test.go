//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/observe"
)

// A limit that refusals have shown to be wrong is shown with what fits, as text and in JSON. The others are not.
func TestCtlShowsWhatFits(t *testing.T) {
	of := observe.Whose{Host: "a.test", Key: "k"}
	s := ctlState{Verb: "proxy", Wrong: wrongOf([]observe.Snapshot{{Limits: []observe.LimitState{
		{Whose: of, Name: "limit", Unit: "requests", PerWindow: 40, Window: time.Second, Fits: 20},
		{Whose: of, Name: "other", Unit: "requests", PerWindow: 600, Window: time.Minute},
	}}})}
	var out strings.Builder
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	if want := "limit 40/s at a.test key k: 20 fit, as refusals showed\n"; !strings.Contains(out.String(), want) ||
		strings.Contains(out.String(), "600") {
		t.Errorf("%s, want %q", out.String(), want)
	}
	out.Reset()
	if err := writeJSON(&out, &s); err != nil || !strings.Contains(out.String(), `"fits": 20`) {
		t.Errorf("%v: %s", err, out.String())
	}
}

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

// In a container without a folder for temporary files, a program and paceline ctl find one another in the folder of a
// volume. Without one, both say what to set. Of several programs one is meant by its address or its file.
func TestCtlWithoutTemporaryFolder(t *testing.T) {
	t.Parallel()
	dir := strings.TrimPrefix(ownDaemon(t)[0], "XDG_RUNTIME_DIR=")
	s := &steering{t, []string{"XDG_RUNTIME_DIR=", "TMPDIR=/nonexistent", "XDG_STATE_HOME=" + dir}}
	const says = "another folder that this user may write is named by PACELINE_RUNTIME_DIR"
	s.says(cli.ExitFailure, says, "show")
	file := write(t, "paceline.yaml", "version: 1\nlisten: 127.0.0.1:0\nadmin: \"off\"\nupstreams: [{to: \"http://127.0.0.1:1\", limits: [5/s]}]\n")
	lost, errs := s.start("proxy", "--config", file, "--log", "json", "--recent=false")
	lost.Env = append(lost.Env, "PATH=")
	defer func() {
		_ = lost.Process.Signal(os.Interrupt)
		_ = lost.Wait()
		if !strings.Contains(errs.String(), says) || !strings.Contains(errs.String(), `"level":"WARN","msg":"paceline ctl does not reach this proxy"`) {
			t.Errorf("the proxy says\n%s", errs)
		}
	}()
	s.env = append(s.env, "PACELINE_RUNTIME_DIR="+dir)
	s.start("proxy", "--config", file, "--log", "off", "--recent=false")
	s.until(1)
	s.says(0, " of "+file+", process ", "show")
	s.start("proxy", "--to", "http://127.0.0.1:1", "--limit", "7/s", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off", "--recent=false")
	all := s.until(2)
	if all[0].File == "" {
		all[0], all[1] = all[1], all[0]
	}
	s.says(cli.ExitUsage, "2 programs go on, expected --pid ", "limit", "9/s")
	s.says(0, "proxy "+all[0].What+" of "+file+", process "+all[0].PID+": limit 5/s is 9/s now", "limit", "9/s", "--pid", file)
	s.says(0, "proxy "+all[1].What+", process "+all[1].PID+": limit 7/s is 9/s now", "limit", "9/s", "--pid", all[1].What)
	s.says(cli.ExitUsage, "no such program", "limit", "9/s", "--pid", "127.0.0.1:1")
}

// Root reaches a service of another user by the service's own folder, as systemd makes it.
func TestCtlOfService(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root reaches programs of another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimPrefix(ownDaemon(t)[0], "XDG_RUNTIME_DIR=")
	own, bin := filepath.Join(dir, "own"), filepath.Join(dir, "bin") // where another user may run it
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(own, 0o700), os.Chown(own, 65534, 65534), os.Link(self, bin))
	if errors.Is(err, syscall.EXDEV) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(bin, "proxy", "--to", "http://127.0.0.1:1", "--limit", "7/s", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off",
		"--recent=false")
	c.Dir, c.Env = "/", []string{asProgram + "=1", "RUNTIME_DIRECTORY=" + own}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	s := &steering{t, []string{"XDG_RUNTIME_DIR=" + dir}}
	s.says(0, "no run or proxy of this user goes on")
	for began := time.Now(); time.Since(began) < patient; time.Sleep(20 * time.Millisecond) {
		if _, out, _ := s.ctl("--runtime-dir", own); strings.Contains(out, "7/s") {
			break
		}
	}
	s.says(0, "limit 7/s is 9/s now", "limit", "9/s", "--runtime-dir", own)
}

// paceline ctl lists runs, changes one, and says what is wrong with a change that cannot be made.
func TestCtlOfRuns(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer srv.Close()
	s := newSteering(t)
	s.says(0, "no run or proxy of this user goes on")
	s.says(cli.ExitFailure, "no run or proxy of this user goes on", "pause")
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
	s.says(0, "no run or proxy of this user goes on")
}

// paceline ctl changes a proxy that runs, by flags or by a file. Its page and its log say so. The file holds
// again at its next change, and the next process begins without the changes.
func TestCtlOfProxies(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer srv.Close()
	s := newSteering(t)
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(rate string) {
		t.Helper()
		text := fmt.Sprintf(`version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
state: %s
clients:
  list:
    - {name: nightly, addresses: [127.0.0.1], weight: 2, limits: [900/h]}
upstreams:
  - {name: one, path: /one, to: %s, limits: [%s, 1000/m], keys: [{name: K1, env: KEY_A}], header: {X-Key: "{key}"}}
  - {name: two, path: /two, to: %[2]s, limits: [20/s], in_flight: 3}
`, filepath.Join(filepath.Dir(file), "s"), srv.URL, rate)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2/h")
	c, errs := s.start("proxy", "--config", file)
	what := s.until(1)[0].What
	asks := func(path string) int {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+what+path, nil)
		r.Close = true // the former process serves what is open
		r.Header.Set("Paceline-Max-Wait", "5")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, want := range []int{200, 200, 429} {
		if got := asks("/one/"); got != want {
			t.Errorf("2/h: %d, want %d", got, want)
		}
	}
	const all = "one: 2/h or one: 1000/m or two: 20/s or client nightly: 900/h"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 0, "proxy " + what},
		{"show", 0, "limit one: 2/h\nlimit one: 1000/m\nlimit two: 20/s\nlimit client nightly: 900/h\nkey K1: ok\ntwo: 3 in flight at most for each key\nclient nightly: weight 2\nclient default: weight 1\n0 waiting"},
		{"limit 9/d", cli.ExitConfig, "9/d may be for each of several limits; expected the name of one before it: one: 2/h or one: 1000/m or two: 20/s"},
		{"limit 7/h 9/h", cli.ExitConfig, `no limit "7/h", expected ` + all},
		{"concurrency 5", cli.ExitConfig, "5 in flight at which upstream? expected its name before it: one or two"},
		{"share bob 5", cli.ExitConfig, `no client "bob" is in the configuration, expected nightly or default`},
		{"share nightly many", cli.ExitUsage, `a weight of "many", expected above 0`},
		{"limit 2/h 4/h", 0, "limit one: 2/h is 4/h now"},
		{"share nightly 5", 0, "client nightly: weight 2 is 5 now"},
		{"concurrency two 1", 0, "two: 1 in flight at most for each key"},
		{"pause K1 --until 2h", 0, "K1 paused until 20"},
		{"show", 0, "key K1: paused until 20"},
		{"show", 0, "key K1 at one paused until 20"},
		{"show", 0, "changed by its user: limit one: 2/h is 4/h now; client nightly: weight 2 is 5 now; two: 1 in flight at most for each key\n"},
	} {
		s.says(c.code, c.want, strings.Fields(c.args)...)
	}
	if got := asks("/one/"); got != 429 {
		t.Errorf("a request with a paused key: %d", got)
	}
	s.says(0, "K1 resumed", "resume", "K1")
	for _, want := range []int{200, 200, 429} {
		if got := asks("/one/"); got != want {
			t.Errorf("4/h: %d, want %d", got, want)
		}
	}
	s.says(0, `"name": "nightly",`, "show", "-o", "json")
	write("3/h")
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if _, out, _ := s.ctl("show"); strings.Contains(out, "limit one: 3/h\n") &&
			strings.Contains(out, "changed by its user: client nightly: weight 2 is 5 now; two: 1 in flight at most for each key\n") {
			break
		} else if time.Since(began) > patient {
			t.Fatal(out)
		}
	}
	s.says(0, "limit one: 3/h is 5/h now", "limit", "one", "5/h")
	if err := c.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	next := s.until(1)[0]
	for began := time.Now(); next.PID == strconv.Itoa(c.Process.Pid) && time.Since(began) < patient; {
		next = s.until(1)[0]
	}
	pid, err := strconv.Atoi(next.PID)
	if err != nil || pid == c.Process.Pid {
		t.Fatalf("process %s goes on, after %d: %v", next.PID, c.Process.Pid, err)
	}
	if err := errors.Join(syscall.Kill(pid, syscall.SIGTERM), c.Wait()); err != nil { // both write to errs
		t.Error(err)
	}
	if next.Limits[0] != "one: 3/h" || served.Load() != 4 {
		t.Errorf("the next process has %q; %d were served", next.Limits, served.Load())
	}
	for _, want := range []string{"paceline ctl: limit one: 2/h is 4/h now\n", "paceline ctl: K1 resumed\n",
		`what its user changed holds no more, since the configuration states another value now" changes="limit one: 2/h is 4/h now"`,
		"the next process does not have: changed by its user: client nightly: weight 2 is 5 now; two: 1 in flight at most for each key; limit one: 3/h is 5/h now\n"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("the proxy says %q, want %q", errs, want)
		}
	}
}

// A run and a proxy are changed from their pages, by a token of paceline ctl page, and say where each change
// came from.
func TestPageKnobs(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	for _, args := range [][]string{
		{"run", "FILE", "--limit", "3/h", "--page", "0", "--out", filepath.Join(t.TempDir(), "a.jsonl")},
		{"proxy", "--to", srv.URL, "--limit", "3/h", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
	} {
		s := newSteering(t)
		if args[0] == "run" {
			args[1] = s.urls(10, srv.URL)
		}
		c, errs := s.start(args...)
		s.until(1)
		var at, token string
		for began := time.Now(); token == "" && time.Since(began) < patient; { // a run has its page a moment after its socket
			if _, out, _ := s.ctl("page"); strings.Contains(out, "token") {
				at = out[strings.Index(out, "http://"):strings.Index(out, "\n")]
				token = strings.TrimSpace(out[strings.LastIndex(out, " "):])
			}
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Jar: jar}
		post := func(origin string, form url.Values) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", origin)
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, string(b)
		}
		own := strings.TrimSuffix(at, knobsPath)
		limit := url.Values{"knob": {"limit"}, "value": {"9/h"}}
		for _, c := range []struct {
			origin string
			form   url.Values
			status int
			want   string
		}{
			{own, limit, 403, "Token of"},
			{"http://evil.test", url.Values{"token": {token}}, 403, "not of this page"},
			{own, url.Values{"token": {token}}, 200, "limit 3/h\n"},
			{"http://evil.test", limit, 403, "not of this page"},
			{own, limit, 200, "limit 9/h\n"},
			{own, url.Values{"knob": {"limit"}, "value": {"<b>"}}, 422, "Not changed: &#34;&lt;b&gt;&#34;"},
			{own, url.Values{"knob": {"pause"}, "for": {"2h"}}, 200, "all requests paused until"},
		} {
			if status, body := post(c.origin, c.form); status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %v from %s: %d %s, want %d with %q", args[0], c.form, c.origin, status, body, c.status, c.want)
			}
		}
		s.says(0, "limit 9/h\n", "show")
		_ = c.Process.Kill()
		_ = c.Wait()
		if !strings.Contains(errs.String(), "the page, from 127.0.0.1:") || !strings.Contains(errs.String(), ": limit 3/h is 9/h now\n") || strings.Contains(errs.String(), token) {
			t.Errorf("%s says %s", args[0], errs)
		}
	}
}
