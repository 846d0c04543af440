package issuer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/need"
)

func TestCommand(t *testing.T) {
	need.Program(t, "sh")
	for _, c := range []struct {
		name, line, value string
		lasts             time.Duration
		wrong             string
	}{
		{"a token", "echo abc", "abc", 0, ""},
		{"JSON", `echo '{"access_token":"abc","expires_in":3600}'`, "abc", time.Hour, ""},
		{"a pipe", "printf 'x abc' | cut -d' ' -f2; echo warning >&2", "abc", 0, ""},
		{"what it started goes on", "echo abc; sleep 60 &", "abc", 0, ""},
		{"fails", "echo secret; echo not logged in >&2; exit 3", "", 0, "exit status 3: not logged in"},
		{"no such command", "paceline-no-such-command", "", 0, "exit status 127: "},
		{"says nothing", "echo please log in >&2", "", 0, "of its standard output: it is empty, expected a token, or a JSON object with one: please log in"},
		{"too much", "yes abcdefg | tr -d '\\n' | head -c 100000", "", 0, "of its standard output: it has more than 65536 bytes"},
		{"as much as there may be", "yes abcdefg | tr -d '\\n' | head -c 65536", strings.Repeat("abcdefg", 65536/7+1)[:65536], 0, ""},
		{"a byte more", "yes abcdefg | tr -d '\\n' | head -c 65537", "", 0, "of its standard output: it has more than 65536 bytes"},
		{"hangs", "echo waiting >&2; sleep 60 | cat", "", 0, "it took longer than 500ms: waiting"},
		{"says much", "for i in 1 2 3 4 5 6 7 8 9; do echo 0123456789012345678901234567890123456789 >&2; done; echo the end >&2; exit 1", "", 0, "exit status 1: …"},
	} {
		began := time.Now()
		got, err := Command{Line: c.line, Timeout: 500 * time.Millisecond}.Issue(t.Context())
		if c.wrong == "" && err != nil && time.Since(began) > 500*time.Millisecond { // a machine that is busy
			got, err = Command{Line: c.line}.Issue(t.Context())
		}
		if got.Value != c.value || got.Lasts != c.lasts || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %+v, %v; want %s, %v, %q", c.name, got, err, c.value, c.lasts, c.wrong)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || len(err.Error()) > 2*lastWords) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A command that is broken off is gone, and so is what it started.
func TestCommandIsBrokenOff(t *testing.T) {
	need.Program(t, "sh")
	mark := filepath.Join(t.TempDir(), "mark")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	_, err := Command{Line: "(sleep 2; touch '" + mark + "') | cat"}.Issue(ctx)
	if err == nil || time.Since(began) > 1500*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	time.Sleep(max(0, 2500*time.Millisecond-time.Since(began)))
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what it started lived on: %v", err)
	}
}

// Of a command that says no end only so much is kept, however it is copied.
func TestHeadIsBounded(t *testing.T) {
	h := &head{most: 10}
	n, err := io.Copy(h, strings.NewReader(strings.Repeat("0123456789", 10_000)))
	if n != 100_000 || err != nil || string(h.b) != "0123456789" {
		t.Errorf("%d of 100000 bytes taken, %d kept, %v", n, len(h.b), err)
	}
}
