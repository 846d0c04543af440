//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
)

// A daemon in the foreground answers status, and ends by stop.
func TestDaemonVerbs(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	says := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = execute(t.Context(), append([]string{"daemon"}, args...), strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	if code, _, errs := says("status"); code != cli.ExitFailure || !strings.Contains(errs, "no daemon of this user runs") {
		t.Errorf("without a daemon: %d %q", code, errs)
	}
	begins, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- execute(t.Context(), []string{"daemon"}, strings.NewReader(""), io.Discard, w)
		w.Close()
	}()
	line := make([]byte, 512)
	n, err := begins.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "listening at ") {
		t.Fatalf("it says %q, %v", line[:n], err)
	}
	go func() { _, _ = io.Copy(io.Discard, begins) }()
	code, out, _ := says("status", "--json")
	var said daemon.Status
	if err := json.Unmarshal([]byte(out), &said); code != 0 || err != nil || said.Version != cli.Version() {
		t.Errorf("status --json: %d %q, %v", code, out, err)
	}
	if code, out, _ := says("status"); code != 0 || !strings.Contains(out, said.Socket) {
		t.Errorf("status: %d %q", code, out)
	}
	if code, _, errs := says(); code != cli.ExitConfig || !strings.Contains(errs, "runs already") {
		t.Errorf("a second daemon: %d %q", code, errs)
	}
	if code, _, errs := says("stop"); code != 0 {
		t.Errorf("stop: %d %q", code, errs)
	}
	if code := <-ended; code != 0 {
		t.Errorf("the daemon ends with %d", code)
	}
}
