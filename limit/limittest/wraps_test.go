package limittest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/limit"
)

// embeds is a wrapper without any optional method.
type embeds struct{ limit.Limiter }

// A wrapper that merely embeds a Limiter hides all optional methods. It does not claim to be a
// Keeper, so that is no fault.
func TestHides(t *testing.T) {
	want := slices.DeleteFunc(asked(), func(name string) bool { return name == "Keeper" })
	var got []string
	for _, what := range hides(func(l limit.Limiter) limit.Limiter { return embeds{l} }) {
		name, _, _ := strings.Cut(what, ":")
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("a wrapper that embeds hides %v, want %v", got, want)
	}
}

// Each optional interface of package limit has a question in limittest.Wraps.
func TestWrapsAsksAll(t *testing.T) {
	optional := append(optionalInterfaces(t), "Unwrap") // which every wrapper has
	if !slices.Equal(optional, asked()) {
		t.Errorf("the package has the optional interfaces\n%v\nand Wraps asks about\n%v", optional, asked())
	}
}

// optionalInterfaces returns the interfaces of package limit's sources that embed Limiter, sorted.
func optionalInterfaces(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if it, ok := spec.Type.(*ast.InterfaceType); ok && embedsLimiter(it) {
				names = append(names, spec.Name.Name)
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

func embedsLimiter(it *ast.InterfaceType) bool {
	return slices.ContainsFunc(it.Methods.List, func(f *ast.Field) bool {
		id, ok := f.Type.(*ast.Ident)
		return ok && len(f.Names) == 0 && id.Name == "Limiter"
	})
}
