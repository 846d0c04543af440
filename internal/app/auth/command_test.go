package auth

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
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
		{"hangs", "echo waiting >&2; sleep 60 | cat", "", 0, "it took longer than TIMEOUT: waiting"},
		{"says much", "for i in 1 2 3 4 5 6 7 8 9; do echo 0123456789012345678901234567890123456789 >&2; done; echo the end >&2; exit 1", "", 0, "exit status 1: …"},
	} {
		var got Token
		var err error
		ok := false
		for _, most := range []time.Duration{500 * time.Millisecond, 30 * time.Second} { // the second where the machine is busy
			got, err = Command{Line: c.line, Timeout: most}.Issue(t.Context())
			wrong := strings.ReplaceAll(c.wrong, "TIMEOUT", most.String())
			ok = got.Value == c.value && got.Lasts == c.lasts && (err == nil) == (wrong == "") && (err == nil || strings.Contains(err.Error(), wrong))
			if ok {
				break
			}
		}
		if !ok {
			t.Errorf("%s: %+v, %v; want %s, %v, %q", c.name, got, err, c.value, c.lasts, c.wrong)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || len(err.Error()) > 2*lastWords) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A command that is broken off is gone with its child processes: no process holds the pipe open any
// more.
func TestCommandIsBrokenOff(t *testing.T) {
	need.Program(t, "sh")
	need.Program(t, "mkfifo")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Command{Line: "(sleep 600; true) 3> '" + pipe + "' | cat"}.Issue(ctx)
		ended <- err
	}()
	r, err := os.Open(pipe) // waits for who writes
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel()
	if err := <-ended; err == nil {
		t.Error("it ended well")
	}
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Errorf("what it started lives on: %q, %v", b, err)
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

// Of what a command says on standard error the end is kept, in whole characters, and marked where
// there was more.
func TestLastWords(t *testing.T) {
	for said, want := range map[string]string{
		"": "", " \n\t": "", "no": ": no", "no\n  go\n": ": no go", "\xff and": ": \ufffd and",
		"aaaaaaaaa": ": aaaaaaaaa", "ééééé": ": …ééééé", "aééééé": ": …ééééé",
		"éaaaaaaaaa": ": …aaaaaaaaa", "😀aaaaaaaa": ": …aaaaaaaa", "😀aaaaaaa": ": …aaaaaaa", // which begin within a character
	} {
		words := &tail{most: 10}
		for _, b := range []byte(said) {
			words.Write([]byte{b})
		}
		at := &tail{most: 10}
		at.Write([]byte(said))
		if words.String() != want || at.String() != want {
			t.Errorf("%q is told as %q and %q, want %q", said, words, at, want)
		}
	}
}
