package output

import (
	"cmp"
	"errors"
	"io"
	"os"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// Config names the files of a run, and says what is in them.
type Config struct {
	// Out and Dead are the results and the dead letters, "-" for Stdout. If OutDir is not empty, it has a file
	// of at most MaxFile bytes for each body.
	Out, Dead, OutDir string
	MaxFile           int64
	Summary, Report   string // files that the caller writes
	Stdout            io.Writer
	InputInfo         os.FileInfo // nil: the input is no file
	Format            format.Format
	Shape             *Shape // nil: whole results
	Ordered           bool
	Table             RowFormat // SQLite or Parquet: Out is a table of that form; empty: it is none
	Rewrite           bool      // dead letters of earlier runs are sent again, so a view may change

	results format.Results // as results are written
	view    string         // the user's name for Out, if Out is a view
	// deadBeside is the user's name for Out, if Dead is the file beside it.
	deadBeside string
}

// Name completes the names of the files.
func (c *Config) Name() {
	c.results = c.Format
	if c.OutDir != "" {
		c.Out, c.results = IndexOf(c.OutDir), filed{}
	}
	c.Out = cmp.Or(c.Out, "-")
	named := c.Out
	if c.Shape != nil || c.Ordered || c.Table != "" {
		c.seenAs(named)
	}
	if c.Dead == "" {
		c.Dead = "-"
		if c.Out != "-" {
			c.Dead, c.deadBeside = deadBeside(named, c.Out, c.Format.DeadSuffix()), named
		}
	}
}

// form is how a file of results, or of dead letters, is written and read. Behind a view results are rows, and
// the dead letters of a batch are in its format, unless both go the same way.
func (c *Config) form(dead bool) form {
	if _, isBatch := c.Format.(*format.LLM); isBatch && dead && c.view != "" && c.Dead != c.Out {
		return form{c.Format, true}
	}
	return form{c.results, dead}
}

// Named returns the user's name for the results.
func (c *Config) Named() string { return cmp.Or(c.view, c.Out) }

// IsView reports whether Out is seen as rows, or in order.
func (c *Config) IsView() bool { return c.view != "" }

// Check returns an error if two of the files are one, or if another run has its dead letters there.
func (c *Config) Check() error { return errors.Join(c.distinct(), c.others()) }

// seenAs makes Out a view of the results.
func (c *Config) seenAs(out string) {
	c.view = out
	switch {
	case out != "-":
		c.Out, c.results = RowsOf(out), newRows(c)
	case c.Ordered:
		c.results = newRows(c)
	default:
		c.results = stream{newRows(c)}
	}
}

// ErrConfig says that the files of a run cannot be used as they are named.
var ErrConfig = errors.New("bad configuration")
