package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// DeadBeside is the file for dead letters beside the results in out: x.dead.jsonl for x.jsonl, and
// x.csv.dead.jsonl for x.csv. If an earlier version wrote those of a table to x.dead.jsonl, it is
// that. It is x.errors.jsonl if that is there, and the first is not: of a batch.
func DeadBeside(out string) string {
	results := out
	if exists(RowsOf(out)) {
		results = RowsOf(out)
	}
	name, ofBatch := deadBeside(out, results, format.Plain{}.DeadSuffix()), deadBeside(out, results,
		(*format.LLM)(nil).DeadSuffix())
	if !exists(name) && exists(ofBatch) {
		return ofBatch
	}
	return name
}

// deadBeside returns the file for dead letters with this suffix. results is the file behind out.
func deadBeside(out, results, suffix string) string {
	name := besideName(out, suffix)
	old, is := earlierName(out)
	if is && exists(results) && !exists(name) && exists(old+suffix) && !hasRun(old+".jsonl") && !hasRun(old) {
		return old + suffix
	}
	return name
}

func besideName(out, suffix string) string {
	out, _ = strings.CutSuffix(out, ".jsonl")
	return out + suffix
}

// earlierName returns the name of a table without its ending. Dead letters were once named by it.
func earlierName(out string) (string, bool) {
	ext := filepath.Ext(out)
	return strings.TrimSuffix(out, ext), isTable(ext)
}

// others returns an error if the results of another run have their dead letters in the same file:
// those of x.jsonl and of x. What is dead in one run would be skipped in the other.
func (c *Config) others() error {
	twin, is := strings.CutSuffix(c.deadBeside, ".jsonl")
	if !is {
		twin += ".jsonl"
	}
	if c.deadBeside == "" || !hasRun(twin) {
		return nil
	}
	return fmt.Errorf("%s has the dead letters of %s: expected a file of its own for those of --out %s (--dead)",
		c.Dead,
		twin, c.deadBeside)
}

// shared returns what the user must know of a file that had the dead letters of two runs; empty:
// nothing.
func (c *Config) shared() string {
	old, is := earlierName(c.deadBeside)
	file := old + c.Format.DeadSuffix()
	if !is || file == c.Dead || exists(c.Dead) || !exists(c.Out) || !exists(file) {
		return ""
	}
	return fmt.Sprintf("dead letters go to %s; %s, which is of %s.jsonl, may have earlier ones: --dead %s goes on with "+
		"those", c.Dead, file, old, file)
}

// hasRun reports whether a run had this --out.
func hasRun(out string) bool { return exists(JournalOf(out)) || exists(JournalOf(RowsOf(out))) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
