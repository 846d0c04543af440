package archtest

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
)

// begins are calls after which something runs beside the caller.
var begins = regexp.MustCompile(`^(Go|Parallel|RunParallel|AfterFunc|NewServer|NewTLSServer|NewUnstartedServer|Serve|ListenAndServe)$`)

// The packages that check calls sequential start nothing that runs beside a test: not in their code, not in their tests,
// and not in what these import of this module. So the race detector would find nothing there.
func TestSequential(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "check"))
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^sequential\(\) \{ printf '%s\\n' (.*); \}`).FindSubmatch(script)
	if listed == nil {
		t.Fatal("check has no function sequential")
	}
	for folder := range strings.FieldsSeq(string(listed[1])) {
		list := exec.Command("go", "list", "-test", "-deps", "-f",
			`{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, folder)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatal(folder, err)
		}
		tests := 0
		for file := range strings.Lines(string(out)) {
			file = strings.TrimSpace(file)
			if strings.Contains(file, "//") { // the main of go test, by its path in a cache
				continue
			}
			if strings.HasSuffix(file, "_test.go") {
				tests++
			}
			for _, at := range startsIn(t, file) {
				t.Errorf("check calls %s sequential, and %s starts something", folder, at)
			}
		}
		if tests == 0 {
			t.Errorf("%s: no tests are read", folder)
		}
	}
}

// startsIn returns the places of a file where something begins to run beside the caller.
func startsIn(t *testing.T, file string) (all []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			all = append(all, fset.Position(n.Pos()).String())
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && begins.MatchString(s.Sel.Name) {
				all = append(all, fset.Position(n.Pos()).String())
			}
		}
		return true
	})
	return all
}
