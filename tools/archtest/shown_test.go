package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"strings"
)

// shown has the exported names, as "PATH.NAME", that code for users needs. Such code is compiled by a
// test: Examples, and the Go blocks of pages.
//
// A name counts as shown in four ways:
//
//   - an Example has it. In a file with "example" in its name, each declaration is part of an Example;
//   - a Go block of README.md or docs/*.md has it, behind the name of its package;
//   - it is a type, and an expression of an Example has that type: a value, a pointer, an element;
//   - it is a constant, and its type is shown. Nobody needs an example for each of 14 faults.
//
// Methods and fields do not count: they belong to their types.
type shown map[string]bool

// example reads a file of tests. from has the packages that the file imports. Errors of types are left
// to the compiler: a helper in another file has no type here.
func (s shown) example(fset *token.FileSet, file *ast.File, from types.Importer) {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: from, Error: func(error) {}}
	config.Check(file.Name.Name, fset, []*ast.File{file}, &info) //nolint:errcheck // see above
	whole := strings.Contains(path.Base(fset.Position(file.Package).Filename), "example")
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !whole && (!is || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example")) {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				s.name(info.Uses[n])
			case ast.Expr:
				s.typ(info.TypeOf(n))
			}
			return true
		})
	}
}

func (s shown) name(o types.Object) {
	if o == nil || o.Pkg() == nil {
		return
	}
	if o.Parent() == o.Pkg().Scope() {
		s[o.Pkg().Path()+"."+o.Name()] = true
	}
	if _, is := o.(*types.Var); is {
		s.typ(o.Type())
	}
}

// typ shows the types of which a value is made.
func (s shown) typ(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		s.name(t.Obj())
		s.typ(t.Rhs())
	case *types.Named:
		s.name(t.Obj())
	case *types.Pointer:
		s.typ(t.Elem())
	case *types.Slice:
		s.typ(t.Elem())
	case *types.Array:
		s.typ(t.Elem())
	case *types.Map:
		s.typ(t.Key())
		s.typ(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			s.typ(v.Type())
		}
	}
}

var (
	goBlock   = regexp.MustCompile("(?s)\n```go[^\n]*\n(.*?)\n```")
	qualified = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z]\w*)`)
)

// page reads the Go blocks of a page. paths has the packages by their names.
func (s shown) page(text string, paths map[string]string) {
	for _, block := range goBlock.FindAllStringSubmatch(text, -1) {
		for _, name := range qualified.FindAllStringSubmatch(block[1], -1) {
			s[paths[name[1]]+"."+name[2]] = true
		}
	}
}

// without returns how many names a package exports, and those that are not shown, sorted.
func (s shown) without(pkg *types.Package) (exported int, hidden []string) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		exported++
		of := ""
		if c, is := o.(*types.Const); is {
			if t, is := types.Unalias(c.Type()).(*types.Named); is {
				of = t.Obj().Pkg().Path() + "." + t.Obj().Name()
			}
		}
		if !s[pkg.Path()+"."+name] && !s[of] {
			hidden = append(hidden, name)
		}
	}
	return exported, hidden
}
