package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

var (
	code   = regexp.MustCompile("`([^`\n]+)`")
	dotted = regexp.MustCompile(`(^|[^\w.)/])([A-Za-z]\w*)\.([A-Z]\w*)`)
)

// Every Go name within a sentence of a page exists: a name of a package, or a field or method of a
// type. Blocks of Go are compiled.
func TestPagesNames(t *testing.T) {
	t.Parallel()
	names := exported(t)
	checked := 0
	for _, file := range Files(t, top) {
		if base := filepath.Base(file); base == "CHANGELOG.md" || base == "STYLE.md" { // they also name what is no more, or is not to be
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range code.FindAllStringSubmatch(string(text), -1) {
			for _, m := range dotted.FindAllStringSubmatch(span[1], -1) {
				has, known := names[m[2]]
				if !known {
					continue
				}
				if checked++; !has[m[3]] {
					t.Errorf("%s: `%s`: %s has no %s", filepath.Base(file), span[1], m[2], m[3])
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d names are on the pages", checked)
	}
}

// exported returns two kinds of names. By package: the exported names of packages for users. By
// type: its fields and methods. Packages or types with the same name are put together.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := map[string]map[string]bool{}
	add := func(owner, name string) {
		if names[owner] == nil {
			names[owner] = map[string]bool{}
		}
		names[owner][name] = true
	}
	embedded := map[string][]string{}
	need.Program(t, "git")
	// Asked for by name, and not looked for: .git stands beside them, as in pageFiles.
	list, err := exec.Command("git", "-C", top, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(list)) {
		// A program's files export nothing. If they were read, each change of one would run the tests of all pages again.
		if strings.HasPrefix(path, "cmd/") {
			continue
		}
		if strings.HasSuffix(path, "_test.go") || strings.Contains("/"+path, "/internal/") || strings.Contains(path, "/testdata/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, path), nil, parser.SkipObjectResolution)
		if os.IsNotExist(err) { // removed, and not yet in a commit
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name != "main" {
			declared(f, add, embedded)
		}
	}
	for range 3 { // of what is embedded in what is embedded, too
		for owner, all := range embedded {
			for _, e := range all {
				for name := range names[e] {
					add(owner, name)
				}
			}
		}
	}
	return names
}

// declared adds what a file declares, and notes the types that others embed.
func declared(f *ast.File, add func(owner, name string), embedded map[string][]string) {
	pkg := f.Name.Name
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(pkg, d.Name.Name)
			} else if owner := typeName(d.Recv.List[0].Type); ast.IsExported(owner) {
				add(owner, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						add(pkg, n.Name)
					}
				case *ast.TypeSpec:
					add(pkg, s.Name.Name)
					if s.Name.IsExported() {
						members(s, add, embedded)
					}
				}
			}
		}
	}
}

// members adds the fields of a struct, and the methods of an interface.
func members(s *ast.TypeSpec, add func(owner, name string), embedded map[string][]string) {
	var list []*ast.Field
	switch is := s.Type.(type) {
	case *ast.StructType:
		list = is.Fields.List
	case *ast.InterfaceType:
		list = is.Methods.List
	}
	for _, field := range list {
		for _, n := range field.Names {
			add(s.Name.Name, n.Name)
		}
		if len(field.Names) == 0 {
			name := typeName(field.Type)
			add(s.Name.Name, name)
			embedded[s.Name.Name] = append(embedded[s.Name.Name], name)
		}
	}
}

// typeName is the name of a type without its package, pointer and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}
