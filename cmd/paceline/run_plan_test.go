package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// The plan describes in words all that limits alone cannot say.
func TestAPlanSaysWhatIsWaitedForFirst(t *testing.T) {
	dir := t.TempDir()
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`)
	for _, c := range []struct{ args, want, not string }{
		{"--limit 5000/h --limit 20/s --share sqlite:" + filepath.Join(dir, "new.db"), "lets nothing go for 7 s and 1 h first", ""},
		{"--limit 5000/h", "the limits let all of it go at once", "first"},
		{"--limit none", "there is no limit", "first"},
		{"--limit auto", "nobody knows the limit: the run finds it out", "there is no limit"},
	} {
		code, stdout, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(c.args)...), in)...)
		said := strings.Join(strings.Fields(stdout), " ")
		if code != cli.ExitOK || !strings.Contains(said, c.want) || c.not != "" && strings.Contains(said, c.not) {
			t.Errorf("%s: exit code %d, expected %q and not %q:\n%s%s", c.args, code, c.want, c.not, stdout, stderr)
		}
	}
}
