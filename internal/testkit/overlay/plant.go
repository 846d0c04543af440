package overlay

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
)

// Fault is a fault that somebody wrote down. No two of its edits may be in one function.
type Fault struct {
	Name  string
	Edits []Edit
}

// Edit replaces a text inside a function, which must occur exactly once in its file.
type Edit struct {
	File       string // from the module's root, with slashes
	Text, With string
}

// Plant builds with all these faults. One is at work where the environment has AtWork of its number: its
// place in the list, from 1 on. The error names each fault whose text is not there.
func (b *Builder) Plant(faults []Fault) (*Build, error) {
	files := map[string]*planted{}
	var all []error
	for i, fault := range faults {
		for _, e := range fault.Edits {
			f := files[e.File]
			if f == nil {
				var err error
				if f, err = b.parse(e.File); err != nil {
					return nil, err
				}
				files[e.File] = f
			}
			if err := f.plant(i+1, &e); err != nil {
				all = append(all, fmt.Errorf("%s: %s %w:\n%s", fault.Name, e.File, err, e.Text))
			}
		}
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	sources := map[string][]byte{}
	for name, f := range files {
		sources[name], _ = Together(f.Text, f.changes)
		chosen, text := f.changes[0].In.Chosen(name)
		sources[chosen] = text
	}
	return b.With(sources)
}

// planted is a file with changes.
type planted struct {
	*Source
	functions []*Function
	changes   []Change
}

func (b *Builder) parse(file string) (*planted, error) {
	text, err := os.ReadFile(filepath.Join(b.Root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	s, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	p := &planted{Source: s}
	for _, d := range s.Tree.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			if f := s.Function(d); f != nil {
				p.functions = append(p.functions, f)
			}
		}
	}
	return p, nil
}

func (p *planted) plant(number int, e *Edit) error {
	text := string(p.Text)
	if n := strings.Count(text, e.Text); n != 1 {
		return fmt.Errorf("has this %d times, and not once", n)
	}
	from := strings.Index(text, e.Text)
	to := from + len(e.Text)
	for _, f := range p.functions {
		if f.body <= from && to < f.to {
			p.changes = append(p.changes, Change{number, f, from, to, e.With})
			return nil
		}
	}
	return errors.New("has this outside of functions")
}
