package archtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCallsGoDown: few calls between the files of a package go up, to a file that stands above the caller's in the table of
// files of the package comment. With -v, it lists the calls that go up, by their two files.
func TestCallsGoDown(t *testing.T) {
	for _, name := range []string{"./transport", "./internal/app/run"} {
		c, err := loadCalls("../..", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(name, c)
		for _, pair := range slices.SortedFunc(maps.Keys(c.pairs), func(a, b pair) int {
			return cmp.Or(c.pairs[b]-c.pairs[a], strings.Compare(a.from+a.to, b.from+b.to))
		}) {
			t.Logf("\t%d\t%s → %s", c.pairs[pair], pair.from, pair.to)
		}
		if 10*c.up > 3*(c.up+c.down) {
			t.Errorf("%s: %v, expected 30 %% at most", name, c)
		}
	}
}

// calls are those between the files of a package.
type calls struct {
	up, down int
	pairs    map[pair]int // those that go up
}

// pair are the files of a caller and of its callee.
type pair struct{ from, to string }

func (c calls) String() string {
	return fmt.Sprintf("%.0f %% of %d calls go up", 100*float64(c.up)/float64(max(c.up+c.down, 1)), c.up+c.down)
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// loadCalls reads a package, in the form of the go command, and counts its calls. dir is where that command runs.
func loadCalls(dir, name string) (calls, error) {
	var stderr bytes.Buffer
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", name)
	list.Dir, list.Stderr = dir, &stderr
	out, err := list.Output()
	if err != nil {
		return calls{}, fmt.Errorf("%w: %s", err, &stderr)
	}
	exports, self := map[string]string{}, listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return calls{}, err
		}
		if exports[p.ImportPath] = p.Export; !p.DepOnly {
			self = p
		}
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range self.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(self.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return calls{}, err
		}
		files = append(files, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	checked, err := config.Check(self.ImportPath, fset, files, &info)
	if err != nil {
		return calls{}, err
	}
	return countCalls(fset, files, checked, info.Uses)
}

// inTable are the names of files in a line of a table.
var inTable = regexp.MustCompile(`\b\w+\.go\b`)

// tablePlaces returns the place of each file in the table of the package comment.
func tablePlaces(files []*ast.File) map[string]int {
	places := map[string]int{}
	for _, f := range files {
		if f.Doc == nil {
			continue
		}
		for _, c := range f.Doc.List {
			line, is := strings.CutPrefix(c.Text, "//\t")
			for _, name := range inTable.FindAllString(line, -1) {
				if _, twice := places[name]; is && !twice {
					places[name] = len(places)
				}
			}
		}
	}
	return places
}

// countCalls counts the calls in the files of a package.
func countCalls(fset *token.FileSet, files []*ast.File, of *types.Package, uses map[*ast.Ident]types.Object) (calls, error) {
	places, c := tablePlaces(files), calls{pairs: map[pair]int{}}
	base := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	for _, f := range files {
		from := base(f.FileStart)
		if _, ok := places[from]; !ok && f.Doc == nil {
			return c, fmt.Errorf("%s is not in the table of the package comment", from)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			id, _ := ast.Unparen(call.Fun).(*ast.Ident)
			if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
				id = s.Sel
			}
			callee, ok := uses[id].(*types.Func)
			if !ok || callee.Pkg() != of {
				return true
			}
			switch to := base(callee.Pos()); {
			case to == from:
			case places[to] < places[from]:
				c.up++
				c.pairs[pair{from, to}]++
			default:
				c.down++
			}
			return true
		})
	}
	return c, nil
}

func TestCountCalls(t *testing.T) {
	files := map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.26\n",
		"doc.go": "// Package p has a table.\n//\n//\ta.go  the caller\n//\tb.go, c.go  the others; not x.go\npackage p\n",
		"a.go":   "package p\n\nimport \"strings\"\n\nfunc a() { b(); T{}.c(); own(); strings.ToUpper(\"\") }\n\nfunc own() {}\n",
		"b.go":   "package p\n\nfunc b() { (T).c(T{}); own() }\n",
		"c.go":   "package p\n\ntype T struct{}\n\nfunc (T) c() { b() }\n",
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(name, text)
	}
	t.Setenv("GOWORK", "off")
	c, err := loadCalls(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.String(), "40 % of 5 calls go up"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c.pairs[pair{"b.go", "a.go"}] != 1 || c.pairs[pair{"c.go", "b.go"}] != 1 || len(c.pairs) != 2 {
		t.Errorf("%v go up, want b.go → a.go and c.go → b.go", c.pairs)
	}
	write("d.go", "package p\n")
	if _, err := loadCalls(dir, "."); err == nil || !strings.Contains(err.Error(), "d.go is not in the table") {
		t.Errorf("%v, want an error that names d.go", err)
	}
}
