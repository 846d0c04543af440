package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/race"
)

// inArguments are the processes whose arguments have a text, but for those that were given it.
func inArguments(t *testing.T, text string, given ...int) (all []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
next:
	for _, name := range dirs {
		for _, pid := range given {
			if name == fmt.Sprintf("/proc/%d/cmdline", pid) {
				continue next
			}
		}
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(text)) {
			all = append(all, fmt.Sprintf("%s %q", name, b))
		}
	}
	return all
}

// The token of a run, and the secrets in its flags, are in the arguments of no process, whether the run
// joins a daemon or is by itself.
func TestExecSecretsInNoArguments(t *testing.T) {
	t.Parallel()
	race.Without(t)
	for _, apart := range []bool{false, true} {
		p := ofRuns(t)
		secret := "hidden-" + strconv.Itoa(os.Getpid()) + strconv.FormatBool(apart)
		c := p.program("exec", "--quiet", "--to", "http://127.0.0.1:9", "--limit", "20/s", "-H", "X-Key: "+secret, fmt.Sprint("--apart=", apart), "--",
			"sh", "-c", "env; cat >/dev/null")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var token string
		for lines := bufio.NewScanner(out); token == "" && lines.Scan(); {
			if m := tokenIn.FindStringSubmatch(lines.Text() + "\n"); m != nil {
				token = m[1]
			}
		}
		if token == "" {
			t.Fatal("the program has no token")
		}
		for _, text := range []string{token, secret} {
			if all := inArguments(t, text); len(all) > 0 {
				t.Errorf("apart %v: %.6s… is in the arguments of %s", apart, text, all)
			}
		}
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// The credential that a permit is asked for with is in no file of the daemon, none of its answers, and no
// arguments.
func TestPermitCredentialIsNowhere(t *testing.T) {
	t.Parallel()
	race.Without(t)
	p := ofRuns(t)
	p.runOf("--to", "http://127.0.0.1:9", "--limit", "2/h")
	const secret = "hidden-7654321"
	p.env = append(p.env, "KEY=Bearer "+secret)
	for range 3 {
		code, _, errs := p.runs("127.0.0.1:9", "--max-wait", "1s", "--credential-env", "KEY", "--", "sh", "-c",
			`grep -sq 'hidden-[7]' /proc/[0-9]*/cmdline && exit 9; exit 0`)
		if code == 9 || strings.Contains(errs, secret) {
			t.Errorf("exit code %d, says %s", code, errs)
		}
	}
	status := daemonStatus(t, p.env)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(status.Log), "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	read := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the socket
		}
		if read++; bytes.Contains(b, []byte("hidden")) {
			t.Errorf("a secret in %s: %s", name, b)
		}
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(status.Log), "daemon.state")); err != nil || bytes.Count(b, []byte("127.0.0.1%3A9|127.0.0.1%3A9|")) < 2 {
		t.Errorf("the permits are not in the state file: %v, %s", err, b)
	}
	said := fmt.Sprintf("%+v %+v", status, p.counts())
	if strings.Contains(said, "hidden") {
		t.Error(said)
	}
}
