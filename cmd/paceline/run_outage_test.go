package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// when has what is written to it, and does something once it has a word.
type when struct {
	bytes.Buffer
	says string
	do   func()
}

func (w *when) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if w.do != nil && strings.Contains(w.String(), w.says) {
		w.do()
		w.do = nil
	}
	return n, err
}

// A server that comes up after it was found to be away: nothing is lost, and it is said once.
func TestRunWaitsForItsServer(t *testing.T) {
	t.Parallel()
	at := need.Address(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	defer srv.Close()
	in, out := write(t, "in.jsonl", numbered(200, "http://"+at+"/")), filepath.Join(t.TempDir(), "out.jsonl")
	said := &when{says: "nothing arrives", do: func() {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _ = srv.Serve(l) }()
	}}
	code := execute(t.Context(), []string{"run", "--limit", "100/s", "--max-outage", "30m", "--out", out, in}, strings.NewReader(""), io.Discard, said)
	stderr := said.String()
	if code != 0 || len(results(t, out)) != 200 || !strings.Contains(stderr, "200 done, 0 rejected, 0 expired, 0 dead, 0 lost") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	down := "nothing arrives at " + at + ": connection refused; one request at a time goes to see, nothing is lost\n"
	if strings.Count(stderr, down) != 1 || strings.Count(stderr, at+" is back after ") != 1 || strings.Count(stderr, at) != 2 {
		t.Errorf("said %s", stderr)
	}
}

// Nothing arrives for --max-outage: exit 5, and the same command again resumes.
func TestRunGivesUpAnOutage(t *testing.T) {
	t.Parallel()
	at := need.Address(t)
	in, out := write(t, "in.jsonl", numbered(50, "http://"+at+"/")), filepath.Join(t.TempDir(), "out.jsonl")
	for _, most := range []string{"0s", "700ms"} {
		code, _, stderr := paceline("", "run", "--limit", "none", "--max-outage", most, "--out", out, in)
		if code != cli.ExitBudget || !strings.Contains(stderr, "paceline: nothing arrives at http://"+at+" for ") ||
			!strings.Contains(stderr, "50 requests are left, and nothing is lost; the same command again resumes\n") || len(results(t, out)) != 0 {
			t.Errorf("--max-outage %s: exit %d: %s", most, code, stderr)
		}
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	defer srv.Close()
	go func() { _ = srv.Serve(l) }()
	if code, _, stderr := paceline("", "run", "--limit", "none", "--out", out, in); code != 0 || len(results(t, out)) != 50 || strings.Contains(stderr, "repeats") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A name or a certificate that is wrong from the beginning ends the run before many have tried.
func TestRunWithAWrongHost(t *testing.T) {
	t.Parallel()
	var handshakes atomic.Int32
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			handshakes.Add(1)
		}
	}
	secure.StartTLS()
	defer secure.Close()
	for url, want := range map[string]string{
		secure.URL + "/":        "paceline: a host is not there: " + secure.Listener.Addr().String() + ": the TLS handshake fails: certificate signed by unknown authority; 100 requests are left, and nothing is lost; the same command again resumes\n",
		"http://name.invalid/x": "paceline: a host is not there: name.invalid: its name cannot be resolved: no such host; 100 requests are left, and nothing is lost; the same command again resumes\n",
	} {
		in, out := write(t, "in.jsonl", numbered(100, url)), filepath.Join(t.TempDir(), "out.jsonl")
		code, _, stderr := paceline("", "run", "--limit", "20/s", "--concurrency", "4", "--out", out, in)
		if code != cli.ExitFailure || !strings.HasSuffix(stderr, want) || len(results(t, out)) != 0 {
			t.Errorf("%s: exit %d: %s\nwant %s", url, code, stderr, want)
		}
	}
	if n := handshakes.Load(); n > 30 {
		t.Errorf("%d handshakes", n)
	}
}

// With files for a few connections only, all is done by those.
func TestRunOutOfFiles(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	defer srv.Close()
	in, out := write(t, "in.jsonl", numbered(200, srv.URL)), filepath.Join(t.TempDir(), "out.jsonl")
	child := program(t, "run", "--limit", "none", "--concurrency", "64", "--attempts", "2", "--out", out, in)
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell: ", err)
	}
	child.Args = append([]string{"sh", "-c", `ulimit -n 24 && exec "$0" "$@"`, child.Path}, child.Args[1:]...)
	child.Path = sh
	said, err := child.CombinedOutput()
	if err != nil || len(results(t, out)) != 200 {
		t.Errorf("%v: %s", err, said)
	}
	if n := strings.Count(string(said), "nothing arrives"); n > 2 {
		t.Errorf("said %d times: %s", n, said)
	}
}

func TestMaxOutageFlag(t *testing.T) {
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`)
	code, _, stderr := paceline("", "run", "--limit", "none", "--max-outage", "-1s", in)
	if want := fmt.Sprintln("paceline: --max-outage -1s, expected at least 0"); code != cli.ExitUsage || stderr != want {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
