package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// library are the import paths of the packages that users import.
func library() (paths []string) {
	for _, p := range Table {
		first, _, _ := strings.Cut(p.Name, "/")
		switch {
		case p.Name == Root:
			paths = append(paths, module)
		case first == "cmd", first == "lab", first == "tools", strings.Contains("/"+p.Name+"/", "/internal/"):
		default:
			paths = append(paths, path.Join(module, p.Name))
		}
	}
	return paths
}

// examples parses the files of tests that have an Example.
func examples(t *testing.T, fset *token.FileSet, paths []string) (files []*ast.File) {
	t.Helper()
	for _, pkg := range paths {
		names, err := filepath.Glob(filepath.Join(root, strings.TrimPrefix(pkg, module), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "\nfunc Example") {
				continue
			}
			file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}

// compiled returns an importer of packages and of what they import, by the compiler's export data.
func compiled(t *testing.T, fset *token.FileSet, paths []string) types.Importer {
	t.Helper()
	list := exec.Command("go", slices.Concat(
		[]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "--"}, paths)...)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if pkg, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[pkg] = file
		}
	}
	return importer.ForCompiler(fset, "gc", func(pkg string) (io.ReadCloser, error) {
		if exports[pkg] == "" {
			return nil, fmt.Errorf("no export data of %s", pkg)
		}
		return os.Open(exports[pkg])
	})
}

// At most a fifth of the exported names of the library is in no Example and on no page. Each of the
// others is something that a reader can see in use.
func TestExamples(t *testing.T) {
	fset := token.NewFileSet()
	paths := library()
	files := examples(t, fset, paths)
	imported := slices.Clone(paths)
	for _, file := range files {
		for _, i := range file.Imports {
			if p, err := strconv.Unquote(i.Path.Value); err == nil {
				imported = append(imported, p)
			}
		}
	}
	slices.Sort(imported)
	from := compiled(t, fset, slices.Compact(imported))

	s, named := shown{}, map[string]string{}
	for _, file := range files {
		s.example(fset, file, from)
	}
	for _, p := range paths {
		named[path.Base(p)] = p
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		s.page(string(text), named)
	}

	all, without, worst, its := 0, 0, "", []string(nil)
	for _, p := range paths {
		pkg, err := from.Import(p)
		if err != nil {
			t.Fatal(err)
		}
		exported, hidden := s.without(pkg)
		if all, without = all+exported, without+len(hidden); len(hidden) > len(its) {
			worst, its = p, hidden
		}
	}
	t.Logf("%d exported names, %d of them in no Example and on no page", all, without)
	if all < 300 || len(files) < 20 {
		t.Errorf("%d names and %d files with Examples: does this test still read them?", all, len(files))
	}
	if 5*without > all {
		t.Errorf("%d of %d exported names are in no Example and on no page, more than a fifth. Most are in %s: %s. "+
			"Show what they are for, or do not export them", without, all, worst, strings.Join(its, ", "))
	}
}

// What counts as shown, and what does not.
func TestShown(t *testing.T) {
	const shop = `package shop
		type Size uint8
		const ( Small Size = iota; Large )
		const Most = 5
		type Item struct { Size Size; Price Price }
		type Price int
		type List []Item
		type Seller interface { Sell() (*Item, error) }
		func Open() Seller { return nil }
		var Closed error
		func hidden() {}`
	const all = "Closed Item Large List Most Open Price Seller Size Small"
	for _, c := range []struct{ name, file, code, page, without string }{
		{
			"nothing", "a_test.go", "func TestA() { shop.Open() }", "",
			all,
		},
		{
			"a test beside it", "a_test.go", "func ExampleX() {}\nfunc TestA() { shop.Open() }", "",
			all,
		},
		{
			"a function, and the type of its call", "a_test.go", "func ExampleX() { shop.Open() }", "",
			"Closed Item Large List Most Price Size Small",
		},
		{
			"helpers of a file of examples", "example_a_test.go", "func help() { shop.Open() }", "",
			"Closed Item Large List Most Price Size Small",
		},
		{
			"pointers and tuples", "a_test.go", "func ExampleX() { shop.Open().Sell() }", "",
			"Closed Large List Most Price Size Small",
		},
		{
			"a field, and the constants of its type", "a_test.go", "func ExampleX() { _ = shop.Item{}.Size }", "",
			"Closed List Most Open Price Seller",
		},
		{
			"a constant shows its type and its kin", "a_test.go", "func ExampleX() { _ = shop.Small }", "",
			"Closed Item List Most Open Price Seller",
		},
		{
			"elements", "a_test.go", "func ExampleX() { var l []*shop.Item; _ = l }", "",
			"Closed Large List Most Open Price Seller Size Small",
		},
		{
			"a constant without a type", "a_test.go", "func ExampleX() { _ = shop.Most }", "",
			"Closed Item Large List Open Price Seller Size Small",
		},
		{
			"an import by another name", "a_test.go", "func ExampleX() { _ = other.Closed }", "",
			"Item Large List Most Open Price Seller Size Small",
		},
		{
			"a block", "a_test.go", "", "\n```go\nx := shop.Most\n```\n",
			"Closed Item Large List Open Price Seller Size Small",
		},
		{
			"a block of a shell, and prose", "a_test.go", "", "\n```sh\nshop.Most\n```\nshop.Open",
			all,
		},
		{
			"another package's block", "a_test.go", "", "\n```go\nshed.Most\n```\n",
			all,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fset := token.NewFileSet()
			parse := func(name, text string) *ast.File {
				file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				return file
			}
			pkg, err := new(types.Config).Check("example.com/shop", fset, []*ast.File{parse("shop.go", shop)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := shown{}
			head := "package shop_test\nimport (\"example.com/shop\"; other \"example.com/shop\")\n"
			s.example(fset, parse(c.file, head+c.code), one{pkg})
			s.page(c.page, map[string]string{"shop": "example.com/shop"})
			exported, hidden := s.without(pkg)
			if got := strings.Join(hidden, " "); got != c.without || exported != 10 {
				t.Errorf("of %d without: %s\nwant of 10: %s", exported, got, c.without)
			}
		})
	}
}

// one is an importer of one package.
type one struct{ pkg *types.Package }

func (o one) Import(string) (*types.Package, error) { return o.pkg, nil }
