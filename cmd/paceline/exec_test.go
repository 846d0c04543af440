//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest"
)

// strictTLS is a server of 20 a second over TLS, and the file of its certificate.
func strictTLS(t *testing.T) (s *lawful, ca string) { return strictTLSOf(t, 20) }

func strictTLSOf(t *testing.T, perSecond int64) (s *lawful, ca string) {
	t.Helper()
	s = newLawfulBy(t, perSecond, time.Second, func(s *httptest.Server) { ca = startTLS(t, s) })
	return s, ca
}

// startTLS starts a server, and returns the file of its certificate.
func startTLS(t *testing.T, s *httptest.Server) (ca string) {
	t.Helper()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return write(t, "server.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

// execs runs a program under paceline exec, and returns its standard output and error.
func execs(t *testing.T, s *lawful, ca string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return execsAt(t, s, ca, "20/s", args...)
}

// execsAt is execs with another limit.
func execsAt(t *testing.T, s *lawful, ca, limit string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := program(t, append([]string{"exec", "--to", s.URL, "--limit", limit, "--ca-file", ca}, args...)...)
	c.Env = append(c.Env, "TMPDIR="+t.TempDir(), "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run() // ends when the daemon has written its line, too: it has the same standard error
	return out.String(), errs.String(), err
}

// The command is the program: its exit code, its process id for signals, its input. Afterwards
// nothing is left, whichever of the two was killed.
func TestExecIsTheProgram(t *testing.T) {
	t.Parallel()
	race.Without(t)
	s, ca := strictTLS(t)
	for script, want := range map[string]int{"exit 42": 42, "kill -TERM $$": -1, "true": 0} {
		_, stderr, err := execs(t, s, ca, "--", "sh", "-c", script)
		got := 0
		if e, ok := err.(*exec.ExitError); ok {
			got = e.ExitCode()
		}
		if got != want || !strings.Contains(stderr, "nothing of the program came") {
			t.Errorf("%s: exit %d, want %d: %v, %q", script, got, want, err, stderr)
		}
	}
	for args, want := range map[string]string{
		"-- nosuchprogram": "exit status 127", "-- /": "exit status 126", "": "exit status 2", "sh": "exit status 2",
		"--limit x -- true": "exit status 2", "--to http:// -- true": "exit status 2",
	} {
		_, stderr, err := execs(t, s, ca, strings.Fields(args)...)
		if err == nil || err.Error() != want || !strings.HasPrefix(stderr, "paceline") {
			t.Errorf("%q: %v, want %s: %q", args, err, want, stderr)
		}
	}
	stdout, _, err := execs(t, s, ca, "--quiet", "--summary", filepath.Join(t.TempDir(), "s.json"), "--", "sh", "-c", "echo $$; echo $PACELINE_TEST")
	if err != nil || stdout == "" {
		t.Error(stdout, err)
	}
}

// Each run has a file of its own with the attempts of its program, in the folder where it was started: one of the
// daemon, one of the same daemon, and one apart.
func TestExecSent(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	s, ca := strictTLS(t)
	env := ownDaemon(t)
	for n, flags := range [][]string{nil, nil, {"--apart"}} {
		dir := t.TempDir()
		args := slices.Concat([]string{"exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--quiet", "--sent", "sent.jsonl"}, flags,
			[]string{"--", "sh", "-c", `for i in $(seq ` + strconv.Itoa(n+1) + `); do curl -sS -o /dev/null "$0/?id=$i&key=secret-9f8e7d" || exit 1; done`, s.URL})
		c := program(t, args...)
		c.Dir, c.Env = dir, append(c.Env, env...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "sent.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if len(lines) != n+1 {
			t.Errorf("run %d: %d lines, want %d", n, len(lines), n+1)
		}
		for _, line := range lines {
			if strings.Contains(line, "secret") || !strings.Contains(line, `"method":"GET","path":"/","attempt":1,"status":200,"result":"accepted","requests":1}`) ||
				!strings.Contains(line, `"client":"`) {
				t.Error(line)
			}
		}
	}
}

// With --summary the command ends after its line and the file are written, as the program ended, and reaches it by
// signals. Without a file for standard error, the test would wait for the keeper itself.
func TestExecAwaitsSummary(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	s, ca := strictTLS(t)
	env := ownDaemon(t)
	for _, c := range []struct{ name, script, flags, ends string }{
		{"a code", `curl -s -o /dev/null "$0"; exit 3`, "", "exit status 3"},
		{"a signal, apart", `curl -s -o /dev/null "$0"; kill -TERM $$`, "--apart", "signal: terminated"},
		{"a signal that is passed on", `curl -s -o /dev/null "$0"; trap 'exit 5' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done`, "", "exit status 5"},
	} {
		dir := t.TempDir()
		errs, err := os.Create(filepath.Join(dir, "errs"))
		if err != nil {
			t.Fatal(err)
		}
		defer errs.Close()
		args := slices.Concat([]string{"exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--summary", filepath.Join(dir, "s.json")},
			strings.Fields(c.flags), []string{"--", "sh", "-c", c.script, s.URL + "/?id=0"})
		p := program(t, args...)
		p.Env, p.Stderr = append(append(p.Env, env...), "TMPDIR="+dir, "HOME="+dir), errs
		if err := p.Run(); err == nil || err.Error() != c.ends {
			t.Errorf("%s: %v, not %s", c.name, err, c.ends)
		}
		var said keeper.Figures
		b, _ := os.ReadFile(filepath.Join(dir, "s.json"))
		line, _ := os.ReadFile(errs.Name())
		if json.Unmarshal(b, &said) != nil || said.Requests != 1 || said.Named != 1 || !strings.Contains(string(line), "1 requests to") {
			t.Errorf("%s: at its end there are %q and %q", c.name, b, line)
		}
	}
}

// What the keeper alone needs is not in the program's environment, and a wrong environment is an error
// before the program starts.
func TestExecEnvironment(t *testing.T) {
	t.Parallel()
	race.Without(t)
	s, ca := strictTLS(t)
	dir := t.TempDir()
	summary := filepath.Join(dir, "summary.json")
	c := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--key-env", "REAL_KEY", "-H", "Authorization: {key}", "--quiet",
		"--summary", "summary.json", "--", "sh", "-c", `env; curl -s -H 'Authorization: placeholder' "$0"`, s.URL+"/?id=0")
	c.Dir = dir // the daemon is in another folder
	c.Env = append(append(c.Env, ownDaemon(t)...), "TMPDIR="+dir, "HOME="+dir, "REAL_KEY=real-key-1234567")
	out, err := c.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("real-key")) || !bytes.Contains(out, []byte("of 0")) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"HTTPS_PROXY=http://paceline:", "SSL_CERT_FILE=" + dir, "WGETRC=", "NODE_OPTIONS=", "JAVA_TOOL_OPTIONS="} {
		if !bytes.Contains(out, []byte(name)) {
			t.Errorf("no %s in the environment", name)
		}
	}
	var said keeper.Figures
	if b, err := os.ReadFile(summary); err != nil || json.Unmarshal(b, &said) != nil || said.Requests != 1 || said.Named != 1 {
		t.Errorf("%+v, %v", said, err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "paceline-exec-*"))
	if len(left) > 0 {
		t.Error("left behind:", left)
	}
	host := strings.TrimPrefix(s.URL, "https://")
	host, _, _ = strings.Cut(host, ":")
	c = program(t, "exec", "--to", s.URL, "--limit", "20/s", "--", "true")
	c.Env = append(c.Env, "NO_PROXY=localhost,"+host)
	if out, err = c.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("NO_PROXY=localhost,"+host+" takes out "+host)) {
		t.Errorf("%v: %s", err, out)
	}
}

