package archtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Violation is one thing to mend.
type Violation struct {
	File    string // slash-separated, below the checked folder
	Line    int
	Message string // what, why, and what to do
}

func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Message) }

// Sources checks the Go files below fsys, the folder of the module called module, against table.
// The error is for what could not be read or parsed; the violations, in order of file and line, are
// of all that could.
func Sources(fsys fs.FS, module string, table []Package) ([]Violation, error) {
	c := checker{module: module, table: table, fset: token.NewFileSet()}
	var errs []error
	err := goFiles(fsys, false, func(name string) error {
		if isTest(name) {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(c.fset, name, src, 0)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		c.file(name, file)
		return nil
	})
	return sorted(c.found), errors.Join(append(errs, err)...)
}

func sorted(found []Violation) []Violation {
	slices.SortStableFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return found
}

// goFiles calls visit with each Go file below fsys, tests too, in order. Like the go command it leaves
// out testdata, vendor, what begins with a dot or an underscore, and, unless nested, modules of their own.
func goFiles(fsys fs.FS, nested bool, visit func(name string) error) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		hidden := name != "." && (base[0] == '.' || base[0] == '_')
		if d.IsDir() {
			if hidden || base == "testdata" || base == "vendor" {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil && name != "." && !nested {
				return fs.SkipDir
			}
			return nil
		}
		if hidden || !strings.HasSuffix(base, ".go") {
			return nil
		}
		return visit(name)
	})
}

// packageOf returns how the table calls the package of a file.
func packageOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return Root
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

type checker struct {
	module string
	table  []Package
	fset   *token.FileSet
	found  []Violation
}

func (c *checker) add(pos token.Pos, format string, args ...any) {
	p := c.fset.Position(pos)
	c.found = append(c.found, Violation{p.Filename, p.Line, fmt.Sprintf(format, args...)})
}

func (c *checker) file(name string, file *ast.File) {
	pkg := packageOf(name)
	i := slices.IndexFunc(c.table, func(p Package) bool { return p.Name == pkg })
	if i < 0 {
		c.add(file.Package, "package %s is not in the table: add it to tools/archtest/table_test.go and to ARCHITECTURE.md", pkg)
		return
	}
	row := c.table[i]
	c.asserts(pkg, file)
	c.logKeys(file)
	for _, spec := range file.Imports {
		c.imported(row, spec)
	}
	if row.Core {
		c.pure(row, file)
	}
}

// imported checks one import against a row.
func (c *checker) imported(row Package, spec *ast.ImportSpec) {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		c.add(spec.Pos(), "import path %s cannot be read", spec.Path.Value)
		return
	}
	ours, isOurs := strings.CutPrefix(p, c.module+"/")
	if p == c.module {
		ours, isOurs = Root, true
	}
	first, _, _ := strings.Cut(p, "/")
	advice, isOwned := owned[p]
	switch {
	case p == "C":
		c.add(spec.Pos(), "%s uses cgo: Paceline must build without a C compiler; write it in Go", row.Name)
	case isOurs:
		if !lists(row.Ours, ours) {
			c.add(spec.Pos(), "%s imports %s of ours; the table allows it %s: move the code, or change "+
				"tools/archtest/table_test.go and say why in ARCHITECTURE.md",
				row.Name, ours, cmp.Or(row.Ours, "none"))
		}
	case strings.Contains(first, "."):
		if !slices.ContainsFunc(strings.Fields(row.Modules), func(m string) bool {
			return m == "any" || p == m || strings.HasPrefix(p, m+"/")
		}) {
			c.add(spec.Pos(), "%s imports %s: libraries keep to the standard library and modules of others stay at the edges; "+
				"move the code under cmd, or change tools/archtest/table_test.go",
				row.Name, p)
		}
	case row.Core && isOwned:
		c.add(spec.Pos(), "%s imports %s, but it decides and owns no clock, lock or machine: %s", row.Name, p, advice)
	case !lists(row.Std, p):
		c.add(spec.Pos(), "%s imports %s; the table allows it %s: do without, or change tools/archtest/table_test.go and say "+
			"why in ARCHITECTURE.md",
			row.Name, p, cmp.Or(row.Std, "nothing of the standard library"))
	}
}

