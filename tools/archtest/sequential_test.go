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

// The packages that check calls sequential start nothing that runs beside a test: not in their code, not in their
// tests, and not in what these import of this module. So the race detector would find nothing there.
func TestSequential(t *testing.T) {
	folders := listedBy(t, "sequential")
	list := exec.Command("go", append([]string{"list", "-test", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`}, folders...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(folders, err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	tested, seen := map[string]bool{}, map[string]bool{}
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if seen[file] || strings.Contains(file, "//") { // the main of go test, by its path in a cache
			continue
		}
		seen[file] = true
		if folder, err := filepath.Rel(top, filepath.Dir(file)); err == nil && strings.HasSuffix(file, "_test.go") {
			tested["./"+filepath.ToSlash(folder)] = true
		}
		for _, at := range startsIn(t, file) {
			t.Errorf("it starts something, and what check calls sequential is built of it: %s", at)
		}
	}
	for _, folder := range folders {
		if !tested[folder] {
			t.Errorf("%s: no tests are read", folder)
		}
	}
}

// listedBy returns the folders that a function of check prints.
func listedBy(t *testing.T, function string) []string {
	script, err := os.ReadFile(filepath.Join(root, "check"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(checkLists.FindAllString(string(script), -1), "\n")
	run := exec.Command("bash", "-euc", text+"\n"+function)
	run.Dir = root
	listed, err := run.Output()
	if err != nil || len(listed) == 0 {
		t.Fatalf("%s of check prints %q: %v", function, listed, err)
	}
	return strings.Fields(string(listed))
}

// checkLists are the functions of check that print folders.
var checkLists = regexp.MustCompile(`(?ms)^(core|sequential)\(\) \{.*?^\}`)

// CI tests what check calls core with -short, too: there need.NotShort would leave out a test everywhere.
func TestNotShortIsSeenInCI(t *testing.T) {
	for _, folder := range listedBy(t, "core") {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(src), "\tneed.NotShort(") {
				t.Errorf("%s uses need.NotShort, and CI runs it with -short: use Fewer or WholeOnly of package need", file)
			}
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