// The keeper was killed: the program's connections are refused, and the next run removes what is left.
func TestExecKilledKeeper(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.NotShort(t, "TestExecKilledDaemon kills a daemon")
	need.Program(t, "curl")
	if runtime.GOOS != "linux" {
		t.Skip("it looks for the keeper in /proc")
	}
	s, ca := strictTLS(t)
	dir := t.TempDir()
	c := program(t, "exec", "--apart", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "sh", "-c",
		`for p in /proc/[0-9]*; do
			if tr '\0' ' ' 2>/dev/null <$p/cmdline | grep -q -- "--keeper $$ "; then kill -9 ${p#/proc/}; found=1; fi
		done; [ $found ] || exit 9; for i in 1 2 3 4 5 6 7 8 9; do curl -s "$0" && exit 8; done; exit 7`, s.URL+"/?id=0")
	c.Env = append(c.Env, "TMPDIR="+dir)
	out, err := c.CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 7 {
		t.Fatalf("%v, expected 7: %s", err, out)
	}
	if _, passed := s.told(); passed > 0 {
		t.Error("a request went past the keeper")
	}
	left := func() []string { all, _ := filepath.Glob(filepath.Join(dir, "paceline-exec-*")); return all }
	if len(left()) != 1 {
		t.Fatal("the folder of a killed keeper is", left())
	}
	c = program(t, "exec", "--apart", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "true")
	c.Env = append(c.Env, "TMPDIR="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if len(left()) != 0 {
		t.Error("left behind:", left())
	}
}

// An exchange that bans for refusals refuses nothing to a program that sends one key in the query of a GET and
// in the form of a POST.
func TestExecCountsAKeyOnce(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	for name, flags := range map[string][]string{
		"of the program": nil, "of the daemon": {"--key-env", "K1,K2", "--query", "api_key={key}"},
	} {
		// An exchange each: the second program knows nothing of the first one's requests.
		x, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"key1", "key2"}, AnyNonce: true, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(x)
		defer s.Close()
		at := s.URL + ratetest.Path
		c := program(t, append(append([]string{"exec", "--to", s.URL, "--limit", "20/s", "--apart"}, flags...), "--", "sh", "-c",
			`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
				curl -s -f "$0?api_key=key1&req_id=$i" & curl -s -f -d "api_key=key1&req_id=$i" "$0" &
			done; wait`, at)...)
		c.Env = append(c.Env, "TMPDIR="+t.TempDir(), "HOME="+t.TempDir(), "K1=key1", "K2=key2")
		out, err := c.CombinedOutput()
		if served := bytes.Count(out, []byte(`"OK"`)); err != nil || served != 30 {
			t.Errorf("%s: %d served of 30, %v\n%s", name, served, err, out)
		}
		if total := x.Report().Judge.Total; total.Accepted != 30 || total.Total() != 30 {
			t.Errorf("%s: %v, want 30 accepted", name, total)
		}
	}
}
