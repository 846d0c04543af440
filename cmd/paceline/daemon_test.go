//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

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

// A command that cannot read what others of its user sent says so before it sends.
func TestRecentWithoutFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	place := filepath.Join(dir, "paceline")
	if err := errors.Join(os.Mkdir(place, 0o755), os.Chmod(place, 0o755)); err != nil {
		t.Fatal(err)
	}
	for recent, want := range map[string]int{"--recent": 1, "--recent=false": 0} {
		var errs strings.Builder
		cmd := &cobra.Command{}
		cmd.SetErr(&errs)
		on := cmd.Flags().Bool("recent", true, "")
		if err := cmd.ParseFlags([]string{recent}); err != nil {
			t.Fatal(err)
		}
		folder := notesIn(cmd, *on)
		if got := errs.String(); folder != "" || strings.Count(got, "\n") != want || want > 0 && !strings.Contains(got, "mode 0755") {
			t.Errorf("%s: folder %q, and it says %q", recent, folder, got)
		}
	}
}
