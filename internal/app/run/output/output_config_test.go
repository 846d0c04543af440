package output

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

func written(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Check refuses two names of one file, and dead letters in the file of another run.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	written(t, JournalOf(in("taken.jsonl")), "")
	for _, c := range []struct{ out, dead, want string }{
		{"a.jsonl", "", ""},
		{"a.jsonl", "a.jsonl.journal", "are one file"},
		{"taken", "", "has the dead letters of"},
	} {
		config := Config{Out: in(c.out), Format: format.Plain{}}
		if c.dead != "" {
			config.Dead = in(c.dead)
		}
		config.Name()
		if err := config.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("--out %s --dead %s: %v, want %q", c.out, c.dead, err, c.want)
		}
	}
}

// Dead letters of a table that an earlier version wrote elsewhere are named, until the run has a file of its own.
func TestEarlierDeadLettersAreNamed(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	written(t, in("x.csv"), "id\n")
	written(t, in("x.dead.jsonl"), "")
	written(t, JournalOf(in("x.jsonl")), "") // so the file may be of x.jsonl
	config := Config{Out: in("x.csv"), Format: format.Plain{}}
	config.Name()
	if text := config.shared(); !strings.Contains(text, in("x.dead.jsonl")) || config.Dead != in("x.csv.dead.jsonl") {
		t.Errorf("%q; dead letters go to %s", text, config.Dead)
	}
	written(t, config.Dead, "")
	if text := config.shared(); text != "" {
		t.Errorf("with a file of its own: %q", text)
	}
}

// A store makes missing folders, says so, and has both files open. Peek reads each file in its form: the dead letters
// of a batch behind a table are in that of a batch.
func TestOpenAndPeek(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "new", "x.jsonl")
	config := Config{Out: out, Format: format.Plain{}}
	config.Name()
	s := New(config)
	var told []string
	if err := s.Open(func(format.Entry) {}, func(text string, _ ...any) { told = append(told, text) }); err != nil {
		t.Fatal(err)
	}
	defer s.Out.Close()
	defer s.Dead.Close()
	if s.Out == nil || s.Dead == nil || s.Out == s.Dead || len(told) != 1 || !strings.Contains(told[0], "is made") {
		t.Errorf("out %v, dead %v; it says %q", s.Out, s.Dead, told)
	}

	batch := Config{Out: filepath.Join(dir, "x.csv"), Format: &format.LLM{}, Ordered: true}
	batch.Name()
	letter := (&format.LLM{}).Line(nil, &format.Result{ID: "d", State: "dead", Error: "gone"})
	written(t, batch.Dead, string(letter))
	var ids []string
	if err := New(batch).Peek(func(e format.Entry) { ids = append(ids, e.ID+" "+e.State) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"d dead"}; !slices.Equal(ids, want) {
		t.Errorf("it peeks at %q, want %q, in %s", ids, want, letter)
	}
}