func lists(list, name string) bool {
	words := strings.Fields(list)
	return slices.Contains(words, name) || slices.Contains(words, "any")
}

// pure checks that a file of the core reads no clock, waits for nothing and starts nothing.
func (c *checker) pure(row Package, file *ast.File) {
	paths := map[string]string{} // import path by the name it has in this file
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			c.add(spec.Pos(), "%s imports the names of %s into its own: neither a reader nor this check sees what it uses; "+
				"import the package", row.Name, p)
			continue
		}
		paths[name] = p
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			// What the parser could resolve is declared in this file and hides the import: a parameter called rand.
			if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil {
				c.used(row, n, paths[x.Name])
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Obj == nil && (f.Name == "print" || f.Name == "println") {
				c.add(n.Pos(), "%s calls %s: %s; return a value or an error", row.Name, f.Name, prints)
			}
		case *ast.GoStmt:
			c.add(n.Pos(), "%s starts a goroutine: decisions run in their driver's; return what is to be done", row.Name)
		case *ast.SelectStmt:
			c.add(n.Pos(), "%s selects on channels: %s; return it", row.Name, sleeps)
		case *ast.ChanType:
			c.add(n.Pos(), "%s has a channel: %s; use a slice or a return value", row.Name, sleeps)
		case *ast.SendStmt:
			c.add(n.Pos(), "%s sends on a channel: %s; use a slice or a return value", row.Name, sleeps)
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				c.add(n.Pos(), "%s receives from a channel: %s; use a slice or an argument", row.Name, sleeps)
			}
		}
		return true
	})
}

// used checks a name that the core uses of the package at an import path.
func (c *checker) used(row Package, n *ast.SelectorExpr, p string) {
	name := n.Sel.Name
	if b, ok := banned[p][name]; ok {
		c.add(n.Pos(), "%s uses %s.%s: %s; %s", row.Name, base(p), name, b.why, b.instead)
	}
	if names, ok := allowed[p]; ok && !lists(names, name) {
		c.add(n.Pos(), "%s uses %s.%s: it draws from a source that no seed replays; take a *rand.Rand", row.Name, base(p),
			name)
	}
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// base returns the name of the package at an import path of the standard library or of ours.
func base(p string) string {
	if b := path.Base(p); !version.MatchString(b) {
		return b
	}
	return path.Base(path.Dir(p))
}

// In pieces, so that this file has none of what it looks for.
var (
	machinePath = regexp.MustCompile("/(wo" + "rk|fa" + "rm|ro" + "ot)/[a-z.]")
	marker      = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
)

// Text checks the named files below fsys for paths of a machine and, in Go files, for markers of unfinished work. It
// leaves out binary files and go.sum, whose checksums may contain anything.
func Text(fsys fs.FS, names []string) ([]Violation, error) {
	var found []Violation
	var errs []error
	for _, name := range names {
		if path.Base(name) == "go.sum" {
			continue
		}
		src, err := fs.ReadFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) { // git lists what was deleted but not committed
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if bytes.IndexByte(src[:min(len(src), 8000)], 0) >= 0 {
			continue
		}
		n := 0
		for line := range bytes.Lines(src) {
			n++
			if m := machinePath.Find(line); m != nil {
				found = append(found,
					Violation{name, n, fmt.Sprintf("%s… is a path of one machine and means nothing on another: write it relative to "+
						"the module, or take it as an argument", m)})
			}
			if m := marker.Find(line); m != nil && strings.HasSuffix(name, ".go") {
				found = append(found, Violation{name, n, fmt.Sprintf("%s is left open: finish it, or open an issue", m)})
			}
		}
	}
	return found, errors.Join(errs...)
}
