package mutate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
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
	type file struct {
		*editor
		numbers []int
		mutants []*Mutant
	}
	files := map[string]*file{}
	var all []error
	for i, fault := range faults {
		for _, e := range fault.Edits {
			if files[e.File] == nil {
				editor, err := b.editor(e.File)
				if err != nil {
					return nil, err
				}
				files[e.File] = &file{editor: editor}
			}
			f := files[e.File]
			m, err := f.mutant(&e)
			if err != nil {
				all = append(all, fmt.Errorf("%s: %s %w:\n%s", fault.Name, e.File, err, e.Text))
				continue
			}
			f.numbers, f.mutants = append(f.numbers, i+1), append(f.mutants, m)
		}
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	sources := map[string][]byte{}
	for name, f := range files {
		sources[name], _ = together(f.numbers, f.mutants)
		sources[path.Join(path.Dir(name), "mutant__.go")] = chosen(f.pkg)
	}
	return b.write(sources)
}

// AtWork is the line of the environment that has the fault of a number at work.
func AtWork(number int) string { return environment + "=" + strconv.Itoa(number) }

// editor makes mutants of the edits of one file.
type editor struct {
	pkg       string
	src       []byte
	functions []*function
}

func (b *Builder) editor(file string) (*editor, error) {
	src, err := os.ReadFile(filepath.Join(b.Root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		return nil, err
	}
	p := planter{src: src, base: fset.File(tree.Pos()), pkg: tree.Name.Name}
	e := &editor{pkg: p.pkg, src: src}
	for _, d := range tree.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			if f := p.function(d); f != nil {
				e.functions = append(e.functions, f)
			}
		}
	}
	return e, nil
}

func (e *editor) mutant(edit *Edit) (*Mutant, error) {
	src := string(e.src)
	if n := strings.Count(src, edit.Text); n != 1 {
		return nil, fmt.Errorf("has this %d times, and not once", n)
	}
	from := strings.Index(src, edit.Text)
	to := from + len(edit.Text)
	for _, f := range e.functions {
		if f.body <= from && to < f.to {
			return &Mutant{File: edit.File, in: f, src: e.src, from: from, to: to, text: edit.With}, nil
		}
	}
	return nil, errors.New("has this outside of functions")
}
