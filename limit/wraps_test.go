package limit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

func TestWrappers(t *testing.T) {
	for name, wrap := range map[string]func(limit.Limiter) limit.Limiter{
		"All": func(l limit.Limiter) limit.Limiter {
			return limit.NewAll(l, limit.MustRolling(1000, time.Second))
		},
		"Varying": func(l limit.Limiter) limit.Limiter { return limit.NewVarying(l) },
		"Named":   func(l limit.Limiter) limit.Limiter { return limit.Named("name", l) },
		"Fitted":  func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
		"five deep": func(l limit.Limiter) limit.Limiter {
			return limit.NewFitted(limit.Named("a", limit.NewAll(limit.NewVarying(limit.Named("b", l)))))
		},
	} {
		t.Run(name, func(t *testing.T) { limittest.Wraps(t, wrap) })
	}
}

// Each optional interface of the package has a question in limittest.Wraps.
func TestWrapsAsksAll(t *testing.T) {
	if optional := optionalInterfaces(t); !slices.Equal(optional, limittest.Asked()) {
		t.Errorf("the package has the optional interfaces\n%v\nand limittest.Wraps asks about\n%v", optional, limittest.Asked())
	}
}

// optionalInterfaces returns the interfaces of the sources that embed Limiter, sorted.
func optionalInterfaces(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
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
