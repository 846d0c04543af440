package output

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// place is a file that a run writes to.
type place struct {
	called string
	path   string
	info   os.FileInfo // nil: there is nothing yet
}

// places returns all files that a run writes to, with the user's names for them.
func (c *Config) places() []place {
	var all []place
	add := func(what, path string) {
		p := place{called: what + path, path: path}
		if path == "-" {
			p.called = "standard output"
			if f, ok := c.Stdout.(*os.File); ok {
				p.info, _ = f.Stat()
			}
		} else {
			p.info, _ = os.Stat(path)
		}
		if p.info == nil && path == "-" || p.info != nil && !p.info.Mode().IsRegular() {
			return // a terminal, a pipe, a device
		}
		all = append(all, p)
	}
	if c.view != "" {
		add("--out ", c.view)
	}
	if c.view == "" {
		add("--out ", c.Out)
	} else if c.Out != "-" {
		add("the rows ", c.Out)
	}
	if c.Dead != "-" || c.Out != "-" {
		flag := "--dead "
		if _, ok := c.Format.(*format.LLM); ok {
			flag = "--errors "
		}
		add(flag, c.Dead)
	}
	if c.Summary != "" {
		add("--summary ", c.Summary)
	}
	if c.Report != "" {
		add("--report ", c.Report)
	}
	if c.Out != "-" {
		add("the journal ", JournalOf(c.Out))
		add("the journal ", JournalOf(c.Out)+".new") // a compaction writes this
	}
	return all
}

// distinct returns an error if two places are one file, or if one is the input. Otherwise lines
// would be lost, or results would be read as requests.
func (c *Config) distinct() error {
	all := c.places()
	for i, p := range all {
		if c.InputInfo != nil && p.info != nil && os.SameFile(p.info, c.InputInfo) {
			return fmt.Errorf("%s is the input", p.called)
		}
		for _, before := range all[:i] {
			if before.is(p) {
				return fmt.Errorf("%s and %s are one file", before.called, p.called)
			}
		}
	}
	return nil
}

func (p place) is(q place) bool {
	if p.info != nil && q.info != nil {
		return os.SameFile(p.info, q.info)
	}
	return p.info == nil && q.info == nil && resolved(p.path) == resolved(q.path)
}

// resolved is the path at which a file would be made, with all links followed.
func resolved(path string) string {
	const most = 40 // links; more are a circle
	for range most {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	dir, name := filepath.Split(path)
	if in, err := filepath.EvalSymlinks(filepath.Clean(dir)); err == nil {
		path = filepath.Join(in, name)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

func JournalOf(out string) string { return out + ".journal" }
