package nodesim_test

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/paceline-go/paceline/internal/testkit/overlay"
)

// plant builds with all these faults of a folder, named from the module's root. One is at work where the environment
// has overlay.AtWork of its number: its place in the list, from 1 on. No two edits of a fault may be in one function.
// The error names each fault whose text is not there.
func plant(b *overlay.Builder, folder string, faults []planted) (*overlay.Build, error) {
	files := map[string]*changed{}
	var all []error
	for i, fault := range faults {
		for _, e := range fault.edits {
			name := path.Join(folder, e.file)
			f := files[name]
			if f == nil {
				var err error
				if f, err = parse(b.Root, name); err != nil {
					return nil, err
				}
				files[name] = f
			}
			if err := f.plant(i+1, &e); err != nil {
				all = append(all, fmt.Errorf("%s: %s %w:\n%s", fault.name, name, err, e.text))
			}
		}
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	sources := map[string][]byte{}
	for name, f := range files {
		sources[name], _ = overlay.Together(f.Text, f.changes)
		chosen, text := f.changes[0].In.Chosen(name)
		sources[chosen] = text
	}
	return b.With(sources)
}

// changed is a file with changes.
type changed struct {
	*overlay.Source
	functions []*overlay.Function
	changes   []overlay.Change
}

func parse(root, file string) (*changed, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	s, err := overlay.Parse(file, text)
	if err != nil {
		return nil, err
	}
	c := &changed{Source: s}
	for _, d := range s.Tree.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			if f := s.Function(d); f != nil {
				c.functions = append(c.functions, f)
			}
		}
	}
	return c, nil
}

func (c *changed) plant(number int, e *edit) error {
	text := string(c.Text)
	if n := strings.Count(text, e.text); n != 1 {
		return fmt.Errorf("has this %d times, and not once", n)
	}
	from := strings.Index(text, e.text)
	to := from + len(e.text)
	for _, f := range c.functions {
		if f.Holds(from, to) {
			c.changes = append(c.changes, overlay.Change{Number: number, In: f, From: from, To: to, Text: e.with})
			return nil
		}
	}
	return errors.New("has this outside of functions")
}
